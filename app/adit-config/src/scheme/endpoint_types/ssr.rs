//! Types of ShadowsocksR: protocol, obfs, and the treatment of other clients.

use core::time::Duration;

use adit_crypto::StreamKind;
use adit_obfs::{ObfsKind, ObfsParam, RedirectRule, UnrecognizedPolicy};
use adit_shadowsocksr::{Protocol, ProtocolKind};

use crate::scheme::endpoint_types::{Plugin, RejectPolicy, UdpTransport};
use crate::text::Secret;

/// A ShadowsocksR server.
#[derive(Debug, PartialEq, Eq)]
pub struct SsrServer {
    /// The cipher.
    pub method: StreamKind,
    /// The password of the port; not empty if the protocol or the obfs derives keys from it.
    pub password: Secret,
    /// The protocol, with a flag that is true if clients without it are served as clients of `origin`.
    pub protocol: Protocol,
    /// The users, in the format of [`ServerParam`](adit_shadowsocksr::ServerParam).
    pub protocol_param: Secret,
    /// True if the users are those of the fleet, by their numbers.
    pub fleet_users: bool,
    /// The obfs.
    pub obfs: ObfsKind,
    /// The treatment of clients without the obfs.
    pub strangers: UnrecognizedPolicy,
    /// Hosts to accept, or a time window.
    pub obfs_param: ObfsParam,
    /// True if TCP is served. At least one of `tcp` and `udp` is true.
    pub tcp: bool,
    /// True if UDP is served.
    pub udp: bool,
    /// The reaction to connections that are not accepted and match no rule of `redirect`.
    pub reject: RejectPolicy,
    /// Rules that forward connections that are not accepted. The first one that matches is used.
    pub redirect: Vec<RedirectRule>,
    /// True if first bytes are accepted in the SYN of a connection (TCP Fast Open).
    pub fast_open: bool,
    /// The plugin.
    pub plugin: Option<Plugin>,
}

/// A client of a ShadowsocksR server.
#[derive(Debug, PartialEq, Eq)]
pub struct SsrHop {
    /// The cipher.
    pub method: StreamKind,
    /// The password of the port; not empty if the protocol or the obfs derives keys from it.
    pub password: Secret,
    /// The protocol.
    pub protocol: ProtocolKind,
    /// The user, in the format of [`ClientParam`](adit_shadowsocksr::ClientParam).
    pub protocol_param: Secret,
    /// The obfs.
    pub obfs: ObfsKind,
    /// Host names to send, and for HTTP the text of the head.
    pub obfs_param: ObfsParam,
    /// The transport of datagrams.
    pub udp: UdpTransport,
    /// Maximum wait for first bytes that can be sent with the request.
    pub first_wait: Duration,
    /// True if the first bytes are sent in the SYN (TCP Fast Open); used at the first hop.
    pub fast_open: bool,
    /// The plugin.
    pub plugin: Option<Plugin>,
}
