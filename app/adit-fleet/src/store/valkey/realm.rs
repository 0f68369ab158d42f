//! The calls for users and changes.

use std::time::Duration;

use adit_net::system::SystemRng;
use adit_wire::Entropy;
use redis::{Value, cmd};

use super::ValkeyStore;
use super::script::Script;
use super::value::{
    array, bytes, field, id, list, number, number_or_zero, optional, pairs, text, unexpected,
};
use crate::change::{Change, ChangeBatch, ChangeId, ChangeOp, ChangeRequest, Snapshot};
use crate::key_text::to_hex;
use crate::sealed_record::{NameDigest, SealedRecord};
use crate::store::{MAX_LOG, RealmInfo, StoreError, StoreErrorKind};

/// Number of users and changes that one call reads or writes, approximately.
const PAGE: usize = 1000;
/// Time for which the temporary keys of a restoration are kept, in seconds.
const RESTORE_TIME: u64 = 600;

impl ValkeyStore {
    pub(super) async fn read_info(&self) -> Result<RealmInfo, StoreError> {
        let answer = self.call(cmd("GET").arg(self.0.keys.of("info"))).await?;
        let missing = || StoreError::new(StoreErrorKind::WrongRealm, format!("{:?}", self.0.realm));
        let text = bytes(optional(answer).ok_or_else(missing)?)?;
        serde_json::from_slice(&text).or_else(|_| unexpected())
    }

    pub(super) async fn create(&self, info: &RealmInfo) -> Result<(), StoreError> {
        let mut command = cmd("SET");
        command
            .arg(self.0.keys.of("info"))
            .arg(to_json(info)?)
            .arg("NX");
        match self.call(&command).await? {
            Value::Nil => Err(StoreErrorKind::RealmExists.into()),
            _ => Ok(()),
        }
    }

    pub(super) async fn read_head(&self) -> Result<ChangeId, StoreError> {
        let answer = self.call(cmd("GET").arg(self.0.keys.of("ver"))).await?;
        number_or_zero(answer).map(ChangeId)
    }

    pub(super) async fn read_snapshot(&self) -> Result<Snapshot, StoreError> {
        // Before the users: changes since are in the log, too.
        let version = self.read_head().await?;
        let mut users: Vec<(u32, SealedRecord)> = Vec::new();
        let mut cursor = 0;
        loop {
            let mut command = cmd("HSCAN");
            command
                .arg(self.0.keys.of("user"))
                .arg(cursor)
                .arg("COUNT")
                .arg(PAGE);
            let [next, page] = array(self.call(&command).await?)?;
            for (user, record) in pairs(page)? {
                users.push((id(user)?, SealedRecord::from_bytes(bytes(record)?)));
            }
            cursor = number(next)?;
            if cursor == 0 {
                break;
            }
        }
        // A user may come twice, and then the second record is the newer one.
        users.reverse();
        users.sort_by_key(|(id, _)| *id);
        users.dedup_by_key(|(id, _)| *id);
        Ok(Snapshot { version, users })
    }

    pub(super) async fn write_snapshot(
        &self,
        info: &RealmInfo,
        snapshot: &Snapshot,
        expected: Option<ChangeId>,
    ) -> Result<ChangeId, StoreError> {
        let keys = &self.0.keys;
        let mut nonce = [0; 8];
        SystemRng.fill(&mut nonce);
        let temporary = to_hex(&nonce);
        let new_user = keys.part("restore", format!("{temporary}:user"));
        let new_name = keys.part("restore", format!("{temporary}:name"));
        for page in snapshot.users.chunks(PAGE) {
            let (mut users, mut names) = (cmd("HSET"), cmd("HSET"));
            users.arg(&new_user);
            names.arg(&new_name);
            for (id, record) in page {
                let Some(NameDigest(digest)) = record.name_digest() else {
                    let why = format!("the record of user {id} is none");
                    return Err(StoreError::new(StoreErrorKind::Protocol, why));
                };
                users.arg(id).arg(record.as_bytes());
                names.arg(digest.as_slice()).arg(id);
            }
            for (key, command) in [(&new_user, users), (&new_name, names)] {
                self.call(&command).await?;
                self.call(cmd("EXPIRE").arg(key).arg(RESTORE_TIME)).await?;
            }
        }
        let numbers = snapshot
            .users
            .iter()
            .filter_map(|(_, record)| record.number());
        let newest = numbers.max().unwrap_or_default().max(snapshot.version);
        let last_user = snapshot.users.iter().map(|(id, _)| *id).max().unwrap_or(0);
        let description = to_json(info)?;
        let mut all = ["ver", "user", "name", "log", "info", "uid"]
            .map(|key| keys.of(key))
            .to_vec();
        all.extend([new_user, new_name]);
        let answer = self.run(Script::Restore, &all, |command| {
            command.arg(&description).arg(newest.0).arg(last_user);
            if let Some(expected) = expected {
                command.arg(expected.0);
            }
        });
        match answer.await? {
            Value::Array(conflict) => {
                let [_, head] = array(Value::Array(conflict))?;
                let head = ChangeId(number(head)?);
                Err(StoreErrorKind::Conflict { head }.into())
            }
            last => number(last).map(ChangeId),
        }
    }

