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
//! * [`plugin`]: SIP003 plugins: adit as their host, and adit as a plugin.
//!
//! Start with [`Engine::start`].

#![forbid(unsafe_code)]

pub mod acceptor;
pub mod access;
mod account;
pub mod carrier;
mod cause;
mod chain;
mod circle;
pub mod connector;
mod credentials;
pub mod dialect;
mod engine;
mod error;
mod guard;
mod health;
mod inflate;
mod listen_port;
mod listener;
pub mod plugin;
pub mod probe;
mod request;
mod roster;
mod router;
pub mod serve;
pub mod ssh;
mod standalone;
mod start_error;
pub mod udp;

pub use adit_stream::Counts;

pub use account::{Account, Usage};
pub use cause::{Cause, Party};
pub use engine::{Engine, Listening, Server};
pub use error::{AcceptError, DialError, Stage};
pub use guard::{Guard, Place, Source};
pub use health::Health;
pub use request::{BoxFuture, Peer, Request};
pub use roster::{Roster, RosterError};
pub use router::{Router, RuleWay};
pub use start_error::StartError;
