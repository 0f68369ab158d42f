//! What only ShadowsocksR has: protocol, obfs, and where strangers are taken.

use core::time::Duration;

use adit_crypto::StreamKind;
use adit_obfs::{ObfsKind, ObfsParam, Redirect, Strangers};
use adit_shadowsocksr::{Protocol, ProtocolKind};

use crate::scheme::typed::{Plugin, RejectPolicy, UdpWay};
use crate::text::Secret;

/// A ShadowsocksR server.
#[derive(Debug, PartialEq, Eq)]
pub struct SsrServer {
    /// The cipher.
    pub method: StreamKind,
    /// The password of the port; not empty where the protocol or the obfs derives from it.
    pub password: Secret,
    /// The protocol, and whether clients without it are served as ones of `origin`.
    pub protocol: Protocol,
    /// The users, as [`ServerParam`](adit_shadowsocksr::ServerParam) reads them.
    pub protocol_param: Secret,
    /// The obfs.
    pub obfs: ObfsKind,
    /// What becomes of clients without it.
    pub strangers: Strangers,
    /// Hosts to accept, or a time window.
    pub obfs_param: ObfsParam,
    /// TCP is served.
    pub tcp: bool,
    /// UDP is served; at least one of the two.
    pub udp: bool,
    /// What connections see that are not accepted and fit no rule of `redirect`.
    pub reject: RejectPolicy,
    /// Where connections are taken that are not accepted; the first rule that fits.
    pub redirect: Vec<Redirect>,
    /// First bytes of a connection may come with the SYN (TCP Fast Open).
    pub fast_open: bool,
    /// The program before it.
    pub plugin: Option<Plugin>,
}

/// A client of a ShadowsocksR server.
#[derive(Debug, PartialEq, Eq)]
pub struct SsrHop {
    /// The cipher.
    pub method: StreamKind,
    /// The password of the port; not empty where the protocol or the obfs derives from it.
    pub password: Secret,
    /// The protocol.
    pub protocol: ProtocolKind,
    /// The user, as [`ClientParam`](adit_shadowsocksr::ClientParam) reads it.
    pub protocol_param: Secret,
    /// The obfs.
    pub obfs: ObfsKind,
    /// Hosts to name, and for HTTP the text of the head.
    pub obfs_param: ObfsParam,
    /// The way of datagrams.
    pub udp: UdpWay,
    /// Longest wait for first bytes that can travel with the request.
    pub first_wait: Duration,
    /// First bytes travel with the SYN (TCP Fast Open), at the first hop.
    pub fast_open: bool,
    /// The program before the server.
    pub plugin: Option<Plugin>,
}
