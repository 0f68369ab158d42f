//! URLs and TOML to a validated plan.
//!
//! Five layers, each of which knows those before it: [`text`] (places, escapes, secrets, problems),
//! `grammar` (an [`Endpoint`]: every part with its place in the text), `schema` (keys with their
//! types), `scheme` (one definition for each [`Scheme`], and its way to a typed listener or hop)
//! and `plan` (a [`Plan`]: complete, cross-checked). Nothing after the plan reads a string. Above
//! them stand the faces: [`explain()`], [`reference()`] and [`link`].
//!
//! ```text
//! dialect[+carrier]://[user[:secret]@]host[:port][/target][?key=value&…][#name]
//! ```
//!
//! Start with [`Plan::from_words`]; mistakes come back as [`Problem`]s that print the line, a
//! caret and what to do. What a URL may say stands in the definition of its scheme ([`schemes()`]):
//! parsing, suggestions, [`help()`] and [`reference()`] are made from it.
//!
//! Not here: sockets, name resolution, the key derivation of any protocol. Files and the
//! environment are read in one module, behind [`Sources`].

#![forbid(unsafe_code)]

pub mod link;
pub mod text;

mod explain;
mod grammar;
mod plan;
mod reference;
mod schema;
mod scheme;

pub use explain::explain;
pub use grammar::{Address, Endpoint, MAX_URL_LEN, Pair, read_address};
pub use plan::{ArgItem, Chain, MAX_FILE_LEN, Match, NamePattern, Plan, Route, Rule, Stage};
pub use reference::{help, overview, reference};
pub use schema::{
    EndpointRole, EndpointRoles, Param, PluginMode, Prefer, Private, RejectPolicy, Restart,
    Setting, UdpWay,
};
pub use scheme::keyring::{MAX_USERS, MAX_USERS_FILE, read_users};
pub use scheme::typed::{
    Access, Carried, Datagrams, Fec, Forward, Hop, HopKind, HostTrust, Kcp, Learns, Limits, Listen,
    ListenAddr, ListenKind, Login, PacketSeal, Plugin, Proxy, RelayNext, ServerHop, Shards, SsRole,
    SsServer, SsUser, SshHop, SshKey, SshOffer, SshServer, SsrHop, SsrServer, Steering,
    Transparent,
};
pub use scheme::{Carrier, Scheme, UnknownScheme, schemes};
pub use text::{
    FileText, Flaw, Machine, Origin, Place, Problem, Secret, SecretText, Sources, Span, Spanned,
    Warning, WarningKind, nearest, read_duration,
};
