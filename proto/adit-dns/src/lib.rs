//! DNS for forwarders: queries and answers as bytes on the wire, without sockets.
//!
//! A forwarder reads queries of clients, sends its own to a server, and passes the answers on. Its answers keep
//! their bytes: the number, the letters' case of the name and the times to live are patched for each client, and
//! nothing is parsed again. A reply from the cache takes about 0.2 µs, from the bytes of the query to those of
//! the reply (`cargo run --release -p adit-dns --example dns_speed`).
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use adit_dns::{Cache, ClientQuery, RecordType, ResponseCode, UpstreamQuery};
//! use adit_wire::Time;
//!
//! // A client asks; here, it is played by the other side of this crate.
//! let question = UpstreamQuery::new("www.example.test", RecordType::A, 7)?.to_bytes();
//! let query = ClientQuery::parse(&question)?;
//!
//! // The forwarder asks a server, with its own random number.
//! let asked = UpstreamQuery::new(query.name(), query.record_type(), 4711)?;
//! let of_server = ClientQuery::parse(&asked.to_bytes())?
//!     .address_reply(&["192.0.2.1".parse()?], Duration::from_secs(300));
//! let answer = Arc::new(asked.check_answer(&of_server)?);
//! assert_eq!(answer.addresses(), ["192.0.2.1".parse::<std::net::IpAddr>()?]);
//!
//! // The answer is cached, and each client receives it with its own number and the time that is left.
//! let mut cache = Cache::default();
//! cache.insert(query.name(), query.record_type(), answer, Time(0));
//! let found = cache.get("www.example.test", RecordType::A, Time(10_000_000)).ok_or("expired")?;
//! let reply = found.answer.reply_to(&query, found.age);
//! assert_eq!(reply[..2], 7_u16.to_be_bytes());
//!
//! // A query that cannot be answered has a reply, too.
//! let refused = query.error_reply(ResponseCode::Refused);
//! assert_eq!(refused[3] & 15, 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * [`ClientQuery`] is a checked query of a client: one question, of any type that can be forwarded (no transfers
//!   and no `ANY`). Replies stay within the client's limit, at most 1,232 bytes in a datagram.
//! * [`UpstreamQuery`] is a query to a server, without anything of the client (no client subnet), padded for encrypted
//!   transports. It checks answers: number, question, aliases, sizes.
//! * [`Answer`] has the records of an answer, without the additional section; DNSSEC is not forwarded.
//! * [`Cache`] is bounded by entries and bytes; negative answers are kept as RFC 2308 describes.
//! * [`FailureCache`] keeps lookups that have failed from being repeated at once (RFC 9520).
//! * [`FakeIpTable`] assigns addresses of a network to names, so that a connection to an address shows the name
//!   that the client looked up; it can be saved and restored.
//!
//! There is no socket, clock or random generator here: time and numbers are arguments.

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod answer;
mod cache;
mod client_query;
mod failure_cache;
mod fake_ip;
mod lru;
mod message;
mod name;
mod question_table;
mod record_type;
mod response_code;
#[cfg(test)]
mod tests;
mod transport;
mod upstream_query;

pub use answer::{Answer, AnswerError};
pub use cache::{Cache, CacheLimits, CachedAnswer};
pub use client_query::{ClientQuery, QueryError};
pub use failure_cache::FailureCache;
pub use fake_ip::{FakeIpError, FakeIpNetworks, FakeIpTable, SnapshotError};
pub use name::{NameError, check_name};
pub use record_type::RecordType;
pub use response_code::ResponseCode;
pub use transport::Transport;
pub use upstream_query::UpstreamQuery;
