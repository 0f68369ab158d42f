//! A store whose content is a [`RealmState`] in this process: the calls of the trait, for the memory store and the
//! embedded store.

use std::fmt;
use std::future::ready;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::state::{Mutation, Outcome, RealmState};
use super::{
    ActivityTotal, AuditEntry, RealmInfo, SaltClaim, Store, StoreError, StoreErrorKind,
    StoreFuture, StoreHealth, UserActivity,
};
use crate::change::{ChangeBatch, ChangeId, ChangeRequest, Snapshot};
use crate::node_status::{NodeEntry, NodeRecord, NodeStatus};
use crate::period::PeriodLabel;
use crate::sealed_record::{NameDigest, SealedRecord};
use crate::usage_batch::{UsageBatch, UsageReply, UserTotal};

/// The place of a [`RealmState`].
pub(super) trait StateHolder: fmt::Debug + Send + Sync {
    /// Returns the clock, in milliseconds since 1970.
    fn now(&self) -> u64;

    /// Returns the name of the realm that the store was opened for; `None` for any.
    fn realm(&self) -> Option<&str> {
        None
    }

    /// Reads the state, or changes what is not kept.
    fn with_state<T>(&self, read: impl FnOnce(&mut RealmState) -> T) -> Result<T, StoreError>;

    /// Performs a mutation, and keeps it.
    fn mutate(&self, mutation: Mutation) -> Result<Outcome, StoreError>;

    /// Returns a future that ends when the state may have changed after this function was called.
    fn changed(&self) -> impl Future<Output = ()> + Send;

    /// Returns the state of the store.
    fn health(&self) -> StoreHealth;
}

/// The error of an outcome that does not belong to the mutation.
fn mismatch<T>() -> Result<T, StoreError> {
    Err(StoreErrorKind::Protocol.into())
}

fn done(outcome: Result<Outcome, StoreError>) -> Result<(), StoreError> {
    outcome.map(drop)
}

fn head(outcome: Result<Outcome, StoreError>) -> Result<ChangeId, StoreError> {
    match outcome? {
        Outcome::Head(head) => Ok(head),
        _ => mismatch(),
    }
}

fn number(outcome: Result<Outcome, StoreError>) -> Result<u32, StoreError> {
    match outcome? {
        Outcome::Number(number) => Ok(number),
        _ => mismatch(),
    }
}

/// Returns a future that is ready.
fn now<'a, T: Send + 'a>(result: Result<T, StoreError>) -> StoreFuture<'a, T> {
    Box::pin(ready(result))
}

/// Waits for a change of the version beyond `after`, or for the end of the time.
async fn wait_for_changes<H: StateHolder>(
    holder: &H,
    after: ChangeId,
    wait: Duration,
) -> Result<ChangeBatch, StoreError> {
    let deadline = Instant::now() + wait;
    loop {
        // Before the state is read, so that no change is missed.
        let changed = holder.changed();
        let batch = holder.with_state(|state| state.changes(after))?;
        if batch.head != after || Instant::now() >= deadline {
            return Ok(batch);
        }
        // The end of the time is noticed above.
        let _ = timeout_at(deadline, changed).await;
    }
}

