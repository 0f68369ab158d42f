//! The parts that all peers share: methods, users of a server, clients, and running processes.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::ports::{Transport, wait_port};
use crate::{ChildProcess, TEST_TIMEOUT, TempFolder, external_tools};

/// A method and a key for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodKey {
    /// Name in URLs and configurations.
    pub name: &'static str,
    /// A base64 key for the 2022 edition, a password for the others. Both contain characters that
    /// have a meaning in URLs.
    pub key: &'static str,
}

const KEY_16: &str = "+/v7+/v7AAECAwQFBgcICQ==";
const KEY_32: &str = "//8+/v79AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBk=";
const PASSWORD: &str = "bar foo!@:/%?#";

const fn method(name: &'static str, key: &'static str) -> MethodKey {
    MethodKey { name, key }
}

/// SIP022 with 16 bytes of key.
pub const BLAKE3_AES_128: MethodKey = method("2022-blake3-aes-128-gcm", KEY_16);
/// SIP022 with AES-256.
pub const BLAKE3_AES_256: MethodKey = method("2022-blake3-aes-256-gcm", KEY_32);
/// SIP022 with ChaCha20.
pub const BLAKE3_CHACHA20: MethodKey = method("2022-blake3-chacha20-poly1305", KEY_32);
/// SIP004.
pub const AES_128: MethodKey = method("aes-128-gcm", PASSWORD);
/// SIP004.
pub const AES_192: MethodKey = method("aes-192-gcm", PASSWORD);
/// SIP004.
pub const AES_256: MethodKey = method("aes-256-gcm", PASSWORD);
/// SIP004.
pub const CHACHA20: MethodKey = method("chacha20-ietf-poly1305", PASSWORD);
/// SIP004 as some peers extend it.
pub const XCHACHA20: MethodKey = method("xchacha20-ietf-poly1305", PASSWORD);

/// All methods, except for the legacy ones of `ShadowsocksPeer::legacy_methods`.
pub const METHODS: [MethodKey; 8] = [
    BLAKE3_AES_128,
    BLAKE3_AES_256,
    BLAKE3_CHACHA20,
    AES_128,
    AES_192,
    AES_256,
    CHACHA20,
    XCHACHA20,
];

impl MethodKey {
    /// Returns a method with a password.
    #[must_use]
    pub const fn legacy(name: &'static str) -> Self {
        method(name, PASSWORD)
    }

    /// Returns the URL of a server with this method and key, special characters percent-encoded.
    #[must_use]
    pub fn url(&self, server: SocketAddr) -> String {
        format!("ss://{}:{}@{server}", self.name, percent_encode(self.key))
    }
}

/// Percent-encodes all characters but the unreserved ones of RFC 3986.
#[must_use]
pub fn percent_encode(text: &str) -> String {
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

/// The users of a server.
#[derive(Debug, Clone, Copy)]
pub enum ServedUsers<'a> {
    /// Any client with the key of the method.
    OneKey,
    /// Users with their names and keys; the key of the method is the server's own (SIP023).
    Users(&'a [(&'a str, &'a str)]),
    /// No users: the server relays to the servers with these keys; the key of the method is the
    /// relay's own (SIP023).
    Relay(&'a [(SocketAddr, &'a str)]),
}

/// A client of one server.
#[derive(Debug, Clone, Copy)]
pub struct ClientSetup<'a> {
    /// The method; its key is not used.
    pub method: MethodKey,
    /// The client's own key, preceded by those of relays and servers that remove identity headers.
    pub keys: &'a [&'a str],
    /// Address it connects to.
    pub server: SocketAddr,
    /// Version of UDP over TCP that it uses instead of datagrams.
    pub over_tcp: Option<u8>,
    /// Name and options of a plugin (SIP003).
    pub plugin: Option<(&'a str, &'a str)>,
}

impl<'a> ClientSetup<'a> {
    /// Creates a client that sends datagrams and has no plugin.
    #[must_use]
    pub const fn new(method: MethodKey, keys: &'a [&'a str], server: SocketAddr) -> Self {
        Self {
            method,
            keys,
            server,
            over_tcp: None,
            plugin: None,
        }
    }

    /// Returns all keys, as most configurations write them.
    pub(super) fn password(&self) -> String {
        self.keys.join(":")
    }

    /// Returns the URL with which adit is the same client.
    #[must_use]
    pub fn url(&self) -> String {
        let keys: Vec<String> = self.keys.iter().map(|key| percent_encode(key)).collect();
        let mut query = Vec::new();
        query.extend(self.over_tcp.map(|_| "udp=over-tcp".to_owned()));
        query.extend(self.plugin.map(|(name, options)| {
            let blank = if options.is_empty() { "" } else { ";" };
            format!(
                "plugin={}",
                percent_encode(&format!("{name}{blank}{options}"))
            )
        }));
        let mark = if query.is_empty() { "" } else { "?" };
        let (name, keys, query) = (self.method.name, keys.join(":"), query.join("&"));
        format!("ss://{name}:{keys}@{}{mark}{query}", self.server)
    }
}

/// A running server or forwarder.
#[derive(Debug)]
pub struct RunningPeer {
    addr: SocketAddr,
    _process: ChildProcess,
    _folder: Option<TempFolder>,
}

impl RunningPeer {
    /// Returns the address of its Shadowsocks port, or of the forwarder's entry.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }
}

/// Starts a program with these arguments, which listens at `addr`.
pub(super) fn start_program(program: &str, args: &[&str], addr: SocketAddr) -> Result<RunningPeer> {
    let mut command = Command::new(external_tools::peer_path(program));
    command.args(args);
    wait_until_listening(addr, ChildProcess::spawn(command)?, None)
}

/// Starts a program with these arguments, followed by the path of a configuration file.
pub(super) fn start_with_file(
    program: &str,
    args: &[&str],
    folder: TempFolder,
    config: &str,
    addr: SocketAddr,
) -> Result<RunningPeer> {
    let file = folder.write_file("config.json", config)?;
    let mut command = Command::new(external_tools::peer_path(program));
    command.args(args).arg(file).current_dir(folder.path());
    let process = ChildProcess::spawn(command)?;
    wait_until_listening(addr, process, Some(folder))
}

fn wait_until_listening(
    addr: SocketAddr,
    process: ChildProcess,
    folder: Option<TempFolder>,
) -> Result<RunningPeer> {
    for transport in [Transport::Tcp, Transport::Udp] {
        let there = wait_port(transport, addr.port(), TEST_TIMEOUT);
        ensure!(
            there.is_ok(),
            "the peer does not listen at {addr}:\n{}",
            process.output()
        );
    }
    Ok(RunningPeer {
        addr,
        _process: process,
        _folder: folder,
    })
}

/// Returns one JSON object for each item, separated by commas.
pub(super) fn join_json_objects<T>(items: &[T], object: impl Fn(&T) -> String) -> String {
    let objects: Vec<String> = items.iter().map(object).collect();
    objects.join(",")
}
