//! What a client wants.

use adit_ssh_proto::connection::{ChannelKind, GlobalRequest, OpenFailure, Originator};

use super::{ForwardRequest, ServerSession};
use crate::error::End;
use crate::forwards::Arrival;
use crate::opening::Opening;
use crate::own::{OwnOpening, OwnRequest};

/// Something that a client wants. Dropped without an answer, it is refused.
#[derive(Debug)]
#[non_exhaustive]
pub enum Incoming {
    /// A channel for a program.
    Session(SessionOpening),
    /// A connection from here to somewhere.
    DirectTcpip {
        /// Host to connect to, as written.
        host: String,
        /// Its port.
        port: u16,
        /// Who wants it, as the client tells it.
        originator: Originator,
        /// To be answered when the connection is there, or is not.
        opening: Opening,
    },
    /// A connection from here to a socket in the file system.
    DirectStreamlocal {
        /// The socket's path.
        path: Vec<u8>,
        /// To be answered when the connection is there, or is not.
        opening: Opening,
    },
    /// Listen, and forward what comes.
    Forward(ForwardRequest),
    /// Listen there no more.
    CancelForward(ForwardRequest),
    /// A channel of an [own type](crate::own).
    OwnChannel(OwnOpening),
    /// A global request of an [own name](crate::own).
    OwnRequest(OwnRequest),
    /// A channel of another kind.
    Other(Opening),
}

impl Incoming {
    /// `None` for what nobody knows; it is refused by being dropped.
    pub(super) fn of(arrival: Arrival) -> Option<Self> {
        let opening = match arrival {
            Arrival::Global(request @ GlobalRequest::Own { .. }, reply) => {
                return OwnRequest::of(request, reply).map(Self::OwnRequest);
            }
            Arrival::Global(request, reply) => return ForwardRequest::of(request, reply),
            Arrival::Open(opening) => opening,
        };
        Some(match opening.kind().clone() {
            ChannelKind::Session => Self::Session(SessionOpening(opening)),
            ChannelKind::DirectTcpip {
                host,
                port,
                originator,
            } => Self::DirectTcpip {
                host,
                port,
                originator,
                opening,
            },
            ChannelKind::DirectStreamlocal { path } => Self::DirectStreamlocal { path, opening },
            ChannelKind::Own(_) => Self::OwnChannel(OwnOpening::of(opening)?),
            _ => Self::Other(opening),
        })
    }
}

/// A channel for a program that a client wants. Dropped without an answer, it is refused.
#[derive(Debug)]
pub struct SessionOpening(Opening);

impl SessionOpening {
    /// Opens it.
    ///
    /// # Errors
    /// The connection is over.
    pub fn accept(self) -> Result<ServerSession, End> {
        let handle = self.0.confirm_serving()?;
        Ok(ServerSession::new(handle))
    }

    /// Refuses it, with words for the client.
    pub fn refuse(self, why: OpenFailure, text: impl Into<String>) {
        self.0.refuse(why, text);
    }
}
