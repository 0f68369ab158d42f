//! ShadowsocksR with client and server of adit: every protocol with every obfs, users, and the messages
//! of a client whose settings differ from the server's.

use std::io::Write;
use std::net::SocketAddr;
use std::process::Command;
use std::thread;
use std::time::Duration;

use adit_interop::http_server::HttpServer;
use adit_interop::iperf::IperfServer;
use adit_interop::origin::OriginServer;
use adit_interop::recording_relay::RecordingRelay;
use adit_interop::socks_client::{self, Destination, UdpAssociation, UdpFlow};
use adit_interop::ssr::SsrSetup;
use adit_interop::traffic::{self, DatagramLink, ForwarderEntry};
use adit_interop::{AditProcess, BytePattern, TEST_TIMEOUT, external_tools};

use crate::setup::{ALLOW, bin, ended, start};

pub(crate) const PROTOCOLS: [&str; 17] = [
    "origin",
    "verify_simple",
    "verify_deflate",
    "verify_sha1",
    "auth_simple",
    "auth_sha1",
    "auth_sha1_v2",
    "auth_sha1_v4",
    "auth_aes128_md5",
    "auth_aes128_sha1",
    "auth_aes128_fast",
    "auth_chain_a",
    "auth_chain_b",
    "auth_chain_c",
    "auth_chain_d",
    "auth_chain_e",
    "auth_chain_f",
];
pub(crate) const OBFS: [&str; 7] = [
    "plain",
    "http_simple",
    "http_post",
    "random_head",
    "tls1.2_ticket_auth",
    "tls1.2_ticket_fastauth",
    "go_quiet",
];
/// With IVs of every length, and without.
const METHODS: [&str; 6] = [
    "aes-256-ctr",
    "none",
    "aes-128-cfb",
    "chacha20-ietf",
    "bf-cfb",
    "rc4-md5-6",
];

/// Starts a server at any port.
pub(crate) fn server(setup: &SsrSetup<'_>, more: &str) -> AditProcess {
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    start(&["run", &format!("{}&{ALLOW}{more}", setup.url(any))])
}

/// Starts a client that leads to `to`.
pub(crate) fn forwarder(url: &str, to: SocketAddr) -> AditProcess {
    start(&["run", &format!("tcp+udp://127.0.0.1:0/{to}"), url])
}

/// All pairs in two processes: each has two listeners on the client side, one of which leads to iperf3.
#[test]
fn every_protocol_in_every_obfs() {
    let mut methods = METHODS.into_iter().cycle();
    let mut setups = Vec::new();
    for protocol in PROTOCOLS {
        for obfs in OBFS {
            setups.push(SsrSetup::new(methods.next().unwrap(), protocol, obfs));
        }
        // The next protocol starts with another method.
        methods.next();
    }
    let (origin, mut iperf) = (
        OriginServer::start().unwrap(),
        IperfServer::start().unwrap(),
    );
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let listen: Vec<String> = setups
        .iter()
        .map(|setup| format!("{}&{ALLOW}", setup.url(any)))
        .collect();
    let mut args = vec!["run"];
    args.extend(listen.iter().flat_map(|url| ["-L", url]));
    let back = AditProcess::start_with(&bin(), &args, setups.len()).unwrap();
    let target = format!("tcp+udp://127.0.0.1:0/{}", origin.addr());
    let hops: Vec<String> = setups
        .iter()
        .zip(back.addrs())
        .map(|(setup, server)| setup.url(*server))
        .collect();
    let mut args = vec!["run"];
    let measured = format!("tcp://127.0.0.1:0/{}", iperf.addr());
    let entries = [&target, &measured];
    args.extend(hops.iter().flat_map(|hop| {
        entries
            .into_iter()
            .flat_map(move |entry| ["-L", entry, "-F", hop])
    }));
    let front = AditProcess::start_with(&bin(), &args, 2 * setups.len()).unwrap();
    for (setup, entries) in setups.iter().zip(front.addrs().chunks(2)) {
        let (entry, measured) = (&entries[0], entries[1]);
        let mut tried = || {
            traffic::check_one_byte(traffic::connect_directly(*entry)?)?;
            traffic::upload(traffic::connect_directly(*entry)?, 300_000)?;
            traffic::download(traffic::connect_directly(*entry)?, 300_000)?;
            traffic::transfer_both_ways(traffic::connect_directly(*entry)?, 100_000)?;
            traffic::check_half_close(traffic::connect_directly(*entry)?, 50_000)?;
            // Datagrams do not use the obfs.
            if setup.obfs == "plain" {
                traffic::check_datagrams(&ForwarderEntry::open(*entry)?)?;
            }
            iperf.download_megabyte(measured)?;
            anyhow::Ok(())
        };
        if let Err(why) = tried() {
            panic!("{setup:?}: {why:?}");
        }
    }
    front.stop().unwrap();
    back.stop().unwrap();
}

