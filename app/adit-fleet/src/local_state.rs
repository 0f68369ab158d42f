//! The file from which a node starts while the store does not answer: the table of users, which is sealed, and the
//! usage that the store has not acknowledged.
//!
//! Each change is one frame at the end of the file, which is rewritten when it has become long. A file that was cut
//! anywhere is an earlier one: of usage, the store has the number of the last batch.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::change::{ChangeId, Snapshot};
use crate::frame_file::{FrameFile, read_frames};
use crate::period::PeriodLabel;
use crate::sealed_record::SealedRecord;
use crate::usage_batch::{UsageBatch, UserUsage};

const MAGIC: [u8; 8] = *b"aditfls1";

/// The error of a local state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalStateError {
    /// The file cannot be read or written, or another process uses it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is another node's.
    #[error("this file belongs to node {node} of realm {realm:?}")]
    Foreign {
        /// The realm.
        realm: String,
        /// The number of the node.
        node: u32,
    },
    /// A newer adit has written the file.
    #[error("a newer adit has written this file")]
    Newer,
}

/// The content of a local state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LocalContent {
    /// The users, and the number of the last change; `None` if there never was a table.
    pub table: Option<Snapshot>,
    /// The last time when the store confirmed that the table is current, in seconds since 1970.
    pub contact_unix: u64,
    /// The number of the last batch of usage.
    pub last_batch: u64,
    /// The last batch, if the store has not acknowledged it.
    pub unacknowledged: Option<UsageBatch>,
    /// Usage that no batch contained when it was last saved.
    pub pending: Vec<UserUsage>,
    /// The last known usage of users whose quota is, or was, used up.
    pub used_up: Vec<UsedQuota>,
}

/// The part of a quota that was used over all nodes, as far as a node knew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedQuota {
    /// The number of the user.
    pub user: u32,
    /// The period of the quota.
    pub period: PeriodLabel,
    /// Bytes of both directions together.
    pub used: u64,
}

/// A frame of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Entry<'a> {
    /// The owner, and everything.
    Whole {
        realm: String,
        node: u32,
        table: Option<Snapshot>,
        contact: u64,
        last_batch: u64,
        unacknowledged: Option<UsageBatch>,
        #[serde(default)]
        pending: Vec<UserUsage>,
        #[serde(default)]
        used_up: Vec<UsedQuota>,
    },
    Table(Cow<'a, Snapshot>, u64),
    Changes {
        version: ChangeId,
        puts: Vec<(u32, SealedRecord)>,
        deletes: Vec<u32>,
        contact: u64,
    },
    Contact(u64),
    /// A batch, and what it leaves pending.
    Batch(UsageBatch, Vec<UserUsage>),
    Pending(Vec<UserUsage>),
    Acknowledged(u64),
    /// Users whose quota was used up, or is not any more.
    UsedUp(Vec<UsedQuota>),
}

/// The open file of a node's local state. Its functions block.
#[derive(Debug)]
pub struct LocalState {
    file: FrameFile,
    realm: String,
    node: u32,
}

impl LocalState {
    /// Opens the file of a node, or creates it, and returns its content.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, another process uses it for more than five seconds, or it is another node's.
    pub fn open(
        path: &Path,
        realm: &str,
        node: u32,
    ) -> Result<(Self, LocalContent), LocalStateError> {
        let opened = FrameFile::open(path, MAGIC, Duration::from_secs(5))?;
        let mut state = Self {
            file: opened.file,
            realm: realm.to_owned(),
            node,
        };
        let frames = opened.frames.iter().map(Vec::as_slice);
        let content = replay(frames, realm, node)?;
        match content {
            Some(content) => Ok((state, content)),
            None => {
                let content = LocalContent::default();
                state.rewrite(&content)?;
                Ok((state, content))
            }
        }
    }

    /// Reads the content of a file, as [`Self::open`] does.
    ///
    /// # Errors
    ///
    /// It is another node's, or no local state.
    pub fn read_content(
        content: &[u8],
        realm: &str,
        node: u32,
    ) -> Result<LocalContent, LocalStateError> {
        let frames = read_frames(&MAGIC, content).ok_or(io::ErrorKind::InvalidData);
        let (frames, _) = frames.map_err(io::Error::from)?;
        Ok(replay(frames.into_iter(), realm, node)?.unwrap_or_default())
    }

