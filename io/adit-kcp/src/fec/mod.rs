//! Datagrams with forward error correction only, without retransmission and ordering.
//!
//! A [`FecChannel`] connects one client with its server. Every datagram is sent immediately. The parity
//! of its group follows, or, if the group does not fill up, the datagram once more. Received
//! datagrams are passed on immediately and only once, and lost ones are restored if enough of their
//! group arrives.
//!
//! ```text
//! [sealed( ] shard 8 | number u64 | datagram [ )]
//! ```
//!
//! Shards are those of kcp-go ([`adit_fec`]). The number, little-endian, increases with every
//! datagram and starts with the time, so that a restarted end is not taken for its own past. A
//! shard without a number fills up a group.
//!
//! With [`FecSettings::session`] packets are those of [`adit_crypto::packet::session`]: the server
//! follows the client to any address. An end that receives data and has not sent any for a second
//! sends an empty packet; a client that receives nothing for three seconds starts a new session.

mod channel;
#[cfg(target_os = "linux")]
mod handover;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod handover_tests;
mod listener;
mod state;

#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use adit_crypto::packet::PacketKey;
use adit_crypto::packet::session::{SESSION_OVERHEAD, SessionKey};
use adit_fec::{ErasureCode, HEADER};
use adit_net::BatchUdpSocket;

use crate::Fec;
pub use channel::FecChannel;
pub use listener::FecListener;

/// The settings of an end.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FecSettings {
    /// The correction of sent datagrams. For received datagrams only its matrix matters.
    pub fec: Fec,
    /// Maximum size of a packet in bytes; at most 1500.
    pub mtu: usize,
    /// Time for which a datagram waits for the parity of a group that does not fill up.
    pub parity_wait: Duration,
    /// Encryption, if [`Self::session`] is `None`; without both there is none.
    pub key: Option<Arc<PacketKey>>,
    /// adit's own encryption, with a replay window and clients that may move.
    pub session: Option<SessionKey>,
    /// Maximum number of clients of a listener.
    pub max_channels: usize,
}

/// Bytes of a datagram's number.
const NUMBER_LEN: usize = 8;
/// Maximum size of a packet, in bytes of UDP payload.
const MAX_PACKET: usize = 1500;

impl FecSettings {
    /// Creates settings with this correction: packets of 1400 bytes, parity after 10 ms, no encryption, and at most
    /// 1,024 clients of a listener.
    #[must_use]
    pub const fn new(fec: Fec) -> Self {
        Self {
            fec,
            mtu: 1400,
            parity_wait: Duration::from_millis(10),
            key: None,
            session: None,
            max_channels: 1024,
        }
    }

    /// Returns the maximum size of a datagram in bytes; `None` if the MTU is too small for any.
    #[must_use]
    pub fn max_datagram(&self) -> Option<usize> {
        let (head, tail) = self.overhead();
        self.mtu
            .min(MAX_PACKET)
            .checked_sub(head + HEADER + NUMBER_LEN + tail)
    }

    /// Returns the bytes of encryption before and after a shard.
    fn overhead(&self) -> (usize, usize) {
        let room = match (&self.session, &self.key) {
            (Some(_), _) => SESSION_OVERHEAD,
            (None, Some(key)) => key.overhead_layout(),
            (None, None) => return (0, 0),
        };
        (room.head, room.tail)
    }
}

/// A socket and the common state of its lanes.
#[derive(Debug)]
struct FecSocket {
    udp: BatchUdpSocket,
    settings: FecSettings,
    code: ErasureCode,
    max_datagram: usize,
}

impl FecSocket {
    /// Opens a socket with `open` if the settings are valid.
    fn new(
        settings: FecSettings,
        open: impl FnOnce() -> io::Result<BatchUdpSocket>,
    ) -> io::Result<Self> {
        let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        let Fec {
            data,
            parity,
            matrix,
        } = settings.fec;
        let code = ErasureCode::new(matrix, data, parity).map_err(|why| wrong(why.to_string()))?;
        let max_datagram = settings.max_datagram();
        let max_datagram = max_datagram.ok_or_else(|| wrong("the MTU is too small".into()))?;
        Ok(Self {
            udp: open()?,
            code,
            max_datagram,
            settings,
        })
    }
}
