//! Salts: the random bytes at the start of a stream or packet.

use core::ops::Deref;

use adit_wire::{Entropy, subslice};

use crate::Method;

/// A salt of [`Method::salt_len`] bytes, at most 32: as long as the method's key, or an IV in the
/// stream edition. Public on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Salt {
    bytes: [u8; 32],
    len: usize,
}

impl Salt {
    /// Draws a random salt for `method`.
    pub(crate) fn draw_random(method: Method, entropy: &mut dyn Entropy) -> Self {
        let mut salt = Self {
            bytes: [0; 32],
            len: method.salt_len(),
        };
        if let Some(bytes) = salt.bytes.get_mut(..salt.len) {
            entropy.fill(bytes);
        }
        salt
    }

    /// Reads the salt at the front of `wire`, if it is complete.
    pub(crate) fn read_from(method: Method, wire: &[u8]) -> Option<Self> {
        let mut salt = Self {
            bytes: [0; 32],
            len: method.salt_len(),
        };
        let front = wire.get(..salt.len)?;
        salt.bytes.get_mut(..salt.len)?.copy_from_slice(front);
        Some(salt)
    }
}

impl Deref for Salt {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        subslice(&self.bytes, ..self.len)
    }
}
