//! A store whose calls fail as a test's script says.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

use super::{
    ActivityTotal, AuditEntry, RealmInfo, SaltClaim, Store, StoreCall, StoreError, StoreErrorKind,
    StoreFuture, StoreHealth, UserActivity,
};
use crate::change::{ChangeBatch, ChangeId, ChangeRequest, Snapshot};
use crate::node_status::{NodeEntry, NodeRecord, NodeStatus};
use crate::period::PeriodLabel;
use crate::sealed_record::{NameDigest, SealedRecord};
use crate::usage_batch::{UsageBatch, UsageReply, UserTotal};

/// The fault of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The call does not reach the store.
    LostRequest,
    /// The store performs the call, and its reply is lost.
    LostReply,
    /// The store performs the call after a delay.
    Delay(Duration),
    /// The store refuses the call.
    Error(StoreErrorKind),
}

/// A store that performs its calls in another one, except for scripted faults. Clones share the script.
#[derive(Clone)]
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    script: Arc<Mutex<Script>>,
}

#[derive(Default)]
struct Script {
    /// Faults of the next calls of a kind, in their order.
    next: VecDeque<(StoreCall, Fault)>,
    /// The fault of all calls.
    outage: Option<Fault>,
    failures: u64,
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FaultyStore").field(&self.inner).finish()
    }
}

impl FaultyStore {
    /// Creates a store without faults.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            script: Arc::default(),
        }
    }

    /// Adds a fault of the next call of this kind that has none yet.
    pub fn fail_next(&self, call: StoreCall, fault: Fault) {
        self.lock().next.push_back((call, fault));
    }

    /// Sets the fault of all calls until the next change, or ends it.
    pub fn set_outage(&self, fault: Option<Fault>) {
        self.lock().outage = fault;
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_fault(&self, call: StoreCall) -> Option<Fault> {
        let mut script = self.lock();
        let scripted = script.next.iter().position(|(other, _)| *other == call);
        let scripted = scripted.and_then(|index| script.next.remove(index));
        scripted
            .map(|(_, fault)| fault)
            .or_else(|| script.outage.clone())
    }

    /// Performs a call with the fault of the script.
    fn run<'a, T: Send + 'a>(
        &'a self,
        call: StoreCall,
        perform: impl FnOnce(&'a dyn Store) -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            let lost = |why: &str| StoreError::new(StoreErrorKind::Unreachable, why);
            let result = match self.take_fault(call) {
                None => perform(&*self.inner).await,
                Some(Fault::LostRequest) => Err(lost("the request was lost")),
                Some(Fault::LostReply) => match perform(&*self.inner).await {
                    Ok(_) => Err(lost("the reply was lost")),
                    Err(why) => Err(why),
                },
                Some(Fault::Delay(time)) => {
                    sleep(time).await;
                    perform(&*self.inner).await
                }
                Some(Fault::Error(kind)) => Err(kind.into()),
            };
            let failed = result.as_ref().err().is_some_and(StoreError::is_outage);
            let mut script = self.lock();
            script.failures = match failed {
                true => script.failures.saturating_add(1),
                false => 0,
            };
            drop(script);
            result
        })
    }
}

