//! Lookups of names for routes: the system's resolver, or the DNS tables of a plan.
//!
//! ```text
//! route ─▶ NameResolver ─▶ DnsTable: rules ─▶ servers, through a chain
//!                   └────▶ the system's resolver
//! dns:// ─▶ DnsResponder: rules of the route ─▶ FakeIpPool, or NameResolver
//! ```
//!
//! Every connector that looks names up has the [`NameResolver`] of its route as a field. Only what the
//! tables send to the system's resolver reaches it: other queries do not leak.

mod error;
mod fake_ip;
mod resolver;
mod responder;
mod system;
mod table;
mod upstream;

pub use error::DnsStartError;
pub(crate) use fake_ip::{FakeIps, FakeTarget};
pub(crate) use resolver::DefaultDns;
pub use resolver::NameResolver;
pub(crate) use responder::{DnsResponder, FirstAnswer};
pub(crate) use table::{DnsRegistry, RunningDns};
pub use table::{DnsTable, DnsTables};
