//! Serialized digests of a pool, to carry over from one process to the next (SEC-R4).
//!
//! ```text
//! "adit-slt" ‖ version ‖ seed(16) ‖ count(u32) ‖ digest(u64) … ‖ check(u64)
//! ```
//! Big-endian; the digests that expire first are first. The check is a keyed hash of all bytes
//! before it: it detects accidents, not an attacker, who must not be able to write or read the
//! file. Version 2 is [for a process that is running already](super::snapshot).

use std::sync::{MutexGuard, PoisonError};

use adit_crypto::{Secret, SnapshotError, SnapshotFormat};
use adit_wire::{EndOfInput, Reader, narrow_int};

use super::{SHARDS, SaltPool, lock_shard, shard_of};

const MAGIC: [u8; 8] = *b"adit-slt";
const FORMAT: SnapshotFormat = SnapshotFormat {
    magic: MAGIC,
    version: 1,
};
pub(super) const SNAPSHOT_FORMAT: SnapshotFormat = SnapshotFormat {
    magic: MAGIC,
    version: 2,
};
pub(super) const DIGEST_LEN: usize = 8;

/// The reason bytes are not a valid export. The pool is unchanged after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SaltRestoreError {
    /// The bytes are not an export.
    #[error("not a salt file")]
    Foreign,
    /// An export of another format version.
    #[error("salt file version {0} is not supported")]
    Version(u8),
    /// Truncated, altered, or more digests than a pool can store.
    #[error("the salt file is damaged")]
    Damaged,
    /// The pool already contains salts, which were hashed with another seed.
    #[error("the salt pool is in use: restore salts into a new pool")]
    InUse,
    /// The salts of a snapshot were hashed with another seed.
    #[error("the snapshot is of another salt pool: merge it into a pool that was created from it")]
    OtherPool,
}

impl From<SnapshotError> for SaltRestoreError {
    fn from(why: SnapshotError) -> Self {
        match why {
            SnapshotError::Foreign => Self::Foreign,
            SnapshotError::Version(version) => Self::Version(version),
            SnapshotError::Damaged => Self::Damaged,
        }
    }
}

impl SaltPool {
    /// Returns the digests of the AEAD edition with their seed, at most 16 MiB. Store them like a
    /// key: a peer who has the seed can make the pool slow. Salts of the 2022 edition are not
    /// included; [`RestartPolicy::Strict`](super::RestartPolicy::Strict) covers those.
    #[must_use]
    pub fn export_digests(&self) -> Secret<Vec<u8>> {
        let (mut older, mut newer) = (Vec::new(), Vec::new());
        for shard in &self.shards {
            let shard = lock_shard(shard);
            older.extend(shard.digests.previous.iter().copied());
            newer.extend(shard.digests.current.iter().copied());
        }
        let count = older.len() + newer.len();
        FORMAT.encode(&self.sip, 4 + count * DIGEST_LEN, |out| {
            // A pool stores two million at most.
            out.extend_from_slice(&narrow_int::<u32>(count).to_be_bytes());
            for digest in older.iter().chain(&newer) {
                out.extend_from_slice(&digest.to_be_bytes());
            }
        })
    }

    /// Restores the output of [`export_digests`](Self::export_digests) and its seed, and returns the number of
    /// digests. For a new pool, before it is shared.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not an export, of an unknown version or damaged, or if the pool is in
    /// use. The pool is unchanged after an error.
    pub fn restore_digests(&mut self, bytes: &[u8]) -> Result<usize, SaltRestoreError> {
        let (sip, body) = FORMAT.parse(bytes)?;
        let damaged = |EndOfInput| SaltRestoreError::Damaged;
        let mut r = Reader::new(body);
        let digests = take_entries(&mut r, DIGEST_LEN).map_err(damaged)?;
        if !r.rest().is_empty() {
            return Err(SaltRestoreError::Damaged);
        }
        // An export fills each shard's two generations at most.
        if digests.len() / DIGEST_LEN > 2 * SHARDS * self.limit {
            return Err(SaltRestoreError::Damaged);
        }
        if self.shards.iter().any(|shard| is_used(&lock_shard(shard))) {
            return Err(SaltRestoreError::InUse);
        }
        self.sip = sip;
        let mut taken = 0;
        for digest in digests.as_chunks().0 {
            let digest = u64::from_be_bytes(*digest);
            // In their old order, so that the generations are the same as before.
            if let Some(shard) = self.shards.get_mut(shard_of(digest)) {
                let shard = shard.get_mut().unwrap_or_else(PoisonError::into_inner);
                taken += usize::from(shard.digests.insert_digest(digest, self.limit).is_ok());
            }
        }
        Ok(taken)
    }
}

fn is_used(shard: &MutexGuard<'_, super::Shard>) -> bool {
    let exact = [&shard.exact.current, &shard.exact.previous];
    let digests = [&shard.digests.current, &shard.digests.previous];
    exact.iter().any(|t| !t.is_empty()) || digests.iter().any(|t| !t.is_empty())
}

/// Reads the number of entries of `size` bytes each, and returns their bytes.
pub(super) fn take_entries<'a>(r: &mut Reader<'a>, size: usize) -> Result<&'a [u8], EndOfInput> {
    let count = u32::from_be_bytes(r.array()?);
    let len = usize::try_from(count).ok();
    let len = len.and_then(|count| count.checked_mul(size));
    r.take(len.ok_or(EndOfInput)?)
}