impl Store for FaultyStore {
    fn realm_info(&self) -> StoreFuture<'_, RealmInfo> {
        self.run(StoreCall::RealmInfo, |store| store.realm_info())
    }

    fn create_realm<'a>(&'a self, info: &'a RealmInfo) -> StoreFuture<'a, ()> {
        self.run(StoreCall::CreateRealm, |store| store.create_realm(info))
    }

    fn head(&self) -> StoreFuture<'_, ChangeId> {
        self.run(StoreCall::Head, |store| store.head())
    }

    fn snapshot(&self) -> StoreFuture<'_, Snapshot> {
        self.run(StoreCall::Snapshot, |store| store.snapshot())
    }

    fn restore<'a>(
        &'a self,
        info: &'a RealmInfo,
        snapshot: &'a Snapshot,
    ) -> StoreFuture<'a, ChangeId> {
        self.run(StoreCall::Restore, |store| store.restore(info, snapshot))
    }

    fn replace_key<'a>(
        &'a self,
        expected: ChangeId,
        info: &'a RealmInfo,
        snapshot: &'a Snapshot,
    ) -> StoreFuture<'a, ChangeId> {
        self.run(StoreCall::Restore, move |store| {
            store.replace_key(expected, info, snapshot)
        })
    }

    fn changes(&self, after: ChangeId, wait: Duration) -> StoreFuture<'_, ChangeBatch> {
        self.run(StoreCall::Changes, move |store| store.changes(after, wait))
    }

    fn write<'a>(
        &'a self,
        expected: ChangeId,
        changes: &'a [ChangeRequest],
    ) -> StoreFuture<'a, ChangeId> {
        self.run(StoreCall::Write, move |store| {
            store.write(expected, changes)
        })
    }

    fn allocate_users(&self, count: u32) -> StoreFuture<'_, u32> {
        self.run(StoreCall::AllocateUsers, move |store| {
            store.allocate_users(count)
        })
    }

    fn user(&self, id: u32) -> StoreFuture<'_, Option<SealedRecord>> {
        self.run(StoreCall::User, move |store| store.user(id))
    }

    fn user_by_name(&self, name: NameDigest) -> StoreFuture<'_, Option<(u32, SealedRecord)>> {
        self.run(StoreCall::User, move |store| store.user_by_name(name))
    }

    fn add_usage<'a>(&'a self, node: u32, batch: &'a UsageBatch) -> StoreFuture<'a, UsageReply> {
        self.run(StoreCall::AddUsage, move |store| {
            store.add_usage(node, batch)
        })
    }

    fn last_batch(&self, node: u32) -> StoreFuture<'_, u64> {
        self.run(StoreCall::Usage, move |store| store.last_batch(node))
    }

    fn usage<'a>(
        &'a self,
        period: &'a PeriodLabel,
        users: Option<&'a [u32]>,
    ) -> StoreFuture<'a, Vec<UserTotal>> {
        self.run(StoreCall::Usage, move |store| store.usage(period, users))
    }

    fn reset_usage<'a>(&'a self, user: u32, periods: &'a [PeriodLabel]) -> StoreFuture<'a, ()> {
        self.run(StoreCall::ResetUsage, move |store| {
            store.reset_usage(user, periods)
        })
    }

    fn claim_salts<'a>(&'a self, claims: &'a [SaltClaim]) -> StoreFuture<'a, Vec<bool>> {
        self.run(StoreCall::ClaimSalts, move |store| {
            store.claim_salts(claims)
        })
    }

    fn report_activity<'a>(
        &'a self,
        node: u32,
        users: &'a [UserActivity],
    ) -> StoreFuture<'a, Vec<ActivityTotal>> {
        self.run(StoreCall::ReportActivity, move |store| {
            store.report_activity(node, users)
        })
    }

    fn heartbeat<'a>(&'a self, status: &'a NodeStatus) -> StoreFuture<'a, Option<NodeStatus>> {
        self.run(StoreCall::Heartbeat, move |store| store.heartbeat(status))
    }

    fn nodes(&self) -> StoreFuture<'_, Vec<NodeEntry>> {
        self.run(StoreCall::Nodes, |store| store.nodes())
    }

    fn add_node<'a>(&'a self, record: &'a NodeRecord) -> StoreFuture<'a, u32> {
        self.run(StoreCall::NodeRecords, move |store| store.add_node(record))
    }

    fn put_node<'a>(&'a self, id: u32, record: &'a NodeRecord) -> StoreFuture<'a, ()> {
        self.run(StoreCall::NodeRecords, move |store| {
            store.put_node(id, record)
        })
    }

    fn remove_node(&self, id: u32) -> StoreFuture<'_, ()> {
        self.run(StoreCall::NodeRecords, move |store| store.remove_node(id))
    }

    fn time(&self) -> StoreFuture<'_, u64> {
        self.run(StoreCall::Time, |store| store.time())
    }

    fn put_join<'a>(&'a self, id: &'a str, sealed: &'a [u8], ttl: Duration) -> StoreFuture<'a, ()> {
        self.run(StoreCall::Join, move |store| {
            store.put_join(id, sealed, ttl)
        })
    }

    fn take_join<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Vec<u8>>> {
        self.run(StoreCall::Join, move |store| store.take_join(id))
    }

    fn audit<'a>(&'a self, text: &'a str) -> StoreFuture<'a, ()> {
        self.run(StoreCall::Audit, move |store| store.audit(text))
    }

    fn audit_log(&self, count: usize) -> StoreFuture<'_, Vec<AuditEntry>> {
        self.run(StoreCall::Audit, move |store| store.audit_log(count))
    }

    fn health(&self) -> StoreHealth {
        let failures = self.lock().failures;
        StoreHealth {
            is_up: failures == 0,
            failures,
            ..self.inner.health()
        }
    }
}
