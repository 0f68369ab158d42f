//! The users of the realm as this node knows them, from a snapshot and the changes after it.
//!
//! The store is not trusted: records and orders are opened here, and must have been sealed for the change that carries
//! them. A store that has lost changes (it was flushed, or restored from an old backup) does not remove users: the feed
//! keeps what it has until an operator accepts the loss, or the store is restored.
//!
//! ```text
//! batch ─▶ apply_batch ─┬─ Continue: ask for changes after position()
//!                       ├─ Snapshot: changes are missing; apply_snapshot
//!                       └─ Regression: the store has lost changes
//! ```

use std::collections::{BTreeMap, BTreeSet};

use adit_wire::Entropy;

use crate::change::{Change, ChangeBatch, ChangeId, ChangeOp, Snapshot};
use crate::node_op::{NodeOp, NodeOrder};
use crate::packed_user::PackedUser;
use crate::record::FleetUser;
use crate::seal::RecordCipher;
use crate::sealed_record::{RecordError, SealedRecord};

/// Maximum number of users whose refused records are remembered.
const MAX_SUSPECTS: usize = 10_000;

/// An event of the feed, in the order in which it takes effect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FeedEvent {
    /// A user was added or replaced.
    Put(u32, PackedUser),
    /// A user was deleted.
    Delete(u32, PackedUser),
    /// The sessions of a user end.
    Kick(u32),
    /// An operation for a node.
    Node {
        /// The number of the node.
        node: u32,
        /// The operation.
        op: NodeOp,
        /// The time when the operator has sent it, in seconds since 1970. While the store has lost changes, this is the
        /// only protection against one that was sent long ago.
        issued_unix: u64,
    },
    /// The policy of the realm: a JSON text.
    Policy(String),
    /// A record was refused, and the user is as before.
    Refused {
        /// The number of the change, or of the snapshot.
        number: ChangeId,
        /// The number of the user or node.
        target: u32,
        /// The fault of the record.
        error: RecordError,
    },
}

/// A loss of changes in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Regression {
    /// The number of the last change that was applied.
    pub held: ChangeId,
    /// The number of the last change in the store when the loss was noticed.
    pub found: ChangeId,
}

/// The next step of the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedNext {
    /// Ask for further changes.
    Continue,
    /// Changes are missing: read a snapshot.
    Snapshot,
    /// The store has lost changes. Nothing is applied until an operator decides.
    Regression(Regression),
}

/// The result of a batch or a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedStep {
    /// The events.
    pub events: Vec<FeedEvent>,
    /// The next step.
    pub next: FeedNext,
}

#[derive(Debug)]
struct Held {
    number: ChangeId,
    user: PackedUser,
}

/// The users of the realm.
#[derive(Debug)]
pub struct Feed {
    cipher: RecordCipher,
    position: ChangeId,
    users: BTreeMap<u32, Held>,
    /// Users whose last record was refused: a snapshot may contain a good one.
    suspects: BTreeSet<u32>,
    regression: Option<Regression>,
    /// The number of the last change that was looked at since the loss of changes.
    looked_at: ChangeId,
    /// The time of the newest operation of a node before a loss of changes, in seconds since 1970.
    last_order_unix: u64,
    /// True if the log says that the users were written anew, so that the next snapshot is the truth.
    is_restored: bool,
    /// True if the table of the earlier process was sealed under another key of the realm.
    has_other_key: bool,
    refused: u64,
}

impl Feed {
    /// Creates a feed that knows nothing; it begins with a snapshot.
    #[must_use]
    pub fn new(cipher: RecordCipher) -> Self {
        Self {
            cipher,
            position: ChangeId::default(),
            users: BTreeMap::new(),
            suspects: BTreeSet::new(),
            regression: None,
            looked_at: ChangeId::default(),
            last_order_unix: 0,
            is_restored: false,
            has_other_key: false,
            refused: 0,
        }
    }

