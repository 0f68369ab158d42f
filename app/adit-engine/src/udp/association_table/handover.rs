//! The handover of a table's socket to the next process, and the end of the associations that stay here.

use std::collections::HashSet;
#[cfg(target_os = "linux")]
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::{AssociationState, TableEntry, UdpListener};

/// Time after the end of an association until the next process serves its client. All that have ended by then are
/// released together.
const RELEASE_DELAY: Duration = Duration::from_secs(1);

/// Clients whose associations have ended since the socket was handed over.
#[derive(Debug, Default)]
pub(super) struct UnreleasedSources {
    addrs: HashSet<SocketAddr>,
    /// Time to release them, if there are any.
    due: Option<Instant>,
}

#[cfg(target_os = "linux")]
impl UdpListener {
    /// Answers a request to hand the socket over. The task that receives calls this, so that no association can start
    /// between the last reception and the list of clients.
    pub(super) fn answer_handover(&self) {
        let Some(reply) = self.control.take_handover_request() else {
            return;
        };
        let handed_over = match self.near.shared_socket() {
            Some(socket) => socket.hand_over(),
            None => {
                let what = "intercepted datagrams cannot be handed over";
                Err(io::Error::new(io::ErrorKind::Unsupported, what))
            }
        };
        let handed_over = handed_over.map(|mut parts| {
            parts.sources.extend(self.clients());
            parts
        });
        // If the recipient is gone, the link is closed, and this process receives again.
        let _ = reply.send(handed_over);
    }
}

impl UdpListener {
    /// Records the end of an association.
    pub(super) fn note_ended(&mut self, ended: Option<TableEntry>) {
        let Some(ended) = ended else { return };
        if self.is_handed_over() {
            self.unreleased.addrs.insert(ended.entry.client_addr());
            let due = self.unreleased.due;
            self.unreleased.due = due.or_else(|| Some(Instant::now() + RELEASE_DELAY));
        }
    }

    fn is_handed_over(&self) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(socket) = self.near.shared_socket() {
            return socket.is_handed_over();
        }
        false
    }

    /// Returns the addresses of all clients.
    fn clients(&self) -> HashSet<SocketAddr> {
        let known = self.table.values();
        known.map(|known| known.entry.client_addr()).collect()
    }

    /// Waits until clients are to be released; forever if there are none.
    pub(super) fn wait_release(&self) -> impl Future<Output = ()> + use<> {
        let due = self.unreleased.due;
        async move {
            match due {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Releases the clients that have no association any more.
    pub(super) fn release_sources(&mut self) {
        let mut gone = std::mem::take(&mut self.unreleased).addrs;
        for client in self.clients() {
            gone.remove(&client);
        }
        #[cfg(target_os = "linux")]
        if let Some(socket) = self.near.shared_socket() {
            gone.iter()
                .for_each(|client| socket.release_source(*client));
        }
    }
}

impl AssociationState {
    fn client_addr(&self) -> SocketAddr {
        *Self::lock_ignoring_poison(&self.reply_addr)
    }
}
