//! Who gets what the peer opens or asks for.

use adit_ssh_proto::connection::{ChannelKind, GlobalAnswer, GlobalReplyTo, GlobalRequest};
use tokio::sync::mpsc;

use super::mail::Command;
use super::mail::Mail;
use super::opening::Opening;

/// What was asked to be forwarded, or allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    /// Connections to an address of the server.
    Tcpip { address: String, port: u16 },
    /// Connections to a socket of the server's file system.
    Streamlocal(Vec<u8>),
    /// Connections to our agent.
    Agent,
    /// Windows for our display.
    X11,
    /// Word of the server's keys.
    HostKeys,
    /// Channels of an own type.
    Channels(String),
    /// Global requests of own names.
    Requests,
    /// A server: everything.
    All,
}

/// Where it goes.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) asked: Asked,
    pub(super) to: mpsc::Sender<Arrival>,
}

/// What arrives there.
#[derive(Debug)]
pub(super) enum Arrival {
    /// A channel that the peer wants.
    Open(Opening),
    /// A request outside of channels.
    Global(GlobalRequest, GlobalReply),
}

impl Asked {
    /// How well a channel fits: 0 is not at all.
    pub(super) fn fits(&self, kind: &ChannelKind) -> u8 {
        match (self, kind) {
            (
                Self::Tcpip { address, port },
                ChannelKind::ForwardedTcpip {
                    address: a,
                    port: p,
                    ..
                },
            ) => {
                // Servers tell the address as it was asked for, or the one that was connected.
                u8::from(port == p) * if address == a { 2 } else { 1 }
            }
            (Self::Streamlocal(path), ChannelKind::ForwardedStreamlocal { path: p }) => {
                u8::from(path == p)
            }
            (Self::Channels(name), ChannelKind::Own(own)) => u8::from(name == own.name()),
            (Self::Agent, ChannelKind::Agent) | (Self::X11, ChannelKind::X11 { .. }) => 1,
            (Self::All, _) => 1,
            _ => 0,
        }
    }
}

/// The duty to answer a request outside of channels; dropped, it refuses.
pub struct GlobalReply {
    to: Option<GlobalReplyTo>,
    mail: std::sync::Arc<Mail>,
    /// What the request of an own name counts for among those that wait.
    octets: usize,
}

impl GlobalReply {
    pub(super) const fn new(to: Option<GlobalReplyTo>, mail: std::sync::Arc<Mail>) -> Self {
        Self {
            to,
            mail,
            octets: 0,
        }
    }

    /// Counts a request among those of own names that wait; false if there are too many octets.
    pub(super) fn wait(&mut self, octets: usize) -> bool {
        let fits = self.mail.wait(octets);
        if fits {
            self.octets = octets;
        }
        fits
    }

    /// Whether the peer waits for an answer.
    #[must_use]
    pub const fn is_wanted(&self) -> bool {
        self.to.is_some()
    }

    /// Gives it.
    pub fn give(mut self, answer: GlobalAnswer) {
        self.put(answer);
    }

    fn put(&mut self, answer: GlobalAnswer) {
        if let Some(to) = self.to.take() {
            // Without a session nobody waits.
            let _ = self.mail.send(Command::AnswerGlobal { to, answer });
        }
    }
}

impl Drop for GlobalReply {
    fn drop(&mut self) {
        self.mail.waits_no_more(self.octets);
        self.put(GlobalAnswer::Refused);
    }
}

impl std::fmt::Debug for GlobalReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("GlobalReply").field(&self.to).finish()
    }
}
