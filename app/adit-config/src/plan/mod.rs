//! The plan: typed, complete, cross-checked. The engine builds from it and reads no text.

mod build;
mod carried;
mod chain;
mod check;
mod circle;
mod ends;
mod file;
mod rule;
mod shadowsocks;
mod show;
mod ssh;
mod ssr;

use core::net::IpAddr;
use core::time::Duration;

use adit_wire::{Host, Target};
use ipnet::IpNet;

pub use build::ArgItem;
pub use carried::{Carried, Fec, Kcp, PacketSeal, Shards};
pub use chain::{Chain, Hop, HopKind, ServerHop, Stage};
pub use file::MAX_FILE_LEN;
pub use rule::{Match, NamePattern};
pub use shadowsocks::{Plugin, PluginMode, RelayNext, SsRole, SsServer, SsUser, UdpWay};
pub use ssh::{HostTrust, SshHop, SshKey, SshOffer, SshServer};
pub use ssr::{SsrHop, SsrServer};

use crate::text::{Secret, Warning, is_this_machine};

/// All routes of a process.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    /// The routes, in the order of the text; at least one.
    pub routes: Vec<Route>,
    /// What works but should be known.
    pub warnings: Vec<Warning>,
}

/// Listeners, and the way their requests go.
#[derive(Debug, PartialEq, Eq)]
pub struct Route {
    /// The name: letters, digits, `-`, `_` and `.`; unique in the plan.
    pub name: String,
    /// The listeners; at least one.
    pub listen: Vec<Listen>,
    /// Where requests go that no rule matches.
    pub via: Chain,
    /// Exceptions; the first that matches decides.
    pub rules: Vec<Rule>,
}

/// Requests that go another way.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// One of these has to match; at least one.
    pub matches: Vec<Match>,
    /// Names are looked up, and match networks by any of their addresses.
    pub resolve: bool,
    /// Where they go.
    pub via: Chain,
}

/// One listener.
#[derive(Debug, PartialEq, Eq)]
pub struct Listen {
    /// Where.
    pub addr: ListenAddr,
    /// What is spoken.
    pub kind: ListenKind,
    /// Times and numbers.
    pub limits: Limits,
    /// What may be reached.
    pub access: Access,
    /// Address family towards destinations.
    pub prefer: Prefer,
    /// What its clients come by, if that is not TCP and UDP as they are.
    pub carried: Option<Carried>,
    /// Whether connections come from a proxy of this machine that says who its clients are (PROXY
    /// protocol, version 2).
    pub proxy_protocol: bool,
}

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenAddr {
    /// The address or name; `None` means all addresses, IPv4 and IPv6.
    pub host: Option<Host>,
    /// The port; 0 means any free one.
    pub port: u16,
}

/// What a listener speaks.
#[derive(Debug, PartialEq, Eq)]
pub enum ListenKind {
    /// SOCKS, HTTP or both.
    Proxy(Proxy),
    /// A Shadowsocks server.
    Shadowsocks(SsServer),
    /// A ShadowsocksR server.
    ShadowsocksR(SsrServer),
    /// An SSH server that gives streams.
    Ssh(Box<SshServer>),
    /// A fixed target.
    Forward(Forward),
    /// Whatever the firewall turns this way.
    Transparent(Transparent),
}

impl ListenKind {
    /// The program before the listener.
    #[must_use]
    pub const fn plugin(&self) -> Option<&Plugin> {
        match self {
            Self::Shadowsocks(server) => server.plugin.as_ref(),
            Self::ShadowsocksR(server) => server.plugin.as_ref(),
            Self::Proxy(_) | Self::Ssh(_) | Self::Forward(_) | Self::Transparent(_) => None,
        }
    }
}

