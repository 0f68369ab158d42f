//! The store of a realm: the trait, and its implementations.

mod call;
mod embedded;
mod error;
mod fault;
mod local;
mod memory;
mod open;
mod state;
pub mod valkey;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::change::{ChangeBatch, ChangeId, ChangeRequest, Snapshot};
use crate::node_status::{NodeEntry, NodeRecord, NodeStatus};
use crate::period::PeriodLabel;
use crate::seal::RecordCipher;
use crate::sealed_record::{NameDigest, SealedRecord};
use crate::usage_batch::{UsageBatch, UsageReply, UserTotal};

pub use call::StoreCall;
pub use embedded::EmbeddedStore;
pub use error::{StoreError, StoreErrorKind};
pub use fault::{Fault, FaultyStore};
pub use memory::MemoryStore;
pub use open::{StoreLogin, open_store};
pub use state::RealmState;

/// The future of a call to a store.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// The public description of a realm, which the store shows to all who can reach it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RealmInfo {
    /// The name.
    pub realm: String,
    /// [`RecordCipher::key_check`] of the realm's key.
    pub key_check: [u8; 16],
    /// The time of its creation, in seconds since 1970.
    pub created_unix: u64,
    /// The format of the keys in the store.
    pub format: u32,
}

/// The format of keys in stores that this version reads and writes.
pub const STORE_FORMAT: u32 = 1;

impl RealmInfo {
    /// Describes the realm of `cipher`.
    #[must_use]
    pub fn new(cipher: &RecordCipher, created_unix: u64) -> Self {
        Self {
            realm: cipher.realm().to_owned(),
            key_check: cipher.key_check(),
            created_unix,
            format: STORE_FORMAT,
        }
    }

    /// Checks that the store has the realm of `cipher`.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::WrongRealm`] if it has another key or name, or a newer format.
    pub fn check(&self, cipher: &RecordCipher) -> Result<(), StoreError> {
        let wrong = |why: String| Err(StoreError::new(StoreErrorKind::WrongRealm, why));
        if self.format > STORE_FORMAT {
            return wrong(format!(
                "a newer adit has created it, in format {}",
                self.format
            ));
        }
        if self.realm != cipher.realm() {
            return wrong(format!("it has {:?}", self.realm));
        }
        if self.key_check != cipher.key_check() {
            return wrong("its realm of this name has another key".to_owned());
        }
        Ok(())
    }
}

/// A salt that a session was opened with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SaltClaim {
    /// The minute of the request's timestamp, since 1970: replays look into the same one.
    pub bucket: u64,
    /// [`RecordCipher::salt_digest`].
    pub digest: [u8; 8],
}

/// Sessions and devices of a user at one node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserActivity {
    /// The number of the user.
    pub user: u32,
    /// Open sessions at this node.
    pub sessions: u32,
    /// The user's limit of devices.
    pub max_devices: Option<u32>,
    /// The devices that are connected to this node, in the order of their arrival: [`RecordCipher::device_digest`] of their
    /// addresses.
    pub devices: Vec<[u8; 8]>,
    /// Devices of the last report that are not connected any more.
    #[serde(default)]
    pub gone: Vec<[u8; 8]>,
}

/// Sessions and devices of a user at all nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActivityTotal {
    /// The number of the user.
    pub user: u32,
    /// Nodes where the user has sessions, including the reporting one.
    pub nodes: u32,
    /// Open sessions at all nodes.
    pub sessions: u64,
    /// Devices that were seen within a minute.
    pub devices: u32,
    /// Reported devices beyond the limit, also if it was lowered: those that came last.
    pub refused: Vec<[u8; 8]>,
}

/// Time for which a device counts after it was reported, in milliseconds.
pub const DEVICE_WINDOW_MS: u64 = 60_000;
/// Time for which the sessions of a node count after they were reported, in milliseconds.
pub const SESSIONS_WINDOW_MS: u64 = 30_000;
/// Time for which a node counts as running after a report, in milliseconds.
pub const NODE_WINDOW_MS: u64 = 15_000;
/// Time for which salts are kept, in seconds: longer than the requests are valid, before and after the present.
pub const SALT_WINDOW: u64 = 180;
/// Number of changes that the log keeps, approximately.
pub const MAX_LOG: usize = 100_000;
/// Number of entries that the audit log keeps, approximately.
pub const MAX_AUDIT: usize = 10_000;

/// The state of the connection to a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreHealth {
    /// True if the last call was answered.
    pub is_up: bool,
    /// Calls that failed because the store did not answer, since the last one that it answered.
    pub failures: u64,
    /// Time until the store is asked again.
    pub retry_in: Option<Duration>,
    /// The last error.
    pub last_error: Option<String>,
}

/// An entry of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// The time in milliseconds since 1970, of the store's clock.
    pub unix_ms: u64,
    /// The text, which is JSON.
    pub text: String,
}

/// The store of one realm.
///
/// All methods may fail with [`StoreErrorKind::Unreachable`], within a bounded time; a write may have happened then.
pub trait Store: fmt::Debug + Send + Sync {
    /// Returns the description of the realm.
    ///
    /// [`StoreErrorKind::WrongRealm`] if there is none. The caller checks it with [`RealmInfo::check`].
    fn realm_info(&self) -> StoreFuture<'_, RealmInfo>;

    /// Creates the realm; [`StoreErrorKind::RealmExists`] if there is one.
    fn create_realm<'a>(&'a self, info: &'a RealmInfo) -> StoreFuture<'a, ()>;

