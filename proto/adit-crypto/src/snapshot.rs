//! Framing of tables of keyed hashes, to store them or pass them to another process.
//!
//! ```text
//! magic number(8) ‖ version ‖ seed(16) ‖ body ‖ check(u64)
//! ```
//! The check is a keyed hash of all bytes before it: it detects accidents, not an attacker, who must not be able to
//! write or read the bytes.

use crate::digest::SipKey;
use crate::{Secret, ct_eq};

const SEED_LEN: usize = 16;
const CHECK_LEN: usize = 8;

/// A format of snapshots, which its magic number and its version identify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotFormat {
    /// The magic number.
    pub magic: [u8; 8],
    /// The version.
    pub version: u8,
}

/// The reason bytes are not a snapshot of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Another magic number.
    #[error("not a snapshot of this kind")]
    Foreign,
    /// Another version.
    #[error("version {0} of this snapshot is not supported")]
    Version(u8),
    /// Truncated or altered.
    #[error("the snapshot is damaged")]
    Damaged,
}

impl SnapshotFormat {
    /// Number of bytes of a snapshot before its body.
    pub const HEAD_LEN: usize = 8 + 1 + SEED_LEN;

    /// Returns a snapshot with the seed of `key`. `write_body` appends `body_len` bytes: the buffer is allocated in full
    /// size, so that no reallocation leaves a copy of the seed behind.
    #[must_use]
    pub fn encode(
        self,
        key: &SipKey,
        body_len: usize,
        write_body: impl FnOnce(&mut Vec<u8>),
    ) -> Secret<Vec<u8>> {
        let mut out = Vec::with_capacity(Self::HEAD_LEN + body_len + CHECK_LEN);
        out.extend_from_slice(&self.magic);
        out.push(self.version);
        out.extend_from_slice(key.seed());
        write_body(&mut out);
        debug_assert_eq!(out.len(), Self::HEAD_LEN + body_len, "another size");
        let check = key.hash_bytes(&out);
        out.extend_from_slice(&check.to_be_bytes());
        Secret::new(out)
    }

    /// Returns the key and the body of a snapshot.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not a snapshot of this format, or are damaged.
    pub fn parse(self, bytes: &[u8]) -> Result<(SipKey, &[u8]), SnapshotError> {
        let (magic, rest) = bytes.split_first_chunk().ok_or(SnapshotError::Foreign)?;
        if *magic != self.magic {
            return Err(SnapshotError::Foreign);
        }
        let (version, rest) = rest.split_first().ok_or(SnapshotError::Damaged)?;
        if *version != self.version {
            return Err(SnapshotError::Version(*version));
        }
        let (checked, check) = bytes
            .split_last_chunk::<CHECK_LEN>()
            .ok_or(SnapshotError::Damaged)?;
        let parts = rest.split_first_chunk::<SEED_LEN>();
        let (seed, rest) = parts.ok_or(SnapshotError::Damaged)?;
        let (body, _) = rest
            .split_last_chunk::<CHECK_LEN>()
            .ok_or(SnapshotError::Damaged)?;
        let key = SipKey::new(*seed);
        if !ct_eq(check, &key.hash_bytes(checked).to_be_bytes()) {
            return Err(SnapshotError::Damaged);
        }
        Ok((key, body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: SnapshotFormat = SnapshotFormat {
        magic: *b"adit-tst",
        version: 3,
    };

    #[test]
    fn a_snapshot_survives_the_round_trip() {
        let key = SipKey::new([7; 16]);
        let bytes = FORMAT.encode(&key, 4, |out| out.extend_from_slice(b"body"));
        let (same, body) = FORMAT.parse(bytes.expose()).unwrap();
        assert_eq!(body, b"body");
        assert!(same.is_same_key(&key) && !same.is_same_key(&SipKey::new([8; 16])));
        assert_eq!(same.hash_bytes(b"x"), key.hash_bytes(b"x"));
    }

    #[test]
    fn other_bytes_are_refused() {
        let bytes = FORMAT.encode(&SipKey::new([7; 16]), 1, |out| out.push(9));
        let bytes = bytes.expose();
        for len in 0..bytes.len() {
            let why = match len {
                0..8 => SnapshotError::Foreign,
                _ => SnapshotError::Damaged,
            };
            assert_eq!(FORMAT.parse(&bytes[..len]).err(), Some(why), "{len}");
        }
        for at in 0..bytes.len() {
            let mut altered = bytes.clone();
            altered[at] ^= 1;
            let why = match at {
                0..8 => SnapshotError::Foreign,
                8 => SnapshotError::Version(2),
                _ => SnapshotError::Damaged,
            };
            assert_eq!(FORMAT.parse(&altered).err(), Some(why), "{at}");
        }
    }
}