/// One complete URL, unchanged at both ends; a page, and long transfers.
#[test]
fn a_page_through_go_quiet() {
    let page = "hello through go_quiet";
    let web = HttpServer::start(&[("/page", "text/plain", page.as_bytes())]).unwrap();
    let url = |port| {
        format!(
            "ssr://aes-256-ctr:p@127.0.0.1:{port}?protocol=auth_aes128_fast&protocol_param=\
             &obfs=go_quiet&obfs_param=bing.com"
        )
    };
    let back = start(&["run", &format!("{}&{ALLOW}", url(0))]);
    let link = ended(&["url", &url(back.addr().port())])
        .expect_success()
        .unwrap();
    assert!(link.starts_with("ssr://") && !link.contains('@'), "{link}");
    for hop in [url(back.addr().port()), link.trim().to_owned()] {
        let front = start(&["run", "mixed://127.0.0.1:0", &hop]);
        let mut curl = Command::new("curl");
        curl.args(["-q", "-sS", "--max-time", "10", "--noproxy", ""]);
        curl.args(["-x", &format!("socks5h://{}", front.addr())]);
        curl.arg(format!("http://localhost:{}/page", web.port()));
        let got = external_tools::run_to_end(curl, TEST_TIMEOUT)
            .unwrap()
            .expect_success()
            .unwrap();
        assert_eq!(got, page);
        front.stop().unwrap();
    }
    let origin = OriginServer::start().unwrap();
    let front = forwarder(&url(back.addr().port()), origin.addr());
    traffic::check_streams(traffic::CloseBehavior::Independent, || {
        traffic::connect_directly(front.addr())
    })
    .unwrap();
    front.stop().unwrap();
    back.stop().unwrap();
}

/// Returns true if a byte is echoed soon: a refused client gets no answer.
fn echoes(front: &AditProcess) -> bool {
    let stream = traffic::connect_directly(front.addr()).unwrap();
    let soon = Duration::from_secs(3);
    stream.set_read_timeout(Some(soon)).unwrap();
    traffic::check_one_byte(stream).is_ok()
}

#[test]
fn users_share_a_port() {
    let origin = OriginServer::start().unwrap();
    for protocol in ["auth_aes128_fast", "auth_chain_a"] {
        let setup = SsrSetup::new("none", protocol, "plain");
        let back = server(&setup, "&protocol_param=8%2342:one,43:two");
        let url = setup.url(back.addr());
        for (param, fine) in [
            ("42:one", true),
            ("43:two", true),
            ("42:two", false),
            ("44:one", false),
            ("", false),
        ] {
            let front = forwarder(&format!("{url}&protocol_param={param}"), origin.addr());
            assert_eq!(echoes(&front), fine, "{protocol} {param}");
            if fine {
                traffic::check_datagrams(&ForwarderEntry::open(front.addr()).unwrap()).unwrap();
            }
            front.stop().unwrap();
        }
        back.stop().unwrap();
    }
}

/// Datagrams in a connection, with every protocol and one obfs each; no datagram reaches the server's
/// port, because the tap does not carry them.
#[test]
fn datagrams_in_a_connection() {
    let (one, two) = (
        OriginServer::start().unwrap(),
        OriginServer::start().unwrap(),
    );
    for (protocol, obfs) in PROTOCOLS.into_iter().zip(OBFS.into_iter().cycle()) {
        let setup = SsrSetup::new("aes-128-ctr", protocol, obfs);
        let back = server(&setup, "");
        let tap = RecordingRelay::start(back.addr()).unwrap();
        let hop = format!("{}&udp=over-tcp", setup.url(tap.addr()));
        let front = start(&["run", "mixed://127.0.0.1:0", &hop]);
        let association = UdpAssociation::open(front.addr(), None).unwrap();
        for origin in [&one, &two, &one] {
            let to = Destination::Addr(origin.addr());
            traffic::check_datagrams(&UdpFlow::new(&association, to, origin.addr()))
                .unwrap_or_else(|why| panic!("{setup:?}: {why:?}"));
        }
        let name = Destination::from_name("localhost", two.addr().port());
        let flow = UdpFlow::new(&association, name, two.addr());
        traffic::check_datagrams(&flow).unwrap();
        for len in [0, 1472, 9000, 60_000] {
            let data = BytePattern::new(len as u64).next_bytes(len);
            flow.send(&data).unwrap();
            assert_eq!(flow.recv().unwrap(), data, "{setup:?}: {len} bytes");
        }
        assert_eq!(tap.requests().len(), 1, "one association, one stream");
        front.stop().unwrap();
        back.stop().unwrap();
    }
}

/// A server without UDP treats such a connection as unauthenticated.
#[test]
fn a_server_without_udp_carries_none_in_a_connection() {
    let origin = OriginServer::start().unwrap();
    let setup = SsrSetup::new("aes-128-ctr", "auth_sha1_v4", "plain");
    let back = server(&setup, "&udp=false");
    let url = format!("{}&udp=over-tcp", setup.url(back.addr()));
    let front = forwarder(&url, origin.addr());
    let entry = ForwarderEntry::open(front.addr()).unwrap();
    entry.send(b"anybody?").unwrap();
    thread::sleep(Duration::from_millis(300));
    assert_eq!(origin.connection_count(), 0);
    traffic::check_one_byte(traffic::connect_directly(front.addr()).unwrap()).unwrap();
    front.stop().unwrap();
    back.stop().unwrap();
}

