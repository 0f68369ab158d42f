//! Other implementations of Shadowsocks as servers and as fixed forwarders.
//!
//! A server listens on 127.0.0.1 for TCP and UDP. A forwarder has an entry there, TCP and UDP,
//! that leads through the given server to a fixed target: no SOCKS is involved.

mod go;
mod keyring;
mod libev;
mod rust;
mod sing_box;
mod xray;

use std::net::SocketAddr;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::port::{Transport, free_port, loopback, wait_port};
use crate::traffic::Ends;
use crate::{Folder, PATIENCE, Process, tool};

pub use keyring::{KEYRINGS, Keyring};

/// A method and a key for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// The name in URLs and configurations.
    pub name: &'static str,
    /// A base64 key for the 2022 edition, a password for the others. Both hold characters that
    /// have a meaning in URLs.
    pub key: &'static str,
}

const KEY_16: &str = "+/v7+/v7AAECAwQFBgcICQ==";
const KEY_32: &str = "//8+/v79AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBk=";
const PASSWORD: &str = "bar foo!@:/%?#";

const fn method(name: &'static str, key: &'static str) -> Method {
    Method { name, key }
}

/// SIP022 with 16 bytes of key.
pub const BLAKE3_AES_128: Method = method("2022-blake3-aes-128-gcm", KEY_16);
/// SIP022 with AES-256.
pub const BLAKE3_AES_256: Method = method("2022-blake3-aes-256-gcm", KEY_32);
/// SIP022 with ChaCha20.
pub const BLAKE3_CHACHA20: Method = method("2022-blake3-chacha20-poly1305", KEY_32);
/// SIP004.
pub const AES_128: Method = method("aes-128-gcm", PASSWORD);
/// SIP004.
pub const AES_192: Method = method("aes-192-gcm", PASSWORD);
/// SIP004.
pub const AES_256: Method = method("aes-256-gcm", PASSWORD);
/// SIP004.
pub const CHACHA20: Method = method("chacha20-ietf-poly1305", PASSWORD);
/// SIP004 as some peers extend it.
pub const XCHACHA20: Method = method("xchacha20-ietf-poly1305", PASSWORD);

/// All of them but the legacy ones: these are [`Peer::legacy`].
pub const METHODS: [Method; 8] = [
    BLAKE3_AES_128,
    BLAKE3_AES_256,
    BLAKE3_CHACHA20,
    AES_128,
    AES_192,
    AES_256,
    CHACHA20,
    XCHACHA20,
];

/// The stream ciphers of shadowsocks-libev.
const LIBEV_LEGACY: [Method; 14] = [
    Method::legacy("rc4-md5"),
    Method::legacy("aes-128-cfb"),
    Method::legacy("aes-192-cfb"),
    Method::legacy("aes-256-cfb"),
    Method::legacy("aes-128-ctr"),
    Method::legacy("aes-192-ctr"),
    Method::legacy("aes-256-ctr"),
    Method::legacy("bf-cfb"),
    Method::legacy("camellia-128-cfb"),
    Method::legacy("camellia-192-cfb"),
    Method::legacy("camellia-256-cfb"),
    Method::legacy("salsa20"),
    Method::legacy("chacha20"),
    Method::legacy("chacha20-ietf"),
];

/// Stream ciphers of shadowsocks-rust.
const RUST_LEGACY: [Method; 19] = [
    Method::legacy("table"),
    Method::legacy("rc4"),
    Method::legacy("rc4-md5"),
    Method::legacy("aes-128-ctr"),
    Method::legacy("aes-192-ctr"),
    Method::legacy("aes-256-ctr"),
    Method::legacy("aes-128-cfb"),
    Method::legacy("aes-192-cfb"),
    Method::legacy("aes-256-cfb"),
    Method::legacy("aes-128-cfb8"),
    Method::legacy("aes-192-cfb8"),
    Method::legacy("aes-256-cfb8"),
    Method::legacy("aes-128-ofb"),
    Method::legacy("aes-192-ofb"),
    Method::legacy("aes-256-ofb"),
    Method::legacy("camellia-128-cfb"),
    Method::legacy("camellia-192-cfb"),
    Method::legacy("camellia-256-cfb"),
    Method::legacy("chacha20-ietf"),
];

