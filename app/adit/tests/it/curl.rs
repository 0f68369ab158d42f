//! curl through every kind of listener, with every scheme it supports, with and without a login.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use adit_interop::external_tools::{self, ToolOutput};
use adit_interop::http_server::HttpServer;
use adit_interop::{BytePattern, Checksum};

use crate::setup::{Proxy, Way};

/// The proxy schemes of curl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Socks4,
    Socks4a,
    Socks5,
    Socks5h,
    /// Absolute-form requests.
    Http,
    /// CONNECT.
    Connect,
}

const ALL: [Scheme; 6] = [
    Scheme::Socks4,
    Scheme::Socks4a,
    Scheme::Socks5,
    Scheme::Socks5h,
    Scheme::Http,
    Scheme::Connect,
];
const WITH_LOGIN: [Scheme; 4] = [
    Scheme::Socks5,
    Scheme::Socks5h,
    Scheme::Http,
    Scheme::Connect,
];

/// The exit code of curl for a proxy that refuses.
const PROXY_REFUSED: i32 = 97;
/// The exit code of curl for a failed CONNECT.
const RECEIVE_FAILED: i32 = 56;

impl Scheme {
    /// Runs curl through the proxy at `addr`.
    fn curl(self, addr: SocketAddr, login: &str, args: &[&str]) -> ToolOutput {
        let name = match self {
            Self::Socks4 => "socks4",
            Self::Socks4a => "socks4a",
            Self::Socks5 => "socks5",
            Self::Socks5h => "socks5h",
            Self::Http | Self::Connect => "http",
        };
        let mut command = Command::new("curl");
        command.args(["-q", "-sS", "--max-time", "30", "--noproxy", ""]);
        command.args(["-x", &format!("{name}://{login}{addr}")]);
        if self == Self::Connect {
            command.arg("-p");
        }
        command.args(args);
        external_tools::run_to_end(command, Duration::from_secs(40)).unwrap()
    }

    fn has_ipv6(self) -> bool {
        !matches!(self, Self::Socks4 | Self::Socks4a)
    }
}

fn site() -> (HttpServer, Vec<u8>) {
    let big = BytePattern::new(21).next_bytes(3_000_000);
    let files: [(&str, &str, &[u8]); 2] = [
        ("/page", "text/plain", b"hello through the proxy"),
        ("/big", "x/y", &big),
    ];
    (HttpServer::start(&files).unwrap(), big)
}

/// A page, a long download, a long upload, HEAD, a missing page, two requests on one connection.
fn visit(scheme: Scheme, proxy: SocketAddr, login: &str, host: &str) {
    let (web, big) = site();
    let url = |path: &str| format!("http://{host}:{}{path}", web.port());
    let what = format!("{scheme:?} by {proxy} to {host}");
    let get = |args: &[&str]| {
        scheme
            .curl(proxy, login, args)
            .expect_success()
            .expect(&what)
    };

    assert_eq!(get(&[&url("/page")]), "hello through the proxy", "{what}");

    let folder = adit_interop::TempFolder::new("curl").unwrap();
    let file = folder.path().join("got");
    let file = file.to_str().unwrap();
    get(&["-o", file, &url("/big")]);
    assert!(
        std::fs::read(file).unwrap() == big,
        "{what}: other bytes came down"
    );

    let told = get(&["-T", file, &url("/up")]);
    assert_eq!(
        told,
        format!("{} {:016x}", big.len(), Checksum::EMPTY.extend_with(&big).0),
        "{what}"
    );

    let head = get(&["-I", &url("/big")]);
    assert!(
        head.contains("200 OK") && head.contains("3000000"),
        "{what}: {head}"
    );

    let status = get(&["-o", "/dev/null", "-w", "%{http_code}", &url("/missing")]);
    assert_eq!(status, "404", "{what}");

    let twice = get(&[&url("/page"), &url("/page")]);
    assert_eq!(
        twice, "hello through the proxyhello through the proxy",
        "{what}"
    );

    for asked in web.requests() {
        assert!(
            asked.target.starts_with('/'),
            "{what}: origin-form, not {}",
            asked.target
        );
        let proxy_words = asked.headers.keys().find(|name| name.starts_with("proxy-"));
        assert_eq!(
            proxy_words, None,
            "{what}: the proxy's own headers stay with it"
        );
        assert_eq!(
            asked.headers["host"],
            format!("{host}:{}", web.port()),
            "{what}"
        );
    }
}

