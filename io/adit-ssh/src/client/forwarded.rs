//! What the server listens on for us.

use adit_ssh_proto::connection::ChannelKind;
use tokio::sync::mpsc;

use crate::about::Peer;
use crate::forwards::{Arrival, Asked};
use crate::mail::Command;
use crate::opening::Opening;

/// Channels that the server opens.
#[derive(Debug)]
pub struct Arrivals(mpsc::Receiver<Arrival>);

impl Arrivals {
    pub(super) const fn new(arrivals: mpsc::Receiver<Arrival>) -> Self {
        Self(arrivals)
    }

    /// The next one, to be [accepted](Opening::accept) or refused; `None` once the session is
    /// over. Cancel-safe.
    pub async fn accept(&mut self) -> Option<Opening> {
        loop {
            match self.0.recv().await? {
                Arrival::Open(opening) => return Some(opening),
                Arrival::Global(..) => {}
            }
        }
    }
}

/// A place where the server listens for us. It stops when this is dropped; channels that are open
/// go on.
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

    /// The port that the server listens on; `None` for a socket of its file system.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        match self.asked {
            Asked::Tcpip { port, .. } => Some(port),
            _ => None,
        }
    }

    /// The next connection, with [who](ChannelKind::ForwardedTcpip) is behind it in its
    /// [kind](Opening::kind); `None` once the session is over. Cancel-safe.
    pub async fn accept(&mut self) -> Option<Opening> {
        self.arrivals.accept().await
    }
}

impl Drop for Forwarded {
    fn drop(&mut self) {
        // Without a session there is nothing to stop.
        let _ = self.peer.mail.send(Command::Unroute(self.asked.clone()));
    }
}

/// Who has connected, as the server tells it.
impl Opening {
    /// The address and the port of who has connected, for logs; `None` where there are none.
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
