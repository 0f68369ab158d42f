//! The content of a realm in memory, without input and output: the memory store has one, and the embedded store one
//! that it can read from its file.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::{
    ActivityTotal, AuditEntry, DEVICE_WINDOW_MS, MAX_AUDIT, MAX_LOG, NODE_WINDOW_MS, RealmInfo,
    SALT_WINDOW, SESSIONS_WINDOW_MS, SaltClaim, StoreError, StoreErrorKind, UserActivity,
};
use crate::change::{Change, ChangeBatch, ChangeId, ChangeOp, ChangeRequest, Snapshot};
use crate::node_status::{NodeEntry, NodeRecord, NodeStatus};
use crate::period::PeriodLabel;
use crate::sealed_record::{NameDigest, SealedRecord};
use crate::usage_batch::{UsageBatch, UsageReply, UserTotal};

/// The content of a realm.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RealmState {
    info: Option<RealmInfo>,
    version: ChangeId,
    users: BTreeMap<u32, SealedRecord>,
    #[serde(skip)]
    names: HashMap<NameDigest, u32>,
    log: VecDeque<Change>,
    last_user: u32,
    /// Bytes from and to the client, by period and user.
    usage: BTreeMap<PeriodLabel, BTreeMap<u32, [u64; 2]>>,
    /// The last batch of each node.
    batches: BTreeMap<u32, u64>,
    nodes: BTreeMap<u32, NodeRecord>,
    last_node: u32,
    /// The time until which they count, and the reports.
    reports: BTreeMap<u32, (u64, NodeStatus)>,
    joins: BTreeMap<String, (u64, Vec<u8>)>,
    audit: VecDeque<AuditEntry>,
    #[serde(skip)]
    salts: BTreeMap<u64, BTreeSet<[u8; 8]>>,
    /// By user and device: the time when it was last seen.
    #[serde(skip)]
    devices: HashMap<u32, BTreeMap<[u8; 8], u64>>,
    /// By user and node: sessions, and the time until which they count.
    #[serde(skip)]
    sessions: HashMap<u32, BTreeMap<u32, (u32, u64)>>,
}

/// A call that changes what is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mutation {
    CreateRealm(RealmInfo),
    Restore(RealmInfo, Snapshot),
    ReplaceKey(ChangeId, RealmInfo, Snapshot),
    Write(ChangeId, Vec<ChangeRequest>),
    AllocateUsers(u32),
    AddUsage(u32, UsageBatch),
    ResetUsage(u32, Vec<PeriodLabel>),
    Heartbeat(Box<NodeStatus>),
    AddNode(NodeRecord),
    PutNode(u32, NodeRecord),
    RemoveNode(u32),
    PutJoin(String, Vec<u8>, u64),
    TakeJoin(String),
    Audit(String),
}

/// The result of a [`Mutation`].
#[derive(Debug)]
pub(super) enum Outcome {
    Done,
    Head(ChangeId),
    Number(u32),
    Usage(UsageReply),
    Report(Option<Box<NodeStatus>>),
    Join(Option<Vec<u8>>),
}

impl RealmState {
    /// Completes a state that was read from a file.
    pub(super) fn index_names(&mut self) {
        let digests = self.users.iter();
        let names = digests.filter_map(|(id, record)| Some((record.name_digest()?, *id)));
        self.names = names.collect();
    }

    /// Takes over from `other` what is not kept.
    pub(super) fn with_volatile_of(self, other: Self) -> Self {
        Self {
            salts: other.salts,
            devices: other.devices,
            sessions: other.sessions,
            ..self
        }
    }

