//! Snapshots of a store for a process that continues the work of this one while this one still runs.
//!
//! A snapshot is divided into parts:
//!
//! ```text
//! "adit-rpl" ‖ 1 ‖ seed(16) ‖ started(u64) ‖ kind ‖ entries ‖ check(u64)
//!     kind 0: tag(u64) …, those that expire first are first
//!     kind 1: { user(u32) ‖ client(8) ‖ last used(u64) ‖ front(u32) ‖ used ids(512) } …
//! ```
//! Big-endian; the check is a keyed hash of all bytes before it, which detects accidents.

use std::sync::PoisonError;

use adit_crypto::{Secret, SipKey, SnapshotError, SnapshotFormat};
use adit_wire::{EndOfInput, Reader, UnixTime, subslice};

use super::{IdWindow, ReplayStore, SeenClient, SeenMessages};

const FORMAT: SnapshotFormat = SnapshotFormat {
    magic: *b"adit-rpl",
    version: 1,
};
const TAGS: u8 = 0;
const CLIENTS: u8 = 1;
const CLIENT_LEN: usize = 4 + 8 + 8 + IdWindow::BYTES;
/// Maximum number of tags in a part.
const TAGS_PER_PART: usize = 400_000;
/// Maximum number of clients in a part.
const CLIENTS_PER_PART: usize = 4096;

/// The reason bytes are not a valid part of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayRestoreError {
    /// The bytes are not a part of a snapshot.
    #[error("not a snapshot of replay protection")]
    Foreign,
    /// A snapshot of another format version.
    #[error("version {0} of snapshots of replay protection is not supported")]
    Version(u8),
    /// Truncated or altered.
    #[error("the snapshot of replay protection is damaged")]
    Damaged,
    /// The tags of the snapshot were hashed with another seed.
    #[error("the snapshot is of another store: merge it into one that was created from it")]
    OtherStore,
    /// More clients than a store has space for.
    #[error("the snapshot of replay protection has too many clients")]
    TooManyClients,
}

impl From<SnapshotError> for ReplayRestoreError {
    fn from(why: SnapshotError) -> Self {
        match why {
            SnapshotError::Foreign => Self::Foreign,
            SnapshotError::Version(version) => Self::Version(version),
            SnapshotError::Damaged => Self::Damaged,
        }
    }
}