    /// Creates a feed that continues from a table of an earlier process. Records that cannot be opened are ignored. If that
    /// is all of them, the key of the realm was replaced: the number of the table holds on, and the users are those of the
    /// next snapshot.
    #[must_use]
    pub fn from_table(cipher: RecordCipher, table: &Snapshot) -> Self {
        let mut feed = Self::new(cipher);
        let mut present = Vec::with_capacity(table.users.len());
        for (id, sealed) in &table.users {
            match (feed.cipher.open_packed(*id, sealed), sealed.number()) {
                (Ok(user), Some(number)) => present.push((*id, Held { number, user })),
                _ => feed.suspect(*id),
            }
        }
        feed.users = present.into_iter().collect();
        feed.position = table.version;
        if feed.users.is_empty() && !table.users.is_empty() {
            feed.has_other_key = true;
            feed.suspects.clear();
        }
        feed
    }

    /// Returns true if a snapshot is to be read before changes.
    #[must_use]
    pub fn needs_snapshot(&self) -> bool {
        self.position == ChangeId::default() || self.has_other_key
    }

    /// Returns the table for [`Self::from_table`] and for [`Store::restore`](crate::Store::restore). The users are
    /// sealed anew: a feed does not keep their records.
    #[must_use]
    pub fn to_table(&self, rng: &mut dyn Entropy) -> Snapshot {
        let users = self.users.keys();
        Snapshot {
            version: self.position,
            users: users
                .filter_map(|id| Some((*id, self.sealed(*id, rng)?)))
                .collect(),
        }
    }

    /// Returns the number of the last change that was applied; 0 before the first snapshot.
    #[must_use]
    pub const fn position(&self) -> ChangeId {
        self.position
    }

    /// Returns the users, in the order of their numbers.
    pub fn users(&self) -> impl Iterator<Item = FleetUser> {
        let users = self.users.iter();
        users.filter_map(|(id, held)| held.user.unpack(*id))
    }

    /// Returns the users with their numbers, in the order of these.
    pub fn packed_users(&self) -> impl Iterator<Item = (u32, &PackedUser)> {
        self.users.iter().map(|(id, held)| (*id, &held.user))
    }

    /// Returns a user.
    #[must_use]
    pub fn user(&self, id: u32) -> Option<FleetUser> {
        self.users.get(&id)?.user.unpack(id)
    }

    /// Returns the record of a user, sealed anew, for [`LocalState`](crate::LocalState).
    #[must_use]
    pub fn sealed(&self, id: u32, rng: &mut dyn Entropy) -> Option<SealedRecord> {
        let held = self.users.get(&id)?;
        // It was decoded, so that it can be encoded.
        let sealed = self.cipher.seal_packed(id, &held.user, held.number, rng);
        sealed.ok()
    }

    /// Returns the number after which changes are to be read: [`Self::position`], or, while the store has lost changes,
    /// the number of the last one that was looked at for operations of nodes.
    #[must_use]
    pub fn read_after(&self) -> ChangeId {
        match self.regression {
            Some(_) => self.looked_at,
            None => self.position,
        }
    }

    /// Returns the number of users.
    #[must_use]
    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// Returns true if there is no user.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// Returns the loss of changes that no operator has accepted.
    #[must_use]
    pub const fn regression(&self) -> Option<Regression> {
        self.regression
    }

    /// Returns the number of records that were refused.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the cipher of the realm.
    #[must_use]
    pub const fn cipher(&self) -> &RecordCipher {
        &self.cipher
    }

