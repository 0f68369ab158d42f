//! `adit doctor`: its findings for servers that work, and for each possible fault.

use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::thread;
use std::time::Duration;

use adit_interop::dns_server::DnsServer;
use adit_interop::external_tools::{self, ToolOutput};
use adit_interop::http_server::HttpServer;
use adit_interop::shadowsocks::{AES_128, AES_256, BLAKE3_AES_128, MethodKey};
use adit_interop::ssr::SsrSetup;
use adit_interop::{AditProcess, free_port, loopback_addr};

use crate::setup::{ALLOW, bin, server, start};
use crate::ssr;

/// Runs it on `url`, with a DNS server of this machine.
pub(crate) fn doctor(url: &str, more: &[&str]) -> ToolOutput {
    let dns = DnsServer::start().unwrap();
    let mut command = Command::new(bin());
    let dns = dns.addr().to_string();
    command.args(["doctor", url, "--dns", &dns]).args(more);
    external_tools::run_to_end(command, Duration::from_secs(40)).unwrap()
}

#[track_caller]
pub(crate) fn says(ended: &ToolOutput, code: i32, parts: &[&str]) {
    assert_eq!(ended.code, Some(code), "{}", ended.output);
    for part in parts {
        assert!(
            ended.output.contains(part),
            "no `{part}` in\n{}",
            ended.output
        );
    }
}

const RIGHT: SsrSetup<'_> = SsrSetup::new("aes-256-ctr", "auth_aes128_md5", "tls1.2_ticket_auth");

fn ssr_server(setup: &SsrSetup<'_>) -> AditProcess {
    ssr::server(setup, "")
}

#[test]
fn a_server_that_works() {
    let web = HttpServer::start(&[("/", "text/plain", b"hello")]).unwrap();
    let site = format!("127.0.0.1:{}", web.port());
    for setup in [
        RIGHT,
        SsrSetup::new("none", "auth_chain_a", "http_simple"),
        SsrSetup::new("aes-128-cfb", "origin", "plain"),
        SsrSetup::new("rc4-md5", "verify_simple", "random_head"),
    ] {
        let back = ssr_server(&setup);
        for udp in ["true", "over-tcp"] {
            let url = format!("{}&udp={udp}", setup.url(back.addr()));
            let ended = doctor(&url, &["--to", &site]);
            let parts = [
                "ok       resolve",
                "ok       connect",
                "ok       dialogue",
                "ok       target",
                "ok       udp",
            ];
            says(&ended, 0, &parts);
            assert!(!ended.output.contains("failed"), "{}", ended.output);
            // The output contains no secret.
            assert!(!ended.output.contains("bar foo"), "{}", ended.output);
        }
        back.stop().unwrap();
    }
}

#[test]
fn the_right_settings_are_found_and_named() {
    for (ours, found) in [
        (
            SsrSetup {
                protocol: "auth_sha1_v4",
                ..RIGHT
            },
            "protocol=auth_aes128_md5, obfs=tls1.2_ticket_auth",
        ),
        (
            SsrSetup {
                obfs: "plain",
                ..RIGHT
            },
            "protocol=auth_aes128_md5, obfs=tls1.2_ticket_auth",
        ),
        (
            SsrSetup {
                obfs: "http_simple",
                ..RIGHT
            },
            "obfs=tls1.2_ticket_auth",
        ),
        (
            SsrSetup {
                method: "aes-128-cfb",
                ..RIGHT
            },
            "method aes-256-ctr",
        ),
        (
            SsrSetup {
                protocol: "origin",
                obfs: "plain",
                ..RIGHT
            },
            "protocol=auth_aes128_md5, obfs=tls1.2_ticket_auth",
        ),
    ] {
        let back = ssr_server(&RIGHT);
        let ended = doctor(&ours.url(back.addr()), &[]);
        says(
            &ended,
            5,
            &[
                "failed   dialogue",
                "warning: trying up to",
                "ok       settings",
                found,
                "the network can observe",
            ],
        );
        back.stop().unwrap();
    }
}

#[test]
fn a_wrong_password_is_what_remains() {
    let back = ssr_server(&SsrSetup::new("aes-256-ctr", "auth_aes128_md5", "plain"));
    let wrong = SsrSetup {
        password: "x",
        ..SsrSetup::new("aes-256-ctr", "auth_aes128_md5", "plain")
    };
    let url = wrong.url(back.addr());
    says(
        &doctor(&url, &["--tries", "6"]),
        5,
        &[
            "failed   dialogue",
            "any of 6 other settings",
            "compare the password, or",
        ],
    );
    let quiet = doctor(&url, &["--tries", "0"]);
    says(
        &quiet,
        5,
        &["failed   dialogue", "compare password, method"],
    );
    assert!(!quiet.output.contains("trying"), "{}", quiet.output);
    back.stop().unwrap();
}

#[test]
fn methods_and_keys_of_shadowsocks() {
    let back = server(AES_256);
    let same_key = |name| MethodKey { name, ..AES_256 };
    let ours = same_key(AES_128.name).url(back.addr());
    says(
        &doctor(&ours, &[]),
        5,
        &["failed   dialogue", "method aes-256-gcm"],
    );
    says(
        &doctor(&AES_256.url(back.addr()), &[]),
        0,
        &["ok       dialogue", "ok       udp"],
    );
    back.stop().unwrap();
    let back = server(BLAKE3_AES_128);
    says(
        &doctor(&BLAKE3_AES_128.url(back.addr()), &[]),
        0,
        &["ok       clock", "agree"],
    );
    let other = MethodKey {
        key: "AAAAAAAAAAAAAAAAAAAAAA==",
        ..BLAKE3_AES_128
    };
    says(
        &doctor(&other.url(back.addr()), &[]),
        5,
        &["failed   dialogue", "key-id"],
    );
    back.stop().unwrap();
}

