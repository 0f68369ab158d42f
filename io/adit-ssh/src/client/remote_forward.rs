//! Forwards from the server to this client.

use adit_ssh_proto::connection::ChannelKind;
use tokio::sync::mpsc;

use crate::incoming_channel::IncomingChannel;
use crate::peer::Peer;
use crate::routes::{PeerRequest, RouteKind};
use crate::shared_session::Command;

/// A queue of channels that the server opens.
#[derive(Debug)]
pub struct IncomingChannels(mpsc::Receiver<PeerRequest>);

impl IncomingChannels {
    pub(super) const fn new(arrivals: mpsc::Receiver<PeerRequest>) -> Self {
        Self(arrivals)
    }

    /// Returns the next channel, to be [accepted](IncomingChannel::accept) or refused; `None` once the session
    /// is over.
    ///
    /// # Cancel safety
    /// This method is cancel-safe.
    pub async fn accept(&mut self) -> Option<IncomingChannel> {
        loop {
            match self.0.recv().await? {
                PeerRequest::Open(opening) => return Some(opening),
                PeerRequest::Global(..) => {}
            }
        }
    }
}

/// A listener on the server that forwards to this client. Dropping it stops the listener; open channels
/// stay open.
#[derive(Debug)]
pub struct RemoteForward {
    peer: Peer,
    kind: RouteKind,
    channels: IncomingChannels,
}

impl RemoteForward {
    pub(super) const fn new(peer: Peer, kind: RouteKind, channels: IncomingChannels) -> Self {
        Self {
            peer,
            kind,
            channels,
        }
    }

    /// Returns the port that the server listens on; `None` for a Unix-domain socket.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        match self.kind {
            RouteKind::Tcpip { port, .. } => Some(port),
            _ => None,
        }
    }

    /// Returns the next connection, with its [originator](ChannelKind::ForwardedTcpip) in its
    /// [kind](IncomingChannel::kind); `None` once the session is over.
    ///
    /// # Cancel safety
    /// This method is cancel-safe.
    pub async fn accept(&mut self) -> Option<IncomingChannel> {
        self.channels.accept().await
    }
}

impl Drop for RemoteForward {
    fn drop(&mut self) {
        // Nothing to stop once the session is over.
        let _ = self
            .peer
            .shared
            .send_command(Command::Unroute(self.kind.clone()));
    }
}

/// The originator of a forwarded connection, as reported by the server.
impl IncomingChannel {
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
