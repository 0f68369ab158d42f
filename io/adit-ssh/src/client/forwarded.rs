//! Forwards from the server to this client.

use adit_ssh_proto::connection::ChannelKind;
use tokio::sync::mpsc;

use crate::about::Peer;
use crate::forwards::{Arrival, Asked};
use crate::mail::Command;
use crate::opening::Opening;

/// A queue of channels that the server opens.
#[derive(Debug)]
pub struct Arrivals(mpsc::Receiver<Arrival>);

impl Arrivals {
    pub(super) const fn new(arrivals: mpsc::Receiver<Arrival>) -> Self {
        Self(arrivals)
    }

    /// Returns the next channel, to be [accepted](Opening::accept) or refused; `None` once the session
    /// is over.
    ///
    /// # Cancel safety
    /// This method is cancel-safe.
    pub async fn accept(&mut self) -> Option<Opening> {
        loop {
            match self.0.recv().await? {
                Arrival::Open(opening) => return Some(opening),
                Arrival::Global(..) => {}
            }
        }
    }
}

/// A listener on the server that forwards to this client. Dropping it stops the listener; open channels
/// stay open.
#[derive(Debug)]
pub struct Forwarded {
    peer: Peer,
    asked: Asked,
    arrivals: Arrivals,
}

impl Forwarded {
    pub(super) const fn new(peer: Peer, asked: Asked, arrivals: Arrivals) -> Self {
        Self {
            peer,
            asked,
            arrivals,
        }
    }

    /// Returns the port that the server listens on; `None` for a Unix-domain socket.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        match self.asked {
            Asked::Tcpip { port, .. } => Some(port),
            _ => None,
        }
    }

    /// Returns the next connection, with its [originator](ChannelKind::ForwardedTcpip) in its
    /// [kind](Opening::kind); `None` once the session is over.
    ///
    /// # Cancel safety
    /// This method is cancel-safe.
    pub async fn accept(&mut self) -> Option<Opening> {
        self.arrivals.accept().await
    }
}

impl Drop for Forwarded {
    fn drop(&mut self) {
        // Nothing to stop once the session is over.
        let _ = self.peer.mail.send(Command::Unroute(self.asked.clone()));
    }
}

/// The originator of a forwarded connection, as reported by the server.
impl Opening {
    /// Returns the address and the port of the originator, for logs; `None` for channel types without
    /// one.
    #[must_use]
    pub fn originator(&self) -> Option<(&str, u32)> {
        match self.kind() {
            ChannelKind::ForwardedTcpip { originator, .. }
            | ChannelKind::DirectTcpip { originator, .. }
            | ChannelKind::X11 { originator } => Some((&originator.address, originator.port)),
            _ => None,
        }
    }
}
