//! Requests of a client.

use adit_ssh_proto::connection::{ChannelKind, GlobalRequest, OpenFailureReason, Originator};

use super::{ForwardRequest, ServerSession};
use crate::custom::{CustomRequest, IncomingCustomChannel};
use crate::error::SessionEnd;
use crate::incoming_channel::IncomingChannel;
use crate::routes::PeerRequest;

/// A request of a client. Dropping it without an answer refuses it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Incoming {
    /// A request for a channel for a program.
    Session(IncomingSession),
    /// A request for a TCP connection from the server to a target.
    DirectTcpip {
        /// The target host, as the client wrote it.
        host: String,
        /// The target port.
        port: u16,
        /// The originator, as reported by the client.
        originator: Originator,
        /// The channel, to be answered when the connection is established or has failed.
        opening: IncomingChannel,
    },
    /// A request for a connection from the server to a Unix-domain socket.
    DirectStreamlocal {
        /// The socket's path.
        path: Vec<u8>,
        /// The channel, to be answered when the connection is established or has failed.
        opening: IncomingChannel,
    },
    /// A request to listen and forward.
    Forward(ForwardRequest),
    /// A request to stop listening.
    CancelForward(ForwardRequest),
    /// A channel of an [application-defined type](crate::custom).
    OwnChannel(IncomingCustomChannel),
    /// A global request with an [application-defined name](crate::custom).
    OwnRequest(CustomRequest),
    /// A channel of another type.
    Other(IncomingChannel),
}

impl Incoming {
    /// Returns `None` for unsupported requests, which are refused by the drop.
    pub(super) fn from_peer_request(arrival: PeerRequest) -> Option<Self> {
        let opening = match arrival {
            PeerRequest::Global(request @ GlobalRequest::Custom { .. }, reply) => {
                return CustomRequest::from_global_request(request, reply).map(Self::OwnRequest);
            }
            PeerRequest::Global(request, reply) => {
                return ForwardRequest::from_global_request(request, reply);
            }
            PeerRequest::Open(opening) => opening,
        };
        Some(match opening.kind().clone() {
            ChannelKind::Session => Self::Session(IncomingSession(opening)),
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
            ChannelKind::Custom(_) => {
                Self::OwnChannel(IncomingCustomChannel::from_incoming(opening)?)
            }
            _ => Self::Other(opening),
        })
    }
}

/// A request for a channel for a program. Dropping it without an answer refuses it.
#[derive(Debug)]
pub struct IncomingSession(IncomingChannel);

impl IncomingSession {
    /// Opens the channel.
    ///
    /// # Errors
    /// Returns the reason if the connection is over.
    pub fn accept(self) -> Result<ServerSession, SessionEnd> {
        let handle = self.0.open_channel_for_requests()?;
        Ok(ServerSession::new(handle))
    }

    /// Refuses the channel, with an explanation for the client.
    pub fn refuse(self, why: OpenFailureReason, text: impl Into<String>) {
        self.0.refuse(why, text);
    }
}
