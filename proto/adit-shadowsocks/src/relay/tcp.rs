//! A relay's handshake with a client's stream.

use std::sync::Arc;

use adit_wire::{Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, ProtocolError};

use super::RelayTable;
use crate::identity::{IDENTITY_LEN, IdentityHash};
use crate::salt::Salt;
use crate::tcp::FIXED_SEALED;

/// Reads the salt and the identity header of a stream; the rest stays in `rx`. Sends nothing.
///
/// As with a server, all failures are the same kind of error, and the caller must treat them alike.
pub struct TcpRelay {
    table: Arc<RelayTable>,
    done: bool,
}

/// The next hop of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelayedStream {
    /// Index of the next hop.
    pub next: usize,
    /// The bytes to send to it first (the salt). The rest of the stream follows unchanged,
    /// preferably in the same write.
    pub head: Vec<u8>,
}

impl TcpRelay {
    /// Creates the handshake of one connection.
    #[must_use]
    pub fn new(table: &Arc<RelayTable>) -> Self {
        Self {
            table: table.clone(),
            done: false,
        }
    }

    fn read_header(
        &self,
        rx: &mut HandshakeInput<'_>,
    ) -> Result<HandshakeProgress<RelayedStream>, ProtocolError> {
        let method = self.table.method();
        // The relay cannot open the fixed header. It still waits for it, so that an observer who
        // counts the bytes before the reaction finds the same number as with a server.
        let total = method.key_len() + IDENTITY_LEN + FIXED_SEALED;
        if rx.bytes().len() < total {
            return Ok(HandshakeProgress::NeedMore { total });
        }
        let short = ProtocolError::Truncated("the identity header");
        let salt = Salt::read_from(method, rx.bytes()).ok_or(short)?;
        let header = rx.bytes().get(salt.len()..).and_then(|h| h.first_chunk());
        let hash = IdentityHash::open_stream(&self.table.identity, &salt, *header.ok_or(short)?)?;
        let next = self.table.find_hop(hash)?;
        rx.consume(salt.len() + IDENTITY_LEN);
        Ok(HandshakeProgress::Done(RelayedStream {
            next,
            head: salt.to_vec(),
        }))
    }
}

impl Handshake for TcpRelay {
    type Output = RelayedStream;
    type Error = ProtocolError;

    fn step(
        &mut self,
        rx: &mut HandshakeInput<'_>,
        _tx: &mut HandshakeOutput<'_>,
    ) -> Result<HandshakeProgress<RelayedStream>, ProtocolError> {
        if self.done {
            return Err(ProtocolError::Malformed("handshake: already finished"));
        }
        let step = self.read_header(rx);
        self.done = !matches!(step, Ok(HandshakeProgress::NeedMore { .. }));
        step
    }
}
