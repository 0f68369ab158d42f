//! Parses URLs and TOML into a validated plan.
//!
//! Five layers, each of which depends only on those before it: [`text`] (positions, escapes, secrets,
//! problems), `grammar` (an [`Endpoint`]: every part with its position in the text), `schema` (keys with
//! their types), `scheme` (one definition for each [`Scheme`], which builds a typed listener or hop)
//! and `plan` (a [`Plan`]: complete and cross-checked). Nothing after the plan parses a string. On top
//! of them are the outputs for users: [`explain_plan()`], [`markdown_reference()`], [`json_schema()`] and
//! [`link`].
//!
//! ```text
//! dialect[+carrier]://[user[:secret]@]host[:port][/target][?key=value&…][#name]
//! ```
//!
//! Start with [`Plan::from_words`]. Mistakes are returned as [`Problem`]s that print the line, a
//! caret and what to do. The definition of a scheme ([`schemes()`]) lists everything that its URLs
//! accept: parsing, suggestions, [`scheme_help()`] and [`markdown_reference()`] are derived from it.
//!
//! This crate has no sockets, no name resolution and no key derivation. One module reads files and
//! the environment, behind [`Sources`].

#![forbid(unsafe_code)]

pub mod link;
pub mod text;

mod explain;
mod family;
mod grammar;
mod json_schema;
mod plan;
mod reference;
mod schema;
mod scheme;

pub use adit_rules::{Condition, NamePattern};
pub use explain::{ExplainedPlan, describe_chain, explain_plan, explain_plan_as_document};
pub use family::{Family, LeftOut};
pub use grammar::{Address, Endpoint, MAX_URL_LEN, QueryPair, parse_address};
pub use json_schema::json_schema;
pub use plan::{
    AdminSettings, ApiAddress, ApiAddressError, Chain, DnsAction, DnsConfig, DnsRule, DnsServer,
    FleetSettings, GroupKind, LogFileSettings, LogFormat, LogLevel, LogSettings, MAX_FILE_LEN,
    NamedGroup, OtlpTarget, OutagePolicy, Plan, RemoteDnsServer, Route, RouteOption, Rule,
    RuleCondition, RuleSetConfig, RuleSetSource, RunSettings, SYSTEM_DNS, Stage, StoreSettings,
    WebhookEventKind, WebhookSettings, expand_short_listener,
};
pub use reference::{markdown_reference, scheme_help, schemes_overview};
pub use schema::{
    AddressPreference, EndpointRole, EndpointRoles, FleetIdentity, PluginMode, PrivateAccess,
    RejectPolicy, RestartPolicy, SchemeParam, Setting, UdpTransport,
};
pub use scheme::endpoint_types::{
    AccessRules, AdoptedFromPeer, CarrierSettings, DatagramSupport, DnsListener, FecSettings,
    ForwardListener, Hop, HopKind, HostTrust, InterceptMethod, KcpSettings, ListenAddr,
    ListenerConfig, ListenerKind, ListenerLimits, PacketSeal, Plugin, ProxyListener, RelayTarget,
    ServerHop, ShardCounts, SsRole, SsServer, SsUser, SshAlgorithms, SshHop, SshKey, SshServer,
    SsrHop, SsrServer, TransparentListener, UserPassword,
};
pub use scheme::key_files::{MAX_USERS, MAX_USERS_FILE, read_users};
pub use scheme::password_file::read_password_file;
pub use scheme::{Carrier, DEFAULT_SSH_AGENT, Scheme, UnknownScheme, schemes};
pub use text::{
    ConfigError, FileText, Origin, Problem, RecordingSources, Secret, SecretText, SourceLocation,
    Sources, Span, Spanned, SystemSources, Warning, WarningKind, nearest_word, parse_duration,
};
