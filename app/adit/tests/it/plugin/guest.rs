//! adit as the plugin of another host.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use adit_interop::origin::Origin;
use adit_interop::plugin::{Libev, patiently};
use adit_interop::shadowsocks::{AES_256, Peer};
use adit_interop::socks::{self, Dest};
use adit_interop::tool::{self, Ended};
use adit_interop::traffic::{self, Ends};
use adit_interop::web::Web;
use adit_interop::{PATIENCE, Process, free_port, loopback};

use crate::setup::bin;

fn curl(proxy: SocketAddr, url: &str) -> anyhow::Result<String> {
    let mut command = Command::new("curl");
    command.args(["-q", "-sS", "--max-time", "10", "--noproxy", ""]);
    command.args(["-x", &format!("socks5h://{proxy}"), url]);
    tool::run(command, PATIENCE)?.success()
}

/// Sends streams and a page through a SOCKS5 port of shadowsocks-libev.
fn visit(proxy: SocketAddr) {
    let origin = Origin::start().unwrap();
    let to = Dest::Addr(origin.addr());
    let open = || socks::connect(proxy, None, &to);
    patiently(|| traffic::one_byte(open()?)).unwrap();
    traffic::streams(Ends::Both, open).unwrap();
    let web = Web::start(&[("/page", "text/plain", b"hello through the plugin")]).unwrap();
    let page = curl(proxy, &format!("http://localhost:{}/page", web.port()));
    assert_eq!(page.unwrap(), "hello through the plugin");
}

#[test]
fn adit_as_a_plugin_of_their_client() {
    let server = Peer::Libev.server(AES_256).unwrap();
    let client = Libev::socks(AES_256, server.addr(), &bin(), "").unwrap();
    visit(client.addr());
}

#[test]
fn adit_as_a_plugin_of_their_server() {
    let server = Libev::server(AES_256, &bin(), "server").unwrap();
    let client = Peer::Libev.socks(AES_256, server.addr()).unwrap();
    visit(client.addr());
}

#[test]
fn adit_as_a_plugin_of_both() {
    let mut server = Libev::server(AES_256, &bin(), "server").unwrap();
    let mut client = Libev::socks(AES_256, server.addr(), &bin(), "obfs=plain").unwrap();
    visit(client.addr());
    for libev in [&mut client, &mut server] {
        let told = libev.process().log();
        libev.process().terminate().unwrap();
        assert!(
            told.contains("plugin: ") && !told.contains("error"),
            "{told}"
        );
    }
    assert!(
        traffic::dial(server.addr()).is_err(),
        "adit listens there still"
    );
}

/// Returns adit as a plugin, without a host.
fn as_plugin(options: Option<&str>, remote: &str, local: SocketAddr) -> Command {
    let mut command = Command::new(bin());
    let (host, port) = remote.rsplit_once(':').unwrap();
    command
        .env("SS_REMOTE_HOST", host)
        .env("SS_REMOTE_PORT", port)
        .env("SS_LOCAL_HOST", local.ip().to_string())
        .env("SS_LOCAL_PORT", local.port().to_string());
    if let Some(options) = options {
        command.env("SS_PLUGIN_OPTIONS", options);
    }
    command
}

#[test]
fn as_a_plugin_adit_ends_well_when_it_is_told() {
    let origin = Origin::start().unwrap();
    let port = free_port();
    // As shadowsocks-libev joins them.
    let remote = format!("::0|0.0.0.0:{port}");
    let command = as_plugin(Some("server"), &remote, origin.addr());
    let mut plugin = Process::spawn(command).unwrap();
    plugin.wait_lines("plugin: server on", 1, PATIENCE).unwrap();
    let v6 = SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], port));
    for public in [loopback(port), v6] {
        traffic::streams(Ends::Each, || traffic::dial(public)).unwrap();
    }
    // Open connections do not delay it.
    let mut idle = traffic::dial(loopback(port)).unwrap();
    idle.write_all(b"ECHO\nx").unwrap();
    idle.read_exact(&mut [0]).unwrap();
    let asked = Instant::now();
    assert_eq!(
        plugin.terminate().unwrap().code(),
        Some(0),
        "{}",
        plugin.log()
    );
    assert!(asked.elapsed() < Duration::from_secs(2));
}

#[test]
fn as_a_plugin_adit_says_what_it_cannot_do() {
    let local = loopback(free_port());
    let run = |options, remote| -> Ended {
        tool::run(as_plugin(Some(options), remote, local), PATIENCE).unwrap()
    };
    let public = "a.example:443";
    for (options, remote, code, told) in [
        ("server;speed=fast", public, 3, "there is no option `speed`"),
        (
            "obfs=none",
            public,
            3,
            "there is no obfs `none`, only `plain`, `http_simple`",
        ),
        ("obfs=go_quiet;client", public, 3, "go_quiet needs a key"),
        ("server\\", public, 3, "in the middle of an escape"),
        ("client", "0.0.0.0:443", 3, "remove the option `client`"),
        (
            "server",
            "192.0.2.1:443",
            4,
            "cannot listen on 192.0.2.1:443",
        ),
    ] {
        let Ended { code: got, output } = run(options, remote);
        assert_eq!(got, Some(code), "{output}");
        let errors: Vec<&str> = output
            .lines()
            .filter(|l| l.starts_with("error: "))
            .collect();
        assert!(errors.len() == 1 && errors[0].contains(told), "{output}");
    }
    // A command takes precedence over the environment; without one of the four variables
    // there is no host.
    let mut help = as_plugin(Some("speed"), public, local);
    help.arg("--version");
    let told = tool::run(help, PATIENCE).unwrap().success().unwrap();
    assert!(told.starts_with("adit "), "{told}");
    let mut part = as_plugin(None, public, local);
    part.env_remove("SS_LOCAL_PORT");
    assert_eq!(tool::run(part, PATIENCE).unwrap().code, Some(2));
}

#[test]
fn a_target_that_is_gone_is_told_by_a_reset() {
    let local = loopback(free_port());
    let nobody = format!("127.0.0.1:{}", free_port());
    let mut plugin = Process::spawn(as_plugin(None, &nobody, local)).unwrap();
    plugin.wait_lines("plugin: client on", 1, PATIENCE).unwrap();
    // The reset may arrive before the socket knows that it is connected.
    let answer = TcpStream::connect(local).and_then(|mut stream| stream.read(&mut [0]));
    assert_eq!(answer.unwrap_err().kind(), ErrorKind::ConnectionReset);
}
