//! URLs and TOML to a validated plan.
//!
//! Three stages, each with its own type: the text, an [`Endpoint`] (grammar only, every part with
//! its place in the text) and a [`Plan`] (typed, defaults filled, cross-checked). Nothing after
//! the plan reads a string.
//!
//! ```text
//! dialect[+carrier]://[user[:secret]@]host[:port][/target][?key=value&…][#name]
//! ```
//!
//! Start with [`Plan::from_words`]; mistakes come back as [`Problem`]s that print the line, a
//! caret and what to do. What a URL may say stands in one table per scheme ([`Scheme::params`]):
//! parsing, suggestions, [`help()`] and [`reference()`] are made from it.
//!
//! Not here: sockets, name resolution, the key derivation of any protocol. Files and the
//! environment are read in one module, behind [`Sources`].

#![forbid(unsafe_code)]

mod desk;
mod draft;
mod endpoint;
mod explain;
mod keyring;
pub mod link;
mod mask;
mod param;
mod plan;
mod quote;
mod reference;
mod scheme;
mod value;

pub mod ssh_config;
pub mod text;
pub use endpoint::{Address, Endpoint, MAX_URL_LEN, Pair, read_address};
pub use explain::explain;
pub use keyring::{MAX_USERS, MAX_USERS_FILE, read_users};
pub use param::{Param, Role, Roles, Setting};
pub use plan::{
    Access, ArgItem, Carried, Chain, Fec, Forward, Hop, HopKind, HostTrust, Kcp, Limits, Listen,
    ListenAddr, ListenKind, Login, MAX_FILE_LEN, Match, NamePattern, PacketSeal, Plan, Plugin,
    PluginMode, Prefer, Private, Proxy, RejectPolicy, RelayNext, Restart, Route, Rule, ServerHop,
    Shards, SsRole, SsServer, SsUser, SshHop, SshKey, SshOffer, SshServer, SsrHop, SsrServer,
    Stage, Steering, Transparent, UdpWay,
};
pub use reference::{help, overview, reference};
pub use scheme::{Carrier, Scheme, UnknownScheme, schemes};
pub use text::{
    FileText, Flaw, Machine, Origin, Place, Problem, Secret, SecretText, Sources, Span, Spanned,
    Warning, WarningKind, nearest, read_duration,
};
