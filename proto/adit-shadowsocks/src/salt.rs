//! A salt: the random bytes a stream or packet begins with.

use core::ops::Deref;

use adit_wire::{Entropy, subslice};

use crate::Method;

/// [`Method::salt_len`] bytes: as long as the key of the method, or an IV in the stream edition; 32
/// at most. Public on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Salt {
    bytes: [u8; 32],
    len: usize,
}

impl Salt {
    /// Draws a salt for `method`.
    pub(crate) fn draw(method: Method, entropy: &mut dyn Entropy) -> Self {
        let mut salt = Self {
            bytes: [0; 32],
            len: method.salt_len(),
        };
        if let Some(bytes) = salt.bytes.get_mut(..salt.len) {
            entropy.fill(bytes);
        }
        salt
    }

    /// Takes the salt at the front of `wire`, if it is all there.
    pub(crate) fn read(method: Method, wire: &[u8]) -> Option<Self> {
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
