//! A plan made to run.
//!
//! Data passes through from left to right, only the verdict goes back, once:
//!
//! ```text
//! listener ─▶ Acceptor ─Request─▶ Router ─▶ Hop( … Hop( Direct )) ─▶ relay
//!                ▲                                   │
//!                └──── Pending: proceed / refuse ────┘
//! ```
//!
//! * [`acceptor`]: what a client may say on a listener, one module for each language;
//! * [`connector`]: how a stream to a target is opened (directly, through a hop, by a group);
//! * [`carrier`]: what leads to a hop's server, or to a listener, where that is not TCP;
//! * [`dialect`]: the language spoken with a hop's server;
//! * [`udp`]: one table of associations for every datagram dialect;
//! * [`serve`](mod@serve): the heart, and the accept loops around it;
//! * [`ssh`]: hops to SSH servers, and clients of SSH that want streams;
//! * [`access`]: which destinations a listener may reach;
//! * [`plugin`]: SIP003 plugins, as their host and as one of them.
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
