//! The entry of one user: their limits, what they have used of them, and their open sessions.

use std::mem::take;
use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use adit_net::system;
use adit_wire::{UnixTime, source_network};
use tracing::info;

use super::devices::{Device, SessionPermit};
use super::fleet::FleetQuota;
use super::fleet_part::FleetPart;
use super::packed_limits::PackedLimits;
use super::token_bucket::TokenBucket;
use super::{StoredUser, UserLimits, UserRefusal, UserReport, UserState};
use crate::usage::{ByteCounts, Usage, UserCounters};
use crate::user_account::UserAccount;

/// The user has a quota.
pub(super) const HAS_QUOTA: u8 = 1;
/// The user has a rate.
pub(super) const HAS_RATE: u8 = 1 << 1;
/// The quota of the period is used up.
pub(super) const OVER_QUOTA: u8 = 1 << 2;
/// The time of the user has expired.
const EXPIRED: u8 = 1 << 3;
/// The quota is a lease, which a node of a fleet renews.
pub(super) const LEASED: u8 = 1 << 4;
/// States in which the user has no sessions.
pub(super) const BLOCKED: u8 = OVER_QUOTA | EXPIRED;

/// The entry of one user in the registry. All of the user's accounts share it.
///
/// It is small, because every user with limits has one.
#[derive(Debug)]
pub(crate) struct UserEntry {
    name: Box<str>,
    /// The checks on the path of bytes; 0 for users without quota and rate.
    pub(super) checks: AtomicU8,
    /// The refusals that were logged, one bit per cause.
    logged: AtomicU8,
    /// The rest of the quota.
    pub(super) budget: AtomicI64,
    /// Present if the user is, or was, one of a fleet.
    pub(super) fleet: OnceLock<Box<FleetPart>>,
    /// The rates of both directions, once the user has had a rate.
    pub(super) rates: OnceLock<Box<DirectionRates>>,
    record: Mutex<Record>,
}

/// The rates of a user.
#[derive(Debug)]
pub(super) struct DirectionRates {
    pub(super) up: Arc<TokenBucket>,
    pub(super) down: Arc<TokenBucket>,
}

#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) limits: PackedLimits,
    /// The quota that a fleet has granted.
    pub(super) fleet_quota: FleetQuota,
    /// Usage that no account in `live` counts: that of earlier processes, and of accounts that are gone.
    carried: Usage,
    /// The start of the period, in seconds since 1970.
    period_start: u64,
    /// All usage at that time.
    before_period: ByteCounts,
    /// Present while the user has accounts or sessions.
    pub(super) live: Option<Box<LiveState>>,
    /// True for a user who was removed, while sessions that end still refer to the entry.
    pub(super) is_removed: bool,
}

/// The accounts of a user, and their open sessions.
#[derive(Debug, Default)]
pub(super) struct LiveState {
    pub(super) accounts: Vec<Arc<UserAccount>>,
    pub(super) sessions: u32,
    /// The client networks, in the order of their arrival.
    pub(super) devices: Vec<Device>,
    /// Number of times that the open sessions were ended by an operator.
    pub(super) kicks: u32,
}

