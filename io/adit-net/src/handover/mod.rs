//! The handover of sockets and state to a new process, which continues the work of this one without a gap.
//!
//! Both processes share a Unix stream socket, a [`HandoverChannel`]; the new one inherits it as its standard
//! input. Messages have a kind and a body, which the application defines, and descriptors of sockets
//! (`SCM_RIGHTS`). A socket that is handed over keeps its queue: connections that wait to be accepted and
//! datagrams that wait to be read are not lost.

mod channel;
mod continued;
mod error;
mod header;
#[cfg(test)]
mod tests;

pub use channel::{HandoverChannel, HandoverMessage};
pub use continued::{continue_tcp_listener, continue_udp_socket};
pub use error::HandoverError;
pub use header::{HEADER_BYTES, MAX_BODY_BYTES, MAX_DESCRIPTORS, MessageHeader};