    /// Applies the answer of [`Store::changes`](crate::Store::changes) after [`Self::read_after`]. While the store has
    /// lost changes, operations of nodes alone are delivered, so that an operator can end that state.
    pub fn apply_batch(&mut self, batch: &ChangeBatch) -> FeedStep {
        let last = batch
            .changes
            .last()
            .map_or(batch.head, |change| change.number);
        let head = batch.head.max(last);
        let mut events = Vec::new();
        if head < self.position {
            self.note_regression(head);
        }
        // Emptied once more.
        self.looked_at = self.looked_at.min(head);
        for change in &batch.changes {
            // Repeated, or moved to the wrong place.
            if change.number <= self.read_after() {
                continue;
            }
            self.looked_at = change.number;
            if change.number > self.position && change.op == Some(ChangeOp::Restored) {
                self.is_restored = true;
                self.regression = None;
                let next = FeedNext::Snapshot;
                return FeedStep { events, next };
            }
            if self.regression.is_some() {
                if change.op == Some(ChangeOp::Node) {
                    events.extend(self.apply_change(change).ok().flatten());
                    events.retain(|event| !self.is_old_order(event));
                }
                continue;
            }
            if change.number > self.position.next() {
                let next = FeedNext::Snapshot;
                return FeedStep { events, next };
            }
            self.position = change.number;
            match self.apply_change(change) {
                Ok(event) => {
                    if let Some(FeedEvent::Node { issued_unix, .. }) = &event {
                        self.last_order_unix = self.last_order_unix.max(*issued_unix);
                    }
                    events.extend(event);
                }
                Err(error) => events.push(self.refuse(change.number, change.target, error)),
            }
        }
        let next = match self.regression {
            Some(regression) => FeedNext::Regression(regression),
            None if batch.changes.is_empty() && head > self.position => FeedNext::Snapshot,
            None => FeedNext::Continue,
        };
        FeedStep { events, next }
    }

    /// Returns true for an operation that may have been delivered before the store has lost changes.
    const fn is_old_order(&self, event: &FeedEvent) -> bool {
        matches!(event, FeedEvent::Node { issued_unix, .. } if *issued_unix <= self.last_order_unix)
    }

    fn note_regression(&mut self, found: ChangeId) {
        if self.regression.is_none() {
            // Operations that were sent since may have any number up to `found`: the loss is noticed later than they
            // arrive. Those from before the loss are distinguished by their time.
            self.looked_at = ChangeId::default();
            self.regression = Some(Regression {
                held: self.position,
                found,
            });
        }
    }

    fn apply_change(&mut self, change: &Change) -> Result<Option<FeedEvent>, RecordError> {
        let Change { target, sealed, .. } = change;
        let op = change.op.ok_or(RecordError::Content)?;
        if sealed.number() != Some(change.number) {
            return Err(RecordError::Forged);
        }
        let order = |op| self.cipher.open_order(op, *target, sealed);
        Ok(match op {
            ChangeOp::Put => {
                // The snapshot may have contained it already.
                let held = self.users.get(target);
                if held.is_some_and(|held| held.number >= change.number) {
                    return Ok(None);
                }
                let user = self.cipher.open_packed(*target, sealed)?;
                self.hold(*target, change.number, user.clone());
                Some(FeedEvent::Put(*target, user))
            }
            ChangeOp::Delete => {
                order(op)?;
                let held = self.users.get(target);
                let is_older = held.is_some_and(|held| held.number < change.number);
                let held = is_older.then(|| self.users.remove(target)).flatten();
                held.map(|held| FeedEvent::Delete(*target, held.user))
            }
            ChangeOp::Kick => {
                order(op)?;
                Some(FeedEvent::Kick(*target))
            }
            ChangeOp::Node => {
                let order: NodeOrder =
                    serde_json::from_slice(&order(op)?).map_err(|_| RecordError::Content)?;
                Some(FeedEvent::Node {
                    node: *target,
                    op: order.op,
                    issued_unix: order.issued_unix,
                })
            }
            ChangeOp::Policy => {
                let text = std::str::from_utf8(&order(op)?).map(str::to_owned);
                Some(FeedEvent::Policy(text.map_err(|_| RecordError::Content)?))
            }
            ChangeOp::Restored => None,
        })
    }

