//! Requests of a client.

use adit_ssh_proto::connection::{ChannelKind, GlobalRequest, OpenFailure, Originator};

use super::{ForwardRequest, ServerSession};
use crate::error::End;
use crate::forwards::Arrival;
use crate::opening::Opening;
use crate::own::{OwnOpening, OwnRequest};

/// A request of a client. Dropping it without an answer refuses it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Incoming {
    /// A request for a channel for a program.
    Session(SessionOpening),
    /// A request for a TCP connection from the server to a target.
    DirectTcpip {
        /// The target host, as the client wrote it.
        host: String,
        /// The target port.
        port: u16,
        /// The originator, as reported by the client.
        originator: Originator,
        /// The channel, to be answered when the connection is established or has failed.
        opening: Opening,
    },
    /// A request for a connection from the server to a Unix-domain socket.
    DirectStreamlocal {
        /// The socket's path.
        path: Vec<u8>,
        /// The channel, to be answered when the connection is established or has failed.
        opening: Opening,
    },
    /// A request to listen and forward.
    Forward(ForwardRequest),
    /// A request to stop listening.
    CancelForward(ForwardRequest),
    /// A channel of an [application-defined type](crate::own).
    OwnChannel(OwnOpening),
    /// A global request with an [application-defined name](crate::own).
    OwnRequest(OwnRequest),
    /// A channel of another type.
    Other(Opening),
}

impl Incoming {
    /// Returns `None` for unsupported requests, which are refused by the drop.
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

/// A request for a channel for a program. Dropping it without an answer refuses it.
#[derive(Debug)]
pub struct SessionOpening(Opening);

impl SessionOpening {
    /// Opens the channel.
    ///
    /// # Errors
    /// Returns the reason if the connection is over.
    pub fn accept(self) -> Result<ServerSession, End> {
        let handle = self.0.confirm_serving()?;
        Ok(ServerSession::new(handle))
    }

    /// Refuses the channel, with an explanation for the client.
    pub fn refuse(self, why: OpenFailure, text: impl Into<String>) {
        self.0.refuse(why, text);
    }
}
