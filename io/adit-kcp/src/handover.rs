//! The handover of a listener's socket to the next process.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;

use adit_net::BatchUdpSocket;
use adit_net::handover::HandedOverUdp;

use super::listener::KcpListener;
use super::session::Session;
use super::settings::Settings;
use super::table::SessionTable;
use super::transport::Transport;

impl KcpListener {
    /// Hands the socket over to the next process, which [continues](Self::continue_from) to listen on it. The sessions
    /// stay here: the next process forwards their datagrams. No further session starts here;
    /// [`accept`](Self::accept) returns those that have started before.
    ///
    /// If the result is dropped, or the next process ends, the listener accepts sessions again.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a listener over a [`DatagramTransport`](super::DatagramTransport), `AlreadyExists` if the
    /// socket has been handed over, `NotConnected` if the runtime is shutting down, and errors of the system.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: if the future is dropped, the listener accepts sessions again.
    pub async fn hand_over(&self) -> io::Result<HandedOverUdp> {
        if self.socket.transport.udp().is_none() {
            let what = "only a UDP socket can be handed over";
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        let answer = self.socket.request_handover().await;
        answer.unwrap_or_else(|_| Err(io::ErrorKind::NotConnected.into()))
    }

    /// Listens on a socket of the previous process, and forwards the datagrams of the sessions which that one has.
    ///
    /// # Errors
    ///
    /// Invalid [`Settings`], descriptors that are not those of a UDP socket and of a link, and errors of the system.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn continue_from(before: HandedOverUdp, settings: Settings) -> io::Result<Self> {
        Self::listen_with(settings, || {
            BatchUdpSocket::continue_from(before).map(Transport::Udp)
        })
    }
}

impl SessionTable {
    /// Answers a request to hand the socket over. The driver calls this, so that no session can start between the
    /// last reception and the list of sessions.
    pub(super) fn answer_handover(&self) {
        let Some(reply) = self.socket.take_handover_request() else {
            return;
        };
        let Transport::Udp(udp) = &*self.socket.transport else {
            return;
        };
        let handed_over = udp.hand_over().map(|mut parts| {
            let sessions = self.slots.iter().flatten();
            let sources = sessions.flat_map(|session| [session.first_addr, session.peer_addr()]);
            let sources: HashSet<SocketAddr> = sources.collect();
            parts.sources.extend(sources);
            parts.sessions.extend(self.ids.keys().map(|id| id.to_u64()));
            parts
        });
        // If the recipient is gone, the link is closed, and this process receives again.
        let _ = reply.send(handed_over);
    }

    /// Releases the addresses of a session that was removed, unless others have them.
    pub(super) fn release_sources(&self, session: &Session) {
        let Transport::Udp(udp) = &*self.socket.transport else {
            return;
        };
        if udp.is_handed_over() {
            for source in [session.first_addr, session.peer_addr()] {
                if !self.peers.contains_key(&source) {
                    udp.release_source(source);
                }
            }
        }
    }
}