impl<H: StateHolder> Store for H {
    fn realm_info(&self) -> StoreFuture<'_, RealmInfo> {
        let info = self.with_state(|state| state.info()).and_then(|info| info);
        now(info.and_then(|info| match self.realm() {
            Some(realm) if realm != info.realm => {
                let why = format!("it has {:?}", info.realm);
                Err(StoreError::new(StoreErrorKind::WrongRealm, why))
            }
            _ => Ok(info),
        }))
    }

    fn create_realm<'a>(&'a self, info: &'a RealmInfo) -> StoreFuture<'a, ()> {
        now(done(self.mutate(Mutation::CreateRealm(info.clone()))))
    }

    fn head(&self) -> StoreFuture<'_, ChangeId> {
        now(self.with_state(|state| state.version()))
    }

    fn snapshot(&self) -> StoreFuture<'_, Snapshot> {
        now(self.with_state(|state| state.snapshot()))
    }

    fn restore<'a>(
        &'a self,
        info: &'a RealmInfo,
        snapshot: &'a Snapshot,
    ) -> StoreFuture<'a, ChangeId> {
        let mutation = Mutation::Restore(info.clone(), snapshot.clone());
        now(head(self.mutate(mutation)))
    }

    fn replace_key<'a>(
        &'a self,
        expected: ChangeId,
        info: &'a RealmInfo,
        snapshot: &'a Snapshot,
    ) -> StoreFuture<'a, ChangeId> {
        let mutation = Mutation::ReplaceKey(expected, info.clone(), snapshot.clone());
        now(head(self.mutate(mutation)))
    }

    fn changes(&self, after: ChangeId, wait: Duration) -> StoreFuture<'_, ChangeBatch> {
        Box::pin(wait_for_changes(self, after, wait))
    }

    fn write<'a>(
        &'a self,
        expected: ChangeId,
        changes: &'a [ChangeRequest],
    ) -> StoreFuture<'a, ChangeId> {
        now(head(
            self.mutate(Mutation::Write(expected, changes.to_vec())),
        ))
    }

    fn allocate_users(&self, count: u32) -> StoreFuture<'_, u32> {
        now(number(self.mutate(Mutation::AllocateUsers(count))))
    }

    fn user(&self, id: u32) -> StoreFuture<'_, Option<SealedRecord>> {
        now(self.with_state(|state| state.user(id)))
    }

    fn user_by_name(&self, name: NameDigest) -> StoreFuture<'_, Option<(u32, SealedRecord)>> {
        now(self.with_state(|state| state.user_by_name(name)))
    }

    fn add_usage<'a>(&'a self, node: u32, batch: &'a UsageBatch) -> StoreFuture<'a, UsageReply> {
        let outcome = self.mutate(Mutation::AddUsage(node, batch.clone()));
        now(outcome.and_then(|outcome| match outcome {
            Outcome::Usage(reply) => Ok(reply),
            _ => mismatch(),
        }))
    }

    fn last_batch(&self, node: u32) -> StoreFuture<'_, u64> {
        now(self.with_state(|state| state.last_batch(node)))
    }

    fn usage<'a>(
        &'a self,
        period: &'a PeriodLabel,
        users: Option<&'a [u32]>,
    ) -> StoreFuture<'a, Vec<UserTotal>> {
        now(self.with_state(|state| state.usage(period, users)))
    }

    fn reset_usage<'a>(&'a self, user: u32, periods: &'a [PeriodLabel]) -> StoreFuture<'a, ()> {
        now(done(
            self.mutate(Mutation::ResetUsage(user, periods.to_vec())),
        ))
    }

    fn claim_salts<'a>(&'a self, claims: &'a [SaltClaim]) -> StoreFuture<'a, Vec<bool>> {
        let time = self.now();
        now(self.with_state(|state| state.claim_salts(time, claims)))
    }

    fn report_activity<'a>(
        &'a self,
        node: u32,
        users: &'a [UserActivity],
    ) -> StoreFuture<'a, Vec<ActivityTotal>> {
        let time = self.now();
        now(self.with_state(|state| state.report_activity(time, node, users)))
    }

    fn heartbeat<'a>(&'a self, status: &'a NodeStatus) -> StoreFuture<'a, Option<NodeStatus>> {
        let outcome = self.mutate(Mutation::Heartbeat(Box::new(status.clone())));
        now(outcome.and_then(|outcome| match outcome {
            Outcome::Report(previous) => Ok(previous.map(|status| *status)),
            _ => mismatch(),
        }))
    }

    fn nodes(&self) -> StoreFuture<'_, Vec<NodeEntry>> {
        let time = self.now();
        now(self.with_state(|state| state.nodes(time)))
    }

    fn add_node<'a>(&'a self, record: &'a NodeRecord) -> StoreFuture<'a, u32> {
        now(number(self.mutate(Mutation::AddNode(record.clone()))))
    }

    fn put_node<'a>(&'a self, id: u32, record: &'a NodeRecord) -> StoreFuture<'a, ()> {
        now(done(self.mutate(Mutation::PutNode(id, record.clone()))))
    }

    fn remove_node(&self, id: u32) -> StoreFuture<'_, ()> {
        now(done(self.mutate(Mutation::RemoveNode(id))))
    }

    fn time(&self) -> StoreFuture<'_, u64> {
        now(Ok(StateHolder::now(self)))
    }

    fn put_join<'a>(&'a self, id: &'a str, sealed: &'a [u8], ttl: Duration) -> StoreFuture<'a, ()> {
        let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let until = self.now().saturating_add(ttl);
        let mutation = Mutation::PutJoin(id.to_owned(), sealed.to_vec(), until);
        now(done(self.mutate(mutation)))
    }

    fn take_join<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Vec<u8>>> {
        let outcome = self.mutate(Mutation::TakeJoin(id.to_owned()));
        now(outcome.and_then(|outcome| match outcome {
            Outcome::Join(sealed) => Ok(sealed),
            _ => mismatch(),
        }))
    }

    fn audit<'a>(&'a self, text: &'a str) -> StoreFuture<'a, ()> {
        now(done(self.mutate(Mutation::Audit(text.to_owned()))))
    }

    fn audit_log(&self, count: usize) -> StoreFuture<'_, Vec<AuditEntry>> {
        now(self.with_state(|state| state.audit_log(count)))
    }

    fn health(&self) -> StoreHealth {
        StateHolder::health(self)
    }
}