impl Method {
    /// A method with a password.
    #[must_use]
    pub const fn legacy(name: &'static str) -> Self {
        method(name, PASSWORD)
    }

    /// The URL of a server with this method and key, everything special percent-encoded.
    #[must_use]
    pub fn url(&self, server: SocketAddr) -> String {
        format!("ss://{}:{}@{server}", self.name, encode(self.key))
    }
}

/// Percent-encodes all but the unreserved characters of RFC 3986.
#[must_use]
pub fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one = |byte: u8| {
        if plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(one).collect()
}

/// An implementation we can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// sing-box, all methods.
    SingBox,
    /// shadowsocks-libev, SIP004 and stream ciphers.
    Libev,
    /// shadowsocks-rust, all methods but aes-192-gcm, and stream ciphers.
    Rust,
    /// shadowsocks-go, the AES methods of SIP022.
    Go,
    /// Xray-core, all methods but aes-192-gcm.
    Xray,
}

/// Whom a server serves.
#[derive(Debug, Clone, Copy)]
pub enum Serves<'a> {
    /// Whoever has the key of the method.
    OneKey,
    /// Users with their names and keys; the key of the method is the server's own (SIP023).
    Users(&'a [(&'a str, &'a str)]),
    /// Nobody: it passes on to the servers with these keys; the key of the method is the relay's
    /// own (SIP023).
    Relay(&'a [(SocketAddr, &'a str)]),
}

/// A client of one server.
#[derive(Debug, Clone, Copy)]
pub struct Client<'a> {
    /// The method; its key is not used.
    pub method: Method,
    /// The client's own key, behind those of relays and servers that take identity headers off.
    pub keys: &'a [&'a str],
    /// Where it connects to.
    pub server: SocketAddr,
    /// The version of UDP over TCP that it speaks instead of sending datagrams.
    pub over_tcp: Option<u8>,
    /// Name and options of a plugin (SIP003).
    pub plugin: Option<(&'a str, &'a str)>,
}

impl<'a> Client<'a> {
    /// A client that sends datagrams and has no plugin.
    #[must_use]
    pub const fn new(method: Method, keys: &'a [&'a str], server: SocketAddr) -> Self {
        Self {
            method,
            keys,
            server,
            over_tcp: None,
            plugin: None,
        }
    }

    /// All keys as most configurations have them.
    fn password(&self) -> String {
        self.keys.join(":")
    }

    /// The URL by which adit is the same client.
    #[must_use]
    pub fn url(&self) -> String {
        let keys: Vec<String> = self.keys.iter().map(|key| encode(key)).collect();
        let mut query = Vec::new();
        query.extend(self.over_tcp.map(|_| "udp=over-tcp".to_owned()));
        query.extend(self.plugin.map(|(name, options)| {
            let blank = if options.is_empty() { "" } else { ";" };
            format!("plugin={}", encode(&format!("{name}{blank}{options}")))
        }));
        let mark = if query.is_empty() { "" } else { "?" };
        let (name, keys, query) = (self.method.name, keys.join(":"), query.join("&"));
        format!("ss://{name}:{keys}@{}{mark}{query}", self.server)
    }
}

/// A running server or forwarder.
#[derive(Debug)]
pub struct Running {
    addr: SocketAddr,
    _process: Process,
    _folder: Option<Folder>,
}

impl Running {
    /// Its Shadowsocks port, or the forwarder's entry.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Peer {
    /// Whether the peer has this one of [`METHODS`].
    #[must_use]
    pub fn speaks(self, method: Method) -> bool {
        match self {
            Self::SingBox => true,
            Self::Libev => !method.name.starts_with("2022-"),
            Self::Rust | Self::Xray => method != AES_192,
            Self::Go => [BLAKE3_AES_128, BLAKE3_AES_256].contains(&method),
        }
    }