    /// Replaces the table after a snapshot.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn save_table(&mut self, table: &Snapshot, contact: u64) -> Result<(), LocalStateError> {
        self.append(&Entry::Table(Cow::Borrowed(table), contact))
    }

    /// Changes the table.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn save_changes(
        &mut self,
        version: ChangeId,
        puts: Vec<(u32, SealedRecord)>,
        deletes: Vec<u32>,
        contact: u64,
    ) -> Result<(), LocalStateError> {
        self.append(&Entry::Changes {
            version,
            puts,
            deletes,
            contact,
        })
    }

    /// Records that the table was current at this time, in seconds since 1970.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn save_contact(&mut self, contact: u64) -> Result<(), LocalStateError> {
        self.append(&Entry::Contact(contact))
    }

    /// Records a batch before it is sent, and the usage that is still pending ([`UsageLedger::pending`](crate::UsageLedger::pending)).
    ///
    /// # Errors
    ///
    /// The file cannot be written. The batch may be sent all the same: a crash could then lose it.
    pub fn save_batch(
        &mut self,
        batch: &UsageBatch,
        pending: Vec<UserUsage>,
    ) -> Result<(), LocalStateError> {
        self.append(&Entry::Batch(batch.clone(), pending))
    }

    /// Records the usage that no batch contains yet, while the store does not answer.
    ///
    /// # Errors
    ///
    /// The file cannot be written. A crash could then lose it.
    pub fn save_pending(&mut self, pending: Vec<UserUsage>) -> Result<(), LocalStateError> {
        self.append(&Entry::Pending(pending))
    }

    /// Records that the store has a batch.
    ///
    /// # Errors
    ///
    /// The file cannot be written. A batch is sent again then, and counted once.
    pub fn save_acknowledged(&mut self, number: u64) -> Result<(), LocalStateError> {
        self.append(&Entry::Acknowledged(number))
    }

    /// Records that quotas were used up, or are not any more. Another record of a user replaces the last one.
    ///
    /// # Errors
    ///
    /// The file cannot be written. After a start without the store, these users have a lease again.
    pub fn save_used_up(&mut self, changed: Vec<UsedQuota>) -> Result<(), LocalStateError> {
        self.append(&Entry::UsedUp(changed))
    }

    /// Returns true if the file has become long, and [`Self::rewrite`] is due.
    #[must_use]
    pub const fn is_long(&self) -> bool {
        self.file.is_long()
    }

    /// Replaces the file by one with this content.
    ///
    /// # Errors
    ///
    /// The file cannot be written; the old one is unchanged then.
    pub fn rewrite(&mut self, content: &LocalContent) -> Result<(), LocalStateError> {
        let entry = Entry::Whole {
            realm: self.realm.clone(),
            node: self.node,
            table: content.table.clone(),
            contact: content.contact_unix,
            last_batch: content.last_batch,
            unacknowledged: content.unacknowledged.clone(),
            pending: content.pending.clone(),
            used_up: content.used_up.clone(),
        };
        Ok(self.file.replace(&to_json(&entry)?)?)
    }

    fn append(&mut self, entry: &Entry<'_>) -> Result<(), LocalStateError> {
        Ok(self.file.append(&to_json(entry)?)?)
    }
}

fn to_json(entry: &Entry<'_>) -> io::Result<Vec<u8>> {
    serde_json::to_vec(entry).map_err(io::Error::from)
}

/// Returns the content after all frames; `None` if there are none.
fn replay<'a>(
    frames: impl Iterator<Item = &'a [u8]>,
    realm: &str,
    node: u32,
) -> Result<Option<LocalContent>, LocalStateError> {
    let mut content = None;
    // The table by user, while changes are applied.
    let mut users: BTreeMap<u32, SealedRecord> = BTreeMap::new();
    for frame in frames {
        let entry = serde_json::from_slice(frame).map_err(|_| LocalStateError::Newer)?;
        if let Entry::Whole {
            realm: of,
            node: number,
            ..
        } = &entry
            && (of != realm || *number != node)
        {
            return Err(LocalStateError::Foreign {
                realm: of.clone(),
                node: *number,
            });
        }
        // The first frame names the owner.
        if content.is_none() && !matches!(entry, Entry::Whole { .. }) {
            return Err(LocalStateError::Newer);
        }
        replay_entry(content.get_or_insert_default(), &mut users, entry);
    }
    Ok(content.map(|mut content: LocalContent| {
        if let Some(table) = &mut content.table {
            table.users = users.into_iter().collect();
        }
        content
    }))
}

