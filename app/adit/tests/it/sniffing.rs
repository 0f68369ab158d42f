//! `sniff=true`: rules see the names in the first bytes of clients that request addresses.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use adit_interop::external_tools::{self, ToolOutput};
use adit_interop::http_server::HttpServer;
use adit_interop::shadowsocks::BLAKE3_AES_128;
use adit_interop::socks_client::{self, CONNECT, Destination};
use adit_interop::{
    AditProcess, BytePattern, Checksum, ChildProcess, TEST_TIMEOUT, TempFolder, Transport,
    free_port, loopback_addr, wait_port,
};

use crate::setup::{ALLOW, bin, ended, says, start};
use crate::ssh_hop::Ours;

/// The time that a listener waits for a name.
const MAX_WAIT: Duration = Duration::from_millis(300);

/// Rules about names, with `via` for those that no rule is about.
fn route(listen: &[String], via: &str) -> String {
    format!(
        r#"
[route.names]
listen = {listen:?}
via = "{via}"
rules = [
  {{ match = "suffix:blocked.test", via = "reject://" }},
  {{ match = "suffix:good.test", via = "direct://" }},
]
"#
    )
}

fn run_file(folder: &TempFolder, toml: &str, listeners: usize) -> AditProcess {
    let file = folder.write_file("adit.toml", toml).unwrap();
    let args = ["run", "-vv", "-c", file.to_str().unwrap()];
    AditProcess::start_with(&bin(), &args, listeners).unwrap()
}

/// Starts a listener with `sniff=true` that reaches targets with a known name alone, and one without.
fn run_two(folder: &TempFolder) -> AditProcess {
    let plain = "mixed://127.0.0.1:0".to_owned();
    let listen = [format!("{plain}?sniff=true"), plain];
    run_file(folder, &route(&listen, "reject://"), 2)
}

/// Requests the address 127.0.0.1 through a proxy, for a URL with another name.
fn curl(proxy: &str, host: &str, port: u16, more: &[&str]) -> ToolOutput {
    let mut command = Command::new("curl");
    command.args([
        "-q",
        "-sS",
        "--max-time",
        "30",
        "--noproxy",
        "",
        "-x",
        proxy,
    ]);
    command.args(["--resolve", &format!("{host}:{port}:127.0.0.1")]);
    command.args(more);
    external_tools::run_to_end(command, Duration::from_secs(40)).unwrap()
}

fn socks(proxy: SocketAddr) -> String {
    format!("socks5://{proxy}")
}

fn request_address(proxy: SocketAddr, to: SocketAddr) -> (TcpStream, u8) {
    let request = socks_client::perform_request(proxy, None, CONNECT, &Destination::Addr(to));
    let (stream, reply) = request.unwrap();
    (stream, reply.code)
}

#[test]
fn the_host_of_a_request_decides() {
    let big = BytePattern::new(7).next_bytes(3_000_000);
    let files: [(&str, &str, &[u8]); 2] = [("/", "text/plain", b"a page"), ("/big", "x/y", &big)];
    let web = HttpServer::start(&files).unwrap();
    let port = web.port();
    let folder = TempFolder::new("sniff").unwrap();
    let upload = folder.write_file("upload", &big).unwrap();
    let adit = run_two(&folder);
    let (sniffing, plain) = (socks(adit.addrs()[0]), socks(adit.addrs()[1]));
    let get = |proxy: &str, host: &str, path: &str| {
        curl(proxy, host, port, &[&format!("http://{host}:{port}{path}")])
    };

    let page = get(&sniffing, "www.good.test", "/").expect_success();
    assert_eq!(page.unwrap(), "a page");
    let data = format!("@{}", upload.display());
    let url = format!("http://www.good.test:{port}/up");
    let sent = curl(
        &sniffing,
        "www.good.test",
        port,
        &["--data-binary", &data, &url],
    );
    let sent = sent.expect_success().unwrap();
    let sum = Checksum::EMPTY.extend_with(&big).0;
    assert_eq!(sent, format!("{} {sum:016x}", big.len()));
    let asked = web.requests().len();
    for host in ["www.blocked.test", "other.test"] {
        assert_ne!(get(&sniffing, host, "/").code, Some(0), "{host}");
    }
    assert_eq!(web.requests().len(), asked);

    // Without the key the address has no name.
    assert_ne!(get(&plain, "www.good.test", "/").code, Some(0));
    // A name in the request is not replaced: this one is `localhost`.
    let other = [
        "-H",
        "Host: www.good.test",
        &format!("http://localhost:{port}/"),
    ];
    let by_name = sniffing.replace("socks5:", "socks5h:");
    assert_ne!(curl(&by_name, "x", 1, &other).code, Some(0));
    adit.stop().unwrap();
}

