//! Routes for the channels and requests of the peer.

use adit_ssh_proto::connection::{ChannelKind, GlobalAnswer, GlobalRequest, PendingGlobalReply};
use tokio::sync::mpsc;

use super::incoming_channel::IncomingChannel;
use super::shared_session::Command;
use super::shared_session::SharedSession;

/// A kind of arrivals that a route receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RouteKind {
    /// Connections to a TCP address of the server.
    Tcpip { address: String, port: u16 },
    /// Connections to a Unix-domain socket in the server's file system.
    Streamlocal(Vec<u8>),
    /// Connections to the local agent.
    Agent,
    /// Connections to the local X11 display.
    X11,
    /// Announcements of the server's host keys.
    HostKeys,
    /// Channels of an application-defined type.
    Channels(String),
    /// Global requests with application-defined names.
    Requests,
    /// On a server: everything.
    All,
}

/// A queue for arrivals of one kind.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) kind: RouteKind,
    pub(super) sender: mpsc::Sender<PeerRequest>,
}

/// A channel or a request for a route.
#[derive(Debug)]
pub(super) enum PeerRequest {
    /// A channel that the peer asks for.
    Open(IncomingChannel),
    /// A global request.
    Global(GlobalRequest, GlobalReply),
}

impl RouteKind {
    /// Returns how well a channel matches; 0 means not at all.
    pub(super) fn match_score(&self, kind: &ChannelKind) -> u8 {
        match (self, kind) {
            (
                Self::Tcpip { address, port },
                ChannelKind::ForwardedTcpip {
                    address: a,
                    port: p,
                    ..
                },
            ) => {
                // Servers report either the requested address or the one that was connected to.
                u8::from(port == p) * if address == a { 2 } else { 1 }
            }
            (Self::Streamlocal(path), ChannelKind::ForwardedStreamlocal { path: p }) => {
                u8::from(path == p)
            }
            (Self::Channels(name), ChannelKind::Custom(own)) => u8::from(name == own.name()),
            (Self::Agent, ChannelKind::Agent) | (Self::X11, ChannelKind::X11 { .. }) => 1,
            (Self::All, _) => 1,
            _ => 0,
        }
    }
}

/// The obligation to answer a global request. Dropping it refuses the request.
pub struct GlobalReply {
    to: Option<PendingGlobalReply>,
    mail: std::sync::Arc<SharedSession>,
    /// Size of an application-defined request as counted in the limit on waiting ones, in bytes.
    octets: usize,
}

impl GlobalReply {
    pub(super) const fn new(
        to: Option<PendingGlobalReply>,
        mail: std::sync::Arc<SharedSession>,
    ) -> Self {
        Self {
            to,
            mail,
            octets: 0,
        }
    }

    /// Counts an application-defined request as waiting; returns false if the limit is exceeded.
    pub(super) fn reserve_waiting(&mut self, octets: usize) -> bool {
        let fits = self.mail.reserve_waiting(octets);
        if fits {
            self.octets = octets;
        }
        fits
    }

    /// Returns true if the peer waits for an answer.
    #[must_use]
    pub const fn is_wanted(&self) -> bool {
        self.to.is_some()
    }

    /// Sends the answer.
    pub fn send_answer(mut self, answer: GlobalAnswer) {
        self.put_answer(answer);
    }

    fn put_answer(&mut self, answer: GlobalAnswer) {
        if let Some(to) = self.to.take() {
            // No one waits for the answer once the session is over.
            let _ = self.mail.send_command(Command::AnswerGlobal { to, answer });
        }
    }
}

impl Drop for GlobalReply {
    fn drop(&mut self) {
        self.mail.release_waiting(self.octets);
        self.put_answer(GlobalAnswer::Refused);
    }
}

impl std::fmt::Debug for GlobalReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("GlobalReply").field(&self.to).finish()
    }
}
