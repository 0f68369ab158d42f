//! Other implementations of Shadowsocks as servers and as fixed forwarders.
//!
//! A server listens on 127.0.0.1 for TCP and UDP. A forwarder has an entry there, for TCP and UDP,
//! that leads through the given server to a fixed target, without SOCKS.

mod go;
mod keyring;
mod libev;
mod peer;
mod rust;
mod sing_box;
mod xray;

use std::net::SocketAddr;

use anyhow::{Result, ensure};

use crate::port::{free_port, loopback};
use crate::traffic::Ends;

pub use keyring::{KEYRINGS, Keyring};
pub use peer::{
    AES_128, AES_192, AES_256, BLAKE3_AES_128, BLAKE3_AES_256, BLAKE3_CHACHA20, CHACHA20, Client,
    METHODS, Method, Running, Serves, XCHACHA20, encode,
};
use peer::{list, start, start_with_file};

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

/// The stream ciphers of shadowsocks-rust.
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

/// An implementation that the tests can start.
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

impl Peer {
    /// Returns true if the peer supports this one of [`METHODS`].
    #[must_use]
    pub fn speaks(self, method: Method) -> bool {
        match self {
            Self::SingBox => true,
            Self::Libev => !method.name.starts_with("2022-"),
            Self::Rust | Self::Xray => method != AES_192,
            Self::Go => [BLAKE3_AES_128, BLAKE3_AES_256].contains(&method),
        }
    }

    /// Returns the stream ciphers it supports.
    #[must_use]
    pub const fn legacy(self) -> &'static [Method] {
        match self {
            Self::SingBox | Self::Go | Self::Xray => &[],
            Self::Libev => &LIBEV_LEGACY,
            Self::Rust => &RUST_LEGACY,
        }
    }

    /// Returns the behaviour of its client when one direction of a stream ends (observed).
    #[must_use]
    pub fn client_ends(self, method: Method) -> Ends {
        match self {
            Self::Xray if method.name.starts_with("2022-") => Ends::Up,
            Self::SingBox | Self::Libev | Self::Xray => Ends::Both,
            Self::Rust | Self::Go => Ends::Each,
        }
    }

    /// Returns the behaviour of its server or relay when one direction of a stream ends (observed).
    #[must_use]
    pub fn server_ends(self, method: Method) -> Ends {
        match self {
            // An end that its client does not pass down is one that its server does not pass up.
            Self::Xray if method.name.starts_with("2022-") => Ends::Down,
            _ => self.client_ends(method),
        }
    }

    /// Starts a server whose clients may reach any address.
    pub fn server(self, method: Method) -> Result<Running> {
        self.serve(method, Serves::OneKey)
    }

    /// Starts a server for these users, who may reach any address.
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

    /// Starts a client with an entry that leads to `to` through `server`.
    pub fn forwarder(self, method: Method, server: SocketAddr, to: SocketAddr) -> Result<Running> {
        self.forward(&Client::new(method, &[method.key], server), to)
    }

    /// Starts a client with an entry that leads to `to`.
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

    /// Starts a client with a SOCKS5 port, which sends names as names.
    pub fn socks(self, method: Method, server: SocketAddr) -> Result<Running> {
        ensure!(
            self == Self::Libev,
            "the tests start only shadowsocks-libev as a SOCKS5 client"
        );
        libev::socks(method, server, loopback(free_port()))
    }
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

    /// The harness against peers alone: a failure here is not caused by adit.
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

    /// A client of the same implementation, as a user of its server, behind its relay.
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
