//! The handover of a listener's socket to the next process.

use std::io;

use adit_net::handover::HandedOverUdp;

use super::channel::SharedChannel;
use super::listener::{ChannelKey, FecListener};

impl FecListener {
    /// Hands the socket over to the next process, which listens on it with [`over_udp`](Self::over_udp). The lanes stay
    /// here: the next process forwards their datagrams. Go on calling [`accept`](Self::accept), which receives for
    /// them; no further lane starts here.
    ///
    /// If the result is dropped, or the next process ends, lanes start here again.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if the socket has been handed over, and errors of the system.
    pub fn hand_over(&mut self) -> io::Result<HandedOverUdp> {
        let mut parts = self.socket.udp.hand_over()?;
        for (key, lane) in &self.channels {
            let Some(lane) = lane.upgrade() else {
                continue;
            };
            parts.sources.push(lane.peer_addr());
            if let ChannelKey::Session(id) = key {
                parts.sessions.push(id.to_u64());
            }
        }
        Ok(parts)
    }
}

impl Drop for SharedChannel {
    fn drop(&mut self) {
        self.socket.udp.release_source(self.peer_addr());
    }
}
