//! The state of one user: counters, and the means to end open sessions.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use adit_net::names::LookupOrigin;
use adit_stream::{CountBytes, TrafficMeter};
use adit_wire::source_network;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use crate::usage::Usage;
use crate::user_registry::{QueueTicket, SessionPermit, UserEntry, UserRefusal};

/// A user of a keyed listener. All of a user's sessions share one account, which is created with the
/// first of them: a user who never connects takes no memory.
#[derive(Debug, Default)]
pub struct UserAccount {
    up: AtomicU64,
    down: AtomicU64,
    packets_up: AtomicU64,
    packets_down: AtomicU64,
    tcp: AtomicU64,
    udp: AtomicU64,
    /// Parts of these counters that some readers subtract, once there are any.
    offsets: Mutex<Option<Box<CounterOffsets>>>,
    removed: AtomicBool,
    /// Number of times that all open sessions were ended.
    interrupts: AtomicU32,
    /// Notifies all open sessions to look whether they have to end.
    end: Arc<Notify>,
    /// True for the account of one user; false for that of all clients with the same key.
    one_user: bool,
    /// Name of that user, as logs show it.
    name: Option<Box<str>>,
    /// The limits of that user.
    entry: Option<Arc<UserEntry>>,
}

/// Parts of the counters of an account.
#[derive(Debug, Default)]
struct CounterOffsets {
    /// Usage when the counters were last cleared.
    cleared: Usage,
    /// Usage that another process has counted, and reports by the name of the user too.
    foreign: Usage,
}

impl UserAccount {
    /// Creates the account of one user, who has a quota of their own.
    pub(crate) fn for_one_user() -> Self {
        Self {
            one_user: true,
            ..Self::default()
        }
    }

    /// Returns the account of a user who was removed since they have logged in: their sessions end at once.
    pub(crate) fn ended() -> Arc<Self> {
        let account = Self::default();
        account.end_sessions();
        Arc::new(account)
    }