/// A TLS server of OpenSSL, which answers each request with a page.
fn tls_server(folder: &Path) -> (ChildProcess, u16) {
    let mut command = Command::new("openssl");
    command
        .current_dir(folder)
        .args(["req", "-x509", "-nodes", "-subj", "/CN=any"]);
    command.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    command.args(["-keyout", "key.pem", "-out", "cert.pem"]);
    let made = external_tools::run_to_end(command, Duration::from_secs(30)).unwrap();
    made.expect_success().unwrap();
    let port = free_port();
    let mut command = Command::new("openssl");
    command
        .current_dir(folder)
        .args(["s_server", "-www", "-quiet"]);
    command.args(["-key", "key.pem", "-cert", "cert.pem"]);
    command.args(["-accept", &format!("127.0.0.1:{port}")]);
    let server = ChildProcess::spawn(command).unwrap();
    wait_port(Transport::Tcp, port, TEST_TIMEOUT).unwrap();
    (server, port)
}

#[test]
fn the_server_name_of_tls_decides() {
    let folder = TempFolder::new("sniff-tls").unwrap();
    let (_server, port) = tls_server(folder.path());
    let adit = run_two(&folder);
    let proxy = adit.addrs()[0];
    let https = |proxy: &str, host: &str| {
        let url = format!("https://{host}:{port}/");
        // CONNECT has the name, unless the client connects to something else.
        let to = format!("{host}:{port}:127.0.0.1:{port}");
        curl(proxy, host, port, &["-k", "--connect-to", &to, &url])
    };
    for proxy in [socks(proxy), format!("http://{proxy}")] {
        let page = https(&proxy, "www.good.test").expect_success().unwrap();
        assert!(page.contains("TLSv1.3"), "{page}");
        for host in ["www.blocked.test", "other.test"] {
            assert_ne!(https(&proxy, host).code, Some(0), "{host}");
        }
    }
    // CONNECT to an address, by another client.
    let connect = |host: &str| {
        let mut command = Command::new("openssl");
        command.args([
            "s_client",
            "-proxy",
            &proxy.to_string(),
            "-servername",
            host,
        ]);
        command.args(["-connect", &format!("127.0.0.1:{port}")]);
        command.stdin(Stdio::null());
        external_tools::run_to_end(command, Duration::from_secs(30)).unwrap()
    };
    let good = connect("A.Good.Test").expect_success().unwrap();
    assert!(good.contains("Cipher is TLS_"), "{good}");
    let blocked = connect("blocked.test");
    assert!(
        !blocked.output.contains("Cipher is TLS_"),
        "{}",
        blocked.output
    );
    adit.stop().unwrap();
}

/// Starts a server that sends a line to each client before it reads.
fn greeter() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || -> std::io::Result<()> {
                stream.write_all(b"220 ready\r\n")?;
                let mut sent = Vec::new();
                stream.read_to_end(&mut sent)?;
                stream.write_all(&sent)
            });
        }
    });
    addr
}