    /// Performs a mutation at a time in milliseconds since 1970. It depends on its arguments alone. Nothing changes
    /// after an error.
    pub(super) fn apply(&mut self, now: u64, mutation: &Mutation) -> Result<Outcome, StoreError> {
        match mutation {
            Mutation::CreateRealm(info) => {
                if self.info.is_some() {
                    return Err(StoreErrorKind::RealmExists.into());
                }
                self.info = Some(info.clone());
                Ok(Outcome::Done)
            }
            Mutation::Restore(info, snapshot) => {
                check_records(snapshot)?;
                Ok(Outcome::Head(self.restore(info, snapshot)))
            }
            Mutation::ReplaceKey(expected, info, snapshot) => {
                check_records(snapshot)?;
                match self.version == *expected {
                    true => Ok(Outcome::Head(self.restore(info, snapshot))),
                    false => Err(StoreErrorKind::Conflict { head: self.version }.into()),
                }
            }
            Mutation::Write(expected, changes) => self.write(*expected, changes),
            Mutation::AllocateUsers(count) => {
                let first = self.last_user.checked_add(1);
                let last = self.last_user.checked_add(*count);
                let (Some(first), Some(last)) = (first, last) else {
                    let why = "no numbers of users are left";
                    return Err(StoreError::new(StoreErrorKind::Protocol, why));
                };
                self.last_user = last;
                Ok(Outcome::Number(first))
            }
            Mutation::AddUsage(node, batch) => Ok(Outcome::Usage(self.add_usage(*node, batch))),
            Mutation::ResetUsage(user, periods) => {
                for period in periods {
                    if let Some(users) = self.usage.get_mut(period) {
                        users.remove(user);
                    }
                }
                Ok(Outcome::Done)
            }
            Mutation::Heartbeat(status) => {
                // After a loss of the records: a node that runs is a node.
                self.last_node = self.last_node.max(status.id);
                self.nodes.entry(status.id).or_insert_with(|| NodeRecord {
                    name: status.name.clone(),
                    ..NodeRecord::default()
                });
                let report = (now.saturating_add(NODE_WINDOW_MS), (**status).clone());
                let previous = self.reports.insert(status.id, report);
                let previous = previous.filter(|(until, _)| *until > now);
                Ok(Outcome::Report(
                    previous.map(|(_, status)| Box::new(status)),
                ))
            }
            Mutation::AddNode(record) => {
                self.check_node_name(&record.name, None)?;
                self.last_node = self.last_node.saturating_add(1);
                self.nodes.insert(self.last_node, record.clone());
                Ok(Outcome::Number(self.last_node))
            }
            Mutation::PutNode(id, record) => {
                if !self.nodes.contains_key(id) {
                    return Err(StoreErrorKind::Gone.into());
                }
                self.check_node_name(&record.name, Some(*id))?;
                self.nodes.insert(*id, record.clone());
                Ok(Outcome::Done)
            }
            Mutation::RemoveNode(id) => {
                self.nodes.remove(id).ok_or(StoreErrorKind::Gone)?;
                self.reports.remove(id);
                Ok(Outcome::Done)
            }
            Mutation::PutJoin(id, sealed, until) => {
                self.joins.retain(|_, (until, _)| *until > now);
                self.joins.insert(id.clone(), (*until, sealed.clone()));
                Ok(Outcome::Done)
            }
            Mutation::TakeJoin(id) => {
                let join = self.joins.remove(id).filter(|(until, _)| *until > now);
                Ok(Outcome::Join(join.map(|(_, sealed)| sealed)))
            }
            Mutation::Audit(text) => {
                self.audit.push_front(AuditEntry {
                    unix_ms: now,
                    text: text.clone(),
                });
                self.audit.truncate(MAX_AUDIT);
                Ok(Outcome::Done)
            }
        }
    }

    fn restore(&mut self, info: &RealmInfo, snapshot: &Snapshot) -> ChangeId {
        let numbers = snapshot
            .users
            .iter()
            .filter_map(|(_, record)| record.number());
        let newest = numbers.max().unwrap_or_default();
        self.info = Some(info.clone());
        self.users = snapshot.users.iter().cloned().collect();
        self.index_names();
        let last_user = self.users.last_key_value().map_or(0, |(id, _)| *id);
        self.last_user = self.last_user.max(last_user);
        self.version = self.version.max(snapshot.version).max(newest).next();
        self.log.clear();
        self.log.push_back(Change {
            number: self.version,
            op: Some(ChangeOp::Restored),
            target: 0,
            sealed: SealedRecord::from_bytes(Vec::new()),
        });
        self.version
    }

    fn write(
        &mut self,
        expected: ChangeId,
        changes: &[ChangeRequest],
    ) -> Result<Outcome, StoreError> {
        if self.info.is_none() {
            return Err(StoreErrorKind::WrongRealm.into());
        }
        if expected != self.version {
            return Err(StoreErrorKind::Conflict { head: self.version }.into());
        }
        self.check_changes(changes)?;
        for change in changes {
            self.version = self.version.next();
            self.log.push_back(Change {
                number: self.version,
                op: Some(change.op),
                target: change.target,
                sealed: change.sealed.clone(),
            });
            let old = match change.op {
                ChangeOp::Put => self.users.insert(change.target, change.sealed.clone()),
                ChangeOp::Delete => self.users.remove(&change.target),
                ChangeOp::Kick | ChangeOp::Node | ChangeOp::Policy | ChangeOp::Restored => None,
            };
            if let Some(digest) = old.and_then(|old| old.name_digest()) {
                self.names.remove(&digest);
            }
            if let Some(digest) = put_digest(change) {
                self.names.insert(digest, change.target);
            }
        }
        let excess = self.log.len().saturating_sub(MAX_LOG);
        self.log.drain(..excess);
        Ok(Outcome::Head(self.version))
    }

