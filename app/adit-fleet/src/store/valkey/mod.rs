//! A store in Valkey or Redis: one server, a master that sentinels know, or a cluster.
//!
//! All keys of a realm have the same hash tag and are on one server of a cluster. Writes are scripts, which the server
//! runs as one step. The number of a change is its number in the log (a stream), so that the log is read from there.

mod access;
mod acl;
mod calls;
mod config;
mod error;
mod keys;
mod link;
mod realm;
mod script;
mod value;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Value, cmd};

use super::{
    ActivityTotal, AuditEntry, RealmInfo, SaltClaim, Store, StoreError, StoreFuture, StoreHealth,
    UserActivity,
};
use crate::change::{ChangeBatch, ChangeId, ChangeRequest, Snapshot};
use crate::node_status::{NodeEntry, NodeRecord, NodeStatus};
use crate::period::PeriodLabel;
use crate::sealed_record::{NameDigest, SealedRecord};
use crate::usage_batch::{UsageBatch, UsageReply, UserTotal};
use keys::Keys;
use link::Connector;
use script::{Script, Scripts};

pub use access::{AccessAdmin, Kept};
pub use acl::{AclRole, COMMANDS, acl_rule};
pub use config::ValkeyConfig;

/// A store in Valkey or Redis. Clones share the connections.
#[derive(Clone)]
pub struct ValkeyStore(Arc<Inner>);

struct Inner {
    realm: String,
    keys: Keys,
    connector: Arc<Connector>,
    scripts: Scripts,
}

impl fmt::Debug for ValkeyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValkeyStore({:?})", self.0.realm)
    }
}

impl ValkeyStore {
    /// Creates a store. The first call connects.
    #[must_use]
    pub fn open(config: ValkeyConfig) -> Self {
        Self(Arc::new(Inner {
            realm: config.realm.clone(),
            keys: Keys::new(&config.realm),
            connector: Connector::new(config),
            scripts: Scripts::default(),
        }))
    }

    /// Measures the time of a call that does nothing.
    ///
    /// # Errors
    ///
    /// The server does not answer.
    pub async fn ping(&self) -> Result<Duration, StoreError> {
        let since = tokio::time::Instant::now();
        self.call(&cmd("PING")).await?;
        Ok(since.elapsed())
    }

    async fn call(&self, command: &Cmd) -> Result<Value, StoreError> {
        self.0.connector.call(command).await
    }

    async fn run(
        &self,
        script: Script,
        keys: &[String],
        add_arguments: impl Fn(&mut Cmd),
    ) -> Result<Value, StoreError> {
        let Inner {
            connector, scripts, ..
        } = &*self.0;
        scripts.run(connector, script, keys, add_arguments).await
    }
}

impl Store for ValkeyStore {
    fn realm_info(&self) -> StoreFuture<'_, RealmInfo> {
        Box::pin(self.read_info())
    }

    fn create_realm<'a>(&'a self, info: &'a RealmInfo) -> StoreFuture<'a, ()> {
        Box::pin(self.create(info))
    }

    fn head(&self) -> StoreFuture<'_, ChangeId> {
        Box::pin(self.read_head())
    }

    fn snapshot(&self) -> StoreFuture<'_, Snapshot> {
        Box::pin(self.read_snapshot())
    }

    fn restore<'a>(
        &'a self,
        info: &'a RealmInfo,
        snapshot: &'a Snapshot,
    ) -> StoreFuture<'a, ChangeId> {
        Box::pin(self.write_snapshot(info, snapshot, None))
    }

    fn replace_key<'a>(
        &'a self,
        expected: ChangeId,
        info: &'a RealmInfo,
        snapshot: &'a Snapshot,
    ) -> StoreFuture<'a, ChangeId> {
        Box::pin(self.write_snapshot(info, snapshot, Some(expected)))
    }

    fn changes(&self, after: ChangeId, wait: Duration) -> StoreFuture<'_, ChangeBatch> {
        Box::pin(self.read_changes(after, wait))
    }

    fn write<'a>(
        &'a self,
        expected: ChangeId,
        changes: &'a [ChangeRequest],
    ) -> StoreFuture<'a, ChangeId> {
        Box::pin(self.write_changes(expected, changes))
    }

    fn allocate_users(&self, count: u32) -> StoreFuture<'_, u32> {
        Box::pin(self.allocate(count))
    }

    fn user(&self, id: u32) -> StoreFuture<'_, Option<SealedRecord>> {
        Box::pin(self.read_user(id))
    }

    fn user_by_name(&self, name: NameDigest) -> StoreFuture<'_, Option<(u32, SealedRecord)>> {
        Box::pin(self.find_user(name))
    }

    fn add_usage<'a>(&'a self, node: u32, batch: &'a UsageBatch) -> StoreFuture<'a, UsageReply> {
        Box::pin(self.write_usage(node, batch))
    }

    fn last_batch(&self, node: u32) -> StoreFuture<'_, u64> {
        Box::pin(self.read_last_batch(node))
    }

    fn usage<'a>(
        &'a self,
        period: &'a PeriodLabel,
        users: Option<&'a [u32]>,
    ) -> StoreFuture<'a, Vec<UserTotal>> {
        Box::pin(self.read_usage(period, users))
    }

    fn reset_usage<'a>(&'a self, user: u32, periods: &'a [PeriodLabel]) -> StoreFuture<'a, ()> {
        Box::pin(self.delete_usage(user, periods))
    }

    fn claim_salts<'a>(&'a self, claims: &'a [SaltClaim]) -> StoreFuture<'a, Vec<bool>> {
        Box::pin(self.write_salts(claims))
    }

    fn report_activity<'a>(
        &'a self,
        node: u32,
        users: &'a [UserActivity],
    ) -> StoreFuture<'a, Vec<ActivityTotal>> {
        Box::pin(self.write_activity(node, users))
    }

    fn heartbeat<'a>(&'a self, status: &'a NodeStatus) -> StoreFuture<'a, Option<NodeStatus>> {
        Box::pin(self.write_status(status))
    }

    fn nodes(&self) -> StoreFuture<'_, Vec<NodeEntry>> {
        Box::pin(self.read_nodes())
    }

    fn add_node<'a>(&'a self, record: &'a NodeRecord) -> StoreFuture<'a, u32> {
        Box::pin(self.create_node(record))
    }

    fn put_node<'a>(&'a self, id: u32, record: &'a NodeRecord) -> StoreFuture<'a, ()> {
        Box::pin(self.write_node(id, record))
    }

    fn remove_node(&self, id: u32) -> StoreFuture<'_, ()> {
        Box::pin(self.delete_node(id))
    }

    fn time(&self) -> StoreFuture<'_, u64> {
        Box::pin(self.read_time())
    }

    fn put_join<'a>(&'a self, id: &'a str, sealed: &'a [u8], ttl: Duration) -> StoreFuture<'a, ()> {
        Box::pin(self.write_join(id, sealed, ttl))
    }

    fn take_join<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Vec<u8>>> {
        Box::pin(self.delete_join(id))
    }

    fn audit<'a>(&'a self, text: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(self.write_audit(text))
    }

    fn audit_log(&self, count: usize) -> StoreFuture<'_, Vec<AuditEntry>> {
        Box::pin(self.read_audit(count))
    }

    fn health(&self) -> StoreHealth {
        self.0.connector.health()
    }
}