    /// Returns the number of the last change; 0 before the first, and in an empty store.
    fn head(&self) -> StoreFuture<'_, ChangeId>;

    /// Returns all users.
    fn snapshot(&self) -> StoreFuture<'_, Snapshot>;

    /// Replaces all users, and writes a change whose number is higher than all others, which it returns: for a store
    /// that has lost changes.
    fn restore<'a>(
        &'a self,
        info: &'a RealmInfo,
        snapshot: &'a Snapshot,
    ) -> StoreFuture<'a, ChangeId>;

    /// Does the same as [`Self::restore`] if the last change is `expected`: for another key of the realm, under which no
    /// user may be lost who was written meanwhile.
    ///
    /// [`StoreErrorKind::Conflict`]; nothing is written then.
    fn replace_key<'a>(
        &'a self,
        expected: ChangeId,
        info: &'a RealmInfo,
        snapshot: &'a Snapshot,
    ) -> StoreFuture<'a, ChangeId>;

    /// Returns changes after `after`. Without any, waits for up to `wait` until there is one.
    fn changes(&self, after: ChangeId, wait: Duration) -> StoreFuture<'_, ChangeBatch>;

    /// Writes changes together, if the last change is `expected`, and returns the number of the last one. The first
    /// has the number `expected + 1`, which its record was sealed with.
    ///
    /// [`StoreErrorKind::Conflict`], [`StoreErrorKind::NameTaken`], or [`StoreErrorKind::Gone`] if a user to be
    /// deleted does not exist; nothing is written then.
    fn write<'a>(
        &'a self,
        expected: ChangeId,
        changes: &'a [ChangeRequest],
    ) -> StoreFuture<'a, ChangeId>;

    /// Assigns `count` numbers of users, and returns the first.
    fn allocate_users(&self, count: u32) -> StoreFuture<'_, u32>;

    /// Returns the record of a user.
    fn user(&self, id: u32) -> StoreFuture<'_, Option<SealedRecord>>;

    /// Returns the number and the record of the user with this name.
    fn user_by_name(&self, name: NameDigest) -> StoreFuture<'_, Option<(u32, SealedRecord)>>;

    /// Adds a node's batch of usage, unless it was added before.
    fn add_usage<'a>(&'a self, node: u32, batch: &'a UsageBatch) -> StoreFuture<'a, UsageReply>;

    /// Returns the highest number of a node's batches that were added; 0 if there is none.
    fn last_batch(&self, node: u32) -> StoreFuture<'_, u64>;

    /// Returns the usage of `users` in a period, in their order; of all who have any for `None`, in no order.
    fn usage<'a>(
        &'a self,
        period: &'a PeriodLabel,
        users: Option<&'a [u32]>,
    ) -> StoreFuture<'a, Vec<UserTotal>>;

    /// Sets the usage of a user in these periods to zero.
    fn reset_usage<'a>(&'a self, user: u32, periods: &'a [PeriodLabel]) -> StoreFuture<'a, ()>;

    /// Records salts, and returns for each whether it is new: `false` is a replay.
    fn claim_salts<'a>(&'a self, claims: &'a [SaltClaim]) -> StoreFuture<'a, Vec<bool>>;

    /// Records sessions and devices of users at a node, and returns those of all nodes, in the same order.
    fn report_activity<'a>(
        &'a self,
        node: u32,
        users: &'a [UserActivity],
    ) -> StoreFuture<'a, Vec<ActivityTotal>>;

    /// Records the report of a node, and returns the previous one: with another `instance`, a second process uses the
    /// membership. A node without a record receives one with the name of the report: the store may have lost it.
    fn heartbeat<'a>(&'a self, status: &'a NodeStatus) -> StoreFuture<'a, Option<NodeStatus>>;

    /// Returns all nodes, in the order of their numbers.
    fn nodes(&self) -> StoreFuture<'_, Vec<NodeEntry>>;

    /// Assigns a number to a new node; [`StoreErrorKind::NameTaken`] if another one has the name.
    fn add_node<'a>(&'a self, record: &'a NodeRecord) -> StoreFuture<'a, u32>;

    /// Replaces the record of a node; [`StoreErrorKind::Gone`] or [`StoreErrorKind::NameTaken`].
    fn put_node<'a>(&'a self, id: u32, record: &'a NodeRecord) -> StoreFuture<'a, ()>;

    /// Removes a node; [`StoreErrorKind::Gone`] if there is none.
    fn remove_node(&self, id: u32) -> StoreFuture<'_, ()>;

    /// Returns the store's clock, in milliseconds since 1970.
    fn time(&self) -> StoreFuture<'_, u64>;

    /// Stores a sealed membership for a join token, for `ttl`.
    fn put_join<'a>(&'a self, id: &'a str, sealed: &'a [u8], ttl: Duration) -> StoreFuture<'a, ()>;

    /// Removes and returns the sealed membership of a join token.
    fn take_join<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Vec<u8>>>;

    /// Appends to the audit log.
    fn audit<'a>(&'a self, text: &'a str) -> StoreFuture<'a, ()>;

    /// Returns the last `count` entries of the audit log, the newest first.
    fn audit_log(&self, count: usize) -> StoreFuture<'_, Vec<AuditEntry>>;

    /// Returns the state of the connection, without waiting.
    fn health(&self) -> StoreHealth;
}