fn replay_entry(
    content: &mut LocalContent,
    users: &mut BTreeMap<u32, SealedRecord>,
    entry: Entry<'_>,
) {
    let mut set_table = |content: &mut LocalContent, table: Option<Snapshot>| {
        let (version, all) = match table {
            Some(table) => (Some(table.version), table.users),
            None => (None, Vec::new()),
        };
        *users = all.into_iter().collect();
        content.table = version.map(|version| Snapshot {
            version,
            users: Vec::new(),
        });
    };
    match entry {
        Entry::Whole {
            table,
            contact,
            last_batch,
            unacknowledged,
            pending,
            used_up,
            ..
        } => {
            set_table(content, table);
            content.contact_unix = contact;
            content.last_batch = last_batch;
            content.unacknowledged = unacknowledged;
            content.pending = pending;
            content.used_up = used_up;
        }
        Entry::Table(table, contact) => {
            set_table(content, Some(table.into_owned()));
            content.contact_unix = contact;
        }
        Entry::Changes {
            version,
            puts,
            deletes,
            contact,
        } => {
            users.extend(puts);
            for id in deletes {
                users.remove(&id);
            }
            content.table = Some(Snapshot {
                version,
                users: Vec::new(),
            });
            content.contact_unix = contact;
        }
        Entry::Contact(contact) => content.contact_unix = contact,
        Entry::Batch(batch, pending) => {
            content.last_batch = content.last_batch.max(batch.number);
            content.unacknowledged = Some(batch);
            content.pending = pending;
        }
        Entry::Pending(pending) => content.pending = pending,
        Entry::Acknowledged(number) => {
            content.last_batch = content.last_batch.max(number);
            let is_it = |batch: &UsageBatch| batch.number <= number;
            if content.unacknowledged.as_ref().is_some_and(is_it) {
                content.unacknowledged = None;
            }
        }
        Entry::UsedUp(changed) => {
            let is_other = |known: &UsedQuota| changed.iter().all(|new| new.user != known.user);
            content.used_up.retain(is_other);
            content.used_up.extend(changed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn path(test: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("adit-local-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        folder.join("state")
    }

    fn record(byte: u8) -> SealedRecord {
        SealedRecord::from_bytes(vec![byte; 60])
    }

    fn batch(number: u64) -> UsageBatch {
        let period = PeriodLabel::from_text("2026-11").unwrap();
        let (up, down) = (number, 10 * number);
        UsageBatch {
            number,
            entries: vec![UserUsage {
                user: 1,
                period,
                up,
                down,
            }],
        }
    }

    fn used_up(user: u32, used: u64) -> UsedQuota {
        let period = PeriodLabel::from_text("2026-11").unwrap();
        UsedQuota { user, period, used }
    }

    fn fill(state: &mut LocalState) -> Vec<LocalContent> {
        let mut contents = Vec::new();
        let mut now = LocalContent::default();
        let mut step = |change: &mut dyn FnMut(&mut LocalContent)| {
            change(&mut now);
            contents.push(now.clone());
        };
        let table = |version, users| Snapshot {
            version: ChangeId(version),
            users,
        };
        let first = table(3, vec![(1, record(1)), (2, record(2))]);
        state.save_table(&first, 100).unwrap();
        step(&mut |content| (content.table, content.contact_unix) = (Some(first.clone()), 100));
        state.save_pending(batch(2).entries).unwrap();
        step(&mut |content| content.pending = batch(2).entries);
        state.save_batch(&batch(1), batch(3).entries).unwrap();
        step(&mut |content| {
            content.last_batch = 1;
            content.unacknowledged = Some(batch(1));
            content.pending = batch(3).entries;
        });
        state
            .save_changes(ChangeId(5), vec![(3, record(3))], vec![1], 110)
            .unwrap();
        let second = table(5, vec![(2, record(2)), (3, record(3))]);
        step(&mut |content| (content.table, content.contact_unix) = (Some(second.clone()), 110));
        state.save_acknowledged(1).unwrap();
        step(&mut |content| content.unacknowledged = None);
        state.save_contact(120).unwrap();
        step(&mut |content| content.contact_unix = 120);
        let [one, two] = [1, 2].map(|user| used_up(user, 500));
        state.save_used_up(vec![one.clone(), two.clone()]).unwrap();
        step(&mut |content| content.used_up = vec![one.clone(), two.clone()]);
        let reset = used_up(1, 0);
        state.save_used_up(vec![reset.clone()]).unwrap();
        step(&mut |content| content.used_up = vec![two.clone(), reset.clone()]);
        contents
    }

    #[test]
    fn a_file_that_was_cut_anywhere_is_an_earlier_one() {
        let path = path("cut");
        let (mut state, content) = LocalState::open(&path, "main", 3).unwrap();
        assert_eq!(content, LocalContent::default());
        let mut contents = vec![LocalContent::default()];
        contents.extend(fill(&mut state));
        drop(state);
        let whole = std::fs::read(&path).unwrap();
        let mut seen = 0;
        for len in 0..=whole.len() {
            std::fs::write(&path, &whole[..len]).unwrap();
            let (_, content) = LocalState::open(&path, "main", 3).unwrap();
            // Never an older one than for a shorter file.
            while contents[seen] != content {
                seen += 1;
                assert!(
                    seen < contents.len(),
                    "no earlier state, cut at {len}: {content:?}"
                );
            }
        }
        assert_eq!(seen, contents.len() - 1);
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_rewritten_file_has_the_same_content() {
        let path = path("rewritten");
        let (mut state, _) = LocalState::open(&path, "main", 3).unwrap();
        let expected = fill(&mut state).pop().unwrap();
        state.rewrite(&expected).unwrap();
        drop(state);
        assert_eq!(LocalState::open(&path, "main", 3).unwrap().1, expected);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(
            LocalState::read_content(&bytes, "main", 3).unwrap(),
            expected
        );
        for (realm, node) in [("main", 4), ("other", 3)] {
            let error = LocalState::open(&path, realm, node).unwrap_err();
            assert!(matches!(error, LocalStateError::Foreign { .. }), "{error}");
        }
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_long_file_is_due_for_a_rewrite() {
        let path = path("long");
        let (mut state, _) = LocalState::open(&path, "main", 3).unwrap();
        let mut appended = 0;
        while !state.is_long() {
            state.save_batch(&batch(1), Vec::new()).unwrap();
            appended += 1;
            assert!(appended < 100_000);
        }
        state.rewrite(&LocalContent::default()).unwrap();
        assert!(!state.is_long());
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}
