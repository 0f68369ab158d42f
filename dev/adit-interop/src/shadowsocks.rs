//! Other implementations of Shadowsocks as servers and as fixed forwarders.
//!
//! A server listens on 127.0.0.1 for TCP and UDP. A forwarder has an entry there, for TCP and UDP,
//! that leads through the given server to a fixed target, without SOCKS.

mod go;
mod identity_keys;
mod libev;
mod peer;
mod rust;
mod sing_box;
mod xray;

use std::net::SocketAddr;

use anyhow::{Result, ensure};

use crate::ports::{free_port, loopback_addr};
use crate::traffic::CloseBehavior;

pub use identity_keys::{IDENTITY_KEYS, IdentityKeys};
pub use peer::{
    AES_128, AES_192, AES_256, BLAKE3_AES_128, BLAKE3_AES_256, BLAKE3_CHACHA20, CHACHA20,
    ClientSetup, METHODS, MethodKey, RunningPeer, ServedUsers, XCHACHA20, percent_encode,
};
use peer::{join_json_objects, start_program, start_with_file};

/// The stream ciphers of shadowsocks-libev.
const LIBEV_LEGACY: [MethodKey; 14] = [
    MethodKey::legacy("rc4-md5"),
    MethodKey::legacy("aes-128-cfb"),
    MethodKey::legacy("aes-192-cfb"),
    MethodKey::legacy("aes-256-cfb"),
    MethodKey::legacy("aes-128-ctr"),
    MethodKey::legacy("aes-192-ctr"),
    MethodKey::legacy("aes-256-ctr"),
    MethodKey::legacy("bf-cfb"),
    MethodKey::legacy("camellia-128-cfb"),
    MethodKey::legacy("camellia-192-cfb"),
    MethodKey::legacy("camellia-256-cfb"),
    MethodKey::legacy("salsa20"),
    MethodKey::legacy("chacha20"),
    MethodKey::legacy("chacha20-ietf"),
];

/// The stream ciphers of shadowsocks-rust.
const RUST_LEGACY: [MethodKey; 19] = [
    MethodKey::legacy("table"),
    MethodKey::legacy("rc4"),
    MethodKey::legacy("rc4-md5"),
    MethodKey::legacy("aes-128-ctr"),
    MethodKey::legacy("aes-192-ctr"),
    MethodKey::legacy("aes-256-ctr"),
    MethodKey::legacy("aes-128-cfb"),
    MethodKey::legacy("aes-192-cfb"),
    MethodKey::legacy("aes-256-cfb"),
    MethodKey::legacy("aes-128-cfb8"),
    MethodKey::legacy("aes-192-cfb8"),
    MethodKey::legacy("aes-256-cfb8"),
    MethodKey::legacy("aes-128-ofb"),
    MethodKey::legacy("aes-192-ofb"),
    MethodKey::legacy("aes-256-ofb"),
    MethodKey::legacy("camellia-128-cfb"),
    MethodKey::legacy("camellia-192-cfb"),
    MethodKey::legacy("camellia-256-cfb"),
    MethodKey::legacy("chacha20-ietf"),
];

/// An implementation that the tests can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShadowsocksPeer {
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

impl ShadowsocksPeer {
    /// Returns true if the peer supports this one of [`METHODS`].
    #[must_use]
    pub fn supports(self, method: MethodKey) -> bool {
        match self {
            Self::SingBox => true,
            Self::Libev => !method.name.starts_with("2022-"),
            Self::Rust | Self::Xray => method != AES_192,
            Self::Go => [BLAKE3_AES_128, BLAKE3_AES_256].contains(&method),
        }
    }

