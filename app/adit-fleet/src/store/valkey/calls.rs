//! The calls for usage, salts, devices, nodes, tokens and the audit log.

use std::time::Duration;

use redis::{Value, cmd};

use super::ValkeyStore;
use super::realm::to_json;
use super::script::Script;
use super::value::{
    array, bytes, field, id, list, number, number_or_zero, optional, pairs, text, unexpected,
};
use crate::node_status::{NodeEntry, NodeRecord, NodeStatus};
use crate::period::PeriodLabel;
use crate::store::{
    ActivityTotal, AuditEntry, DEVICE_WINDOW_MS, MAX_AUDIT, NODE_WINDOW_MS, SALT_WINDOW,
    SESSIONS_WINDOW_MS, SaltClaim, StoreError, StoreErrorKind, UserActivity,
};
use crate::usage_batch::{UsageBatch, UsageReply, UserTotal};

/// Maximum number of bytes that one entry of a batch adds: the server's counters end at 2⁶³.
const MAX_ADDED: u64 = 1 << 52;

impl ValkeyStore {
    pub(super) async fn write_usage(
        &self,
        node: u32,
        batch: &UsageBatch,
    ) -> Result<UsageReply, StoreError> {
        let mut periods: Vec<&PeriodLabel> = Vec::new();
        let mut entries = Vec::with_capacity(batch.entries.len());
        for entry in &batch.entries {
            let known = periods.iter().position(|period| **period == entry.period);
            let index = known.unwrap_or_else(|| {
                periods.push(&entry.period);
                periods.len() - 1
            });
            entries.push((index + 1, entry));
        }
        let mut keys = ["seq", "nodes"].map(|name| self.0.keys.of(name)).to_vec();
        for period in &periods {
            keys.extend(["use", "usd"].map(|name| self.0.keys.part(name, period)));
        }
        let answer = self.run(Script::Usage, &keys, |command| {
            command.arg(node).arg(batch.number).arg(periods.len());
            for period in &periods {
                command.arg(period.retention().unwrap_or(0));
            }
            for (period, entry) in &entries {
                let sum = entry.up.saturating_add(entry.down).min(MAX_ADDED);
                command
                    .arg(*period)
                    .arg(entry.user)
                    .arg(entry.up.min(sum))
                    .arg(sum);
            }
        });
        let mut numbers = list(answer.await?)?.into_iter().map(number);
        let mut next = || numbers.next().unwrap_or_else(unexpected);
        let (applied, last, nodes) = (next()? == 1, next()?, next()?);
        let total = |entry: &crate::usage_batch::UserUsage| {
            let (sum, up) = (next()?, next()?);
            Ok(to_total(entry.user, &entry.period, sum, up))
        };
        let totals = batch
            .entries
            .iter()
            .map(total)
            .collect::<Result<_, StoreError>>()?;
        Ok(UsageReply {
            applied,
            last,
            nodes: u32::try_from(nodes).unwrap_or(u32::MAX),
            totals,
        })
    }

    pub(super) async fn read_last_batch(&self, node: u32) -> Result<u64, StoreError> {
        number_or_zero(
            self.call(cmd("HGET").arg(self.0.keys.of("seq")).arg(node))
                .await?,
        )
    }

    pub(super) async fn read_usage(
        &self,
        period: &PeriodLabel,
        users: Option<&[u32]>,
    ) -> Result<Vec<UserTotal>, StoreError> {
        let [totals, directions] = ["use", "usd"].map(|name| self.0.keys.part(name, period));
        let Some(users) = users else {
            let all = self.call(cmd("HGETALL").arg(totals)).await?;
            let mut sums = Vec::new();
            for (user, sum) in pairs(all)? {
                sums.push((id(user)?, number(sum)?));
            }
            let users: Vec<u32> = sums.iter().map(|(user, _)| *user).collect();
            let ups = self.read_directions(&directions, &users).await?;
            let all = sums.into_iter().zip(ups);
            return Ok(all
                .map(|((user, sum), up)| to_total(user, period, sum, up))
                .collect());
        };
        if users.is_empty() {
            return Ok(Vec::new());
        }
        let sums = self.call(cmd("HMGET").arg(totals).arg(users)).await?;
        let ups = self.read_directions(&directions, users).await?;
        let mut all = Vec::with_capacity(users.len());
        for ((user, sum), up) in users.iter().zip(list(sums)?).zip(ups) {
            all.push(to_total(*user, period, number_or_zero(sum)?, up));
        }
        Ok(all)
    }

