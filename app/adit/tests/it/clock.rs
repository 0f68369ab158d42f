//! A clock that is far off looks like a wrong key, until a web server is asked for the time.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::time::Duration;
use std::{fs, thread};

use adit_interop::external_tools::{self, ToolOutput};
use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::{BLAKE3_AES_128, MethodKey};
use adit_interop::socks_client::{self, Destination};
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, free_port, loopback_addr};

use crate::setup::{ALLOW, bin, says, server, start};

/// Starts a web server that answers everything with this body and the right time. It ends with the process.
fn web_server(body: &'static str, more: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let date = Command::new("date")
                .args(["-u", "+%a, %d %b %Y %H:%M:%S GMT"])
                .env("LC_ALL", "C")
                .output()
                .unwrap();
            let date = String::from_utf8(date.stdout).unwrap();
            let (date, length) = (date.trim(), body.len());
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nDate: {date}\r\n");
            let _ = stream.write_all(format!("{head}{more}\r\n{body}").as_bytes());
        }
    });
    at
}

/// Runs `adit` with a clock that is off.
fn shifted(args: &[&str], offset: &str) -> ToolOutput {
    let mut command = Command::new(bin());
    command.args(args);
    external_tools::shift_clock(&mut command, offset).unwrap();
    external_tools::run_to_end(command, Duration::from_secs(40)).unwrap()
}

#[track_caller]
fn ends(ended: &ToolOutput, code: i32, parts: &[&str]) {
    assert_eq!(ended.code, Some(code), "{}", ended.output);
    says(&ended.output, parts);
}

#[test]
fn the_time_of_a_web_server_tells_a_wrong_clock_from_a_wrong_key() {
    let back = server(BLAKE3_AES_128);
    let url = BLAKE3_AES_128.url(back.addr());
    let web = web_server("", "").to_string();
    let client = ["client", "--check", "--clock", &web, &url];
    ends(
        &shifted(&client, "+2d"),
        6,
        &[
            "does not accept us, because",
            "your clock is 1728",
            "s ahead of that of",
        ],
    );
    let doctor = ["doctor", "--tries", "0", "--clock", &web, &url];
    ends(
        &shifted(&doctor, "-2d"),
        6,
        &["failed   clock", "your clock is 1728", "s behind that of"],
    );
    // With the right clock, it is the key.
    let other = MethodKey {
        key: "AAAAAAAAAAAAAAAAAAAAAA==",
        ..BLAKE3_AES_128
    };
    let wrong = other.url(back.addr());
    ends(
        &shifted(&["client", "--check", "--clock", &web, &wrong], "+0s"),
        5,
        &["key-id"],
    );
    ends(
        &shifted(&["doctor", "--tries", "0", "--clock", &web, &wrong], "+0s"),
        5,
        &["ok       clock", "failed   dialogue"],
    );
    // The response of a cache, and a web server that is gone.
    let cache = web_server("", "Age: 90\r\n").to_string();
    ends(
        &shifted(&["client", "--check", "--clock", &cache, &url], "+2d"),
        5,
        &["does not report its time", "clock"],
    );
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    ends(
        &shifted(
            &["client", "--check", "--clock", &gone.to_string(), &url],
            "+2d",
        ),
        5,
        &["no time from", "clock"],
    );
    back.stop().unwrap();
}

#[test]
fn the_time_of_a_provider_is_used() {
    let back = server(BLAKE3_AES_128);
    let link = BLAKE3_AES_128.url(back.addr());
    let list = web_server(Box::leak(link.into_boxed_str()), "");
    let folder = TempFolder::new("clock").unwrap();
    let state = folder.path().display().to_string();
    let url = format!("http://{list}/list");
    let args = ["client", "--subscribe", &url, "--state", &state, "--check"];
    ends(
        &shifted(&args, "+2d"),
        6,
        &["does not accept us, because", "your clock is 1728"],
    );
    back.stop().unwrap();
}

/// A running client whose clock is set names the clock after one request, by seconds or by days.
#[test]
fn a_step_of_the_clock_is_named_within_one_failed_request() {
    let origin = OriginServer::start().unwrap();
    let folder = TempFolder::new("stepped").unwrap();
    // With the default reaction of servers, which is silence, and with a visible one.
    for (reaction, offset, named) in [
        ("drain", "+70s", "its clock differs by -70 s"),
        ("reset", "-1h", "its clock differs by 3600 s"),
        ("drain", "+2d", "its clock differs by -172800 s"),
    ] {
        let url = BLAKE3_AES_128.url(loopback_addr(free_port()));
        let back = start(&[
            "run",
            &format!("{url}?{ALLOW}&restart=lenient&reject={reaction}"),
        ]);
        let clock = folder.path().join("clock");
        let set_clock = |offset: &str| {
            let draft = folder.write_file("draft", offset).unwrap();
            fs::rename(draft, &clock).unwrap();
        };
        set_clock("+0s");
        let mut command = Command::new(bin());
        command.args(["run", "socks5://127.0.0.1:0", &url]);
        external_tools::shift_clock_by_file(&mut command, &clock).unwrap();
        let mut front = AditProcess::start_command(command, 1).unwrap();
        let entry = front.addr();
        let request = || {
            let to = Destination::Addr(origin.addr());
            let mut stream = socks_client::connect_through(entry, None, &to).unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(3)))
                .unwrap();
            stream.write_all(b"ECHO\nx").unwrap();
            matches!(stream.read(&mut [0]), Ok(1))
        };
        assert!(request(), "{offset}");
        // An answer that is recorded after the next request has started proves the server right.
        let answered = front
            .process()
            .wait_lines("answers, the key", 1, TEST_TIMEOUT);
        answered.unwrap();
        set_clock(offset);
        assert!(!request(), "{offset}");
        front.process().wait_lines(named, 1, TEST_TIMEOUT).unwrap();
        let log = front.process().output();
        assert_eq!(log.matches(" WARN ").count(), 1, "{log}");
        assert!(
            log.contains("clock was set while adit was running"),
            "{log}"
        );
        front.stop().unwrap();
        back.stop().unwrap();
    }
}