    /// Returns the stream ciphers it supports.
    #[must_use]
    pub const fn legacy_methods(self) -> &'static [MethodKey] {
        match self {
            Self::SingBox | Self::Go | Self::Xray => &[],
            Self::Libev => &LIBEV_LEGACY,
            Self::Rust => &RUST_LEGACY,
        }
    }

    /// Returns the behaviour of its client when one direction of a stream ends (observed).
    #[must_use]
    pub fn client_close_behavior(self, method: MethodKey) -> CloseBehavior {
        match self {
            Self::Xray if method.name.starts_with("2022-") => CloseBehavior::OnClientEnd,
            Self::SingBox | Self::Libev | Self::Xray => CloseBehavior::OnEitherEnd,
            Self::Rust | Self::Go => CloseBehavior::Independent,
        }
    }

    /// Returns the behaviour of its server or relay when one direction of a stream ends (observed).
    #[must_use]
    pub fn server_close_behavior(self, method: MethodKey) -> CloseBehavior {
        match self {
            // An end that its client does not pass down is one that its server does not pass up.
            Self::Xray if method.name.starts_with("2022-") => CloseBehavior::OnServerEnd,
            _ => self.client_close_behavior(method),
        }
    }

    /// Starts a server whose clients may reach any address.
    pub fn start_server(self, method: MethodKey) -> Result<RunningPeer> {
        self.start_server_for(method, ServedUsers::OneKey)
    }

    /// Starts a server for these users, who may reach any address.
    pub fn start_server_for(
        self,
        method: MethodKey,
        serves: ServedUsers<'_>,
    ) -> Result<RunningPeer> {
        let addr = loopback_addr(free_port());
        match self {
            Self::SingBox => sing_box::start_server(method, serves, addr),
            Self::Libev => libev::start_server(method, serves, addr),
            Self::Rust => rust::start_server(method, serves, addr),
            Self::Go => go::start_server(method, serves, addr),
            Self::Xray => xray::start_server(method, serves, addr),
        }
    }

    /// Starts a client with an entry that leads to `to` through `server`.
    pub fn start_forwarder(
        self,
        method: MethodKey,
        server: SocketAddr,
        to: SocketAddr,
    ) -> Result<RunningPeer> {
        self.start_forwarder_for(&ClientSetup::new(method, &[method.key], server), to)
    }

    /// Starts a client with an entry that leads to `to`.
    pub fn start_forwarder_for(
        self,
        client: &ClientSetup<'_>,
        to: SocketAddr,
    ) -> Result<RunningPeer> {
        let entry = loopback_addr(free_port());
        match self {
            Self::SingBox => sing_box::start_forwarder(client, entry, to),
            Self::Libev => libev::start_forwarder(client, entry, to),
            Self::Rust => rust::start_forwarder(client, entry, to),
            Self::Go => go::start_forwarder(client, entry, to),
            Self::Xray => xray::start_forwarder(client, entry, to),
        }
    }

    /// Starts a client with a SOCKS5 port, which sends names as names.
    pub fn start_socks_client(self, method: MethodKey, server: SocketAddr) -> Result<RunningPeer> {
        ensure!(
            self == Self::Libev,
            "the tests start only shadowsocks-libev as a SOCKS5 client"
        );
        libev::start_socks_client(method, server, loopback_addr(free_port()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::OriginServer;
    use crate::traffic;

    #[test]
    fn special_characters_are_encoded() {
        assert_eq!(percent_encode("a+/=@: b"), "a%2B%2F%3D%40%3A%20b");
        let url = BLAKE3_AES_128.url(loopback_addr(1));
        assert_eq!(
            url,
            "ss://2022-blake3-aes-128-gcm:%2B%2Fv7%2B%2Fv7AAECAwQFBgcICQ%3D%3D@127.0.0.1:1"
        );
    }

    /// The harness against peers alone: a failure here is not caused by adit.
    fn pair(client: ShadowsocksPeer, server_peer: ShadowsocksPeer, method: MethodKey) {
        let origin = OriginServer::start().unwrap();
        let server = server_peer.start_server(method).unwrap();
        let entry = client
            .start_forwarder(method, server.addr(), origin.addr())
            .unwrap();
        let ends = client
            .client_close_behavior(method)
            .combine_with(server_peer.server_close_behavior(method));
        traffic::check_streams(ends, || traffic::connect_directly(entry.addr())).unwrap();
        traffic::check_datagrams(&traffic::ForwarderEntry::open(entry.addr()).unwrap()).unwrap();
    }

    #[test]
    fn sing_box_reaches_itself() {
        pair(
            ShadowsocksPeer::SingBox,
            ShadowsocksPeer::SingBox,
            BLAKE3_AES_256,
        );
    }

    #[test]
    fn libev_reaches_itself() {
        pair(ShadowsocksPeer::Libev, ShadowsocksPeer::Libev, AES_256);
    }

    #[test]
    fn sing_box_reaches_libev() {
        pair(ShadowsocksPeer::SingBox, ShadowsocksPeer::Libev, CHACHA20);
    }

    #[test]
    fn libev_reaches_sing_box() {
        pair(ShadowsocksPeer::Libev, ShadowsocksPeer::SingBox, AES_192);
    }

    #[test]
    fn go_and_xray_reach_themselves_and_each_other() {
        pair(ShadowsocksPeer::Go, ShadowsocksPeer::Go, BLAKE3_AES_256);
        pair(ShadowsocksPeer::Xray, ShadowsocksPeer::Xray, AES_256);
        pair(ShadowsocksPeer::Go, ShadowsocksPeer::Xray, BLAKE3_AES_128);
        pair(ShadowsocksPeer::Xray, ShadowsocksPeer::Go, BLAKE3_AES_128);
    }

    /// A client of the same implementation, as a user of its server, behind its relay.
    #[test]
    fn identity_headers_among_peers() {
        let [ring, _] = IDENTITY_KEYS;
        let (_, bob) = ring.users[1];
        let own = ring.method.key;
        for (client, relay_peer, server_peer) in [
            (
                ShadowsocksPeer::SingBox,
                ShadowsocksPeer::Xray,
                ShadowsocksPeer::Go,
            ),
            (
                ShadowsocksPeer::Go,
                ShadowsocksPeer::SingBox,
                ShadowsocksPeer::Xray,
            ),
            (
                ShadowsocksPeer::Xray,
                ShadowsocksPeer::SingBox,
                ShadowsocksPeer::SingBox,
            ),
        ] {
            let origin = OriginServer::start().unwrap();
            let server = server_peer
                .start_server_for(ring.method, ServedUsers::Users(&ring.users))
                .unwrap();
            let front = MethodKey {
                key: ring.relays[0],
                ..ring.method
            };
            let relay = relay_peer
                .start_server_for(front, ServedUsers::Relay(&[(server.addr(), own)]))
                .unwrap();
            let keys = [front.key, own, bob];
            let entry = client
                .start_forwarder_for(
                    &ClientSetup::new(ring.method, &keys, relay.addr()),
                    origin.addr(),
                )
                .unwrap();
            traffic::check_one_byte(traffic::connect_directly(entry.addr()).unwrap()).unwrap();
            traffic::check_datagrams(&traffic::ForwarderEntry::open(entry.addr()).unwrap())
                .unwrap();
        }
    }

    #[test]
    fn ends_of_streams_are_as_they_were_found() {
        for peer in [ShadowsocksPeer::SingBox, ShadowsocksPeer::Go] {
            let origin = OriginServer::start().unwrap();
            let server = peer.start_server(BLAKE3_AES_128).unwrap();
            let entry = peer
                .start_forwarder(BLAKE3_AES_128, server.addr(), origin.addr())
                .unwrap();
            let passes = traffic::check_half_close(
                traffic::connect_directly(entry.addr()).unwrap(),
                100_000,
            )
            .is_ok();
            assert_eq!(
                passes,
                peer.client_close_behavior(BLAKE3_AES_128) == CloseBehavior::Independent,
                "{peer:?}"
            );
        }
    }
}