/// A server with `_compatible` serves both kinds of clients.
#[test]
fn a_compatible_server_takes_clients_without() {
    let origin = OriginServer::start().unwrap();
    fn setup<'a>(protocol: &'a str, obfs: &'a str) -> SsrSetup<'a> {
        SsrSetup::new("aes-128-ctr", protocol, obfs)
    }
    for (protocol, obfs) in [
        ("auth_sha1_v4", "http_simple"),
        ("auth_sha1", "tls1.2_ticket_auth"),
        ("auth_sha1_v2", "random_head"),
    ] {
        let (p, o) = (
            format!("{protocol}_compatible"),
            format!("{obfs}_compatible"),
        );
        let back = server(&setup(&p, &o), "");
        for client in [(protocol, obfs), ("origin", "plain"), (protocol, "plain")] {
            let url = setup(client.0, client.1).url(back.addr());
            let front = forwarder(&url, origin.addr());
            assert!(echoes(&front), "{client:?} at {protocol} {obfs}");
            front.stop().unwrap();
        }
        back.stop().unwrap();
    }
}

/// Datagrams through two servers: their paddings add up.
#[test]
fn a_chain_of_two() {
    let origin = OriginServer::start().unwrap();
    let far = SsrSetup::new("none", "auth_chain_a", "http_simple");
    let near = SsrSetup::new("aes-256-ctr", "auth_chain_b", "tls1.2_ticket_auth");
    let (back, middle) = (server(&far, ""), server(&near, ""));
    let target = format!("tcp+udp://127.0.0.1:0/{}", origin.addr());
    let front = start(&[
        "run",
        &target,
        &near.url(middle.addr()),
        &far.url(back.addr()),
    ]);
    traffic::check_streams(traffic::CloseBehavior::Independent, || {
        traffic::connect_directly(front.addr())
    })
    .unwrap();
    traffic::check_datagrams(&ForwarderEntry::open(front.addr()).unwrap()).unwrap();
    for adit in [front, middle, back] {
        adit.stop().unwrap();
    }
}

/// No server reports what is wrong; the client's log names the possible differences.
#[test]
fn a_client_is_told_what_may_be_wrong() {
    let origin = OriginServer::start().unwrap();
    let right = SsrSetup::new("aes-128-ctr", "auth_sha1_v4", "tls1.2_ticket_auth");
    let plain = SsrSetup {
        obfs: "plain",
        ..right
    };
    for (at_server, at_client, said) in [
        // The tag of the hello depends on the password.
        (
            right,
            SsrSetup {
                password: "x",
                ..right
            },
            "does not answer in the obfs",
        ),
        (plain, right, "does not answer in the obfs"),
        (
            plain,
            SsrSetup {
                password: "x",
                ..plain
            },
            "has not answered",
        ),
        (
            plain,
            SsrSetup {
                protocol: "auth_aes128_md5",
                ..plain
            },
            "has not answered",
        ),
        (
            plain,
            SsrSetup {
                method: "aes-128-cfb",
                ..plain
            },
            "has not answered",
        ),
    ] {
        let back = server(&at_server, "");
        let url = format!("{}&dial=4s", at_client.url(back.addr()));
        let mut front = forwarder(&url, origin.addr());
        let mut held = traffic::connect_directly(front.addr()).unwrap();
        held.write_all(b"ECHO\n").unwrap();
        let told = front
            .process()
            .wait_lines("Likely: another password", 1, TEST_TIMEOUT);
        let told = told.unwrap().remove(0);
        assert!(told.contains(said), "{told}");
        let ours = format!(
            "({}, {}, {})",
            at_client.method, at_client.protocol, at_client.obfs
        );
        assert!(told.contains(&ours), "{told}");
        front.stop().unwrap();
        back.stop().unwrap();
    }
    assert_eq!(origin.connection_count(), 0);
}

/// Names are sent unresolved, and the server resolves them; private targets are refused unless allowed.
#[test]
fn names_and_private_targets() {
    let origin = OriginServer::start().unwrap();
    let setup = SsrSetup::new("aes-256-ctr", "auth_aes128_md5", "plain");
    let name = Destination::from_name("localhost", origin.addr().port());
    for fine in [true, false] {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let mut url = setup.url(any);
        if fine {
            url = format!("{url}&{ALLOW}");
        }
        let back = start(&["run", &url]);
        let front = start(&["run", "mixed://127.0.0.1:0", &setup.url(back.addr())]);
        let tried = socks_client::connect_through(front.addr(), None, &name)
            .and_then(traffic::check_one_byte);
        assert_eq!(tried.is_ok(), fine);
        front.stop().unwrap();
        back.stop().unwrap();
    }
}