#[test]
fn servers_that_send_first_and_slow_clients_wait_for_a_moment() {
    let folder = TempFolder::new("sniff-first").unwrap();
    let listen = ["mixed://127.0.0.1:0?sniff=true".to_owned()];
    let adit = run_file(&folder, &route(&listen, "direct://"), 1);
    let server = greeter();

    let since = Instant::now();
    let (mut client, code) = request_address(adit.addr(), server);
    let mut line = [0; 11];
    client.read_exact(&mut line).unwrap();
    assert_eq!((&line, code), (b"220 ready\r\n", 0));
    let waited = since.elapsed();
    assert!(
        waited >= MAX_WAIT && waited < Duration::from_secs(5),
        "{waited:?}"
    );

    // The start of a hello that never ends: its bytes arrive in order, with all others.
    let hello = [&[22, 3, 1, 2, 0, 1, 0, 1, 0xfc][..], &[3; 40]].concat();
    let (mut client, _) = request_address(adit.addr(), server);
    let since = Instant::now();
    for part in hello.chunks(7) {
        client.write_all(part).unwrap();
        thread::sleep(Duration::from_millis(100));
    }
    client.read_exact(&mut line).unwrap();
    assert!(since.elapsed() < Duration::from_secs(5));
    client.write_all(b"the end").unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut echoed = Vec::new();
    client.read_to_end(&mut echoed).unwrap();
    assert_eq!(echoed, [&hello[..], b"the end"].concat());

    // A client that sends nothing at all and ends.
    let (mut client, _) = request_address(adit.addr(), server);
    client.shutdown(std::net::Shutdown::Write).unwrap();
    client.read_to_end(&mut echoed).unwrap();
    assert!(echoed.ends_with(b"220 ready\r\n"));
    adit.stop().unwrap();
}

#[test]
fn replies_are_early_only_where_a_name_decides() {
    let folder = TempFolder::new("sniff-early").unwrap();
    let closed = loopback_addr(free_port());
    let listen = ["mixed://127.0.0.1:0?sniff=true".to_owned()];
    let toml = format!(
        "{}{}",
        route(&listen, "direct://"),
        r#"
[route.networks]
listen = "mixed://127.0.0.1:0?sniff=true"
rules = [
  { match = "127.0.0.1", via = "direct://" },
  { match = "suffix:blocked.test", via = "reject://" },
]
"#
    );
    let adit = run_file(&folder, &toml, 2);
    // The reply for success, and then the end of the connection.
    let (mut client, code) = request_address(adit.addrs()[0], closed);
    client.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let end = client.read(&mut [0]);
    assert!(code == 0 && !matches!(end, Ok(1)), "{code} {end:?}");
    // The reply of the failure.
    let (_client, code) = request_address(adit.addrs()[1], closed);
    assert_eq!(code, 5);
    adit.stop().unwrap();
}

#[test]
fn listeners_with_keys_find_names_behind_their_headers() {
    let web = HttpServer::start(&[("/", "text/plain", b"a page")]).unwrap();
    let port = web.port();
    let get = |front: &AditProcess, host: &str| {
        let url = format!("http://{host}:{port}/");
        curl(&socks(front.addr()), host, port, &[&url])
    };
    let decides = |hop: &str| {
        let front = start(&["run", "-L", "mixed://127.0.0.1:0", "-F", hop]);
        let page = get(&front, "good.test").expect_success();
        assert_eq!(page.unwrap(), "a page", "{hop}");
        let asked = web.requests().len();
        assert_ne!(get(&front, "blocked.test").code, Some(0), "{hop}");
        assert_eq!(web.requests().len(), asked, "{hop}");
        front.stop().unwrap();
    };
    let folder = TempFolder::new("sniff-keyed").unwrap();
    let (ss, ssr) = (loopback_addr(free_port()), loopback_addr(free_port()));
    let (ss, ssr) = (
        BLAKE3_AES_128.url(ss),
        format!("ssr://aes-256-cfb:secret@{ssr}?protocol=auth_chain_a&obfs=http_simple"),
    );
    let listen = [
        format!("{ss}?{ALLOW}&sniff=true"),
        format!("{ssr}&{ALLOW}&sniff=true"),
    ];
    let back = run_file(&folder, &route(&listen, "reject://"), 2);
    decides(&ss);
    decides(&ssr);
    back.stop().unwrap();

    // A listener for SSH, with its keys from another.
    let keys = Ours::start("");
    let at = keys.folder.path().display();
    let listen = format!(
        "ssh://ann:secret@127.0.0.1:{}?host_key=@{at}/host&authorized_keys=@{at}/id.pub&{ALLOW}&sniff=true",
        keys.adit.addr().port()
    );
    let hop = keys.hop();
    keys.adit.stop().unwrap();
    let back = run_file(&folder, &route(&[listen], "reject://"), 1);
    decides(&hop);
    back.stop().unwrap();
}