    /// The stream ciphers it has.
    #[must_use]
    pub const fn legacy(self) -> &'static [Method] {
        match self {
            Self::SingBox | Self::Go | Self::Xray => &[],
            Self::Libev => &LIBEV_LEGACY,
            Self::Rust => &RUST_LEGACY,
        }
    }

    /// What its client does when one direction of a stream ends (found by trying).
    #[must_use]
    pub fn client_ends(self, method: Method) -> Ends {
        match self {
            Self::Xray if method.name.starts_with("2022-") => Ends::Up,
            Self::SingBox | Self::Libev | Self::Xray => Ends::Both,
            Self::Rust | Self::Go => Ends::Each,
        }
    }

    /// What its server or relay does then.
    #[must_use]
    pub fn server_ends(self, method: Method) -> Ends {
        match self {
            // What its client does not bring down, its server does not take up.
            Self::Xray if method.name.starts_with("2022-") => Ends::Down,
            _ => self.client_ends(method),
        }
    }

    /// A server that lets its clients reach any address.
    pub fn server(self, method: Method) -> Result<Running> {
        self.serve(method, Serves::OneKey)
    }

    /// A server that lets those whom it serves reach any address.
    pub fn serve(self, method: Method, serves: Serves<'_>) -> Result<Running> {
        let addr = loopback(free_port());
        match self {
            Self::SingBox => sing_box::server(method, serves, addr),
            Self::Libev => libev::server(method, serves, addr),
            Self::Rust => rust::server(method, serves, addr),
            Self::Go => go::server(method, serves, addr),
            Self::Xray => xray::server(method, serves, addr),
        }
    }

    /// A client with an entry that leads to `to` through `server`.
    pub fn forwarder(self, method: Method, server: SocketAddr, to: SocketAddr) -> Result<Running> {
        self.forward(&Client::new(method, &[method.key], server), to)
    }

    /// A client with an entry that leads to `to`.
    pub fn forward(self, client: &Client<'_>, to: SocketAddr) -> Result<Running> {
        let entry = loopback(free_port());
        match self {
            Self::SingBox => sing_box::forwarder(client, entry, to),
            Self::Libev => libev::forwarder(client, entry, to),
            Self::Rust => rust::forwarder(client, entry, to),
            Self::Go => go::forwarder(client, entry, to),
            Self::Xray => xray::forwarder(client, entry, to),
        }
    }

    /// A client with a SOCKS5 port, which sends names as names.
    pub fn socks(self, method: Method, server: SocketAddr) -> Result<Running> {
        ensure!(
            self == Self::Libev,
            "only shadowsocks-libev is started this way"
        );
        libev::socks(method, server, loopback(free_port()))
    }
}

/// Starts a program with these arguments, which listens at `addr`.
fn start(program: &str, args: &[&str], addr: SocketAddr) -> Result<Running> {
    let mut command = Command::new(tool::peer(program));
    command.args(args);
    ready(addr, Process::spawn(command)?, None)
}

/// Starts a program with these arguments and then the path of a configuration file.
fn start_with_file(
    program: &str,
    args: &[&str],
    folder: Folder,
    config: &str,
    addr: SocketAddr,
) -> Result<Running> {
    let file = folder.write("config.json", config)?;
    let mut command = Command::new(tool::peer(program));
    command.args(args).arg(file).current_dir(folder.path());
    let process = Process::spawn(command)?;
    ready(addr, process, Some(folder))
}

fn ready(addr: SocketAddr, process: Process, folder: Option<Folder>) -> Result<Running> {
    for transport in [Transport::Tcp, Transport::Udp] {
        let there = wait_port(transport, addr.port(), PATIENCE);
        ensure!(
            there.is_ok(),
            "the peer does not listen at {addr}:\n{}",
            process.log()
        );
    }
    Ok(Running {
        addr,
        _process: process,
        _folder: folder,
    })
}