    /// Applies the answer of [`Store::snapshot`](crate::Store::snapshot). With `accept`, an operator has accepted that
    /// the store has lost changes, and the snapshot is the truth.
    pub fn apply_snapshot(&mut self, snapshot: &Snapshot, accept: bool) -> FeedStep {
        let is_truth = accept || self.is_restored;
        let mut events = Vec::new();
        if !is_truth {
            let present: BTreeSet<u32> = snapshot.users.iter().map(|(id, _)| *id).collect();
            // Without a change, no user disappears.
            let is_lost = snapshot.version < self.position
                || (snapshot.version == self.position
                    && self.users.keys().any(|id| !present.contains(id)));
            if is_lost {
                self.note_regression(snapshot.version);
            }
            if let Some(regression) = self.regression {
                let next = FeedNext::Regression(regression);
                return FeedStep { events, next };
            }
        }
        // The tree is built at the end: nodes that fill between the users leave gaps in the memory, and are half empty.
        let mut present = Vec::with_capacity(snapshot.users.len());
        for (id, sealed) in &snapshot.users {
            let before = self.users.remove(id);
            match self.open_record(*id, sealed, before.as_ref(), is_truth) {
                Ok(held) => {
                    self.suspects.remove(id);
                    if before.is_none_or(|before| before.user != held.user) {
                        events.push(FeedEvent::Put(*id, held.user.clone()));
                    }
                    present.push((*id, held));
                }
                Err(error) => {
                    events.push(self.refuse(snapshot.version, *id, error));
                    present.extend(before.map(|held| (*id, held)));
                }
            }
        }
        // The others were written after the snapshot began, and deleted since: the log has both.
        let absent = std::mem::take(&mut self.users).into_iter();
        events.extend(absent.map(|(id, held)| FeedEvent::Delete(id, held.user)));
        self.users = present.into_iter().collect();
        self.position = snapshot.version;
        self.regression = None;
        self.is_restored = false;
        self.has_other_key = false;
        FeedStep {
            events,
            next: FeedNext::Continue,
        }
    }

    /// Opens a record of a snapshot, of a user who was known as `before`. A user who is the same stays in the memory that
    /// others share.
    fn open_record(
        &self,
        id: u32,
        sealed: &SealedRecord,
        before: Option<&Held>,
        is_truth: bool,
    ) -> Result<Held, RecordError> {
        let number = sealed.number().ok_or(RecordError::Forged)?;
        let is_repeated = !is_truth && before.is_some_and(|held| held.number == number);
        let oldest = match before {
            Some(held) if is_repeated => held.number,
            Some(held) => held.number.next(),
            // This node has applied all changes so far: it would have the user, unless the user was deleted.
            None if self.has_other_key || self.suspects.contains(&id) => ChangeId::default(),
            None => self.position.next(),
        };
        let is_first = self.position == ChangeId::default();
        if number < oldest && !is_truth && !is_first {
            return Err(RecordError::RolledBack);
        }
        let user = self.cipher.open_packed(id, sealed)?;
        match before.filter(|held| held.user == user) {
            Some(held) => Ok(Held {
                number,
                user: held.user.clone(),
            }),
            None if is_repeated => Err(RecordError::Forged),
            None => Ok(Held { number, user }),
        }
    }

    fn hold(&mut self, id: u32, number: ChangeId, user: PackedUser) {
        self.suspects.remove(&id);
        self.users.insert(id, Held { number, user });
    }

    fn suspect(&mut self, id: u32) {
        if self.suspects.len() < MAX_SUSPECTS {
            self.suspects.insert(id);
        }
    }

    fn refuse(&mut self, number: ChangeId, target: u32, error: RecordError) -> FeedEvent {
        self.refused = self.refused.saturating_add(1);
        self.suspect(target);
        FeedEvent::Refused {
            number,
            target,
            error,
        }
    }
}
