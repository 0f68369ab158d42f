//! The documents with a user's servers, read by the programs whose formats they have.

use std::io::{Read, Write};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use adit_interop::external_tools::{self, peer_path};
use adit_interop::origin::OriginServer;
use adit_interop::socks_client::{self, Destination};
use adit_interop::{
    ChildProcess, TEST_TIMEOUT, TempFolder, Transport, free_port, loopback_addr, wait_port,
};

use super::world::{Served, url_with};
use crate::setup::{says, start};

const QUOTA: u64 = 10_000_000_000;

/// Adds a user with a quota, and returns the path of their document.
fn add_user(served: &Served) -> String {
    path_and_url(served).0
}

fn path_and_url(served: &Served) -> (String, String) {
    let added = served.json(&["add", "anna", "--quota", "10GB/week", "--expires", "10d"]);
    let path = added["credentials"][0]["subscription"].as_str();
    let path = path.unwrap_or_else(|| panic!("{added}")).to_owned();
    (path, url_with(&added, "ss://"))
}

/// Sends bytes through the proxy at a port, and receives them back.
///
/// sing-box notes the salt of its request after it has sent it, and refuses an answer before that (`bad request salt`,
/// observed on a busy machine): the first bytes get none.
fn transfers(port: u16) {
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    let mut stream = socks_client::connect_through(loopback_addr(port), None, &to).unwrap();
    stream.write_all(b"ECHO\n").unwrap();
    sleep(Duration::from_millis(200));
    let sent: Vec<u8> = (0..=u8::MAX).cycle().take(10_000).collect();
    let mut received = vec![0; sent.len()];
    for _ in 0..30 {
        stream.write_all(&sent).unwrap();
        stream.read_exact(&mut received).unwrap();
        assert!(sent == received);
    }
}

/// Checks a document with the program that reads it, starts the program with it, and downloads through it.
fn read_by(program: &str, check: &[&str], run: &[&str], document: &str, port: u16) {
    let folder = TempFolder::new(program).unwrap();
    let file = folder.write_file("document", document).unwrap();
    let (home, path) = (folder.path().to_str().unwrap(), file.to_str().unwrap());
    let command = |args: &[&str]| {
        let mut command = Command::new(peer_path(program));
        command.args(args.iter().map(|arg| match *arg {
            "HOME" => home,
            "FILE" => path,
            arg => arg,
        }));
        command
    };
    let checked = external_tools::run_to_end(command(check), TEST_TIMEOUT).unwrap();
    checked.expect_success().expect(document);
    let mut process = ChildProcess::spawn(command(run)).unwrap();
    wait_port(Transport::Tcp, port, TEST_TIMEOUT)
        .unwrap_or_else(|why| panic!("{why}: {}", process.output()));
    transfers(port);
    process.terminate().unwrap();
}

#[test]
fn sing_box_uses_its_document() {
    let served = Served::start();
    let path = add_user(&served);
    let reply = served.ask(&format!("GET {path}?format=sing-box"), &[], "");
    assert_eq!(reply.status, 200, "{}", reply.body);
    says(&reply.head, &["content-type: application/json"]);
    let port = free_port();
    let listen = "\"listen_port\": 2080";
    assert!(reply.body.contains(listen), "{}", reply.body);
    let document = reply
        .body
        .replace(listen, &format!("\"listen_port\": {port}"));
    read_by(
        "sing-box",
        &["check", "-c", "FILE"],
        &["run", "-c", "FILE"],
        &document,
        port,
    );
    // The same by the name of the program.
    let by_agent = served.ask(&format!("GET {path}"), &["User-Agent: sing-box 1.14.1"], "");
    assert_eq!(by_agent.body, reply.body);
    served.stop();
}

#[test]
fn mihomo_uses_its_document() {
    let served = Served::start();
    let path = add_user(&served);
    let reply = served.ask(&format!("GET {path}?format=clash"), &[], "");
    assert_eq!(reply.status, 200, "{}", reply.body);
    says(&reply.head, &["content-type: application/yaml"]);
    let port = free_port();
    let listen = "mixed-port: 7890\n";
    assert!(reply.body.contains(listen), "{}", reply.body);
    let document = reply.body.replace(listen, &format!("mixed-port: {port}\n"));
    let (check, run) = (
        ["-t", "-d", "HOME", "-f", "FILE"],
        ["-d", "HOME", "-f", "FILE"],
    );
    read_by("mihomo", &check, &run, &document, port);
    let by_agent = served.ask(
        &format!("GET {path}"),
        &["User-Agent: clash-verge/v2.2.3"],
        "",
    );
    assert_eq!(by_agent.body, reply.body);
    served.stop();
}

/// Every format is read by adit, whose client transfers through the server.
#[test]
fn adit_uses_all_documents() {
    let served = Served::start();
    let path = add_user(&served);
    let folder = TempFolder::new("documents").unwrap();
    for format in ["sip008", "base64", "clash", "sing-box"] {
        let reply = served.ask(&format!("GET {path}?format={format}"), &[], "");
        assert_eq!(reply.status, 200, "{}", reply.body);
        let file = folder.write_file(format, &reply.body).unwrap();
        let listen = loopback_addr(free_port()).to_string();
        let client = start(&["client", file.to_str().unwrap(), "--listen", &listen]);
        transfers(client.addr().port());
        client.stop().unwrap();
    }
    served.stop();
}

#[test]
fn documents_have_the_usage_of_the_user() {
    let served = Served::start();
    let (path, url) = path_and_url(&served);
    let reply = served.ask(&format!("GET {path}"), &[], "");
    let usage = |head: &str| {
        let lines = head
            .lines()
            .find_map(|line| line.strip_prefix("subscription-userinfo: "));
        lines.map(str::to_owned).unwrap_or_else(|| panic!("{head}"))
    };
    let shown = usage(&reply.head);
    says(
        &shown,
        &[
            "upload=0; download=0; ",
            &format!("total={QUOTA}"),
            "expire=",
        ],
    );
    let document: serde_json::Value = serde_json::from_str(&reply.body).unwrap();
    assert_eq!(document["version"], 1);
    assert_eq!(
        (&document["bytes_used"], &document["bytes_remaining"]),
        (&0.into(), &QUOTA.into())
    );
    let client = start(&["run", "mixed://127.0.0.1:0", &url]);
    transfers(client.addr().port());
    client.stop().unwrap();
    served.wait_for(&["show", "anna"], |info| {
        info["usedDown"].as_u64() >= Some(300_000)
    });
    let reply = served.ask(&format!("GET {path}?format=clash"), &[], "");
    let shown = usage(&reply.head);
    assert!(!shown.contains("download=0;"), "{shown}");

    let wrong = served.ask(&format!("GET {path}?format=toml"), &[], "");
    assert_eq!(wrong.status, 400, "{}", wrong.body);
    says(&wrong.body, &["sip008, base64, clash, sing-box"]);
    // The format of a wrong path is not looked at.
    let other = path.replace("anna", "bert");
    assert_eq!(
        served
            .ask(&format!("GET {other}?format=toml"), &[], "")
            .status,
        404
    );
    // The user's limits are removed: the usage stays.
    served.prints(&["limit", "anna", "--quota", "none", "--expires", "none"]);
    let shown = usage(&served.ask(&format!("GET {path}"), &[], "").head);
    assert!(
        !shown.contains("total") && !shown.contains("expire"),
        "{shown}"
    );
    served.stop();
}
