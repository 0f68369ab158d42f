//! `adit doctor` checks endpoints of every scheme of `adit help URLS`.

use std::net::UdpSocket;

use adit_interop::http_server::HttpServer;
use adit_interop::shadowsocks::BLAKE3_AES_128;
use adit_interop::ssr::SsrSetup;
use adit_interop::{free_port, loopback_addr};

use crate::doctor::{doctor, says};
use crate::setup::{ALLOW, ended, server, start};
use crate::ssr;

/// Returns the schemes of `adit help URLS`.
fn documented_schemes() -> Vec<String> {
    let help = ended(&["help", "URLS"]).expect_success().unwrap();
    let names = help.lines().filter_map(|line| {
        let (name, _) = line.strip_prefix("  ")?.split_once("://")?;
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '+';
        (!name.is_empty() && name.chars().all(is_name)).then(|| name.to_owned())
    });
    names.collect()
}

#[test]
fn every_scheme_is_checked() {
    let web = HttpServer::start(&[("/", "text/plain", b"hello")]).unwrap();
    let site = format!("127.0.0.1:{}", web.port());
    let silent = UdpSocket::bind(loopback_addr(0)).unwrap();
    let quiet = silent.local_addr().unwrap();
    let nowhere = loopback_addr(free_port());

    let proxy = start(&["run", &format!("mixed://127.0.0.1:0?{ALLOW}")]);
    let shadowsocks = server(BLAKE3_AES_128);
    let setup = SsrSetup::new("aes-256-ctr", "auth_aes128_md5", "plain");
    let shadowsocksr = ssr::server(&setup, "");
    let forwarder = start(&["run", &format!("tcp://127.0.0.1:0/{site}")]);
    let keys = "crypt=aes&mode=fast3";
    let tunnel = start(&["run", &format!("kcptun://word@127.0.0.1:0/{site}?{keys}")]);
    let names = start(&["run", "dns://127.0.0.1:0"]);
    let carried = format!("ss+kcp://2022-blake3-aes-128-gcm:KEY@127.0.0.1:0?{ALLOW}");
    let carried = carried.replace(
        "KEY",
        &adit_interop::shadowsocks::percent_encode(BLAKE3_AES_128.key),
    );
    let carrier = start(&["run", &carried]);

    let (http, tcp) = (proxy.addr(), forwarder.addr());
    let understood: &[&str] = &["ok       dialogue"];
    let cases = [
        (
            "mixed",
            format!("mixed://{http}"),
            0,
            &["SOCKS5 with no login", "HTTP CONNECT with no login"][..],
        ),
        ("socks5", format!("socks5://{http}"), 0, understood),
        ("socks4a", format!("socks4a://{http}"), 0, understood),
        ("http", format!("http://{http}"), 0, understood),
        ("ss", BLAKE3_AES_128.url(shadowsocks.addr()), 0, understood),
        (
            "ss+kcp",
            carried
                .replace("127.0.0.1:0", &carrier.addr().to_string())
                .replace(&format!("?{ALLOW}"), ""),
            0,
            understood,
        ),
        ("ssr", setup.url(shadowsocksr.addr()), 0, understood),
        (
            "ssh",
            format!("ssh://me:word@{nowhere}"),
            4,
            &["failed   connect"],
        ),
        (
            "tcp",
            format!("tcp://{tcp}/{site}"),
            0,
            &["ok       connect", "ok       target"],
        ),
        (
            "tcp",
            format!("tcp://{tcp}/{nowhere}"),
            4,
            &[
                "ok       connect",
                "failed   target",
                "last server connects",
            ],
        ),
        (
            "tcp",
            format!("tcp://{nowhere}/{site}"),
            4,
            &["failed   connect", "adit run URL"],
        ),
        (
            "tcp",
            format!("tcp://{tcp}"),
            0,
            &["ok       connect", "skipped  target"],
        ),
        (
            "udp",
            format!("udp://{tcp}/{quiet}"),
            0,
            &["skipped  connect", "skipped  target"],
        ),
        (
            "tcp+udp",
            format!("tcp+udp://{tcp}/{site}"),
            0,
            &["ok       connect", "ok       target"],
        ),
        (
            "kcptun",
            format!("kcptun://word@{}?{keys}", tunnel.addr()),
            0,
            understood,
        ),
        (
            "redir",
            format!("redir://{nowhere}"),
            4,
            &["failed   connect"],
        ),
        (
            "tproxy",
            format!("tproxy://{nowhere}"),
            4,
            &["failed   connect"],
        ),
        (
            "dns",
            format!("dns://{}", names.addr()),
            0,
            &["ok       connect", "ok       query", "skipped  servers"],
        ),
        (
            "dns",
            format!("dns://{nowhere}?tcp=false"),
            4,
            &["failed   query", "adit run"],
        ),
        (
            "direct",
            "direct://".to_owned(),
            0,
            &[
                "ok       cpu",
                std::env::consts::ARCH,
                "; ciphers: ",
                "ok       udp",
            ],
        ),
        (
            "reject",
            "reject://".to_owned(),
            0,
            &["refuses every request"],
        ),
    ];
    let schemes = documented_schemes();
    assert!(schemes.len() >= 15, "{schemes:?}");
    for scheme in &schemes {
        let is_checked = cases.iter().any(|(name, ..)| name == scheme);
        assert!(is_checked, "`adit doctor` is not tested with `{scheme}://`");
    }
    for (_, url, code, parts) in &cases {
        says(&doctor(url, &[]), *code, parts);
    }
    // Without a server, the target is connected to directly.
    let direct = doctor("direct://", &["--to", &site]);
    says(
        &direct,
        0,
        &["ok       target", "answers: HTTP/1", "ok       udp"],
    );
    assert!(
        !direct.output.contains("through the server"),
        "{}",
        direct.output
    );
    let gone = doctor("direct://", &["--to", &nowhere.to_string()]);
    says(&gone, 4, &["failed   target", "does not answer"]);
    // A proxy that runs without one of its protocols is not a mixed one.
    let socks = start(&["run", "socks5://127.0.0.1:0"]);
    let url = format!("mixed://{}", socks.addr());
    says(
        &doctor(&url, &[]),
        5,
        &["SOCKS5 with no login", "failed   dialogue"],
    );
    let object = doctor("reject://", &["--json"]);
    says(
        &object,
        0,
        &["\"endpoint\":\"reject://\"", "\"state\":\"skipped\""],
    );
    for one in [
        proxy,
        shadowsocks,
        shadowsocksr,
        forwarder,
        tunnel,
        carrier,
        socks,
    ] {
        one.stop().unwrap();
    }
}
