//! The users of a node in a simulation: adit's feed with all records, or the versions alone if there are too many.

use adit_fleet::{ChangeBatch, Feed, FeedNext, FeedStep, RecordCipher, Snapshot};
use adit_net::system::ThreadRng;

use super::user_table::{News, UserVersions};

/// Maximum number of records that all nodes of a simulation hold together.
const MAX_RECORDS: u64 = 50_000;

/// The users of a node.
#[derive(Debug)]
pub(super) enum NodeTable {
    Records(Box<Feed>),
    Versions(UserVersions),
}

/// The data of the whole store, as a node reads them.
#[derive(Debug)]
pub(super) enum StoreCopy {
    Records(Snapshot),
    Versions(UserVersions),
}

/// Returns true if the nodes of a simulation hold records.
pub(super) fn holds_records(nodes: u32, users: u32) -> bool {
    u64::from(nodes) * u64::from(users) <= MAX_RECORDS
}

impl NodeTable {
    /// Creates the table of a node that has read the store.
    pub(super) fn new(cipher: RecordCipher, copy: &StoreCopy) -> Self {
        match copy {
            StoreCopy::Records(snapshot) => {
                Self::Records(Box::new(Feed::from_table(cipher, snapshot)))
            }
            StoreCopy::Versions(versions) => Self::Versions(versions.clone()),
        }
    }

    /// Returns the number of the last change that was applied.
    pub(super) const fn version(&self) -> u64 {
        match self {
            Self::Records(feed) => feed.position().0,
            Self::Versions(versions) => versions.version(),
        }
    }

    /// Continues in the next process of the node, with the table that is on its disk.
    pub(super) fn reopen(&mut self, cipher: RecordCipher) {
        if let Self::Records(feed) = self {
            **feed = Feed::from_table(cipher, &feed.to_table(&mut ThreadRng));
        }
    }

    pub(super) fn take_batch(&mut self, batch: &ChangeBatch) -> News {
        match self {
            Self::Records(feed) => {
                let before = feed.position().0;
                let step = feed.apply_batch(batch);
                News::from_step(&step, before + 1..feed.position().0 + 1)
            }
            Self::Versions(versions) => versions.take(batch),
        }
    }

    pub(super) fn take_copy(&mut self, copy: StoreCopy) -> News {
        match copy {
            StoreCopy::Records(snapshot) => match self {
                Self::Records(feed) => {
                    News::from_step(&feed.apply_snapshot(&snapshot, false), 0..0)
                }
                Self::Versions(_) => News::Gap,
            },
            StoreCopy::Versions(versions) => match self {
                Self::Versions(own) => {
                    *own = versions;
                    News::Applied(Vec::new())
                }
                Self::Records(_) => News::Gap,
            },
        }
    }

    /// Returns the records for the restoration of an empty store.
    pub(super) fn records(&self) -> Option<Snapshot> {
        match self {
            Self::Records(feed) => Some(feed.to_table(&mut ThreadRng)),
            Self::Versions(_) => None,
        }
    }

    /// Returns true if the node has exactly the users of the store.
    pub(super) fn equals(&self, copy: &StoreCopy) -> bool {
        match (self, copy) {
            (Self::Records(feed), StoreCopy::Records(snapshot)) => {
                let own = UserVersions::from_snapshot(&feed.to_table(&mut ThreadRng));
                feed.refused() == 0 && own.equals(&UserVersions::from_snapshot(snapshot))
            }
            (Self::Versions(own), StoreCopy::Versions(versions)) => own.equals(versions),
            _ => false,
        }
    }
}

impl StoreCopy {
    /// Returns the number of users.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Records(snapshot) => snapshot.users.len(),
            Self::Versions(versions) => versions.len(),
        }
    }
}

impl News {
    fn from_step(step: &FeedStep, numbers: std::ops::Range<u64>) -> Self {
        match step.next {
            FeedNext::Continue => Self::Applied(numbers.collect()),
            FeedNext::Snapshot => Self::Gap,
            FeedNext::Regression(_) => Self::Regression,
        }
    }
}