/// A proxy listener.
#[derive(Debug, PartialEq, Eq)]
pub struct Proxy {
    /// SOCKS5 is spoken.
    pub socks5: bool,
    /// SOCKS4 and SOCKS4a are spoken; never with users.
    pub socks4: bool,
    /// HTTP is spoken.
    pub http: bool,
    /// Who may use it; empty means everyone who reaches it. Names are unique.
    pub users: Vec<Login>,
    /// UDP ASSOCIATE is offered.
    pub udp: bool,
    /// BIND is offered.
    pub bind: bool,
    /// Address told to clients for UDP; else that of their control connection.
    pub udp_advertise: Option<IpAddr>,
    /// Fragments of SOCKS5 datagrams are put together.
    pub udp_reassembly: bool,
    /// UDP from everyone reaches the client, not only from whom it has written to (SEC-E3).
    pub full_cone: bool,
    /// Replies hold zeros instead of our outgoing address.
    pub hide_bind: bool,
    /// HTTP errors name their cause.
    pub verbose_errors: bool,
}

/// A user and the password.
#[derive(Debug, PartialEq, Eq)]
pub struct Login {
    /// The user; not empty.
    pub user: String,
    /// The password; not empty.
    pub password: Secret,
}

/// A port that leads to one target.
#[derive(Debug, PartialEq, Eq)]
pub struct Forward {
    /// TCP is forwarded.
    pub tcp: bool,
    /// UDP is forwarded; at least one of the two.
    pub udp: bool,
    /// Where to; its port is not 0. `None` leaves it to the far end of the chain's last hop.
    pub target: Option<Target>,
    /// Longest wait for first bytes that can travel with the request (TCP).
    pub first_wait: Duration,
}

/// A listener that takes what is meant for others (Linux). Its port is not 0.
#[derive(Debug, PartialEq, Eq)]
pub struct Transparent {
    /// How the firewall brings it.
    pub steering: Steering,
    /// TCP is taken; always with [`Steering::Redirect`].
    pub tcp: bool,
    /// UDP is taken; never with [`Steering::Redirect`].
    pub udp: bool,
    /// UDP from everyone reaches the client, not only from whom it has written to (SEC-E3).
    pub full_cone: bool,
}

/// How a firewall turns traffic to a transparent listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steering {
    /// `REDIRECT`: the destination is rewritten, and the kernel remembers the first one.
    Redirect,
    /// `TPROXY`: packets stay as they are.
    Tproxy,
}

/// What a connection sees that fails before it is authenticated (SEC-P1): the same for all causes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RejectPolicy {
    /// Silence, until the peer gives up or a deadline.
    Drain,
    /// A reset.
    Reset,
    /// An orderly close.
    Close,
    /// The bytes go to another server, which answers.
    Forward(Target),
}

/// Requests from before the start of the server (SEC-R3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// Refused: the replay filter does not know them.
    Strict,
    /// Served.
    Lenient,
}

/// Times and numbers of a listener. All times are longer than zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From accept to the complete request.
    pub handshake: Duration,
    /// To reach the destination.
    pub dial: Duration,
    /// Without a byte in either direction.
    pub idle: Duration,
    /// The same, once one side has finished.
    pub half_close_idle: Duration,
    /// Without a packet of a UDP association.
    pub udp_idle: Duration,
    /// Connections at the same time, at least 1; `None` leaves it to the descriptor limit.
    pub max_connections: Option<usize>,
}

/// What clients of a listener may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Destinations that are not public (SEC-E2).
    pub private: Private,
}

/// Destinations that are not public: loopback, link-local, RFC 1918 and the like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Private {
    /// None of them.
    Deny,
    /// All of them.
    All,
    /// These alone.
    Nets(Vec<IpNet>),
}

/// Address family towards destinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefer {
    /// The resolver's order.
    Auto,
    /// IPv4 first.
    V4,
    /// IPv6 first.
    V6,
    /// IPv4 only.
    V4Only,
    /// IPv6 only.
    V6Only,
}

impl ListenAddr {
    /// True if only this machine can reach it.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.host.as_ref().is_some_and(is_this_machine)
    }

    /// The access rule: as written, else everything for loopback listeners without a key.
    pub(crate) fn access(&self, written: Option<Private>, keyless: bool) -> Access {
        let private = match written {
            Some(written) => written,
            None if keyless && self.is_loopback() => Private::All,
            None => Private::Deny,
        };
        Access { private }
    }
}

impl Login {
    /// True if both parts have 1 to 255 bytes (RFC 1929).
    #[must_use]
    pub fn fits_socks5(&self) -> bool {
        let fits = |text: &str| (1..=255).contains(&text.len());
        fits(&self.user) && fits(self.password.expose())
    }
}