impl ReplayStore {
    /// Returns the content of the store in parts of at most 4 MiB. There is at least one part. Keep them as secret
    /// as a key: a peer who has the seed can make the store slow.
    ///
    /// Messages that are admitted in the meantime are in the parts or not. A later snapshot contains them;
    /// [merge](Self::merge_snapshot) it too.
    pub fn snapshot(&self) -> impl Iterator<Item = Secret<Vec<u8>>> + '_ {
        let tags = {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let tags = seen.older.iter().chain(&seen.tags);
            tags.map(|tag| tag.to_be_bytes()).collect::<Vec<_>>()
        };
        let mut next = 0;
        let tags = core::iter::from_fn(move || {
            let rest = tags.get(next..)?;
            if rest.is_empty() && next > 0 {
                return None;
            }
            let some = subslice(rest, ..rest.len().min(TAGS_PER_PART));
            // An empty first part ends the parts too.
            next += some.len().max(1);
            Some(self.encode_part(TAGS, some.as_flattened()))
        });
        let mut after = None;
        let clients = core::iter::from_fn(move || {
            let mut entries = Vec::new();
            {
                let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                let rest = seen.clients.range((
                    after.map_or(core::ops::Bound::Unbounded, core::ops::Bound::Excluded),
                    core::ops::Bound::Unbounded,
                ));
                for (key, client) in rest.take(CLIENTS_PER_PART) {
                    entries.extend_from_slice(&key.0.to_be_bytes());
                    entries.extend_from_slice(&key.1);
                    entries.extend_from_slice(&client.used.0.to_be_bytes());
                    client.window.write_to(&mut entries);
                    after = Some(*key);
                }
            }
            (!entries.is_empty()).then(|| self.encode_part(CLIENTS, &entries))
        });
        tags.chain(clients)
    }

    fn encode_part(&self, kind: u8, entries: &[u8]) -> Secret<Vec<u8>> {
        FORMAT.encode(&self.sip, 8 + 1 + entries.len(), |out| {
            out.extend_from_slice(&self.started.0.to_be_bytes());
            out.push(kind);
            out.extend_from_slice(entries);
        })
    }

    /// Creates a store from the first part of a [snapshot](Self::snapshot), with the seed and the start of the
    /// original. [Merge](Self::merge_snapshot) the other parts.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not a part of a snapshot, of an unknown version or damaged.
    pub fn from_snapshot(part: &[u8]) -> Result<Self, ReplayRestoreError> {
        let parsed = SnapshotPart::parse(part)?;
        let store = Self {
            sip: parsed.sip.clone(),
            ..Self::new([0; 16], parsed.started)
        };
        store.merge_part(&parsed)?;
        Ok(store)
    }

    /// Adds a part of a [snapshot](Self::snapshot) to a store that was [created from one](Self::from_snapshot) of the
    /// same store, and may be in use.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not a part of a snapshot, of an unknown version, damaged, or of another store, and
    /// if there are too many clients. In the last case some of them are in the store.
    pub fn merge_snapshot(&self, part: &[u8]) -> Result<(), ReplayRestoreError> {
        self.merge_part(&SnapshotPart::parse(part)?)
    }

    fn merge_part(&self, part: &SnapshotPart<'_>) -> Result<(), ReplayRestoreError> {
        if !self.sip.is_same_key(&part.sip) {
            return Err(ReplayRestoreError::OtherStore);
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match part.entries {
            Entries::Tags(tags) => {
                for tag in tags {
                    let tag = u64::from_be_bytes(*tag);
                    if !seen.has_tag(tag) {
                        seen.insert_new_tag(tag, self.limits);
                    }
                }
                Ok(())
            }
            Entries::Clients(clients) => {
                let mut r = Reader::new(clients);
                while !r.rest().is_empty() {
                    // The parser has checked the length.
                    let client = ClientEntry::read_from(&mut r);
                    let client = client.map_err(|EndOfInput| ReplayRestoreError::Damaged)?;
                    // They may take as much space as this process's own: a store whose space is used up
                    // refuses new clients.
                    seen.merge_client(client, 2 * self.limits.windows)?;
                }
                Ok(())
            }
        }
    }
}

impl SeenMessages {
    fn merge_client(
        &mut self,
        client: ClientEntry,
        limit: usize,
    ) -> Result<(), ReplayRestoreError> {
        let ClientEntry { key, client } = client;
        if let Some(known) = self.clients.get_mut(&key) {
            known.window.merge(&client.window);
            known.used = known.used.max(client.used);
            return Ok(());
        }
        if self.clients.len() >= limit {
            return Err(ReplayRestoreError::TooManyClients);
        }
        self.clients.insert(key, client);
        Ok(())
    }
}

/// A client of a snapshot.
struct ClientEntry {
    key: (u32, [u8; 8]),
    client: SeenClient,
}

impl ClientEntry {
    fn read_from(r: &mut Reader<'_>) -> Result<Self, EndOfInput> {
        let key = (u32::from_be_bytes(r.array()?), r.array()?);
        let used = UnixTime(r.u64()?);
        let window = IdWindow::read_from(r)?;
        let client = SeenClient { window, used };
        Ok(Self { key, client })
    }
}

/// A part of a snapshot with a valid format and check.
struct SnapshotPart<'a> {
    sip: SipKey,
    started: UnixTime,
    entries: Entries<'a>,
}

enum Entries<'a> {
    Tags(&'a [[u8; 8]]),
    /// A multiple of [`CLIENT_LEN`] bytes.
    Clients(&'a [u8]),
}

impl<'a> SnapshotPart<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, ReplayRestoreError> {
        let damaged = |EndOfInput| ReplayRestoreError::Damaged;
        let (sip, body) = FORMAT.parse(bytes)?;
        let mut r = Reader::new(body);
        let started = UnixTime(r.u64().map_err(damaged)?);
        let kind = r.u8().map_err(damaged)?;
        let entries = r.rest();
        let entries = match kind {
            TAGS if entries.len().is_multiple_of(8) => Entries::Tags(entries.as_chunks().0),
            CLIENTS if entries.len().is_multiple_of(CLIENT_LEN) => Entries::Clients(entries),
            _ => return Err(ReplayRestoreError::Damaged),
        };
        Ok(Self {
            sip,
            started,
            entries,
        })
    }
}
