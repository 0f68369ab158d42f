//! What a hop does with datagrams: the one answer for plans, drawings and warnings.

use adit_shadowsocks::{Edition, Method};
use adit_shadowsocksr::ProtocolKind;

use super::{Carried, Hop, HopKind, SsrHop};
use crate::schema::UdpWay;

/// How datagrams get through a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datagrams {
    /// Each in a packet of its own.
    Packets {
        /// Bytes that are added to one for an IPv4 target on the way out, at most.
        overhead: usize,
    },
    /// In a connection or a stream, one behind the other.
    InStream,
    /// Not at all.
    Stopped,
}

/// Type, IPv4 address, port.
const ADDRESS: usize = 7;

impl Hop {
    /// What it does with datagrams. One that rejects stops nothing but what it is asked for.
    #[must_use]
    pub fn datagrams(&self) -> Datagrams {
        let packets = |overhead| Datagrams::Packets { overhead };
        let server = match self {
            Self::Direct | Self::Reject => return packets(0),
            Self::Server(server) => server,
        };
        match &server.kind {
            // RFC 1928, section 7: three bytes before the address.
            HopKind::Socks5 { udp: true, .. } => packets(3 + ADDRESS),
            HopKind::Shadowsocks {
                udp,
                method,
                secret,
                ..
            } => by(*udp, || overhead_of(*method, secret.expose())),
            HopKind::ShadowsocksR(hop) => by(hop.udp, || overhead_of_ssr(hop) + ADDRESS),
            HopKind::Ssh(hop) if hop.udp => Datagrams::InStream,
            HopKind::Far => match &server.carried {
                Some(Carried::Fec(fec)) => packets(fec.overhead()),
                Some(Carried::Kcp(_)) | None => Datagrams::Stopped,
            },
            HopKind::Socks5 { .. }
            | HopKind::Socks4a { .. }
            | HopKind::Http { .. }
            | HopKind::Ssh(_) => Datagrams::Stopped,
        }
    }
}

fn by(way: UdpWay, overhead: impl FnOnce() -> usize) -> Datagrams {
    match way {
        UdpWay::Off => Datagrams::Stopped,
        UdpWay::OverTcp => Datagrams::InStream,
        UdpWay::Native => Datagrams::Packets {
            overhead: overhead(),
        },
    }
}

fn overhead_of(method: Method, keys: &str) -> usize {
    match method {
        // SIP022, UDP: session header, type + time + padding length, tag; SIP023 headers.
        Method::Blake3Aes128Gcm | Method::Blake3Aes256Gcm => {
            16 + 16 * identity_headers(method, keys) + 11 + ADDRESS + 16
        }
        // Nonce in front, the session header sealed.
        Method::Blake3ChaCha20Poly1305 | Method::Blake3ChaCha8Poly1305 => {
            24 + 16 + 11 + ADDRESS + 16
        }
        Method::None | Method::Stream(_) => method.salt_len() + ADDRESS,
        // SIP004: salt and tag.
        other => other.salt_len() + ADDRESS + 16,
    }
}

/// Identity headers before a request (SIP023): one for each key but the last.
pub(crate) fn identity_headers(method: Method, keys: &str) -> usize {
    match method.edition() {
        Edition::Aead2022 => keys.matches(':').count(),
        Edition::Aead | Edition::Stream | Edition::None => 0,
    }
}

/// The most bytes that are added to a datagram, the target's address not counted: the
/// IV, and the tags and paddings of the protocol.
fn overhead_of_ssr(hop: &SsrHop) -> usize {
    let protocol = match hop.protocol {
        kind if kind >= ProtocolKind::AuthChainA => adit_shadowsocksr::PACKET_TAIL,
        kind if kind >= ProtocolKind::AuthAes128Md5 => 8,
        _ => 0,
    };
    hop.method.iv_len() + protocol
}