    /// Returns the bytes from the clients of `users`.
    async fn read_directions(&self, key: &str, users: &[u32]) -> Result<Vec<u64>, StoreError> {
        if users.is_empty() {
            return Ok(Vec::new());
        }
        let fields: Vec<String> = users.iter().map(|user| format!("{user}.u")).collect();
        let ups = self.call(cmd("HMGET").arg(key).arg(fields)).await?;
        list(ups)?.into_iter().map(number_or_zero).collect()
    }

    pub(super) async fn delete_usage(
        &self,
        user: u32,
        periods: &[PeriodLabel],
    ) -> Result<(), StoreError> {
        for period in periods {
            let keys = &self.0.keys;
            self.call(cmd("HDEL").arg(keys.part("use", period)).arg(user))
                .await?;
            let field = format!("{user}.u");
            self.call(cmd("HDEL").arg(keys.part("usd", period)).arg(field))
                .await?;
        }
        Ok(())
    }

    pub(super) async fn write_salts(&self, claims: &[SaltClaim]) -> Result<Vec<bool>, StoreError> {
        let mut buckets: Vec<u64> = claims.iter().map(|claim| claim.bucket).collect();
        buckets.sort_unstable();
        buckets.dedup();
        let keys: Vec<String> = buckets
            .iter()
            .map(|bucket| self.0.keys.part("salt", bucket))
            .collect();
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let answer = self.run(Script::Salts, &keys, |command| {
            command.arg(SALT_WINDOW);
            for claim in claims {
                let index = buckets.partition_point(|bucket| *bucket < claim.bucket);
                command.arg(index + 1).arg(claim.digest.as_slice());
            }
        });
        let new = list(answer.await?)?
            .into_iter()
            .map(|added| Ok(number(added)? == 1));
        let new: Vec<bool> = new.collect::<Result<_, StoreError>>()?;
        match new.len() == claims.len() {
            true => Ok(new),
            false => unexpected(),
        }
    }

    pub(super) async fn write_activity(
        &self,
        node: u32,
        users: &[UserActivity],
    ) -> Result<Vec<ActivityTotal>, StoreError> {
        if users.is_empty() {
            return Ok(Vec::new());
        }
        let key = |activity: &UserActivity| {
            ["sess", "dev"].map(|name| self.0.keys.part(name, activity.user))
        };
        let keys: Vec<String> = users.iter().flat_map(key).collect();
        let answer = self.run(Script::Activity, &keys, |command| {
            command
                .arg(node)
                .arg(SESSIONS_WINDOW_MS)
                .arg(DEVICE_WINDOW_MS);
            for activity in users {
                let limit = activity.max_devices.map_or(-1, i64::from);
                command
                    .arg(activity.sessions)
                    .arg(limit)
                    .arg(activity.devices.len())
                    .arg(activity.gone.len());
                for device in activity.devices.iter().chain(&activity.gone) {
                    command.arg(device.as_slice());
                }
            }
        });
        let answers = list(answer.await?)?;
        if answers.len() != users.len() {
            return unexpected();
        }
        let total = |(activity, answer): (&UserActivity, Value)| {
            let [nodes, sessions, devices, refused] = array(answer)?;
            let device = |device| bytes(device)?.try_into().or_else(|_| unexpected());
            Ok(ActivityTotal {
                user: activity.user,
                nodes: id(nodes)?,
                sessions: number(sessions)?,
                devices: id(devices)?,
                refused: list(refused)?
                    .into_iter()
                    .map(device)
                    .collect::<Result<_, _>>()?,
            })
        };
        users.iter().zip(answers).map(total).collect()
    }

    pub(super) async fn write_status(
        &self,
        status: &NodeStatus,
    ) -> Result<Option<NodeStatus>, StoreError> {
        let keys = &self.0.keys;
        let keys = [
            keys.part("node", status.id),
            keys.of("nodes"),
            keys.of("nid"),
        ];
        let report = to_json(status)?;
        let record = to_json(&NodeRecord {
            name: status.name.clone(),
            ..NodeRecord::default()
        })?;
        let answer = self.run(Script::Heartbeat, &keys, |command| {
            command
                .arg(status.id)
                .arg(NODE_WINDOW_MS / 1000)
                .arg(&report)
                .arg(&record);
        });
        parse_status(answer.await?)
    }

    pub(super) async fn read_nodes(&self) -> Result<Vec<NodeEntry>, StoreError> {
        let records = self
            .call(cmd("HGETALL").arg(self.0.keys.of("nodes")))
            .await?;
        let mut nodes = Vec::new();
        for (node, record) in pairs(records)? {
            let record = serde_json::from_slice(&bytes(record)?).or_else(|_| unexpected())?;
            nodes.push(NodeEntry {
                id: id(node)?,
                record,
                status: None,
            });
        }
        if nodes.is_empty() {
            return Ok(nodes);
        }
        nodes.sort_by_key(|node| node.id);
        let mut command = cmd("MGET");
        for node in &nodes {
            command.arg(self.0.keys.part("node", node.id));
        }
        let reports = list(self.call(&command).await?)?;
        for (node, report) in nodes.iter_mut().zip(reports) {
            node.status = parse_status(report)?;
        }
        Ok(nodes)
    }

