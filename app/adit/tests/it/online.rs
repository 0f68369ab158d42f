//! `adit client --subscribe`: servers that a provider names.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use adit_interop::external_tools::ToolOutput;
use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::{AES_256, BLAKE3_AES_128, MethodKey};
use adit_interop::socks_client::{self, Destination};
use adit_interop::ssr::SsrSetup;
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, external_tools, traffic};

use crate::setup::{ended, server, start};
use crate::ssr;

/// A provider whose document changes. It ends with the process.
pub(crate) struct Provider {
    at: SocketAddr,
    answer: Arc<Mutex<String>>,
}

impl Provider {
    pub(crate) fn start(document: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let answer = Arc::new(Mutex::new(String::new()));
        let shared = answer.clone();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                    head.push(byte[0]);
                    if head[0] != b'G' {
                        break;
                    }
                }
                let _ = stream.write_all(shared.lock().unwrap().as_bytes());
            }
        });
        let provider = Self { at, answer };
        provider.says(document);
        provider
    }

    pub(crate) fn says(&self, document: &str) {
        let length = document.len();
        self.answers(&format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{document}"
        ));
    }

    pub(crate) fn answers(&self, answer: &str) {
        answer.clone_into(&mut self.answer.lock().unwrap());
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/secret-path", self.at)
    }
}

fn sip008(servers: &[(MethodKey, SocketAddr, &str)]) -> String {
    let servers = servers.iter().enumerate().map(|(i, (method, at, more))| {
        format!(
            r#"{{"id":"{i}","remarks":"n{i}","server":"{}","server_port":{},"password":"{}","method":"{}"{more}}}"#,
            at.ip(),
            at.port(),
            method.key,
            method.name
        )
    });
    let list: Vec<String> = servers.collect();
    format!(
        r#"{{"version":1,"servers":[{}],"bytes_used":1073741824,"bytes_remaining":3221225472}}"#,
        list.join(",")
    )
}

fn client(provider: &Provider, folder: &TempFolder) -> AditProcess {
    let url = provider.url();
    let state = folder.path().display().to_string();
    start(&[
        "client",
        "--subscribe",
        &url,
        "--refresh",
        "1s",
        "--state",
        &state,
        "-l",
        "mixed://127.0.0.1:0",
    ])
}

fn refused(more: &[&str]) -> ToolOutput {
    ended(
        &[
            &["client", "-l", "mixed://127.0.0.1:0", "--subscribe"][..],
            more,
        ]
        .concat(),
    )
}

fn lives(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    stream.write_all(b"x").is_ok() && stream.read_exact(&mut byte).is_ok() && byte == *b"x"
}

#[test]
fn servers_change_and_open_tunnels_stay() {
    let (one, two) = (server(BLAKE3_AES_128), server(AES_256));
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    let provider = Provider::start(&sip008(&[(BLAKE3_AES_128, one.addr(), "")]));
    let folder = TempFolder::new("online").unwrap();
    let mut client = client(&provider, &folder);
    let log = client.process().output();
    assert!(
        log.contains("1 server, 1.07 GB used, 3.22 GB left"),
        "{log}"
    );
    let mut old = socks_client::connect_through(client.addr(), None, &to).unwrap();
    old.write_all(b"ECHO\n").unwrap();
    assert!(lives(&mut old));

    // A document that cannot be used changes nothing.
    provider.answers("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
    client
        .process()
        .wait_lines("the current servers stay in use", 1, TEST_TIMEOUT)
        .unwrap();
    traffic::check_one_byte(socks_client::connect_through(client.addr(), None, &to).unwrap())
        .unwrap();

    provider.says(&sip008(&[(AES_256, two.addr(), "")]));
    client
        .process()
        .wait_lines("the servers have changed, there are now 1", 1, TEST_TIMEOUT)
        .unwrap();
    assert!(lives(&mut old), "an open tunnel");
    let mut new = socks_client::connect_through(client.addr(), None, &to).unwrap();
    new.write_all(b"ECHO\n").unwrap();
    assert!(lives(&mut new));
    one.stop().unwrap();
    assert!(!lives(&mut old), "it went through the first server");
    assert!(lives(&mut new), "it goes through the second");
    let log = client.process().output();
    assert!(!log.contains("secret-path"), "{log}");
    client.stop().unwrap();
    two.stop().unwrap();
}

#[test]
fn what_was_fetched_serves_when_nothing_can_be() {
    let theirs = server(BLAKE3_AES_128);
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    let provider = Provider::start(&sip008(&[(BLAKE3_AES_128, theirs.addr(), "")]));
    let folder = TempFolder::new("online").unwrap();
    client(&provider, &folder).stop().unwrap();
    let kept: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert_eq!(kept.len(), 1);
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = kept[0].metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    for answer in [
        "",
        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>",
        "HTTP/1.1 302 Found\r\nLocation: http://evil.example/\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"version\":1",
    ] {
        provider.answers(answer);
        let mut again = client(&provider, &folder);
        let log = again.process().output();
        assert!(
            log.contains("using the servers of the stored document"),
            "{answer}:\n{log}"
        );
        traffic::check_one_byte(socks_client::connect_through(again.addr(), None, &to).unwrap())
            .unwrap();
        again.stop().unwrap();
    }
    // Nothing fetched, nothing stored.
    let empty = TempFolder::new("online").unwrap();
    let state = empty.path().display().to_string();
    let failed = refused(&[&provider.url(), "--state", &state]);
    assert!(
        matches!(failed.code, Some(4)),
        "{:?}: {}",
        failed.code,
        failed.output
    );
    theirs.stop().unwrap();
}

/// Encodes in base64, as providers do with lists of links.
fn encode_text(text: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-c", "printf %s \"$1\" | base64 -w 0", "sh", text]);
    external_tools::run_to_end(command, TEST_TIMEOUT)
        .unwrap()
        .expect_success()
        .unwrap()
}

