//! Datagram support of hops, shared by plans, drawings and warnings.

use adit_shadowsocks::{Edition, Method};
use adit_shadowsocksr::ProtocolKind;

use super::{CarrierSettings, Hop, HopKind, SsrHop};
use crate::schema::UdpTransport;

/// The way in which datagrams pass a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatagramSupport {
    /// Each in a separate packet.
    Packets {
        /// Maximum number of bytes added to an outgoing datagram for an IPv4 target.
        overhead: usize,
    },
    /// One after another in a connection or a stream.
    InStream,
    /// They cannot pass.
    Stopped,
}

/// Length of address type, IPv4 address and port, in bytes.
const ADDRESS: usize = 7;

impl Hop {
    /// Returns the support for datagrams. [`Hop::Reject`] counts as passing them: it refuses every
    /// request anyway.
    #[must_use]
    pub fn datagram_support(&self) -> DatagramSupport {
        let packets = |overhead| DatagramSupport::Packets { overhead };
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
            } => support_by_transport(*udp, || shadowsocks_overhead(*method, secret.expose())),
            HopKind::ShadowsocksR(hop) => {
                support_by_transport(hop.udp, || ssr_overhead(hop) + ADDRESS)
            }
            HopKind::Ssh(hop) if hop.udp => DatagramSupport::InStream,
            HopKind::RemoteTarget => match &server.carrier {
                Some(CarrierSettings::Fec(fec)) => packets(fec.overhead()),
                Some(CarrierSettings::Kcp(_)) | None => DatagramSupport::Stopped,
            },
            HopKind::Socks5 { .. }
            | HopKind::Socks4a { .. }
            | HopKind::Http { .. }
            | HopKind::Ssh(_) => DatagramSupport::Stopped,
        }
    }
}

/// Returns the support by the configured transport.
fn support_by_transport(way: UdpTransport, overhead: impl FnOnce() -> usize) -> DatagramSupport {
    match way {
        UdpTransport::Off => DatagramSupport::Stopped,
        UdpTransport::OverTcp => DatagramSupport::InStream,
        UdpTransport::Native => DatagramSupport::Packets {
            overhead: overhead(),
        },
    }
}

/// Returns the number of bytes that Shadowsocks adds to a datagram for an IPv4 target.
fn shadowsocks_overhead(method: Method, keys: &str) -> usize {
    match method {
        // SIP022, UDP: session header, type + time + padding length, tag; SIP023 headers.
        Method::Blake3Aes128Gcm | Method::Blake3Aes256Gcm => {
            16 + 16 * identity_headers(method, keys) + 11 + ADDRESS + 16
        }
        // A nonce in front, and a sealed session header.
        Method::Blake3ChaCha20Poly1305 | Method::Blake3ChaCha8Poly1305 => {
            24 + 16 + 11 + ADDRESS + 16
        }
        Method::None | Method::Stream(_) => method.salt_len() + ADDRESS,
        // SIP004: salt and tag.
        other => other.salt_len() + ADDRESS + 16,
    }
}

/// Returns the number of identity headers before a request (SIP023): one for each key but the last.
pub(crate) fn identity_headers(method: Method, keys: &str) -> usize {
    match method.edition() {
        Edition::Aead2022 => keys.matches(':').count(),
        Edition::Aead | Edition::Stream | Edition::None => 0,
    }
}

/// Returns the maximum number of bytes that ShadowsocksR adds to a datagram, without the target's
/// address: the IV, and the tags and paddings of the protocol.
fn ssr_overhead(hop: &SsrHop) -> usize {
    let protocol = match hop.protocol {
        kind if kind >= ProtocolKind::AuthChainA => adit_shadowsocksr::PACKET_TAIL,
        kind if kind >= ProtocolKind::AuthAes128Md5 => 8,
        _ => 0,
    };
    hop.method.iv_len() + protocol
}
