//! DNS for forwarders: queries and answers as bytes on the wire, without sockets.
//!
//! * [`ClientQuery`] is a checked query of a client, and makes replies to it.
//! * [`UpstreamQuery`] is a query to a server; it checks the [`Answer`], which keeps the bytes of its records
//!   and makes replies from them: number, letters' case and times to live are patched, nothing is parsed
//!   again.
//! * [`Cache`] is a bounded cache of answers, and [`FakeIpTable`] a bounded table of addresses that stand for
//!   names.
//!
//! There is no socket, clock or random generator here: time and numbers are arguments.

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod answer;
mod cache;
mod client_query;
mod fake_ip;
mod lru;
mod message;
mod name;
mod record_type;
mod response_code;
#[cfg(test)]
mod tests;
mod upstream_query;

pub use answer::{Answer, AnswerError};
pub use cache::{Cache, CacheLimits, CachedAnswer};
pub use client_query::{ClientQuery, QueryError};
pub use fake_ip::{FakeIpError, FakeIpNetworks, FakeIpTable, SnapshotError};
pub use name::NameError;
pub use record_type::RecordType;
pub use response_code::ResponseCode;
pub use upstream_query::UpstreamQuery;