#[test]
fn other_forms_of_a_document_are_read() {
    let theirs = server(AES_256);
    let at = theirs.addr();
    let link = AES_256.url(at);
    let outline = format!(
        r#"{{"server":"{}","server_port":{},"password":"{}","method":"{}"}}"#,
        at.ip(),
        at.port(),
        AES_256.key,
        AES_256.name
    );
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    let setup = SsrSetup::new("aes-256-ctr", "auth_aes128_md5", "plain");
    let ssr_server = ssr::server(&setup, "");
    let ssr_link = ended(&["url", &setup.url(ssr_server.addr())]);
    let ssr_link = ssr_link.expect_success().unwrap().trim().to_owned();
    assert!(ssr_link.starts_with("ssr://"), "{ssr_link}");
    let list = format!("MAX=1\n{ssr_link}\n{ssr_link}\n");
    for document in [
        link.clone(),
        format!("{link}#one\n{link}#two\n"),
        outline,
        list.clone(),
        encode_text(&list),
    ] {
        let provider = Provider::start(&document);
        let folder = TempFolder::new("online").unwrap();
        let client = client(&provider, &folder);
        traffic::check_one_byte(socks_client::connect_through(client.addr(), None, &to).unwrap())
            .unwrap();
        client.stop().unwrap();
    }
    ssr_server.stop().unwrap();
    theirs.stop().unwrap();
}

#[test]
fn a_document_does_not_start_programs_or_read_files() {
    let folder = TempFolder::new("online").unwrap();
    let state = folder.path().display().to_string();
    let mark = folder.path().join("started");
    let program = folder
        .write_file(
            "plugin.sh",
            format!("#!/bin/sh\ntouch {}\n", mark.display()),
        )
        .unwrap();
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    }
    let nowhere: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let plugin = format!(r#","plugin":"{}","plugin_opts":"""#, program.display());
    let outline = format!(
        r#"{{"server":"127.0.0.1","server_port":9,"password":"x","method":"aes-256-gcm"{plugin}}}"#
    );
    for document in [
        sip008(&[(AES_256, nowhere, &plugin)]),
        outline,
        format!(
            "ss://aes-256-gcm:x@127.0.0.1:9/?plugin={}",
            program.display()
        ),
        "ss://aes-256-gcm:@%2fetc%2fpasswd@127.0.0.1:9".to_owned(),
        "[route.a]\nlisten = [\"mixed://0.0.0.0:1\"]".to_owned(),
        "direct://".to_owned(),
        "x".repeat(5 << 20),
    ] {
        let provider = Provider::start(&document);
        let failed = refused(&[&provider.url(), "--state", &state]);
        let start = document.get(..90.min(document.len())).unwrap();
        assert!(
            matches!(failed.code, Some(3 | 4)),
            "{start}: {:?}\n{}",
            failed.code,
            failed.output
        );
        assert!(!failed.output.contains("panicked"), "{}", failed.output);
    }
    assert!(!mark.exists(), "the plugin ran");
    // An allowed one runs.
    let provider = Provider::start(&sip008(&[(AES_256, nowhere, &plugin)]));
    let allowed = program.display().to_string();
    let _ = refused(&[
        &provider.url(),
        "--state",
        &state,
        "--allow-plugin",
        &allowed,
    ]);
    assert!(mark.exists(), "the plugin did not run");
}

