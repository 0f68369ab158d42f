//! Nonces of counter modes: counted, never random (SEC-C3).

use core::ops::Deref;

use adit_wire::subslice;

use crate::{AeadKind, CryptoError};

/// A nonce of 12 or 24 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nonce {
    bytes: [u8; 24],
    len: usize,
}

impl Deref for Nonce {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        subslice(&self.bytes, ..self.len)
    }
}

/// The little-endian counter of a record stream: 0, 1, 2, …
///
/// The number has 64 bits and is at the front of the nonce; the rest is zero. An exhausted counter returns
/// errors permanently; it never wraps.
///
/// # Examples
///
/// ```
/// use adit_crypto::{AeadKind, NonceCounter};
///
/// let mut counter = NonceCounter::new(AeadKind::Aes128Gcm);
/// assert_eq!(counter.next_nonce()?[..], [0; 12]);
/// assert_eq!(counter.next_nonce()?[..2], [1, 0]);
/// # Ok::<(), adit_crypto::CryptoError>(())
/// ```
#[derive(Debug, Clone)]
pub struct NonceCounter {
    next: Option<u64>,
    len: usize,
}

impl NonceCounter {
    /// Creates a counter at 0 for keys of this kind.
    #[must_use]
    pub const fn new(kind: AeadKind) -> Self {
        Self {
            next: Some(0),
            len: kind.nonce_len(),
        }
    }

    /// Returns the nonce of the next message; each is returned once.
    ///
    /// # Errors
    /// [`CryptoError::Exhausted`] after 2⁶⁴ nonces.
    pub fn next_nonce(&mut self) -> Result<Nonce, CryptoError> {
        let now = self.next.ok_or(CryptoError::Exhausted)?;
        self.next = now.checked_add(1);
        let mut bytes = [0; 24];
        if let Some(front) = bytes.first_chunk_mut() {
            *front = now.to_le_bytes();
        }
        Ok(Nonce {
            bytes,
            len: self.len,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_little_endian_in_both_lengths() {
        let mut short = NonceCounter::new(AeadKind::Aes128Gcm);
        for expected in 0..300u16 {
            let nonce = short.next_nonce().unwrap();
            assert_eq!(nonce[..2], expected.to_le_bytes());
            assert_eq!(nonce[2..], [0; 10]);
        }
        let mut long = NonceCounter::new(AeadKind::XChaCha20Poly1305);
        long.next_nonce().unwrap();
        assert_eq!(
            long.next_nonce().unwrap()[..],
            [&[1][..], &[0; 23]].concat()
        );
    }

    #[test]
    fn sec_c3_ends_instead_of_wrapping() {
        let mut counter = NonceCounter {
            next: Some(u64::MAX),
            len: 12,
        };
        assert_eq!(counter.next_nonce().unwrap()[..8], [0xff; 8]);
        assert_eq!(counter.next_nonce(), Err(CryptoError::Exhausted));
        assert_eq!(counter.next_nonce(), Err(CryptoError::Exhausted));
    }
}
