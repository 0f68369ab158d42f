//! Serialized digests of a pool, to carry over from one process to the next (SEC-R4).
//!
//! ```text
//! "adit-slt" ‖ version ‖ seed(16) ‖ count(u32) ‖ digest(u64) … ‖ check(u64)
//! ```
//! Big-endian; the digests that expire first are first. The check is a keyed hash of all bytes
//! before it: it detects accidents, not an attacker, who must not be able to write or read the
//! file.

use std::sync::{MutexGuard, PoisonError};

use adit_crypto::{Secret, SipKey, ct_eq};
use adit_wire::{EndOfInput, Reader, narrow_int, subslice};

use super::{SHARDS, SaltPool, lock_shard, shard_of};

const MAGIC: &[u8; 8] = b"adit-slt";
const VERSION: u8 = 1;
const HEAD_LEN: usize = MAGIC.len() + 1 + 16 + 4;
const DIGEST_LEN: usize = 8;
const CHECK_LEN: usize = 8;

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
        // Allocated in full size, so that no reallocation leaves a copy of the seed behind.
        let mut out = Vec::with_capacity(HEAD_LEN + count * DIGEST_LEN + CHECK_LEN);
        out.extend_from_slice(MAGIC);
        out.push(VERSION);
        out.extend_from_slice(self.seed.expose());
        // A pool stores two million at most.
        out.extend_from_slice(&narrow_int::<u32>(count).to_be_bytes());
        for digest in older.iter().chain(&newer) {
            out.extend_from_slice(&digest.to_be_bytes());
        }
        let check = self.sip.hash_bytes(&out);
        out.extend_from_slice(&check.to_be_bytes());
        Secret::new(out)
    }

    /// Restores the output of [`export_digests`](Self::export_digests) and its seed, and returns the number of
    /// digests. For a new pool, before it is shared.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not an export, of an unknown version or damaged, or if the pool is in
    /// use. The pool is unchanged after an error.
    pub fn restore_digests(&mut self, bytes: &[u8]) -> Result<usize, SaltRestoreError> {
        let stored = ParsedExport::parse(bytes)?;
        // An export fills each shard's two generations at most.
        if stored.digests.len() / DIGEST_LEN > 2 * SHARDS * self.limit {
            return Err(SaltRestoreError::Damaged);
        }
        if self.shards.iter().any(|shard| is_used(&lock_shard(shard))) {
            return Err(SaltRestoreError::InUse);
        }
        self.sip = SipKey::new(*stored.seed.expose());
        self.seed = stored.seed;
        let mut taken = 0;
        for digest in stored.digests.chunks_exact(DIGEST_LEN) {
            let digest = digest.first_chunk().copied().map(u64::from_be_bytes);
            let digest = digest.unwrap_or_default();
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

/// An export with a valid format and check.
struct ParsedExport<'a> {
    seed: Secret<[u8; 16]>,
    digests: &'a [u8],
}

impl<'a> ParsedExport<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, SaltRestoreError> {
        let damaged = |EndOfInput| SaltRestoreError::Damaged;
        let mut r = Reader::new(bytes);
        if r.array() != Ok(*MAGIC) {
            return Err(SaltRestoreError::Foreign);
        }
        match r.u8().map_err(damaged)? {
            VERSION => {}
            other => return Err(SaltRestoreError::Version(other)),
        }
        let seed = Secret::new(r.array().map_err(damaged)?);
        let count = u32::from_be_bytes(r.array().map_err(damaged)?);
        let len = usize::try_from(count).ok();
        let len = len.and_then(|count| count.checked_mul(DIGEST_LEN));
        let digests = r
            .take(len.ok_or(SaltRestoreError::Damaged)?)
            .map_err(damaged)?;
        let checked = subslice(bytes, ..r.consumed());
        let check: [u8; CHECK_LEN] = r.array().map_err(damaged)?;
        let expected = SipKey::new(*seed.expose())
            .hash_bytes(checked)
            .to_be_bytes();
        if !r.rest().is_empty() || !ct_eq(&check, &expected) {
            return Err(SaltRestoreError::Damaged);
        }
        Ok(Self { seed, digests })
    }
}