/// One JSON object for each item, separated by commas.
fn list<T>(items: &[T], object: impl Fn(&T) -> String) -> String {
    let objects: Vec<String> = items.iter().map(object).collect();
    objects.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::Origin;
    use crate::traffic;

    #[test]
    fn special_characters_are_encoded() {
        assert_eq!(encode("a+/=@: b"), "a%2B%2F%3D%40%3A%20b");
        let url = BLAKE3_AES_128.url(loopback(1));
        assert_eq!(
            url,
            "ss://2022-blake3-aes-128-gcm:%2B%2Fv7%2B%2Fv7AAECAwQFBgcICQ%3D%3D@127.0.0.1:1"
        );
    }

    /// The harness against peers alone: what fails here is not adit's fault.
    fn pair(client: Peer, server_peer: Peer, method: Method) {
        let origin = Origin::start().unwrap();
        let server = server_peer.server(method).unwrap();
        let entry = client
            .forwarder(method, server.addr(), origin.addr())
            .unwrap();
        let ends = client
            .client_ends(method)
            .and(server_peer.server_ends(method));
        traffic::streams(ends, || traffic::dial(entry.addr())).unwrap();
        traffic::datagrams(&traffic::Entry::open(entry.addr()).unwrap()).unwrap();
    }

    #[test]
    fn sing_box_reaches_itself() {
        pair(Peer::SingBox, Peer::SingBox, BLAKE3_AES_256);
    }

    #[test]
    fn libev_reaches_itself() {
        pair(Peer::Libev, Peer::Libev, AES_256);
    }

    #[test]
    fn sing_box_reaches_libev() {
        pair(Peer::SingBox, Peer::Libev, CHACHA20);
    }

    #[test]
    fn libev_reaches_sing_box() {
        pair(Peer::Libev, Peer::SingBox, AES_192);
    }

    #[test]
    fn go_and_xray_reach_themselves_and_each_other() {
        pair(Peer::Go, Peer::Go, BLAKE3_AES_256);
        pair(Peer::Xray, Peer::Xray, AES_256);
        pair(Peer::Go, Peer::Xray, BLAKE3_AES_128);
        pair(Peer::Xray, Peer::Go, BLAKE3_AES_128);
    }

    /// Their client as a user of their server, behind their relay.
    #[test]
    fn identity_headers_among_peers() {
        let [ring, _] = KEYRINGS;
        let (_, bob) = ring.users[1];
        let own = ring.method.key;
        for (client, relay_peer, server_peer) in [
            (Peer::SingBox, Peer::Xray, Peer::Go),
            (Peer::Go, Peer::SingBox, Peer::Xray),
            (Peer::Xray, Peer::SingBox, Peer::SingBox),
        ] {
            let origin = Origin::start().unwrap();
            let server = server_peer
                .serve(ring.method, Serves::Users(&ring.users))
                .unwrap();
            let front = Method {
                key: ring.relays[0],
                ..ring.method
            };
            let relay = relay_peer
                .serve(front, Serves::Relay(&[(server.addr(), own)]))
                .unwrap();
            let keys = [front.key, own, bob];
            let entry = client
                .forward(
                    &Client::new(ring.method, &keys, relay.addr()),
                    origin.addr(),
                )
                .unwrap();
            traffic::one_byte(traffic::dial(entry.addr()).unwrap()).unwrap();
            traffic::datagrams(&traffic::Entry::open(entry.addr()).unwrap()).unwrap();
        }
    }

    #[test]
    fn ends_of_streams_are_as_they_were_found() {
        for peer in [Peer::SingBox, Peer::Go] {
            let origin = Origin::start().unwrap();
            let server = peer.server(BLAKE3_AES_128).unwrap();
            let entry = peer
                .forwarder(BLAKE3_AES_128, server.addr(), origin.addr())
                .unwrap();
            let passes = traffic::half_close(traffic::dial(entry.addr()).unwrap(), 100_000).is_ok();
            assert_eq!(
                passes,
                peer.client_ends(BLAKE3_AES_128) == Ends::Each,
                "{peer:?}"
            );
        }
    }
}