    /// Checks all changes before the first is made: names by which users will exist after those before.
    fn check_changes(&self, changes: &[ChangeRequest]) -> Result<(), StoreError> {
        // The users that the changes so far leave under a name and with a number, where that differs from the state.
        let mut names: HashMap<NameDigest, Option<u32>> = HashMap::new();
        let mut users: HashMap<u32, Option<NameDigest>> = HashMap::new();
        for change in changes {
            let target = change.target;
            let current = users.get(&target).copied().unwrap_or_else(|| {
                let record = self.users.get(&target);
                record.and_then(SealedRecord::name_digest)
            });
            match change.op {
                ChangeOp::Put => {
                    let Some(digest) = put_digest(change) else {
                        let why = "no sealed record";
                        return Err(StoreError::new(StoreErrorKind::Protocol, why));
                    };
                    let known = self.names.get(&digest).copied();
                    let owner = names.get(&digest).copied().unwrap_or(known);
                    if owner.is_some_and(|owner| owner != target) {
                        return Err(StoreErrorKind::NameTaken.into());
                    }
                    if let Some(current) = current {
                        names.insert(current, None);
                    }
                    names.insert(digest, Some(target));
                    users.insert(target, Some(digest));
                }
                ChangeOp::Delete => {
                    let current = current.ok_or(StoreErrorKind::Gone)?;
                    names.insert(current, None);
                    users.insert(target, None);
                }
                ChangeOp::Kick | ChangeOp::Node | ChangeOp::Policy | ChangeOp::Restored => {}
            }
        }
        Ok(())
    }

    fn add_usage(&mut self, node: u32, batch: &UsageBatch) -> UsageReply {
        let last = self.batches.entry(node).or_default();
        let applied = batch.number > *last;
        if applied {
            *last = batch.number;
        }
        let last = *last;
        let totals = batch.entries.iter().map(|entry| {
            let users = self.usage.entry(entry.period.clone()).or_default();
            let sums = users.entry(entry.user).or_default();
            if applied {
                for (sum, more) in sums.iter_mut().zip([entry.up, entry.down]) {
                    *sum = sum.saturating_add(more);
                }
            }
            to_total(entry.user, &entry.period, *sums)
        });
        let totals = totals.collect();
        UsageReply {
            applied,
            last,
            nodes: u32::try_from(self.nodes.len()).unwrap_or(u32::MAX),
            totals,
        }
    }

    fn check_node_name(&self, name: &str, except: Option<u32>) -> Result<(), StoreError> {
        let mut others = self.nodes.iter().filter(|(id, _)| Some(**id) != except);
        match others.any(|(_, node)| node.name == name) {
            true => Err(StoreErrorKind::NameTaken.into()),
            false => Ok(()),
        }
    }

    pub(super) fn info(&self) -> Result<RealmInfo, StoreError> {
        self.info
            .clone()
            .ok_or_else(|| StoreErrorKind::WrongRealm.into())
    }

    /// Returns the number of the last change.
    #[must_use]
    pub const fn version(&self) -> ChangeId {
        self.version
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let users = self.users.iter();
        Snapshot {
            version: self.version,
            users: users.map(|(id, record)| (*id, record.clone())).collect(),
        }
    }

    pub(super) fn changes(&self, after: ChangeId) -> ChangeBatch {
        let first = self.log.partition_point(|change| change.number <= after);
        ChangeBatch {
            head: self.version,
            changes: self.log.range(first..).take(1000).cloned().collect(),
        }
    }

    pub(super) fn user(&self, id: u32) -> Option<SealedRecord> {
        self.users.get(&id).cloned()
    }

    pub(super) fn user_by_name(&self, name: NameDigest) -> Option<(u32, SealedRecord)> {
        let id = *self.names.get(&name)?;
        Some((id, self.user(id)?))
    }

    pub(super) fn last_batch(&self, node: u32) -> u64 {
        self.batches.get(&node).copied().unwrap_or_default()
    }