/// A document of sing-box: a group of a server that does not answer and of one that does.
fn sing_box_document(method: MethodKey, at: SocketAddr) -> String {
    format!(
        r#"{{"outbounds":[
        {{"type":"selector","tag":"choice","outbounds":["direct","auto","good"],"default":"auto"}},
        {{"type":"urltest","tag":"auto","outbounds":["bad","good","other"],"url":"http://127.0.0.1:9/"}},
        {{"type":"socks","tag":"bad","server":"127.0.0.1","server_port":9}},
        {{"type":"shadowsocks","tag":"good","server":"{}","server_port":{},"method":"{}","password":"{}"}},
        {{"type":"trojan","tag":"other","server":"192.0.2.1","server_port":443,"password":"p"}},
        {{"type":"direct","tag":"direct"}}]}}"#,
        at.ip(),
        at.port(),
        method.name,
        method.key
    )
}

#[test]
fn a_document_of_sing_box_is_used_by_both() {
    let server = server(AES_256);
    let folder = TempFolder::new("sing-box-document").unwrap();
    let path = folder.path().join("servers.json");
    fs::write(&path, sing_box_document(AES_256, server.addr())).unwrap();
    let mut check = Command::new(external_tools::peer_path("sing-box"));
    check.arg("check").arg("-c").arg(&path);
    external_tools::run_to_end(check, TEST_TIMEOUT)
        .unwrap()
        .expect_success()
        .unwrap();

    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    let file = path.display().to_string();
    for more in [&[][..], &["--select", "good"], &["--select", "auto"]] {
        let args = [&["client", &file, "-l", "mixed://127.0.0.1:0"][..], more].concat();
        let mut client = start(&args);
        let log = client.process().output();
        assert!(
            log.contains("1 outbound of type trojan is not supported"),
            "{log}"
        );
        let mut stream = socks_client::connect_through(client.addr(), None, &to).unwrap();
        stream.write_all(b"ECHO\n").unwrap();
        assert!(lives(&mut stream), "{more:?}");
    }
    let failed = ended(&["client", &file, "--select", "unknown"]);
    assert_eq!(failed.code, Some(3), "{}", failed.output);
    assert!(
        failed
            .output
            .contains("no group or server is called `unknown`"),
        "{}",
        failed.output
    );
}

#[test]
fn a_subscription_of_clash_follows_its_provider() {
    let (one, two) = (server(BLAKE3_AES_128), server(AES_256));
    let clash = |method: MethodKey, at: SocketAddr| {
        format!(
            "proxies:\n  - {{name: a, type: ss, server: {}, port: {}, cipher: {}, password: \"{}\"}}\n\
             proxy-groups:\n  - {{name: choice, type: select, proxies: [a, DIRECT]}}\n",
            at.ip(),
            at.port(),
            method.name,
            method.key
        )
    };
    let provider = Provider::start(&clash(BLAKE3_AES_128, one.addr()));
    let folder = TempFolder::new("online-clash").unwrap();
    let mut client = client(&provider, &folder);
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    let mut stream = socks_client::connect_through(client.addr(), None, &to).unwrap();
    stream.write_all(b"ECHO\n").unwrap();
    assert!(lives(&mut stream));
    provider.says(&clash(AES_256, two.addr()));
    client
        .process()
        .wait_lines("the servers have changed, there are now 1", 1, TEST_TIMEOUT)
        .unwrap();
    drop(one);
    let mut stream = socks_client::connect_through(client.addr(), None, &to).unwrap();
    stream.write_all(b"ECHO\n").unwrap();
    assert!(lives(&mut stream));
}

#[test]
fn https_alone_is_a_subscription() {
    // It is fetched, and not used as a server.
    let plain = Provider::start("{}");
    let folder = TempFolder::new("online").unwrap();
    let state = folder.path().display().to_string();
    let address = format!("https://{}/x", plain.at);
    let failed = ended(&[
        "client",
        &address,
        "--state",
        &state,
        "-l",
        "mixed://127.0.0.1:0",
    ]);
    assert_eq!(failed.code, Some(4), "{}", failed.output);
    assert!(failed.output.contains("no TLS with"), "{}", failed.output);
    let failed = ended(&["client", "socks5://127.0.0.1:9", "--select", "a"]);
    assert_eq!(failed.code, Some(2), "{}", failed.output);
}

#[test]
fn only_https_comes_from_elsewhere() {
    for (address, word) in [
        ("http://subscriptions.example/x", "https"),
        ("http://192.0.2.1/x", "https"),
        ("ss://a@b:1", "https://"),
        ("file:///etc/passwd", "https://"),
        ("https://me:pw@a.example/", "form"),
    ] {
        let failed = refused(&[address]);
        assert_eq!(failed.code, Some(2), "{address}: {}", failed.output);
        assert!(failed.output.contains(word), "{address}: {}", failed.output);
    }
    // A server without TLS is not used.
    let plain = Provider::start("{}");
    let folder = TempFolder::new("online").unwrap();
    let state = folder.path().display().to_string();
    let address = format!("https://{}/x", plain.at);
    let failed = refused(&[&address, "--state", &state]);
    assert_eq!(failed.code, Some(4), "{}", failed.output);
}