#[test]
fn a_clock_that_is_refused() {
    let back = server(BLAKE3_AES_128);
    let mut command = Command::new(bin());
    command.args(["doctor", &BLAKE3_AES_128.url(back.addr())]);
    external_tools::shift_clock(&mut command, "-60s").unwrap();
    let ended = external_tools::run_to_end(command, Duration::from_secs(40)).unwrap();
    says(&ended, 6, &["failed   clock", "60 s"]);
    // A larger difference looks like a wrong key: both are named.
    let mut command = Command::new(bin());
    command.args(["doctor", "--tries", "0"]);
    command.arg(BLAKE3_AES_128.url(back.addr()));
    external_tools::shift_clock(&mut command, "+2d").unwrap();
    let ended = external_tools::run_to_end(command, Duration::from_secs(40)).unwrap();
    says(&ended, 5, &["failed   dialogue", "key-id", "clock is off"]);
    back.stop().unwrap();
}

#[test]
fn proxies_and_their_logins() {
    let proxy = start(&["run", &format!("mixed://u:p@127.0.0.1:0?{ALLOW}")]);
    let at = proxy.addr();
    for scheme in ["socks5", "http"] {
        says(
            &doctor(&format!("{scheme}://u:p@{at}"), &[]),
            0,
            &["ok       dialogue"],
        );
        says(
            &doctor(&format!("{scheme}://u:no@{at}"), &[]),
            5,
            &["failed   dialogue", "login"],
        );
    }
    proxy.stop().unwrap();
}

#[test]
fn nobody_there_and_no_such_name() {
    let url = RIGHT.url(loopback_addr(free_port()));
    says(
        &doctor(&url, &[]),
        4,
        &["failed   connect", "nothing listens on that port"],
    );
    let url = "ssr://aes-256-ctr:p@no-such-host.invalid:1?protocol=auth_sha1_v4";
    says(&doctor(url, &[]), 4, &["failed   resolve"]);
    says(
        &doctor("ssr://aes-256-ctr:p@h:1?protocol=auth_sha1_v5", &[]),
        3,
        &["did you mean `auth_sha1_v"],
    );
}

/// Another program listens there, which answers everything with a banner.
#[test]
fn another_program_at_the_port() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at: SocketAddr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().take(64).flatten() {
            use std::io::{Read, Write};
            let mut stream = stream;
            let _ = stream.read(&mut [0; 1024]);
            let _ =
                stream.write_all(b"SSH-2.0-OpenSSH_9.9\r\nInvalid SSH identification string.\r\n");
        }
    });
    let setup = SsrSetup::new("aes-256-ctr", "auth_aes128_md5", "plain");
    let ended = doctor(&setup.url(at), &["--tries", "3"]);
    says(&ended, 5, &["failed   dialogue"]);
}

#[test]
fn programs_get_one_object() {
    let back = ssr_server(&RIGHT);
    let dns = DnsServer::start().unwrap();
    for (setup, code, last) in [
        (RIGHT, 0, "\"step\":\"udp\""),
        (
            SsrSetup {
                protocol: "origin",
                ..RIGHT
            },
            5,
            "\"found\":\"method aes-256-ctr, protocol=auth_aes128_md5, obfs=tls1.2_ticket_auth\"",
        ),
    ] {
        let mut command = Command::new(bin());
        let url = setup.url(back.addr());
        command.args(["doctor", &url, "--json", "--dns", &dns.addr().to_string()]);
        let ended = external_tools::run_to_end(command, Duration::from_secs(40)).unwrap();
        says(
            &ended,
            code,
            &[
                last,
                &format!("\"exitCode\":{code}"),
                "{\"command\":\"doctor\",\"result\":{\"endpoint\":\"ssr://127.0.0.1:",
            ],
        );
        let count = |head: &str| ended.output.lines().filter(|l| l.starts_with(head)).count();
        assert_eq!(count("{\"command\""), 1, "{}", ended.output);
        assert_eq!(
            count("{\"error\""),
            usize::from(code != 0),
            "{}",
            ended.output
        );
    }
    back.stop().unwrap();
}

#[test]
fn far_ends_are_looked_at_too() {
    let web = HttpServer::start(&[("/", "text/plain", b"hello")]).unwrap();
    let site = format!("127.0.0.1:{}", web.port());
    let keys = "crypt=aes&mode=fast3";
    let tunnel = start(&["run", &format!("kcptun://word@127.0.0.1:0/{site}?{keys}")]);
    let url = format!("kcptun://word@{}?{keys}", tunnel.addr());
    says(
        &doctor(&url, &["--to", &site]),
        0,
        &["ok       dialogue", "ok       target", "HTTP/1"],
    );
    let other = format!("kcptun://another@{}?{keys}", tunnel.addr());
    says(&doctor(&other, &[]), 4, &["failed   dialogue", "password"]);
    tunnel.stop().unwrap();

    let silent = std::net::UdpSocket::bind(loopback_addr(0)).unwrap();
    let target = silent.local_addr().unwrap();
    let lane = start(&["run", &format!("udp+fec://127.0.0.1:0/{target}?key=word")]);
    let url = |key: &str| format!("udp+fec://{}?key={key}", lane.addr());
    says(&doctor(&url("word"), &[]), 0, &["ok       dialogue"]);
    says(&doctor(&url("another"), &[]), 4, &["failed   dialogue"]);
    lane.stop().unwrap();
}
