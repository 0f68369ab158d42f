//! Datagrams with forward error correction alone: nothing is sent again, nothing waits for order.
//!
//! A [`Lane`] is one client with its server. Every datagram leaves at once; the parity of its group
//! follows, or, where the group does not fill up, the datagram once more. What arrives is handed on
//! at once and only once, and what is lost is restored if enough of its group came.
//!
//! ```text
//! [sealed( ] shard 8 | number u64 | datagram [ )]
//! ```
//!
//! Shards are those of kcp-go ([`adit_fec`]). The number, little-endian, rises with every datagram
//! and begins with the time, so that an end that was started anew is not taken for its own past. A
//! shard without one fills a group up.
//!
//! With [`Settings::session`] packets are those of [`adit_crypto::packet::session`]: the server's
//! end follows the client to whatever address it writes from. An end that has taken something in
//! and had nothing to say for a second sends an empty packet; a client that hears nothing for three
//! begins a new session.

mod lane;
mod listener;
mod state;

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adit_crypto::packet::PacketKey;
use adit_crypto::packet::session::{SESSION_OVERHEAD, SessionKey};
use adit_fec::{ErasureCode, HEADER};
use adit_net::BatchUdpSocket;

use crate::Fec;
pub use lane::Lane;
pub use listener::FecListener;

/// The settings of an end.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The correction of what is sent. What comes is corrected whatever is set here, but for the
    /// matrix.
    pub fec: Fec,
    /// Bytes of the largest packet; at most 1500.
    pub mtu: usize,
    /// How long a datagram waits for the parity of a group that does not fill up.
    pub wait: Duration,
    /// Encryption, if [`Self::session`] is none; without both there is none.
    pub key: Option<Arc<PacketKey>>,
    /// adit's own encryption, with a replay window and clients that may move.
    pub session: Option<SessionKey>,
    /// Clients of a listener at most.
    pub lanes: usize,
}

/// Bytes of a datagram's number.
const NUMBER: usize = 8;
/// The longest packet, in bytes of UDP payload.
const LONGEST: usize = 1500;

impl Settings {
    /// Bytes of the largest datagram; none if there is no room for any.
    #[must_use]
    pub fn max_datagram(&self) -> Option<usize> {
        let (head, tail) = self.room();
        self.mtu
            .min(LONGEST)
            .checked_sub(head + HEADER + NUMBER + tail)
    }

    /// Bytes of encryption before and behind a shard.
    fn room(&self) -> (usize, usize) {
        let room = match (&self.session, &self.key) {
            (Some(_), _) => SESSION_OVERHEAD,
            (None, Some(key)) => key.overhead_layout(),
            (None, None) => return (0, 0),
        };
        (room.head, room.tail)
    }
}

/// A socket and what all of its lanes are made with.
#[derive(Debug)]
struct Socket {
    udp: BatchUdpSocket,
    settings: Settings,
    code: ErasureCode,
    max_datagram: usize,
}

impl Socket {
    fn bind(addr: SocketAddr, settings: Settings) -> io::Result<Self> {
        let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        let Fec {
            data,
            parity,
            matrix,
        } = settings.fec;
        let code = ErasureCode::new(matrix, data, parity).map_err(|why| wrong(why.to_string()))?;
        let max_datagram = settings.max_datagram();
        Ok(Self {
            udp: BatchUdpSocket::bind(addr)?,
            code,
            max_datagram: max_datagram.ok_or_else(|| wrong("the MTU is too small".into()))?,
            settings,
        })
    }
}
