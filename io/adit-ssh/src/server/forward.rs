//! Requests of a client to listen and forward.

use adit_ssh_proto::connection::{GlobalAnswer, GlobalRequest};

use super::Incoming;
use crate::forwards::GlobalReply;

/// An address or a socket to listen on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ForwardPlace {
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
    place: ForwardPlace,
    reply: GlobalReply,
}

impl ForwardRequest {
    pub(super) fn of(request: GlobalRequest, reply: GlobalReply) -> Option<Incoming> {
        let (place, begin) = match request {
            GlobalRequest::TcpipForward { address, port } => {
                (ForwardPlace::Tcpip { address, port }, true)
            }
            GlobalRequest::CancelTcpipForward { address, port } => {
                (ForwardPlace::Tcpip { address, port }, false)
            }
            GlobalRequest::StreamlocalForward { path } => {
                (ForwardPlace::Streamlocal { path }, true)
            }
            GlobalRequest::CancelStreamlocalForward { path } => {
                (ForwardPlace::Streamlocal { path }, false)
            }
            _ => return None,
        };
        let request = Self { place, reply };
        Some(if begin {
            Incoming::Forward(request)
        } else {
            Incoming::CancelForward(request)
        })
    }

    /// Returns the address or socket to listen on.
    #[must_use]
    pub const fn place(&self) -> &ForwardPlace {
        &self.place
    }

    /// Grants the request. `port` is the port that the server listens on, which is sent to the client
    /// if it asked for any port. For other requests pass 0.
    pub fn grant(self, port: u16) {
        let chosen = matches!(self.place, ForwardPlace::Tcpip { port: 0, .. });
        self.reply.give(if chosen {
            GlobalAnswer::Bound { port }
        } else {
            GlobalAnswer::Granted { data: Vec::new() }
        });
    }

    /// Refuses the request.
    pub fn refuse(self) {
        self.reply.give(GlobalAnswer::Refused);
    }
}
