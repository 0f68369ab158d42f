//! Requests of a client to listen and forward.

use adit_ssh_proto::connection::{GlobalAnswer, GlobalRequest};

use super::Incoming;
use crate::routes::GlobalReply;

/// An address or a socket to listen on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ForwardAddress {
    /// A TCP address: empty means all addresses, `localhost` means loopback (RFC 4254 section 7.1).
    Tcpip {
        /// The address, as the client wrote it.
        address: String,
        /// The port; 0 lets the server choose.
        port: u16,
    },
    /// A Unix-domain socket in the file system.
    Streamlocal {
        /// The socket's path.
        path: Vec<u8>,
    },
}

/// A request to start or to stop listening. Dropping it without an answer refuses it.
#[derive(Debug)]
pub struct ForwardRequest {
    address: ForwardAddress,
    reply: GlobalReply,
}

impl ForwardRequest {
    pub(super) fn from_global_request(
        request: GlobalRequest,
        reply: GlobalReply,
    ) -> Option<Incoming> {
        let (place, begin) = match request {
            GlobalRequest::TcpipForward { address, port } => {
                (ForwardAddress::Tcpip { address, port }, true)
            }
            GlobalRequest::CancelTcpipForward { address, port } => {
                (ForwardAddress::Tcpip { address, port }, false)
            }
            GlobalRequest::StreamlocalForward { path } => {
                (ForwardAddress::Streamlocal { path }, true)
            }
            GlobalRequest::CancelStreamlocalForward { path } => {
                (ForwardAddress::Streamlocal { path }, false)
            }
            _ => return None,
        };
        let request = Self {
            address: place,
            reply,
        };
        Some(if begin {
            Incoming::Forward(request)
        } else {
            Incoming::CancelForward(request)
        })
    }

    /// Returns the address or socket to listen on.
    #[must_use]
    pub const fn address(&self) -> &ForwardAddress {
        &self.address
    }

    /// Grants the request. `port` is the port that the server listens on, which is sent to the client
    /// if it asked for any port. For other requests pass 0.
    pub fn grant(self, port: u16) {
        let chosen = matches!(self.address, ForwardAddress::Tcpip { port: 0, .. });
        self.reply.send_answer(if chosen {
            GlobalAnswer::Bound { port }
        } else {
            GlobalAnswer::Granted { data: Vec::new() }
        });
    }

    /// Refuses the request.
    pub fn refuse(self) {
        self.reply.send_answer(GlobalAnswer::Refused);
    }
}