    pub(super) async fn create_node(&self, record: &NodeRecord) -> Result<u32, StoreError> {
        let keys = ["nid", "nodes"].map(|key| self.0.keys.of(key));
        let text = to_json(record)?;
        let answer = self.run(Script::AddNode, &keys, |command| {
            command.arg(&record.name).arg(&text);
        });
        let mut answer = list(answer.await?)?.into_iter();
        check_outcome(answer.next())?;
        id(answer.next().ok_or(StoreErrorKind::Protocol)?)
    }

    pub(super) async fn write_node(&self, id: u32, record: &NodeRecord) -> Result<(), StoreError> {
        let text = to_json(record)?;
        let keys = [self.0.keys.of("nodes")];
        let answer = self.run(Script::PutNode, &keys, |command| {
            command.arg(id).arg(&record.name).arg(&text);
        });
        check_outcome(list(answer.await?)?.into_iter().next())
    }

    pub(super) async fn delete_node(&self, id: u32) -> Result<(), StoreError> {
        let removed = self
            .call(cmd("HDEL").arg(self.0.keys.of("nodes")).arg(id))
            .await?;
        self.call(cmd("DEL").arg(self.0.keys.part("node", id)))
            .await?;
        match number(removed)? {
            0 => Err(StoreErrorKind::Gone.into()),
            _ => Ok(()),
        }
    }

    pub(super) async fn read_time(&self) -> Result<u64, StoreError> {
        let [seconds, micros] = array(self.call(&cmd("TIME")).await?)?;
        let seconds = number(seconds)?.saturating_mul(1000);
        Ok(seconds.saturating_add(number(micros)? / 1000))
    }

    pub(super) async fn write_join(
        &self,
        id: &str,
        sealed: &[u8],
        ttl: Duration,
    ) -> Result<(), StoreError> {
        let mut command = cmd("SET");
        let ttl = ttl.as_secs().max(1);
        command
            .arg(self.0.keys.part("join", id))
            .arg(sealed)
            .arg("EX")
            .arg(ttl);
        self.call(&command).await.map(drop)
    }

    pub(super) async fn delete_join(&self, id: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let answer = self
            .call(cmd("GETDEL").arg(self.0.keys.part("join", id)))
            .await?;
        optional(answer).map(bytes).transpose()
    }

    pub(super) async fn write_audit(&self, text: &str) -> Result<(), StoreError> {
        let mut command = cmd("XADD");
        command
            .arg(self.0.keys.of("audit"))
            .arg("MAXLEN")
            .arg("~")
            .arg(MAX_AUDIT);
        command.arg("*").arg("text").arg(text);
        self.call(&command).await.map(drop)
    }

    pub(super) async fn read_audit(&self, count: usize) -> Result<Vec<AuditEntry>, StoreError> {
        let mut command = cmd("XREVRANGE");
        command
            .arg(self.0.keys.of("audit"))
            .arg("+")
            .arg("-")
            .arg("COUNT")
            .arg(count);
        let mut entries = Vec::new();
        for entry in list(self.call(&command).await?)? {
            let [entry_id, fields] = array(entry)?;
            let entry_id = text(entry_id)?;
            let time = entry_id
                .split('-')
                .next()
                .and_then(|time| time.parse().ok());
            let words = field(&mut pairs(fields)?, b"text");
            entries.push(AuditEntry {
                unix_ms: time.ok_or(StoreErrorKind::Protocol)?,
                text: words.map(text).transpose()?.unwrap_or_default(),
            });
        }
        Ok(entries)
    }
}

fn to_total(user: u32, period: &PeriodLabel, sum: u64, up: u64) -> UserTotal {
    UserTotal {
        user,
        period: period.clone(),
        up,
        down: sum.saturating_sub(up),
    }
}

fn parse_status(answer: Value) -> Result<Option<NodeStatus>, StoreError> {
    let text = optional(answer).map(bytes).transpose()?;
    // The report of another version may be anything; it is gone in seconds.
    Ok(text.and_then(|text| serde_json::from_slice(&text).ok()))
}

fn check_outcome(answer: Option<Value>) -> Result<(), StoreError> {
    match text(answer.ok_or(StoreErrorKind::Protocol)?)?.as_str() {
        "ok" => Ok(()),
        "taken" => Err(StoreErrorKind::NameTaken.into()),
        "gone" => Err(StoreErrorKind::Gone.into()),
        _ => unexpected(),
    }
}
