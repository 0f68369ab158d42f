//! The handover of sockets and state to a new process, which continues the work of this one without a gap.
//!
//! Both processes share a Unix stream socket, a [`HandoverChannel`]; the new one inherits it as its standard
//! input. Messages have a kind and a body, which the application defines, and descriptors of sockets
//! (`SCM_RIGHTS`). A socket that is handed over keeps its queue: connections that wait to be accepted and
//! datagrams that wait to be read are not lost.
//!
//! A UDP socket has no connections that the system could tell apart. After its [handover](HandedOverUdp) the new
//! process receives all datagrams, and forwards those of the peers that the old process still serves.

mod channel;
mod continued;
mod error;
mod header;
mod sources;
#[cfg(test)]
mod tests;
mod udp;

pub use channel::{HandoverChannel, HandoverMessage};
pub use continued::{continue_tcp_listener, continue_udp_socket};
pub use error::HandoverError;
pub use header::{HEADER_BYTES, MAX_BODY_BYTES, MAX_DESCRIPTORS, MessageHeader};
pub use sources::{MAX_SOURCES, RunHeader, encode_sources, parse_sources};
pub use udp::HandedOverUdp;
pub(crate) use udp::{ServedPeers, UdpHandover};