    /// Sets the name of the user, as logs show it.
    #[must_use]
    pub(crate) fn with_name(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the entry of the user in the registry.
    #[must_use]
    pub(crate) fn with_entry(mut self, entry: Arc<UserEntry>) -> Self {
        self.entry = Some(entry);
        self
    }

    /// Returns the name of the user, as logs show it.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// True for the account of one user; false for that of all clients with the same key.
    pub(crate) const fn is_one_user(&self) -> bool {
        self.one_user
    }

    /// Returns the usage so far. If `clear` is set, the counters start again from zero; nothing is counted
    /// twice or lost.
    #[must_use]
    pub fn read_usage(&self, clear: bool) -> Usage {
        let mut offsets = self.lock_offsets();
        let counted = self.counted();
        let cleared = offsets
            .as_ref()
            .map_or_else(Usage::default, |known| known.cleared);
        if clear {
            offsets.get_or_insert_default().cleared = counted;
        }
        counted.reduced_by(cleared)
    }

    /// Returns the usage that this process has counted, whether the counters were cleared or not.
    pub(crate) fn usage_of_process(&self) -> Usage {
        let offsets = self.lock_offsets();
        let foreign = offsets
            .as_ref()
            .map_or_else(Usage::default, |known| known.foreign);
        self.counted().reduced_by(foreign)
    }

    /// Returns all counters.
    fn counted(&self) -> Usage {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Usage {
            up: read(&self.up),
            down: read(&self.down),
            packets_up: read(&self.packets_up),
            packets_down: read(&self.packets_down),
            tcp_sessions: read(&self.tcp),
            udp_sessions: read(&self.udp),
        }
    }

    /// Ignores poisoning: a panic of another thread leaves the offsets intact.
    fn lock_offsets(&self) -> MutexGuard<'_, Option<Box<CounterOffsets>>> {
        self.offsets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds usage that another process has counted. The registry learns of it by the name of the user.
    pub(crate) fn add_usage(&self, usage: Usage) {
        let mut offsets = self.lock_offsets();
        let foreign = &mut offsets.get_or_insert_default().foreign;
        *foreign = foreign.combined_with(usage);
        let add = |counter: &AtomicU64, n| counter.fetch_add(n, Ordering::Relaxed);
        add(&self.up, usage.up);
        add(&self.down, usage.down);
        add(&self.packets_up, usage.packets_up);
        add(&self.packets_down, usage.packets_down);
        add(&self.tcp, usage.tcp_sessions);
        add(&self.udp, usage.udp_sessions);
    }

    /// Counts a new TCP session.
    pub(crate) fn count_tcp_session(&self) {
        self.tcp.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a new UDP session.
    pub(crate) fn count_udp_session(&self) {
        self.udp.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a datagram from the client with `n` bytes of payload.
    pub(crate) fn count_packet_up(&self, n: usize) {
        self.packets_up.fetch_add(1, Ordering::Relaxed);
        self.up.fetch_add(n as u64, Ordering::Relaxed);
    }

    /// Counts a datagram to the client with `n` bytes of payload.
    pub(crate) fn count_packet_down(&self, n: usize) {
        self.packets_down.fetch_add(1, Ordering::Relaxed);
        self.down.fetch_add(n as u64, Ordering::Relaxed);
    }

    /// Ends all sessions of the user, and those that start later.
    pub(crate) fn end_sessions(&self) {
        self.removed.store(true, Ordering::Release);
        self.end.notify_waiters();
    }

    /// Ends all sessions that are open.
    pub(crate) fn interrupt_sessions(&self) {
        self.interrupts.fetch_add(1, Ordering::Release);
        self.end.notify_waiters();
    }

    /// Lets all sessions that are open look whether their device has to end.
    pub(crate) fn recheck_sessions(&self) {
        self.end.notify_waiters();
    }

    /// Returns true if the user may have no sessions: they were removed, or their limits do not allow it.
    fn is_ended(&self) -> bool {
        self.removed.load(Ordering::Acquire)
            || self.entry.as_ref().is_some_and(|entry| entry.is_blocked())
    }

    /// Returns the reason why a session of the user has ended, for logs.
    pub(crate) fn end_text(&self, permit: Option<&SessionPermit>) -> &'static str {
        if permit.is_some_and(SessionPermit::is_beyond_devices) {
            return UserRefusal::TooManyDevices.text();
        }
        match &self.entry {
            Some(entry) if !self.removed.load(Ordering::Acquire) => entry.end_text(),
            _ => "the user was removed",
        }
    }

    /// Counts a session of a client at `source`, or refuses it. An account of several users has no limits.
    pub(crate) fn admit_session(
        &self,
        source: IpAddr,
    ) -> Result<Option<SessionPermit>, UserRefusal> {
        let entry = self.entry.as_ref();
        entry.map(|entry| entry.admit(source, true)).transpose()
    }

    /// Counts a connection of a client at `source` that has no session yet, or refuses it.
    pub(crate) fn admit_connection(
        &self,
        source: IpAddr,
    ) -> Result<Option<SessionPermit>, UserRefusal> {
        let entry = self.entry.as_ref();
        entry.map(|entry| entry.admit(source, false)).transpose()
    }

    /// Counts a datagram with `n` bytes of payload, unless the limits of the user forbid that it passes.
    #[must_use]
    pub(crate) fn pass_datagram(&self, n: usize, is_up: bool) -> bool {
        let entry = self.entry.as_ref();
        let passes = entry.is_none_or(|entry| entry.charge_datagram(n, is_up));
        match (passes, is_up) {
            (true, true) => self.count_packet_up(n),
            (true, false) => self.count_packet_down(n),
            (false, _) => {}
        }
        passes
    }

    /// Returns the number of bytes that a session may move now, or wakes the task of `cx` later.
    pub(crate) fn poll_allowance(
        &self,
        cx: &Context<'_>,
        is_up: bool,
        ticket: &QueueTicket,
    ) -> Poll<usize> {
        match &self.entry {
            Some(entry) => entry.poll_allowance(cx, is_up, ticket),
            None => Poll::Ready(usize::MAX),
        }
    }

    /// Counts payload bytes of a stream.
    pub(crate) fn count_bytes(&self, n: usize, is_up: bool) {
        let counter = if is_up { &self.up } else { &self.down };
        counter.fetch_add(n as u64, Ordering::Relaxed);
        if let Some(entry) = &self.entry {
            entry.charge(n, is_up);
        }
    }

    /// Returns the notice that a session with this permit has to end; `None` if the user may have none.
    pub(crate) fn end_notice(&self, permit: Option<&SessionPermit>) -> Option<EndNotice> {
        let notice = EndNotice {
            interrupts: self.interrupts.load(Ordering::Acquire),
            leave: self.next_notice(),
        };
        (!self.is_over(notice.interrupts, permit)).then_some(notice)
    }

    fn next_notice(&self) -> Pin<Box<OwnedNotified>> {
        let mut leave = Box::pin(self.end.clone().notified_owned());
        leave.as_mut().enable();
        leave
    }

    /// Returns true if a session that began after this number of interruptions has to end.
    fn is_over(&self, interrupts: u32, permit: Option<&SessionPermit>) -> bool {
        self.is_ended()
            || self.interrupts.load(Ordering::Acquire) != interrupts
            || permit.is_some_and(SessionPermit::is_ended)
    }

    /// Runs `work` until it completes, the user is removed, or their limits end the session of this permit; returns
    /// `None` in the latter cases.
    pub(crate) async fn run_until_ended<T>(
        &self,
        permit: Option<&SessionPermit>,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let interrupts = self.interrupts.load(Ordering::Acquire);
        let mut work = std::pin::pin!(work);
        loop {
            let mut leave = std::pin::pin!(self.end.notified());
            // Subscribe before reading the flags, so that a removal in between is noticed.
            leave.as_mut().enable();
            if self.is_over(interrupts, permit) {
                return None;
            }
            tokio::select! {
                biased;
                // Of the devices of a user, others may have to end.
                () = leave => {}
                done = work.as_mut() => return Some(done),
            }
        }
    }
}

/// The notice that a session has to end.
pub(crate) struct EndNotice {
    interrupts: u32,
    leave: Pin<Box<OwnedNotified>>,
}

impl EndNotice {
    /// Completes when the session has to end. Account and permit are those that the notice is from.
    pub(crate) fn poll_ended(
        &mut self,
        cx: &mut Context<'_>,
        account: &UserAccount,
        permit: Option<&SessionPermit>,
    ) -> Poll<()> {
        while self.leave.as_mut().poll(cx).is_ready() {
            self.leave = account.next_notice();
            if account.is_over(self.interrupts, permit) {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }
}

/// Runs `work` until it completes or the session of this permit, if there is a user, has to end.
pub(crate) async fn run_until_ended<T>(
    account: Option<&UserAccount>,
    permit: Option<&SessionPermit>,
    work: impl Future<Output = T>,
) -> Option<T> {
    match account {
        Some(account) => account.run_until_ended(permit, work).await,
        None => Some(work.await),
    }
}

/// Returns the owner that a client's lookups are counted against: the user together with the network of
/// the source address, since many clients can share one key.
pub(crate) fn client_lookup_owner(
    account: Option<&Arc<UserAccount>>,
    from: IpAddr,
) -> LookupOrigin {
    LookupOrigin::Client {
        // The address of the account is unique while a session of the user is open.
        user: account.map_or(0, |account| Arc::as_ptr(account).addr() as u64),
        source: source_network(from),
    }
}

/// A counter that adds to those of a listener and of a user.
pub(crate) struct DualCounter<'a> {
    pub(crate) meter: &'a TrafficMeter,
    pub(crate) account: Option<&'a Arc<UserAccount>>,
}

impl CountBytes for DualCounter<'_> {
    fn add_up(&self, n: usize) {
        self.meter.add_up(n);
        if let Some(account) = self.account {
            account.count_bytes(n, true);
        }
    }

    fn add_down(&self, n: usize) {
        self.meter.add_down(n);
        if let Some(account) = self.account {
            account.count_bytes(n, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use std::time::Duration;

    #[tokio::test]
    async fn an_end_reaches_sessions_before_and_after() {
        let account = Arc::new(UserAccount::default());
        let other = account.clone();
        let session =
            tokio::spawn(async move { other.run_until_ended(None, pending::<()>()).await });
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(!session.is_finished());
        account.end_sessions();
        assert_eq!(session.await.unwrap(), None);
        assert_eq!(account.run_until_ended(None, async { 1 }).await, None);
    }

    #[test]
    fn clearing_counts_everything_once() {
        let (meter, account) = (TrafficMeter::default(), Arc::new(UserAccount::default()));
        let both = DualCounter {
            meter: &meter,
            account: Some(&account),
        };
        both.add_up(5);
        both.add_down(7);
        account.count_packet_up(1);
        let first = account.read_usage(true);
        assert_eq!((first.up, first.down, first.packets_up), (6, 7, 1));
        both.add_up(2);
        let rest = account.read_usage(false);
        assert_eq!(first.combined_with(rest).up, 8);
        assert_eq!(rest.down, 0);
        assert_eq!(meter.stats().up, 7);
    }
}
