//! The store of a simulation: adit-fleet's store in memory, with a stopped clock.

use std::time::Duration;

use adit_fleet::store::RealmState;
use adit_fleet::{
    ChangeBatch, ChangeId, ChangeRequest, FleetUser, MemoryStore, PeriodLabel, RealmInfo, RealmKey,
    RecordCipher, Snapshot, Store, StoreError, UsageBatch, UserTotal,
};
use adit_link::SplitMix64;
use adit_wire::{QuotaPeriod, UnixTime};
use anyhow::{Context, Result};
use futures_util::FutureExt;

use super::event_queue::Micros;
use super::node_table::StoreCopy;
use super::user_table::UserVersions;

/// The time at which simulations start, in milliseconds since 1970.
const START: u64 = 1_800_000_000_000;
/// Number of changes that are written together.
const WRITE_TOGETHER: u32 = 1000;

/// A backup of the store's content.
pub(super) type Backup = RealmState;

/// The store, and what an operator needs to write to it.
pub(super) struct StorePort {
    store: MemoryStore,
    cipher: RecordCipher,
    info: RealmInfo,
    rng: SplitMix64,
    pub(super) period: PeriodLabel,
    last_user: u32,
    head: ChangeId,
    /// The table that was read last.
    read: Option<UserVersions>,
}

/// The random generator of records.
struct Nonces<'a>(&'a mut SplitMix64);

impl adit_wire::Entropy for Nonces<'_> {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let number = self.0.next_number().to_le_bytes();
            for (byte, random) in chunk.iter_mut().zip(number) {
                *byte = random;
            }
        }
    }
}

/// Returns the cipher of the simulated realm.
fn cipher() -> RecordCipher {
    RecordCipher::new("simulation", &RealmKey::new([7; 32]))
}

/// Returns the result of a call to the store in memory, which never waits.
fn ready<T>(call: impl Future<Output = Result<T, StoreError>>) -> Result<T> {
    let result = call.now_or_never().context("the store in memory waited")?;
    Ok(result?)
}

impl StorePort {
    /// Creates a store with the users 1 to `users`.
    pub(super) fn with_users(users: u32, seed: u64) -> Result<Self> {
        let store = MemoryStore::new();
        store.set_clock(Some(START));
        let cipher = cipher();
        let info = RealmInfo::new(&cipher, START / 1000);
        ready(store.create_realm(&info))?;
        let mut port = Self {
            store,
            cipher,
            info,
            rng: SplitMix64::new(seed),
            period: PeriodLabel::new(QuotaPeriod::Month, UnixTime(START / 1000)),
            last_user: 0,
            head: ChangeId(0),
            read: None,
        };
        while port.last_user < users {
            let count = WRITE_TOGETHER.min(users - port.last_user);
            let first = ready(port.store.allocate_users(count))?;
            let ids = first..first + count;
            let head = port.head;
            let puts = ids.zip(1..).map(|(id, at)| port.put(id, head.plus(at)));
            let puts = puts.collect::<Result<Vec<_>>>()?;
            port.write(&puts)?;
            port.last_user += count;
        }
        Ok(port)
    }

    fn put(&mut self, id: u32, number: ChangeId) -> Result<ChangeRequest> {
        let user = FleetUser::new(id, format!("user-{id}"), [1; 32]);
        let mut nonces = Nonces(&mut self.rng);
        Ok(self.cipher.put(&user, number, &mut nonces)?)
    }

    fn write(&mut self, changes: &[ChangeRequest]) -> Result<()> {
        self.head = ready(self.store.write(self.head, changes))?;
        Ok(())
    }

    /// Moves the store's clock.
    pub(super) fn set_time(&self, now: Micros) {
        self.store.set_clock(Some(START + now / 1000));
    }

    /// Adds, replaces or deletes a user; returns the number of the change.
    pub(super) fn change_some_user(&mut self, rng: &mut SplitMix64) -> Result<u64> {
        let number = self.head.next();
        let someone = u32::try_from(rng.pick(1..u64::from(self.last_user) + 1))?;
        let change = match rng.pick(0..4) {
            0 => {
                self.last_user = ready(self.store.allocate_users(1))?;
                self.put(self.last_user, number)?
            }
            1 if ready(self.store.user(someone))?.is_some() => {
                let mut nonces = Nonces(&mut self.rng);
                self.cipher.delete(someone, number, &mut nonces)?
            }
            _ => self.put(someone, number)?,
        };
        self.write(&[change])?;
        Ok(number.0)
    }

    pub(super) fn add_usage(&self, node: u32, batch: &UsageBatch) -> Result<Vec<UserTotal>> {
        Ok(ready(self.store.add_usage(node, batch))?.totals)
    }

    /// Returns what these users have used.
    pub(super) fn totals(&self, users: &[u32]) -> Result<Vec<UserTotal>> {
        ready(self.store.usage(&self.period, Some(users)))
    }

    /// Returns changes after a number; `None` if there are none.
    pub(super) fn changes(&self, after: u64) -> Result<Option<ChangeBatch>> {
        let batch = ready(self.store.changes(ChangeId(after), Duration::ZERO))?;
        Ok((batch.head.0 != after).then_some(batch))
    }

    /// Returns the answer to a question that has waited for long enough.
    pub(super) fn changes_or_none(&self, after: u64) -> Result<ChangeBatch> {
        ready(self.store.changes(ChangeId(after), Duration::ZERO))
    }

    pub(super) fn backup(&self) -> Backup {
        self.store.copy_state()
    }

    pub(super) fn restore_backup(&mut self, backup: Backup) -> Result<()> {
        self.store.restore_state(backup);
        self.head = ready(self.store.head())?;
        Ok(())
    }

    pub(super) fn empty(&self) {
        self.store.flush_all();
    }

    /// Writes all users again, as a node does that has them.
    pub(super) fn seed(&mut self, users: &Snapshot) -> Result<()> {
        self.head = ready(self.store.restore(&self.info, users))?;
        Ok(())
    }

    /// Returns the bytes that the store has counted for a user.
    pub(super) fn used(&self, user: u32) -> Result<u64> {
        Ok(self.totals(&[user])?.iter().map(UserTotal::sum).sum())
    }

    /// Returns the cipher of the realm.
    pub(super) fn cipher(&self) -> RecordCipher {
        cipher()
    }

    /// Returns what a node reads that reads the whole store now.
    pub(super) fn copy(&mut self, with_records: bool) -> Result<StoreCopy> {
        Ok(match with_records {
            true => StoreCopy::Records(ready(self.store.snapshot())?),
            false => StoreCopy::Versions(self.versions()?),
        })
    }

    /// Returns the versions of all users. Nodes that read the same version share the memory.
    fn versions(&mut self) -> Result<UserVersions> {
        let version = ready(self.store.head())?.0;
        if let Some(table) = self
            .read
            .as_ref()
            .filter(|table| table.version() == version)
        {
            return Ok(table.clone());
        }
        let table = UserVersions::from_snapshot(&ready(self.store.snapshot())?);
        self.read = Some(table.clone());
        Ok(table)
    }
}
