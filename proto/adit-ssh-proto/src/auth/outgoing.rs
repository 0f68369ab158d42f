//! Payloads waiting to be sent.

use std::collections::VecDeque;

use adit_crypto::Secret;

use crate::msg;
use crate::wire::SshBufMut;

/// Multiple to which packets with a secret are padded, in bytes.
pub const HIDDEN_MULTIPLE: usize = 256;

/// A payload to send.
#[derive(Debug)]
pub struct AuthPayload {
    /// Payload, which may contain a password.
    pub payload: Secret<Vec<u8>>,
    /// The length reveals the length of a secret. Pad the packet to a multiple of
    /// [`HIDDEN_MULTIPLE`]; if the packet layer cannot, send [`AuthPayload::put_length_cover`] before it.
    /// (After it, the cover could arrive after the server's USERAUTH_SUCCESS, from which on packets
    /// may be compressed.)
    pub hide_length: bool,
}

impl AuthPayload {
    /// Appends the payload of an IGNORE message that, together with this payload, has a length that
    /// is a multiple of [`HIDDEN_MULTIPLE`]. It hides the length if packet lengths are encrypted,
    /// and from observers that only see the number of bytes on the wire.
    pub fn put_length_cover(&self, out: &mut Vec<u8>) {
        // Message number and length field of the IGNORE.
        let used = self.payload.expose().len() + 5;
        out.put_u8(msg::IGNORE);
        let fill = used.next_multiple_of(HIDDEN_MULTIPLE) - used;
        out.put_string(&vec![0; fill]);
    }
}

/// Queue of payloads to send.
#[derive(Debug, Default)]
pub(super) struct AuthOutbox(VecDeque<AuthPayload>);

impl AuthOutbox {
    pub(super) fn push(&mut self, payload: Vec<u8>) {
        self.push_payload(payload, false);
    }

    pub(super) fn push_hidden(&mut self, payload: Vec<u8>) {
        self.push_payload(payload, true);
    }

    fn push_payload(&mut self, payload: Vec<u8>, hide_length: bool) {
        self.0.push_back(AuthPayload {
            payload: Secret::new(payload),
            hide_length,
        });
    }

    pub(super) fn pop(&mut self) -> Option<AuthPayload> {
        self.0.pop_front()
    }
}
