//! What waits to be sent.

use std::collections::VecDeque;

use adit_crypto::Secret;

use crate::msg;
use crate::wire::Put;

/// What packets with a secret are padded to a multiple of, octets.
pub const HIDDEN_MULTIPLE: usize = 256;

/// A payload to be sent.
#[derive(Debug)]
pub struct Outgoing {
    /// The payload, which may hold a password.
    pub payload: Secret<Vec<u8>>,
    /// Its length tells the length of a secret. The packet is to be padded to a multiple of
    /// [`HIDDEN_MULTIPLE`]; if the packet layer cannot, [`Outgoing::put_cover`] is sent before it.
    /// (Behind it, it could come after the server's word that the user is in, from which on packets
    /// may be compressed.)
    pub hide_length: bool,
}

impl Outgoing {
    /// Appends the payload of an IGNORE that makes this payload and itself a multiple of
    /// [`HIDDEN_MULTIPLE`] together. It hides the length where packets' lengths are encrypted, and
    /// from those who only see how many octets went over the wire.
    pub fn put_cover(&self, out: &mut Vec<u8>) {
        // Type and length of the IGNORE.
        let used = self.payload.expose().len() + 5;
        out.put_u8(msg::IGNORE);
        let fill = used.next_multiple_of(HIDDEN_MULTIPLE) - used;
        out.put_string(&vec![0; fill]);
    }
}

/// Payloads in their order.
#[derive(Debug, Default)]
pub(super) struct Outbox(VecDeque<Outgoing>);

impl Outbox {
    pub(super) fn push(&mut self, payload: Vec<u8>) {
        self.push_as(payload, false);
    }

    pub(super) fn push_hidden(&mut self, payload: Vec<u8>) {
        self.push_as(payload, true);
    }

    fn push_as(&mut self, payload: Vec<u8>, hide_length: bool) {
        self.0.push_back(Outgoing {
            payload: Secret::new(payload),
            hide_length,
        });
    }

    pub(super) fn pop(&mut self) -> Option<Outgoing> {
        self.0.pop_front()
    }
}
