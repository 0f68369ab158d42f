//! Random padding without calling a random generator for each packet.

use adit_crypto::{Direction, StreamCipher, StreamKind, hmac_sha256};

use super::DirectionKeys;
use crate::SshError;

/// Bytes generated at a time.
const STOCK: usize = 1024;

/// Source of padding: ChaCha20 under a key that only the two ends know. Unencrypted packets are
/// padded with zeros, since random bytes would hide nothing there.
pub(super) struct PaddingSource {
    source: Option<StreamCipher>,
    stock: [u8; STOCK],
    used: usize,
}

impl PaddingSource {
    /// Creates a source of zeros.
    pub(super) const fn zeros() -> Self {
        Self {
            source: None,
            stock: [0; STOCK],
            used: 0,
        }
    }

    /// Creates padding for the packets under `keys`, from which it is derived. It is unpredictable
    /// without the keys and reveals nothing about them.
    pub(super) fn new(keys: &DirectionKeys) -> Result<Self, SshError> {
        let [key, iv, mac] = [&keys.key, &keys.iv, &keys.mac_key].map(|part| part.expose());
        let seed = adit_crypto::Secret::new(hmac_sha256(key, &[b"padding of packets", iv, mac]));
        let kind = StreamKind::ChaCha20Ietf;
        let source = StreamCipher::new(kind, seed.expose(), &[0; 12], Direction::Encrypt)
            .map_err(|_| SshError::Crypto("creating the padding source"))?;
        Ok(Self {
            source: Some(source),
            stock: [0; STOCK],
            used: STOCK,
        })
    }

    /// Appends `n` bytes; `n` must be less than 256.
    #[inline]
    pub(super) fn append_padding(&mut self, n: usize, out: &mut Vec<u8>) {
        if self.used + n > STOCK {
            self.refill();
        }
        if let Some(padding) = self.stock.get(self.used..self.used + n) {
            out.extend_from_slice(padding);
        }
        self.used += n;
    }

    #[cold]
    fn refill(&mut self) {
        if let Some(source) = &mut self.source {
            self.stock.fill(0);
            source.apply(&mut self.stock);
        }
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use adit_crypto::Secret;

    use super::*;
    use crate::algorithm::{Cipher, Compression};

    fn keys(first: u8) -> DirectionKeys {
        DirectionKeys {
            cipher: Cipher::Aes128Gcm,
            mac: None,
            compression: Compression::None,
            key: Secret::new(vec![first; 16]),
            iv: Secret::new(vec![2; 12]),
            mac_key: Secret::new(Vec::new()),
        }
    }

    /// Random bytes are never reused, for any sequence of lengths.
    #[test]
    fn padding_is_fresh() {
        let (mut one, mut two) = (
            PaddingSource::new(&keys(1)).unwrap(),
            PaddingSource::new(&keys(2)).unwrap(),
        );
        let mut seen = std::collections::HashSet::new();
        let (mut out, mut other) = (Vec::new(), Vec::new());
        for i in 0..4000 {
            let n = 8 + i % 248;
            out.clear();
            other.clear();
            one.append_padding(n, &mut out);
            two.append_padding(n, &mut other);
            assert_eq!(out.len(), n);
            assert_ne!(out, other, "another key");
            for octets in [&out, &other] {
                assert!(
                    seen.insert(octets[..8].to_vec()),
                    "random bytes were reused"
                );
            }
        }
        let mut again = Vec::new();
        PaddingSource::new(&keys(1))
            .unwrap()
            .append_padding(8, &mut again);
        assert!(!seen.insert(again), "the source is the keys alone");
    }

    #[test]
    fn zeros_go_on() {
        let (mut padding, mut out) = (PaddingSource::zeros(), Vec::new());
        (0..1000).for_each(|_| padding.append_padding(19, &mut out));
        assert_eq!(out, vec![0; 19_000]);
    }
}
