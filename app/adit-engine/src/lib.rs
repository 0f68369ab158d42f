//! The engine: runs a plan.
//!
//! Data flows from left to right; only the verdict flows back, once per request:
//!
//! ```text
//! listener ─▶ Acceptor ─Request─▶ Router ─▶ Hop( … Hop( Direct )) ─▶ relay
//!                ▲                                   │
//!                └──── Pending: proceed / refuse ────┘
//! ```
//!
//! * [`acceptor`]: server sides of the protocols that clients use, one module per protocol;
//! * [`connector`]: opens a stream to a target (directly, through a hop, or through a group);
//! * [`carrier`]: transports other than TCP that lead to a hop's server or to a listener;
//! * [`dialect`]: the protocol used with a hop's server;
//! * [`udp`]: one table of associations for every datagram protocol;
//! * [`serve`](mod@serve): serves one connection, and the accept loops around it;
//! * [`ssh`]: hops to SSH servers, and SSH clients that open streams;
//! * [`access`]: the destinations that a listener may reach;
//! * [`clock_reference`]: the local clock, compared with that of a web server;
//! * [`plugin`]: SIP003 plugins: adit as their host, and adit as a plugin.
//!
//! Start with [`Engine::start`].
//!
//! # Examples
//!
//! ```
//! use adit_config::Plan;
//! use adit_engine::Engine;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! // A SOCKS5 and HTTP proxy on a free port, without hops.
//! let plan = Plan::from_words(&["mixed://127.0.0.1:0".to_owned()]).map_err(|all| format!("{all:?}"))?;
//! let engine = Engine::start(&plan).await?;
//! for listener in engine.listeners() {
//!     println!("listening on {}", listener.addr);
//! }
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new()?.block_on(example())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod acceptor;
pub mod access;
#[cfg(feature = "kcp")]
pub mod carrier;
#[cfg(not(feature = "kcp"))]
#[path = "carrier_left_out.rs"]
pub mod carrier;
mod chain_builder;
pub mod clock_reference;
mod clock_steps;
mod connect_pacer;
pub mod connector;
mod credentials;
pub mod dialect;
mod dns;
mod duration_histogram;
mod engine;
mod error;
mod failure_cause;
mod fleet;
mod handover;
mod handshake_limiter;
mod health;
mod inflated_stream;
#[cfg(not(all(feature = "kcp", feature = "ssh")))]
mod left_out_connector;
mod listen_port;
mod listener;
mod loop_detection;
pub mod plugin;
pub mod probe;
mod reject_cause;
mod replay_claims;
mod request;
mod route_rules;
mod router;
mod rule_sets;
pub mod serve;
mod session_span;
mod session_table;
#[cfg(feature = "ssh")]
pub mod ssh;
#[cfg(not(feature = "ssh"))]
#[path = "ssh_left_out.rs"]
pub mod ssh;
mod stage_meter;
mod standalone_worker;
mod start_error;
pub mod udp;
mod usage;
mod user_account;
mod user_registry;
mod user_table;

pub use adit_stream::MeterStats;

pub use dns::{DnsStartError, DnsTable, DnsTables, NameResolver};
pub use duration_histogram::HistogramStats;
pub use engine::{
    ApplyError, Engine, EngineCounters, Inheritance, KeyedServer, ListenerCounters, ListenerInfo,
    PreparedEngine, ProxyServer, ReloadSummary,
};
pub use error::{AcceptError, DialError, DialStage};
pub use failure_cause::{FailureCause, FaultSide};
pub use fleet::{FleetDirectory, FleetUser, FleetUsers, NamedUsers};
pub use handover::{ExportError, HandoverSocket, InheritedSockets, SharedSockets, SocketKind};
pub use handshake_limiter::{ConnectionSource, HandshakeLimiter, HandshakeSlot};
pub use health::ServerHealth;
pub use listener::{ProxyUsers, ReplayPart, ReplayPartError};
pub use reject_cause::RejectCause;
pub use replay_claims::{
    ClaimAnswer, ClaimKind, FilterClaims, ReplayClaim, SharedClaim, SharedReplayFilter,
};
pub use request::{BoxFuture, ConnectionAddrs, Request};
pub use route_rules::{Explanation, MatchReason, RouteRuleError, explain_request};
pub use router::{RequestContext, Router, RoutingRule};
pub use rule_sets::{
    LoadedRuleSet, RuleSetError, RuleSetFailure, RuleSetStore, RuleSetTable, StoredDocument,
};
pub use session_table::{ListenerSessions, SessionKind, SessionList, SessionReport, TargetClass};
pub use stage_meter::StageStats;
pub use start_error::StartError;
pub use usage::{ByteCounts, Usage, UserCounters};
pub use user_account::UserAccount;
pub use user_registry::{
    FleetLimitSource, FleetQuota, FleetUsage, FleetUserLimits, StoredUser, UserLimits,
    UserRegistry, UserReport, UserState,
};
pub use user_table::{UserTable, UserTableError};
