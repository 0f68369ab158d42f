//! Parses URLs and TOML into a validated plan.
//!
//! Five layers, each of which depends only on those before it: [`text`] (positions, escapes, secrets,
//! problems), `grammar` (an [`Endpoint`]: every part with its position in the text), `schema` (keys with
//! their types), `scheme` (one definition for each [`Scheme`], which builds a typed listener or hop)
//! and `plan` (a [`Plan`]: complete and cross-checked). Nothing after the plan parses a string. On top
//! of them are the outputs for users: [`explain()`], [`reference()`] and [`link`].
//!
//! ```text
//! dialect[+carrier]://[user[:secret]@]host[:port][/target][?key=value&…][#name]
//! ```
//!
//! Start with [`Plan::from_words`]. Mistakes are returned as [`Problem`]s that print the line, a
//! caret and what to do. The definition of a scheme ([`schemes()`]) lists everything that its URLs
//! accept: parsing, suggestions, [`help()`] and [`reference()`] are derived from it.
//!
//! This crate has no sockets, no name resolution and no key derivation. One module reads files and
//! the environment, behind [`Sources`].

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
