//! Other implementations of Shadowsocks as servers and as fixed forwarders.
//!
//! A server listens on 127.0.0.1 for TCP and UDP. A forwarder has an entry there, TCP and UDP,
//! that leads through the given server to a fixed target: no SOCKS is involved.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::port::{Transport, free_port, loopback, wait_port};
use crate::traffic::Ends;
use crate::{Folder, PATIENCE, Process, tool};

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
            Self::Rust => method != AES_192,
        }
    }

    /// The stream ciphers it has.
    #[must_use]
    pub const fn legacy(self) -> &'static [Method] {
        match self {
            Self::SingBox => &[],
            Self::Libev => &LIBEV_LEGACY,
            Self::Rust => &RUST_LEGACY,
        }
    }

    /// What it does when one direction of a stream ends (found by trying).
    #[must_use]
    pub fn ends(self) -> Ends {
        match self {
            Self::SingBox | Self::Libev => Ends::Both,
            Self::Rust => Ends::Each,
        }
    }

    /// A server that lets its clients reach any address.
    pub fn server(self, method: Method) -> Result<Running> {
        let addr = loopback(free_port());
        let (ip, port) = (addr.ip().to_string(), addr.port().to_string());
        let Method { name, key } = method;
        match self {
            Self::SingBox => {
                let inbound = format!(
                    r#"{{"type":"shadowsocks","listen":"{ip}","listen_port":{port},"method":"{name}","password":"{key}"}}"#
                );
                sing_box(addr, &inbound, r#"{"type":"direct"}"#)
            }
            Self::Libev => start(
                "ss-server",
                &["-s", &ip, "-p", &port, "-k", key, "-m", name, "-u"],
                addr,
            ),
            Self::Rust => start(
                "ssserver",
                &["-s", &addr.to_string(), "-m", name, "-k", key, "-U"],
                addr,
            ),
        }
    }

    /// A client with an entry that leads to `to` through `server`.
    pub fn forwarder(self, method: Method, server: SocketAddr, to: SocketAddr) -> Result<Running> {
        let addr = loopback(free_port());
        let (ip, port) = (addr.ip().to_string(), addr.port().to_string());
        let (server_ip, server_port) = (server.ip().to_string(), server.port().to_string());
        let Method { name, key } = method;
        match self {
            Self::SingBox => {
                let inbound = format!(
                    r#"{{"type":"direct","listen":"{ip}","listen_port":{port},"override_address":"{}","override_port":{}}}"#,
                    to.ip(),
                    to.port()
                );
                let outbound = format!(
                    r#"{{"type":"shadowsocks","server":"{server_ip}","server_port":{server_port},"method":"{name}","password":"{key}"}}"#
                );
                sing_box(addr, &inbound, &outbound)
            }
            Self::Libev => {
                let to = to.to_string();
                let ends = ["-s", &server_ip, "-p", &server_port, "-b", &ip, "-l", &port];
                let rest = ["-L", &to, "-k", key, "-m", name, "-u"];
                start("ss-tunnel", &[&ends[..], &rest].concat(), addr)
            }
            Self::Rust => {
                let (entry, server, to) = (addr.to_string(), server.to_string(), to.to_string());
                let ends = [
                    "--protocol",
                    "tunnel",
                    "-f",
                    &to,
                    "-b",
                    &entry,
                    "-s",
                    &server,
                ];
                start(
                    "sslocal",
                    &[&ends[..], &["-m", name, "-k", key, "-U"]].concat(),
                    addr,
                )
            }
        }
    }

    /// A client with a SOCKS5 port, which sends names as names.
    pub fn socks(self, method: Method, server: SocketAddr) -> Result<Running> {
        let addr = loopback(free_port());
        let (ip, port) = (addr.ip().to_string(), addr.port().to_string());
        let (server_ip, server_port) = (server.ip().to_string(), server.port().to_string());
        let Method { name, key } = method;
        match self {
            Self::Libev => {
                let ends = ["-s", &server_ip, "-p", &server_port, "-b", &ip, "-l", &port];
                start(
                    "ss-local",
                    &[&ends[..], &["-k", key, "-m", name, "-u"]].concat(),
                    addr,
                )
            }
            Self::SingBox | Self::Rust => bail!("only shadowsocks-libev is started this way"),
        }
    }
}

fn sing_box(addr: SocketAddr, inbound: &str, outbound: &str) -> Result<Running> {
    let folder = Folder::new("sing-box")?;
    let text =
        format!(r#"{{"log":{{"level":"warn"}},"inbounds":[{inbound}],"outbounds":[{outbound}]}}"#);
    let file = folder.write("config.json", text)?;
    let mut command = Command::new(tool::peer("sing-box"));
    command
        .args(["run", "-c"])
        .arg(file)
        .current_dir(folder.path());
    let process = Process::spawn(command)?;
    ready(addr, process, Some(folder))
}

fn start(program: &str, args: &[&str], addr: SocketAddr) -> Result<Running> {
    let mut command = Command::new(tool::peer(program));
    command.args(args);
    let process = Process::spawn(command)?;
    ready(addr, process, None)
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
        let ends = if client.ends() == server_peer.ends() {
            client.ends()
        } else {
            Ends::Both
        };
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
}