fn all_schemes(listen: &str, way: Way, schemes: &[Scheme]) {
    let proxy = Proxy::start(listen, way);
    for scheme in schemes {
        visit(*scheme, proxy.addr(), "", "127.0.0.1");
        if scheme.has_ipv6() {
            visit(*scheme, proxy.addr(), "", "[::1]");
        }
        if *scheme != Scheme::Socks4 {
            visit(*scheme, proxy.addr(), "", "localhost");
        }
    }
    proxy.stop();
}

#[test]
fn every_scheme_on_a_mixed_port() {
    all_schemes("mixed://127.0.0.1:0", Way::Alone, &ALL);
}

#[test]
fn every_scheme_on_a_mixed_port_through_a_tunnel() {
    all_schemes("mixed://127.0.0.1:0", Way::Tunnel, &ALL);
}

#[test]
fn every_scheme_on_an_ipv6_port() {
    all_schemes("mixed://[::1]:0", Way::Alone, &ALL);
}

#[test]
fn a_socks5_port() {
    all_schemes(
        "socks5://127.0.0.1:0",
        Way::Tunnel,
        &[Scheme::Socks5, Scheme::Socks5h],
    );
}

#[test]
fn an_http_port() {
    all_schemes(
        "http://127.0.0.1:0",
        Way::Tunnel,
        &[Scheme::Http, Scheme::Connect],
    );
}

/// The user is `an@a`, the password `p:w/d`.
const LOGIN: &str = "an%40a:p%3Aw%2Fd@";

#[test]
fn the_right_login_opens_every_scheme() {
    for way in [Way::Alone, Way::Tunnel] {
        let proxy = Proxy::start(&format!("mixed://{LOGIN}127.0.0.1:0"), way);
        for scheme in WITH_LOGIN {
            visit(scheme, proxy.addr(), LOGIN, "127.0.0.1");
        }
        proxy.stop();
    }
    for (listen, schemes) in [("socks5", &WITH_LOGIN[..2]), ("http", &WITH_LOGIN[2..])] {
        let proxy = Proxy::start(&format!("{listen}://{LOGIN}127.0.0.1:0"), Way::Alone);
        for scheme in schemes {
            visit(*scheme, proxy.addr(), LOGIN, "localhost");
        }
        proxy.stop();
    }
}

#[test]
fn a_wrong_or_missing_login_opens_nothing() {
    let (web, _) = site();
    let url = format!("http://127.0.0.1:{}/page", web.port());
    let proxy = Proxy::start(&format!("mixed://{LOGIN}127.0.0.1:0"), Way::Alone);
    for login in ["", "an%40a:other@", "other:p%3Aw%2Fd@", "an%40a:@"] {
        for scheme in ALL {
            // SOCKS4 only has a user name, which proves nothing.
            if login.is_empty() || WITH_LOGIN.contains(&scheme) {
                let show = [
                    "-o",
                    "/dev/null",
                    "-w",
                    "%{http_code} %{http_connect}",
                    &url,
                ];
                let ended = scheme.curl(proxy.addr(), login, &show);
                let (code, output) = (ended.code.unwrap(), ended.output);
                let what = format!("{scheme:?} with {login:?}: {code} {output}");
                match scheme {
                    Scheme::Http => assert!(code == 0 && output.starts_with("407"), "{what}"),
                    Scheme::Connect => {
                        assert!(code == RECEIVE_FAILED && output.contains("407"), "{what}");
                    }
                    _ => assert_eq!(code, PROXY_REFUSED, "{what}"),
                }
            }
        }
    }
    assert_eq!(web.requests(), [], "nothing reached the server");
    visit(Scheme::Socks5h, proxy.addr(), LOGIN, "127.0.0.1");
    proxy.stop();
}

#[test]
fn a_dead_server_is_told_as_such() {
    let port = adit_interop::free_port();
    let url = format!("http://127.0.0.1:{port}/");
    let proxy = Proxy::mixed(Way::Alone);
    let show = [
        "-o",
        "/dev/null",
        "-w",
        "%{http_code} %{http_connect}",
        &url,
    ];
    for scheme in ALL {
        let ended = scheme.curl(proxy.addr(), "", &show);
        let (code, output) = (ended.code.unwrap(), ended.output);
        let what = format!("{scheme:?}: {code} {output}");
        match scheme {
            Scheme::Http => assert!(code == 0 && output.starts_with("502"), "{what}"),
            Scheme::Connect => assert!(code == RECEIVE_FAILED && output.contains("502"), "{what}"),
            _ => assert_eq!(code, PROXY_REFUSED, "{what}"),
        }
    }
    proxy.stop();
}