    pub(super) fn usage(&self, period: &PeriodLabel, users: Option<&[u32]>) -> Vec<UserTotal> {
        let none = BTreeMap::new();
        let all = self.usage.get(period).unwrap_or(&none);
        let of = |id: &u32| to_total(*id, period, all.get(id).copied().unwrap_or_default());
        match users {
            Some(users) => users.iter().map(of).collect(),
            None => all.keys().map(of).collect(),
        }
    }

    pub(super) fn nodes(&self, now: u64) -> Vec<NodeEntry> {
        let entry = |(id, record): (&u32, &NodeRecord)| {
            let report = self.reports.get(id).filter(|(until, _)| *until > now);
            NodeEntry {
                id: *id,
                record: record.clone(),
                status: report.map(|(_, status)| status.clone()),
            }
        };
        self.nodes.iter().map(entry).collect()
    }

    pub(super) fn audit_log(&self, count: usize) -> Vec<AuditEntry> {
        self.audit.iter().take(count).cloned().collect()
    }

    pub(super) fn claim_salts(&mut self, now: u64, claims: &[SaltClaim]) -> Vec<bool> {
        let oldest = (now / 1000).saturating_sub(SALT_WINDOW) / 60;
        self.salts.retain(|bucket, _| *bucket >= oldest);
        let mut claim = |claim: &SaltClaim| {
            let bucket = self.salts.entry(claim.bucket).or_default();
            bucket.insert(claim.digest)
        };
        claims.iter().map(&mut claim).collect()
    }

    pub(super) fn report_activity(
        &mut self,
        now: u64,
        node: u32,
        users: &[UserActivity],
    ) -> Vec<ActivityTotal> {
        let report = |activity: &UserActivity| {
            let sessions = self.sessions.entry(activity.user).or_default();
            sessions.insert(
                node,
                (activity.sessions, now.saturating_add(SESSIONS_WINDOW_MS)),
            );
            sessions.retain(|_, (count, until)| *count > 0 && *until > now);
            let devices = self.devices.entry(activity.user).or_default();
            devices.retain(|device, seen| {
                seen.saturating_add(DEVICE_WINDOW_MS) > now && !activity.gone.contains(device)
            });
            let mut refused = Vec::new();
            for device in &activity.devices {
                let is_full = activity
                    .max_devices
                    .is_some_and(|max| count(devices.len()) >= max);
                if is_full && !devices.contains_key(device) {
                    refused.push(*device);
                } else {
                    devices.insert(*device, now);
                }
            }
            // The limit was lowered.
            for device in activity.devices.iter().rev() {
                let is_over = activity
                    .max_devices
                    .is_some_and(|max| count(devices.len()) > max);
                if is_over && devices.remove(device).is_some() {
                    refused.push(*device);
                }
            }
            let total = ActivityTotal {
                user: activity.user,
                nodes: count(sessions.len()),
                sessions: sessions.values().map(|(count, _)| u64::from(*count)).sum(),
                devices: count(devices.len()),
                refused,
            };
            if sessions.is_empty() {
                self.sessions.remove(&activity.user);
            }
            if total.devices == 0 {
                self.devices.remove(&activity.user);
            }
            total
        };
        users.iter().map(report).collect()
    }

    /// Changes the sealed record of a user as an intruder in the store could, without a trace in the log.
    pub fn tamper(&mut self, id: u32, record: Option<SealedRecord>) {
        match record {
            Some(record) => self.users.insert(id, record),
            None => self.users.remove(&id),
        };
    }

    /// Changes the log as an intruder in the store could.
    pub fn tamper_log(&mut self, change: impl FnOnce(&mut VecDeque<Change>)) {
        change(&mut self.log);
    }

    /// Sets the number of the last change, as an intruder in the store could.
    pub const fn tamper_version(&mut self, version: ChangeId) {
        self.version = version;
    }
}

fn to_total(user: u32, period: &PeriodLabel, [up, down]: [u64; 2]) -> UserTotal {
    UserTotal {
        user,
        period: period.clone(),
        up,
        down,
    }
}

/// Checks that the users of a snapshot have records.
fn check_records(snapshot: &Snapshot) -> Result<(), StoreError> {
    let mut records = snapshot.users.iter();
    match records.find(|(_, record)| record.number().is_none()) {
        Some((id, _)) => {
            let why = format!("the record of user {id} is none");
            Err(StoreError::new(StoreErrorKind::Protocol, why))
        }
        None => Ok(()),
    }
}

fn put_digest(change: &ChangeRequest) -> Option<NameDigest> {
    match change.op {
        ChangeOp::Put => change.sealed.name_digest(),
        _ => None,
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
