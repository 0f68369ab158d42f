//! Plugins in URLs, of listeners and of hops.

use std::net::SocketAddr;
use std::path::Path;

use adit_interop::origin::OriginServer;
use adit_interop::plugin::{LibevPluginHost, retry_until_success};
use adit_interop::recording_relay::RecordingRelay;
use adit_interop::shadowsocks::{AES_256, ClientSetup, IDENTITY_KEYS, MethodKey};
use adit_interop::socks_client::{self, Destination};
use adit_interop::traffic::{self, CloseBehavior, ForwarderEntry};
use adit_interop::{AditProcess, TempFolder, free_port, loopback_addr};

use crate::setup::{ALLOW, UsersFile, start};

/// A pair of plugins: program and options at the server and at the client, and the value of `?plugin=`
/// at either end.
struct Pair {
    server: (&'static str, &'static str, &'static str),
    client: (&'static str, &'static str, &'static str),
    /// The first bytes of each connection through it.
    begins: &'static [u8],
}

const PAIRS: [Pair; 3] = [
    Pair {
        server: ("obfs-server", "obfs=http", "obfs-server%3Bobfs%3Dhttp"),
        client: ("obfs-local", "obfs=http", "obfs-local%3Bobfs%3Dhttp"),
        begins: b"GET / HTTP/1.1\r\n",
    },
    Pair {
        server: ("obfs-server", "obfs=tls", "obfs-server%3Bobfs%3Dtls"),
        client: (
            "obfs-local",
            "obfs=tls;obfs-host=a.example",
            "obfs-local%3Bobfs%3Dtls%3Bobfs-host%3Da.example",
        ),
        begins: b"\x16\x03\x01",
    },
    Pair {
        server: ("ss-v2ray-plugin", "server", "ss-v2ray-plugin%3Bserver"),
        client: ("ss-v2ray-plugin", "", "ss-v2ray-plugin"),
        begins: b"GET / HTTP/1.1\r\n",
    },
];

/// Starts a server of adit behind a plugin, which has the public port.
fn behind(url: &str, pair: &Pair) -> AditProcess {
    let mark = if url.contains('?') { '&' } else { '?' };
    start(&[
        "run",
        &format!("{url}{mark}plugin={}&{ALLOW}", pair.server.2),
    ])
}

fn public() -> SocketAddr {
    loopback_addr(free_port())
}

/// Starts a client of adit with a plugin in front of it.
fn before(origin: &OriginServer, hop: &str, pair: &Pair) -> AditProcess {
    let entry = format!("tcp+udp://127.0.0.1:0/{}", origin.addr());
    start(&["run", &entry, &format!("{hop}?plugin={}", pair.client.2)])
}

/// Checks that no connection bypassed the plugin.
fn all_begin(tap: &RecordingRelay, pair: &Pair) {
    for first in tap.requests() {
        assert!(
            first.starts_with(pair.begins),
            "{:x?}",
            &first[..first.len().min(20)]
        );
    }
}

#[test]
fn to_their_server() {
    for pair in &PAIRS {
        let origin = OriginServer::start().unwrap();
        let (program, options, _) = pair.server;
        let theirs = LibevPluginHost::start_server(AES_256, Path::new(program), options).unwrap();
        let tap = RecordingRelay::start(theirs.addr()).unwrap();
        let ours = before(&origin, &AES_256.url(tap.addr()), pair);
        traffic::check_streams(CloseBehavior::OnEitherEnd, || {
            traffic::connect_directly(ours.addr())
        })
        .unwrap();
        all_begin(&tap, pair);
        ours.stop().unwrap();
    }
}

#[test]
fn from_their_client() {
    for pair in &PAIRS {
        let origin = OriginServer::start().unwrap();
        let ours = behind(&AES_256.url(public()), pair);
        let (program, options, _) = pair.client;
        let theirs =
            LibevPluginHost::start_socks_client(AES_256, ours.addr(), Path::new(program), options)
                .unwrap();
        let to = Destination::Addr(origin.addr());
        let open = || socks_client::connect_through(theirs.addr(), None, &to);
        retry_until_success(|| traffic::check_one_byte(open()?)).unwrap();
        traffic::check_streams(CloseBehavior::OnEitherEnd, open).unwrap();
        let addr = ours.addr();
        ours.stop().unwrap();
        assert!(
            traffic::connect_directly(addr).is_err(),
            "the plugin is still there"
        );
    }
}

/// Users behind a plugin; their datagrams bypass it, to the port of the same number.
#[test]
fn ours_to_ours_with_users() {
    let [ring, _] = IDENTITY_KEYS;
    let method: MethodKey = ring.method;
    for pair in &PAIRS {
        let (origin, users) = (OriginServer::start().unwrap(), UsersFile::new(&ring.users));
        let path = users.path();
        let back = format!("{}?users=@{}", method.url(public()), path.display());
        let back = behind(&back, pair);
        let keys = [method.key, ring.users[0].1];
        let hop = ClientSetup::new(method, &keys, back.addr()).url();
        let front = before(&origin, &hop, pair);
        traffic::check_streams(CloseBehavior::OnEitherEnd, || {
            traffic::connect_directly(front.addr())
        })
        .unwrap();
        traffic::check_datagrams(&ForwarderEntry::open(front.addr()).unwrap()).unwrap();
        front.stop().unwrap();
        back.stop().unwrap();
    }
}

/// A ShadowsocksR configuration with a plugin, in its programs' form: nothing is sent without it.
#[test]
fn of_a_shadowsocksr_configuration() {
    const PASSWORD: &str = "hunter2";
    for pair in &PAIRS {
        let origin = OriginServer::start().unwrap();
        let back = format!("ssr://aes-128-ctr:{PASSWORD}@{}", public());
        let back = behind(&format!("{back}?protocol=auth_aes128_md5"), pair);
        let tap = RecordingRelay::start(back.addr()).unwrap();
        let (program, options, _) = pair.client;
        let folder = TempFolder::new("ssr-plugin").unwrap();
        let config = format!(
            r#"{{"server": "127.0.0.1", "server_port": {}, "local_address": "127.0.0.1",
                "local_port": {}, "password": "{PASSWORD}", "method": "aes-128-ctr",
                "protocol": "auth_aes128_md5", "obfs": "plain", "fast_open": true,
                "plugin": "{program}", "plugin_opts": "{options}"}}"#,
            tap.addr().port(),
            free_port()
        );
        let file = folder.write_file("config.json", config).unwrap();
        let front = start(&["run", "-c", file.to_str().unwrap()]);
        let to = Destination::Addr(origin.addr());
        let open = || socks_client::connect_through(front.addr(), None, &to);
        retry_until_success(|| traffic::check_one_byte(open()?)).unwrap();
        traffic::check_streams(CloseBehavior::OnEitherEnd, open).unwrap();
        assert!(!tap.requests().is_empty());
        all_begin(&tap, pair);
        front.stop().unwrap();
        back.stop().unwrap();
    }
}
