//! Places that a client wants to be listened at.

use adit_ssh_proto::connection::{GlobalAnswer, GlobalRequest};

use super::Incoming;
use crate::forwards::GlobalReply;

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ForwardPlace {
    /// An address: empty is every one, `localhost` loopback (RFC 4254 section 7.1).
    Tcpip {
        /// The address, as written.
        address: String,
        /// The port; 0 leaves the choice to the server.
        port: u16,
    },
    /// A socket in the file system.
    Streamlocal {
        /// Its path.
        path: Vec<u8>,
    },
}

/// A wish to listen somewhere, or to stop. Dropped without an answer, it is refused.
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

    /// Where.
    #[must_use]
    pub const fn place(&self) -> &ForwardPlace {
        &self.place
    }

    /// It is done. `port` is the one that is listened on, which the client is told if it left the
    /// choice; 0 for anything else.
    pub fn grant(self, port: u16) {
        let chosen = matches!(self.place, ForwardPlace::Tcpip { port: 0, .. });
        self.reply.give(if chosen {
            GlobalAnswer::Bound { port }
        } else {
            GlobalAnswer::Granted { data: Vec::new() }
        });
    }

    /// It is not.
    pub fn refuse(self) {
        self.reply.give(GlobalAnswer::Refused);
    }
}