#[test]
fn explain_has_the_name() {
    let folder = TempFolder::new("sniff-explain").unwrap();
    let listen = ["redir://127.0.0.1:1?sniff=true".to_owned()];
    let file = folder
        .write_file("a.toml", route(&listen, "direct://"))
        .unwrap();
    let explain = |more: &[&str]| {
        let args = [&["explain", "-c", file.to_str().unwrap()][..], more].concat();
        ended(&args)
    };
    let drawn = explain(&[]).expect_success().unwrap();
    says(&drawn, &["names for rules from first bytes"]);
    let target = ["--target", "192.0.2.1"];
    let none = explain(&target).expect_success().unwrap();
    says(&none, &["rule    none matches"]);
    let named = explain(&[&target[..], &["--sniffed", "www.Blocked.test"]].concat());
    let named = named.expect_success().unwrap();
    says(
        &named,
        &[
            "target  192.0.2.1:443",
            "name    www.Blocked.test",
            "match   suffix:blocked.test",
        ],
    );
    for (more, word) in [
        (
            ["--target", "a.test", "--sniffed", "b.test"],
            "has a name already",
        ),
        (
            ["--target", "192.0.2.1", "--sniffed", "192.0.2.2"],
            "is not a name",
        ),
    ] {
        let done = explain(&more);
        assert_eq!(done.code, Some(2), "{}", done.output);
        says(&done.output, &[word]);
    }
    let plain = folder.write_file(
        "a.toml",
        route(&["mixed://127.0.0.1:1".to_owned()], "direct://"),
    );
    plain.unwrap();
    let done = explain(&[&target[..], &["--sniffed", "b.test"]].concat());
    says(&done.output, &["no listener has `sniff=true`"]);
}

#[cfg(target_os = "linux")]
mod redirected {
    use adit_interop::origin::OriginServer;

    use super::*;
    use crate::netns::{CLIENT, GATEWAY, SERVER, command, enter, follow_guide, world};

    #[test]
    fn intercepted_connections_have_names() {
        if !world("sniffing::redirected::intercepted_connections_have_names") {
            return;
        }
        let at: SocketAddr = "9.9.9.9:7000".parse().unwrap();
        let origin = enter(SERVER, || OriginServer::start_at(at)).unwrap();
        let folder = TempFolder::new("sniff-tproxy").unwrap();
        let listen = ["tproxy://127.0.0.1:12345?sniff=true".to_owned()];
        let toml = route(&listen, "reject://");
        let file = folder.write_file("adit.toml", toml).unwrap();
        let (bin, file) = (bin(), file.display().to_string());
        let words = [bin.to_str().unwrap(), "run", "-vv", "-c", &file];
        let adit = AditProcess::start_command(command(GATEWAY, &words), 1).unwrap();
        follow_guide("Routes");
        follow_guide("nftables");
        for (host, connections) in [("good.test", 1), ("blocked.test", 1), ("other.test", 1)] {
            enter(CLIENT, || {
                let mut client = TcpStream::connect(at).unwrap();
                client.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
                let head = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
                client.write_all(head.as_bytes()).unwrap();
                // Those that are refused are reset as soon as their head has been read, at times before this.
                let shut = client.shutdown(std::net::Shutdown::Write);
                if host == "good.test" {
                    shut.unwrap();
                }
                let _ = client.read_to_end(&mut Vec::new());
            });
            assert_eq!(origin.connection_count(), connections, "{host}");
        }
        adit.stop().unwrap();
    }
}
