//! adit as the plugin of another host.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use adit_interop::external_tools::{self, ToolOutput};
use adit_interop::http_server::HttpServer;
use adit_interop::origin::OriginServer;
use adit_interop::plugin::{LibevPluginHost, retry_until_success};
use adit_interop::shadowsocks::{AES_256, ShadowsocksPeer};
use adit_interop::socks_client::{self, Destination};
use adit_interop::traffic::{self, CloseBehavior};
use adit_interop::{ChildProcess, TEST_TIMEOUT, free_port, loopback_addr};

use crate::setup::bin;

fn curl(proxy: SocketAddr, url: &str) -> anyhow::Result<String> {
    let mut command = Command::new("curl");
    command.args(["-q", "-sS", "--max-time", "10", "--noproxy", ""]);
    command.args(["-x", &format!("socks5h://{proxy}"), url]);
    external_tools::run_to_end(command, TEST_TIMEOUT)?.expect_success()
}

/// Sends streams and a page through a SOCKS5 port of shadowsocks-libev.
fn visit(proxy: SocketAddr) {
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    let open = || socks_client::connect_through(proxy, None, &to);
    retry_until_success(|| traffic::check_one_byte(open()?)).unwrap();
    traffic::check_streams(CloseBehavior::OnEitherEnd, open).unwrap();
    let web = HttpServer::start(&[("/page", "text/plain", b"hello through the plugin")]).unwrap();
    let page = curl(proxy, &format!("http://localhost:{}/page", web.port()));
    assert_eq!(page.unwrap(), "hello through the plugin");
}

#[test]
fn adit_as_a_plugin_of_their_client() {
    let server = ShadowsocksPeer::Libev.start_server(AES_256).unwrap();
    let client = LibevPluginHost::start_socks_client(AES_256, server.addr(), &bin(), "").unwrap();
    visit(client.addr());
}

#[test]
fn adit_as_a_plugin_of_their_server() {
    let server = LibevPluginHost::start_server(AES_256, &bin(), "server").unwrap();
    let client = ShadowsocksPeer::Libev
        .start_socks_client(AES_256, server.addr())
        .unwrap();
    visit(client.addr());
}

#[test]
fn adit_as_a_plugin_of_both() {
    let mut server = LibevPluginHost::start_server(AES_256, &bin(), "server").unwrap();
    let mut client =
        LibevPluginHost::start_socks_client(AES_256, server.addr(), &bin(), "obfs=plain").unwrap();
    visit(client.addr());
    for libev in [&mut client, &mut server] {
        let told = libev.process().output();
        libev.process().terminate().unwrap();
        assert!(
            told.contains("plugin: ") && !told.contains("error"),
            "{told}"
        );
    }
    assert!(
        traffic::connect_directly(server.addr()).is_err(),
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
    let origin = OriginServer::start().unwrap();
    let port = free_port();
    // As shadowsocks-libev joins them.
    let remote = format!("::0|0.0.0.0:{port}");
    let command = as_plugin(Some("server"), &remote, origin.addr());
    let mut plugin = ChildProcess::spawn(command).unwrap();
    plugin
        .wait_lines("plugin: server on", 1, TEST_TIMEOUT)
        .unwrap();
    let v6 = SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], port));
    for public in [loopback_addr(port), v6] {
        traffic::check_streams(CloseBehavior::Independent, || {
            traffic::connect_directly(public)
        })
        .unwrap();
    }
    // Open connections do not delay it.
    let mut idle = traffic::connect_directly(loopback_addr(port)).unwrap();
    idle.write_all(b"ECHO\nx").unwrap();
    idle.read_exact(&mut [0]).unwrap();
    let asked = Instant::now();
    assert_eq!(
        plugin.terminate().unwrap().code(),
        Some(0),
        "{}",
        plugin.output()
    );
    assert!(asked.elapsed() < Duration::from_secs(2));
}

#[test]
fn as_a_plugin_adit_says_what_it_cannot_do() {
    let local = loopback_addr(free_port());
    let run = |options, remote| -> ToolOutput {
        external_tools::run_to_end(as_plugin(Some(options), remote, local), TEST_TIMEOUT).unwrap()
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
        let ToolOutput { code: got, output } = run(options, remote);
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
    let told = external_tools::run_to_end(help, TEST_TIMEOUT)
        .unwrap()
        .expect_success()
        .unwrap();
    assert!(told.starts_with("adit "), "{told}");
    let mut part = as_plugin(None, public, local);
    part.env_remove("SS_LOCAL_PORT");
    assert_eq!(
        external_tools::run_to_end(part, TEST_TIMEOUT).unwrap().code,
        Some(2)
    );
}

#[test]
fn a_target_that_is_gone_is_told_by_a_reset() {
    let local = loopback_addr(free_port());
    let nobody = format!("127.0.0.1:{}", free_port());
    let mut plugin = ChildProcess::spawn(as_plugin(None, &nobody, local)).unwrap();
    plugin
        .wait_lines("plugin: client on", 1, TEST_TIMEOUT)
        .unwrap();
    // The reset may arrive before the socket knows that it is connected.
    let answer = TcpStream::connect(local).and_then(|mut stream| stream.read(&mut [0]));
    assert_eq!(answer.unwrap_err().kind(), ErrorKind::ConnectionReset);
}