impl UserEntry {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            checks: AtomicU8::new(0),
            logged: AtomicU8::new(0),
            budget: AtomicI64::new(0),
            fleet: OnceLock::new(),
            rates: OnceLock::new(),
            record: Mutex::default(),
        }
    }

    /// Returns the name of the user.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Adds an account, whose usage is that of this user from now on.
    pub(super) fn add_account(&self, account: &Arc<UserAccount>) {
        let mut record = self.lock();
        record.settle_accounts();
        let live = record.live.get_or_insert_default();
        live.accounts.push(account.clone());
        record.is_removed = false;
    }

    /// Drops all accounts at the end of the registry.
    pub(super) fn forget_accounts(&self) {
        self.lock().live = None;
    }

    /// Returns true if the user was removed.
    pub(super) fn is_removed(&self) -> bool {
        self.lock().is_removed
    }

    /// Returns the number of the user in a fleet.
    pub(super) fn fleet_id(&self) -> Option<u32> {
        self.fleet.get()?.id()
    }

    /// Returns the usage of a user of a fleet that was not reported to it.
    pub(super) fn unreported_usage(&self) -> Option<UserCounters> {
        let part = self.fleet.get().filter(|part| part.id().is_some())?;
        let bytes = part.unreported(self.lock().total().into());
        let usage = Usage {
            up: bytes.up,
            down: bytes.down,
            ..Usage::default()
        };
        Some(UserCounters {
            name: self.name.to_string(),
            usage,
        })
    }

    pub(super) fn limits(&self) -> UserLimits {
        self.lock().limits.into()
    }

    /// Sets the limits. Another period starts to count from zero.
    pub(super) fn set_limits(&self, limits: UserLimits, now: UnixTime) {
        let mut record = self.lock();
        if record.limits.period != limits.period {
            record.period_start = limits.period.start(now).0;
            record.before_period = record.total().into();
        }
        record.limits = limits.into();
        record.is_removed = false;
        self.apply(&mut record, now);
        self.end_excess_devices(&mut record);
    }

    /// Restores the state of an earlier process. What was counted since stays, if it is more.
    pub(super) fn restore(&self, stored: &StoredUser, now: UnixTime) {
        let mut record = self.lock();
        let here = record.total();
        let missing = stored.total.at_least(here).reduced_by(here);
        record.carried = record.carried.combined_with(missing);
        record.limits = stored.limits.into();
        record.period_start = stored.period_start.0;
        record.before_period = stored.before_period;
        record.is_removed = false;
        self.apply(&mut record, now);
    }

    /// Adds usage that another process has counted.
    pub(super) fn add_usage(&self, usage: Usage, now: UnixTime) {
        let mut record = self.lock();
        record.carried = record.carried.combined_with(usage);
        self.refresh(&mut record, now);
    }

    /// Begins to count the period from zero.
    pub(super) fn reset_usage(&self, now: UnixTime) {
        let mut record = self.lock();
        record.before_period = record.total().into();
        self.apply(&mut record, now);
    }

    /// Forgets limits and usage.
    pub(super) fn remove(&self, now: UnixTime) {
        let mut record = self.lock();
        let total = record.total();
        record.carried = record.carried.reduced_by(total);
        record.before_period = ByteCounts::default();
        record.period_start = 0;
        record.limits = PackedLimits::default();
        record.is_removed = true;
        self.apply(&mut record, now);
    }

    /// Brings period and state up to date. Returns the time at which they change next.
    pub(super) fn update(&self, now: UnixTime) -> Option<UnixTime> {
        let mut record = self.lock();
        record.settle_accounts();
        self.refresh(&mut record, now);
        let limits = UserLimits::from(record.limits);
        let expiry = limits.expires.filter(|at| *at > now);
        let next = limits.quota.and_then(|_| limits.period.next_start(now));
        expiry.into_iter().chain(next).min()
    }

    pub(super) fn report(&self, now: UnixTime) -> UserReport {
        let mut record = self.lock();
        record.settle_accounts();
        self.refresh(&mut record, now);
        let total = record.total();
        let (sessions, devices) = match &record.live {
            Some(live) => (live.sessions, live.device_count()),
            None => (0, 0),
        };
        UserReport {
            name: self.name.to_string(),
            limits: record.limits.into(),
            used_in_period: ByteCounts::from(total).reduced_by(record.before_period),
            total,
            sessions,
            devices,
            state: self.state(),
        }
    }

    /// Returns what has to outlive the process.
    pub(super) fn to_stored(&self, now: UnixTime) -> StoredUser {
        let mut record = self.lock();
        record.settle_accounts();
        self.refresh(&mut record, now);
        StoredUser {
            name: self.name.to_string(),
            limits: record.limits.into(),
            period_start: UnixTime(record.period_start),
            before_period: record.before_period,
            total: record.total(),
        }
    }

    pub(super) fn state(&self) -> UserState {
        let checks = self.checks.load(Ordering::Acquire);
        if checks & EXPIRED != 0 {
            UserState::Expired
        } else if checks & OVER_QUOTA != 0 {
            UserState::OverQuota
        } else {
            UserState::Active
        }
    }

    /// Starts a new period if the last one is over, and applies what follows from the time.
    fn refresh(&self, record: &mut Record, now: UnixTime) {
        let start = record.limits.period.start(now).0;
        // A clock that was set back starts no period.
        let is_new = start > record.period_start;
        if is_new {
            record.period_start = start;
            record.before_period = record.total().into();
        }
        let expired = now.0 >= record.limits.expires;
        let known = self.checks.load(Ordering::Relaxed) & EXPIRED != 0;
        if is_new || expired != known {
            self.apply(record, now);
        }
    }

    /// Applies the limits in `record`.
    pub(super) fn apply(&self, record: &mut Record, now: UnixTime) {
        let limits = record.limits;
        let start = limits.period.start(now).0;
        if start > record.period_start {
            record.period_start = start;
            record.before_period = record.total().into();
        }
        let mut checks = match record.fleet_quota {
            FleetQuota::None => 0,
            FleetQuota::Lease(_) => HAS_QUOTA | LEASED,
            FleetQuota::UsedUp => HAS_QUOTA | LEASED | OVER_QUOTA,
        };
        if limits.quota != u64::MAX {
            let used = ByteCounts::from(record.total()).reduced_by(record.before_period);
            let left = limits.quota.saturating_sub(used.sum());
            self.budget
                .store(i64::try_from(left).unwrap_or(i64::MAX), Ordering::Relaxed);
            checks |= HAS_QUOTA;
            if left == 0 {
                checks |= OVER_QUOTA;
            }
        }
        if now.0 >= limits.expires {
            checks |= EXPIRED;
        }
        if limits.rate != u64::MAX {
            let new = || Arc::new(TokenBucket::new(limits.rate));
            let rates = self.rates.get_or_init(|| {
                Box::new(DirectionRates {
                    up: new(),
                    down: new(),
                })
            });
            rates.up.set_rate(limits.rate);
            rates.down.set_rate(limits.rate);
            checks |= HAS_RATE;
        }
        let before = self.checks.swap(checks, Ordering::AcqRel);
        self.logged.store(0, Ordering::Relaxed);
        if let Some(rates) = self.rates.get().filter(|_| checks & HAS_RATE == 0) {
            rates.up.release_all();
            rates.down.release_all();
        }
        let blocks = checks & BLOCKED;
        if blocks & !before != 0 {
            self.interrupt_sessions(record, blocks);
        }
    }

    /// Ends the open sessions of a user that is blocked from now on.
    pub(super) fn interrupt_sessions(&self, record: &Record, blocks: u8) {
        let Some(live) = &record.live else { return };
        for account in &live.accounts {
            account.interrupt_sessions();
        }
        if !live.devices.is_empty() {
            let why = match blocks & EXPIRED {
                0 => UserRefusal::OverQuota,
                _ => UserRefusal::Expired,
            };
            info!(
                user = &*self.name,
                "{}: {} sessions end",
                why.text(),
                live.sessions
            );
        }
    }

    /// Returns true if the user may have no sessions.
    pub(crate) fn is_blocked(&self) -> bool {
        self.checks.load(Ordering::Acquire) & BLOCKED != 0
    }

    /// Returns the reason why the sessions of a user that is blocked end, for logs.
    pub(crate) fn end_text(&self) -> &'static str {
        match self.state() {
            UserState::Expired => UserRefusal::Expired.text(),
            _ => UserRefusal::OverQuota.text(),
        }
    }

    /// Counts a new session of a client at `source`, or refuses it. With `is_session` false it is a connection
    /// without a stream, which counts as a device alone.
    pub(crate) fn admit(
        self: &Arc<Self>,
        source: IpAddr,
        is_session: bool,
    ) -> Result<SessionPermit, UserRefusal> {
        let admitted = self.try_admit(source_network(source), is_session);
        if let Err(why) = &admitted {
            // A client that is refused tries again and again.
            let known = self.logged.fetch_or(why.bit(), Ordering::Relaxed);
            if known & why.bit() == 0 {
                info!(
                    user = &*self.name,
                    "refused: {} (logged once until the user or their limits change)",
                    why.text()
                );
            }
        }
        admitted
    }

    fn try_admit(
        self: &Arc<Self>,
        network: IpAddr,
        is_session: bool,
    ) -> Result<SessionPermit, UserRefusal> {
        let mut record = self.lock();
        // A user who was removed by mistake, or whose listener cannot remove them, is known again.
        record.is_removed = false;
        self.refresh(&mut record, system::unix_now());
        match self.state() {
            UserState::Active => {}
            UserState::OverQuota => return Err(UserRefusal::OverQuota),
            UserState::Expired => return Err(UserRefusal::Expired),
        }
        let limits = record.limits;
        let elsewhere = self
            .fleet
            .get()
            .map_or(0, |part| part.devices_elsewhere.load(Ordering::Relaxed));
        let live = record.live.get_or_insert_default();
        let counted = live.device_count().saturating_add(elsewhere);
        let mut devices = live.devices.iter_mut();
        let device = devices.find(|device| device.network == network);
        let refusal = match device {
            _ if is_session && live.sessions >= limits.sessions => {
                Some(UserRefusal::TooManySessions)
            }
            Some(device) if device.is_ended => Some(UserRefusal::TooManyDevices),
            Some(device) => {
                device.count += 1;
                None
            }
            None if counted >= limits.devices => Some(UserRefusal::TooManyDevices),
            None => {
                live.devices.push(Device::new(network));
                None
            }
        };
        if let Some(refusal) = refusal {
            record.release_memory();
            return Err(refusal);
        }
        live.sessions += u32::from(is_session);
        let kicks = live.kicks;
        Ok(SessionPermit::new(self.clone(), network, is_session, kicks))
    }

    /// Ignores poisoning: a panic of another thread leaves the record intact.
    pub(super) fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    /// Returns all usage of the user.
    pub(super) fn total(&self) -> Usage {
        let accounts = self.live.iter().flat_map(|live| &live.accounts);
        accounts.fold(self.carried, |sum, account| {
            sum.combined_with(account.usage_of_process())
        })
    }

    /// Adds up the accounts that nothing else refers to, and drops them.
    pub(super) fn settle_accounts(&mut self) {
        let Some(live) = &mut self.live else { return };
        let carried = &mut self.carried;
        live.accounts.retain(|account| {
            let is_used = Arc::strong_count(account) > 1;
            if !is_used {
                *carried = carried.combined_with(account.usage_of_process());
            }
            is_used
        });
        self.release_memory();
    }

    /// Frees the state of a user who has neither accounts nor sessions.
    pub(super) fn release_memory(&mut self) {
        let is_idle = |live: &LiveState| live.accounts.is_empty() && live.devices.is_empty();
        if self.live.as_deref().is_some_and(is_idle) {
            drop(take(&mut self.live));
        }
    }
}
