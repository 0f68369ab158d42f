//! The typed result of an endpoint: a complete listener or hop.

mod carried;
mod datagrams;
mod hop;
mod listen;
mod login;
mod shadowsocks;
mod show;
mod ssh;
mod ssr;

pub use carried::{Carried, Fec, Kcp, Learns, PacketSeal, Shards};
pub use datagrams::Datagrams;
pub(crate) use datagrams::identity_headers;
pub use hop::{Hop, HopKind, ServerHop};
pub use listen::{
    Access, Forward, Limits, Listen, ListenAddr, ListenKind, Proxy, Steering, Transparent,
};
pub use login::Login;
pub use shadowsocks::{Plugin, RelayNext, SsRole, SsServer, SsUser};
pub use ssh::{HostTrust, SshHop, SshKey, SshOffer, SshServer};
pub use ssr::{SsrHop, SsrServer};

pub(crate) use crate::schema::{PluginMode, Prefer, Private, RejectPolicy, Restart, UdpWay};
