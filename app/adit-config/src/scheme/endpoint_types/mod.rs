//! The typed result of an endpoint: a complete listener or hop.

mod carriers;
mod datagrams;
mod display;
mod hop;
mod listen;
mod login;
mod shadowsocks;
mod ssh;
mod ssr;

pub use carriers::{
    AdoptedFromPeer, CarrierSettings, FecSettings, KcpSettings, PacketSeal, ShardCounts,
};
pub use datagrams::DatagramSupport;
pub(crate) use datagrams::identity_headers;
pub use hop::{Hop, HopKind, ServerHop};
pub use listen::{
    AccessRules, DnsListener, ForwardListener, InterceptMethod, ListenAddr, ListenerConfig,
    ListenerKind, ListenerLimits, ProxyListener, TransparentListener,
};
pub use login::UserPassword;
pub use shadowsocks::{Plugin, RelayTarget, SsRole, SsServer, SsUser};
pub use ssh::{HostTrust, SshAlgorithms, SshHop, SshKey, SshServer};
pub use ssr::{SsrHop, SsrServer};

pub(crate) use crate::schema::{
    AddressPreference, FleetIdentity, PluginMode, PrivateAccess, RejectPolicy, RestartPolicy,
    UdpTransport,
};
