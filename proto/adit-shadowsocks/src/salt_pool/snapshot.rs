//! Snapshots of a pool for a process that continues the work of this one while this one still runs.
//!
//! Unlike an [export of digests](super::export), a snapshot also contains the salts of the 2022 edition and the
//! start of the first process, so that no request is refused that the first one would accept. It is divided
//! into parts, one for each shard that has salts:
//!
//! ```text
//! "adit-slt" ‖ 2 ‖ seed(16) ‖ started(u64) ‖ restart(u8)
//!     ‖ count(u32) ‖ salt(32) … ‖ count(u32) ‖ digest(u64) … ‖ check(u64)
//! ```

use adit_crypto::{Secret, SipKey};
use adit_wire::{EndOfInput, ProtocolError, Reader, UnixTime, narrow_int};

use super::export::{DIGEST_LEN, SNAPSHOT_FORMAT, SaltRestoreError, take_entries};
use super::{ExactSalts, ProcessStart, SaltPool, Shard, lock_shard, shard_of};

const SALT_LEN: usize = 32;

impl SaltPool {
    /// Returns the content of the pool in parts of at most 3 MiB, without salts that have expired at `now`.
    /// There is at least one part. Keep them as secret as a key: a peer who has the seed can make the
    /// pool slow.
    ///
    /// Salts that are inserted in the meantime are in the parts or not. A later snapshot contains them;
    /// [merge](Self::merge_snapshot) it too.
    pub fn snapshot(&self, now: UnixTime) -> impl Iterator<Item = Secret<Vec<u8>>> + '_ {
        let shards = self.shards.iter().enumerate();
        shards.filter_map(move |(at, shard)| {
            let mut shard = lock_shard(shard);
            shard.exact.rotate_at(now);
            (at == 0 || shard.len() > 0).then(|| self.snapshot_shard(&shard))
        })
    }

    fn snapshot_shard(&self, shard: &Shard) -> Secret<Vec<u8>> {
        let exact = [&shard.exact.previous, &shard.exact.current];
        let digests = [&shard.digests.previous, &shard.digests.current];
        let salts = exact.iter().map(|salts| salts.len()).sum::<usize>();
        let count = digests.iter().map(|digests| digests.len()).sum::<usize>();
        let body = 8 + 1 + 4 + salts * SALT_LEN + 4 + count * DIGEST_LEN;
        SNAPSHOT_FORMAT.encode(&self.sip, body, |out| {
            out.extend_from_slice(&self.start.to_bytes());
            // A shard stores 111,110 of each at most.
            out.extend_from_slice(&narrow_int::<u32>(salts).to_be_bytes());
            for salt in exact.iter().flat_map(|salts| salts.iter()) {
                out.extend_from_slice(salt);
            }
            out.extend_from_slice(&narrow_int::<u32>(count).to_be_bytes());
            for digest in digests.iter().flat_map(|digests| digests.iter()) {
                out.extend_from_slice(&digest.to_be_bytes());
            }
        })
    }

    /// Creates a pool from the first part of a [snapshot](Self::snapshot), with the seed, the start and the policy
    /// of the original. [Merge](Self::merge_snapshot) the other parts.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not a part of a snapshot, of an unknown version or damaged.
    pub fn from_snapshot(part: &[u8], now: UnixTime) -> Result<Self, SaltRestoreError> {
        let parsed = SnapshotPart::parse(part)?;
        let pool = Self {
            sip: parsed.sip.clone(),
            ..Self::new([0; 16], parsed.start.at, parsed.start.restart)
        };
        pool.merge_part(&parsed, now)?;
        Ok(pool)
    }

    /// Adds the salts of a part of a [snapshot](Self::snapshot) to a pool that was [created from
    /// one](Self::from_snapshot) of the same pool, and may be in use. Returns the number of salts that are new.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not a part of a snapshot, of an unknown version, damaged, of another pool, or
    /// contain more salts than the pool has space for. In the last case some of them are in the pool.
    pub fn merge_snapshot(&self, part: &[u8], now: UnixTime) -> Result<usize, SaltRestoreError> {
        self.merge_part(&SnapshotPart::parse(part)?, now)
    }

    fn merge_part(
        &self,
        part: &SnapshotPart<'_>,
        now: UnixTime,
    ) -> Result<usize, SaltRestoreError> {
        if !self.sip.is_same_key(&part.sip) {
            return Err(SaltRestoreError::OtherPool);
        }
        let mut merged = 0;
        let hash = |salt: &[u8; SALT_LEN]| self.sip.hash_bytes(salt);
        for salt in part.salts {
            let at = hash(salt);
            // They may take as much space as this process's own: a pool whose space is used up refuses all
            // clients.
            let limit = 2 * self.limit;
            let add = |salts: &mut ExactSalts| salts.insert_salt(at, *salt, now, limit, hash);
            match self.with_shard(at, |shard| add(&mut shard.exact)) {
                Ok(()) => merged += 1,
                Err(ProtocolError::Replayed) => {}
                Err(_) => return Err(SaltRestoreError::Damaged),
            }
        }
        // The oldest first, so that the generations are the same as before.
        let mut digests = 0;
        for digest in part.digests {
            let digest = u64::from_be_bytes(*digest);
            let add = |shard: &mut Shard| shard.digests.insert_digest(digest, self.limit);
            digests += u64::from(self.with_shard(digest, add).is_ok());
        }
        // A file with the digests is out of date.
        self.taken
            .fetch_add(digests, std::sync::atomic::Ordering::Relaxed);
        Ok(merged + narrow_int::<usize>(digests))
    }

    fn with_shard(
        &self,
        digest: u64,
        what: impl FnOnce(&mut Shard) -> Result<(), ProtocolError>,
    ) -> Result<(), ProtocolError> {
        let shard = self.shards.get(shard_of(digest));
        what(&mut lock_shard(shard.ok_or(ProtocolError::Replayed)?))
    }
}

impl Shard {
    fn len(&self) -> usize {
        let exact = self.exact.current.len() + self.exact.previous.len();
        exact + self.digests.current.len() + self.digests.previous.len()
    }
}

/// A part of a snapshot with a valid format and check.
struct SnapshotPart<'a> {
    sip: SipKey,
    start: ProcessStart,
    salts: &'a [[u8; SALT_LEN]],
    digests: &'a [[u8; DIGEST_LEN]],
}

impl<'a> SnapshotPart<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, SaltRestoreError> {
        let damaged = |EndOfInput| SaltRestoreError::Damaged;
        let (sip, body) = SNAPSHOT_FORMAT.parse(bytes)?;
        let mut r = Reader::new(body);
        let start = ProcessStart::read_from(&mut r).map_err(damaged)?;
        let salts = take_entries(&mut r, SALT_LEN).map_err(damaged)?;
        let digests = take_entries(&mut r, DIGEST_LEN).map_err(damaged)?;
        if !r.rest().is_empty() {
            return Err(SaltRestoreError::Damaged);
        }
        Ok(Self {
            sip,
            start,
            salts: salts.as_chunks().0,
            digests: digests.as_chunks().0,
        })
    }
}