    pub(super) async fn read_changes(
        &self,
        after: ChangeId,
        wait: Duration,
    ) -> Result<ChangeBatch, StoreError> {
        let head = self.read_head().await?;
        if head != after {
            return self.read_batch(after, head).await;
        }
        let Some(block) = u64::try_from(wait.as_millis())
            .ok()
            .filter(|block| *block > 0)
        else {
            return Ok(ChangeBatch {
                head,
                changes: Vec::new(),
            });
        };
        let answer = self
            .0
            .connector
            .wait(&self.read_log(after, Some(block)), wait)
            .await?;
        let changes = self.parse_log(answer)?;
        if let Some(last) = changes.last() {
            let head = last.number;
            return Ok(ChangeBatch { head, changes });
        }
        // The store may have been emptied meanwhile, or a change may have been written since the wait ended.
        let head = self.read_head().await?;
        self.read_batch(after, head).await
    }

    /// Returns what the log has after a change. `head` was read before: the log has that one, unless it was shortened.
    async fn read_batch(&self, after: ChangeId, head: ChangeId) -> Result<ChangeBatch, StoreError> {
        let changes = match head == after {
            true => Vec::new(),
            false => self.parse_log(self.call(&self.read_log(after, None)).await?)?,
        };
        Ok(ChangeBatch { head, changes })
    }

    fn read_log(&self, after: ChangeId, block: Option<u64>) -> redis::Cmd {
        let mut command = cmd("XREAD");
        command.arg("COUNT").arg(PAGE);
        if let Some(block) = block {
            command.arg("BLOCK").arg(block);
        }
        command
            .arg("STREAMS")
            .arg(self.0.keys.of("log"))
            .arg(format!("{}-0", after.0));
        command
    }

    fn parse_log(&self, answer: Value) -> Result<Vec<Change>, StoreError> {
        let mut changes = Vec::new();
        for (_, entries) in streams(answer)? {
            for entry in list(entries)? {
                let [entry_id, fields] = array(entry)?;
                let mut fields = pairs(fields)?;
                let entry_id = text(entry_id)?;
                let number = entry_id
                    .split('-')
                    .next()
                    .and_then(|number| number.parse().ok());
                let mut take = |name: &str| field(&mut fields, name.as_bytes());
                let op = take("op").map(text).transpose()?.unwrap_or_default();
                let target = take("id").map(id).transpose()?.unwrap_or_default();
                let sealed = take("rec").map(bytes).transpose()?.unwrap_or_default();
                changes.push(Change {
                    number: ChangeId(number.ok_or(StoreErrorKind::Protocol)?),
                    op: ChangeOp::from_name(&op),
                    target,
                    sealed: SealedRecord::from_bytes(sealed),
                });
            }
        }
        Ok(changes)
    }

    pub(super) async fn write_changes(
        &self,
        expected: ChangeId,
        changes: &[ChangeRequest],
    ) -> Result<ChangeId, StoreError> {
        for change in changes {
            if change.op == ChangeOp::Put && change.sealed.name_digest().is_none() {
                return Err(StoreError::new(
                    StoreErrorKind::Protocol,
                    "no sealed record",
                ));
            }
        }
        let keys = ["ver", "user", "name", "log", "info"].map(|key| self.0.keys.of(key));
        let answer = self.run(Script::Write, &keys, |command| {
            command.arg(expected.0).arg(MAX_LOG);
            for change in changes {
                let sealed = change.sealed.as_bytes();
                command.arg(change.op.name()).arg(change.target).arg(sealed);
            }
        });
        let mut answer = list(answer.await?)?.into_iter();
        let mut next = || answer.next().ok_or(StoreErrorKind::Protocol);
        match text(next()?)?.as_str() {
            "ok" => number(next()?).map(ChangeId),
            "conflict" => {
                let head = ChangeId(number(next()?)?);
                Err(StoreErrorKind::Conflict { head }.into())
            }
            "taken" => Err(StoreErrorKind::NameTaken.into()),
            "gone" => Err(StoreErrorKind::Gone.into()),
            "norealm" => Err(StoreErrorKind::WrongRealm.into()),
            _ => unexpected(),
        }
    }

    pub(super) async fn allocate(&self, count: u32) -> Result<u32, StoreError> {
        let answer = self
            .call(cmd("INCRBY").arg(self.0.keys.of("uid")).arg(count))
            .await?;
        let last = id(answer)?;
        let first = last
            .checked_sub(count)
            .and_then(|before| before.checked_add(1));
        first.ok_or_else(|| StoreErrorKind::Protocol.into())
    }

    pub(super) async fn read_user(&self, id: u32) -> Result<Option<SealedRecord>, StoreError> {
        let answer = self
            .call(cmd("HGET").arg(self.0.keys.of("user")).arg(id))
            .await?;
        let record = optional(answer).map(bytes).transpose()?;
        Ok(record.map(SealedRecord::from_bytes))
    }

    pub(super) async fn find_user(
        &self,
        NameDigest(digest): NameDigest,
    ) -> Result<Option<(u32, SealedRecord)>, StoreError> {
        let mut command = cmd("HGET");
        command.arg(self.0.keys.of("name")).arg(digest.as_slice());
        let Some(found) = optional(self.call(&command).await?) else {
            return Ok(None);
        };
        let id = id(found)?;
        Ok(self.read_user(id).await?.map(|record| (id, record)))
    }
}

/// Returns the streams of an answer to `XREAD`, which are a list of pairs in the older protocol.
fn streams(answer: Value) -> Result<Vec<(Value, Value)>, StoreError> {
    match answer {
        Value::Map(pairs) => Ok(pairs),
        answer => list(answer)?
            .into_iter()
            .map(|stream| array::<2>(stream).map(|[key, entries]| (key, entries)))
            .collect(),
    }
}

/// Returns a value as JSON.
pub(super) fn to_json<T: serde::Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).or_else(|_| unexpected())
}
