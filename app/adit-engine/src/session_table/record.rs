//! The record of one session, which its task and the table share.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use adit_net::system;
use adit_stream::CountBytes;
use adit_wire::{Host, Target, narrow_int, u64_from};

use super::{ListenerSessions, NewSession, SessionKind, SessionReport, TargetClass};
use crate::access::is_private;
use crate::user_account::UserAccount;

/// The record of one session. Kept small because there are many.
#[derive(Debug)]
pub(crate) struct SessionRecord {
    id: u64,
    listener: Arc<ListenerSessions>,
    user: SessionUser,
    up: AtomicU64,
    down: AtomicU64,
    /// Wakes the session's task when it has to end.
    waker: Mutex<Option<Waker>>,
    /// Start of the session, in seconds of the monotonic clock.
    started: u32,
    /// Index in its shard. Changed only under the lock of the shard.
    position: AtomicU32,
    /// True if the session has to end.
    is_ending: AtomicBool,
    kind: SessionKind,
    class: TargetClass,
    port: u16,
}

/// The user of a session.
enum SessionUser {
    /// An account with a name.
    Account(Arc<UserAccount>),
    /// The name that the client stated; empty without one.
    Stated(Box<str>),
}

impl fmt::Debug for SessionUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.name(), f)
    }
}

impl SessionUser {
    fn new(stated: Option<&str>, account: Option<&Arc<UserAccount>>) -> Self {
        match account.filter(|account| account.name().is_some()) {
            Some(account) => Self::Account(account.clone()),
            None => Self::Stated(stated.unwrap_or_default().into()),
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Account(account) => account.name().unwrap_or_default(),
            Self::Stated(name) => name,
        }
    }
}

impl SessionRecord {
    pub(super) fn new(id: u64, listener: Arc<ListenerSessions>, session: NewSession<'_>) -> Self {
        let NewSession {
            kind,
            user,
            account,
            target,
        } = session;
        Self {
            id,
            listener,
            user: SessionUser::new(user, account),
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
            waker: Mutex::new(None),
            started: seconds_now(),
            position: AtomicU32::new(0),
            is_ending: AtomicBool::new(false),
            kind,
            class: target.map_or(TargetClass::Unknown, class_of),
            port: target.map_or(0, |target| target.port),
        }
    }

    pub(crate) const fn id(&self) -> u64 {
        self.id
    }

    /// Returns the name of the user; empty without one.
    pub(crate) fn user(&self) -> &str {
        self.user.name()
    }

    /// Returns the index in the shard, whose lock must be held.
    pub(super) fn position(&self) -> usize {
        narrow_int(self.position.load(Ordering::Relaxed))
    }

    pub(super) fn set_position(&self, at: usize) {
        self.position.store(narrow_int(at), Ordering::Relaxed);
    }

    /// Counts payload bytes from the client for the session alone. Only one task may do so at a time, which saves an
    /// atomic addition.
    pub(crate) fn record_up(&self, n: usize) {
        let sum = self.up.load(Ordering::Relaxed).wrapping_add(u64_from(n));
        self.up.store(sum, Ordering::Relaxed);
    }

    /// Counts payload bytes to the client for the session alone. Only one task may do so at a time.
    pub(crate) fn record_down(&self, n: usize) {
        let sum = self.down.load(Ordering::Relaxed).wrapping_add(u64_from(n));
        self.down.store(sum, Ordering::Relaxed);
    }

    /// Returns the number of payload bytes from the client.
    pub(crate) fn up(&self) -> u64 {
        self.up.load(Ordering::Relaxed)
    }

    /// Returns the number of payload bytes to the client.
    pub(crate) fn down(&self) -> u64 {
        self.down.load(Ordering::Relaxed)
    }

    /// Requests the end of the session. Returns false if that was requested already.
    pub(super) fn end(&self) -> bool {
        let was_ending = self.is_ending.swap(true, Ordering::AcqRel);
        let waker = super::lock_ignoring_poison(&self.waker).take();
        if let Some(waker) = waker {
            waker.wake();
        }
        !was_ending
    }

    /// Returns true if the session has to end, otherwise wakes the task of `cx` when it has. Only one task may
    /// wait.
    pub(crate) fn poll_end(&self, cx: &Context<'_>) -> bool {
        let mut waker = super::lock_ignoring_poison(&self.waker);
        let is_known = |known: &Waker| known.will_wake(cx.waker());
        if !waker.as_ref().is_some_and(is_known) {
            *waker = Some(cx.waker().clone());
        }
        drop(waker);
        // Register before reading the flag, so that a request in between is noticed.
        self.is_ending.load(Ordering::Acquire)
    }

    pub(super) fn report(&self) -> SessionReport {
        let (route, listen) = match self.listener.listening.get() {
            Some((route, addr)) => (route.clone(), *addr),
            None => (String::new(), SocketAddr::from(([0u8; 4], 0))),
        };
        SessionReport {
            id: self.id,
            kind: self.kind,
            user: self.user().to_owned(),
            route,
            listen,
            class: self.class,
            port: self.port,
            age: Duration::from_secs(seconds_now().saturating_sub(self.started).into()),
            up: self.up(),
            down: self.down.load(Ordering::Relaxed),
        }
    }
}

/// The entry of a session in the table, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct SessionEntry(Arc<SessionRecord>);

impl SessionEntry {
    pub(super) const fn new(record: Arc<SessionRecord>) -> Self {
        Self(record)
    }

    /// Returns the record, to count in another task.
    pub(crate) fn record(&self) -> Arc<SessionRecord> {
        self.0.clone()
    }

    /// Runs `work` until it completes or the session has to end; returns `None` in the latter case. Only one task may
    /// wait.
    pub(crate) fn run_until_ended<F: Future>(
        &self,
        work: Pin<&mut F>,
    ) -> impl Future<Output = Option<F::Output>> {
        UntilEnded {
            record: &self.0,
            work,
        }
    }
}

impl std::ops::Deref for SessionEntry {
    type Target = SessionRecord;

    fn deref(&self) -> &SessionRecord {
        &self.0
    }
}

impl Drop for SessionEntry {
    fn drop(&mut self) {
        self.0.listener.close(&self.0);
    }
}

/// Counts for the session and for its listener.
impl CountBytes for SessionEntry {
    fn add_up(&self, n: usize) {
        self.0.record_up(n);
        self.0.listener.meter().add_up(n);
    }

    fn add_down(&self, n: usize) {
        self.0.record_down(n);
        self.0.listener.meter().add_down(n);
    }
}

/// See [`SessionEntry::run_until_ended`].
struct UntilEnded<'a, 'w, F> {
    record: &'a SessionRecord,
    work: Pin<&'w mut F>,
}

impl<F: Future> Future for UntilEnded<'_, '_, F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.record.poll_end(cx) {
            return Poll::Ready(None);
        }
        this.work.as_mut().poll(cx).map(Some)
    }
}

fn seconds_now() -> u32 {
    narrow_int(system::monotonic_now().0 / 1_000_000)
}

fn class_of(target: &Target) -> TargetClass {
    match target.host {
        Host::Name(_) => TargetClass::Name,
        Host::Ip(ip) if is_private(ip) => TargetClass::Private,
        Host::Ip(IpAddr::V4(_)) => TargetClass::IPv4,
        Host::Ip(IpAddr::V6(_)) => TargetClass::IPv6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_have_classes() {
        for (target, class) in [
            ("example.com:443", TargetClass::Name),
            ("9.9.9.9:80", TargetClass::IPv4),
            ("10.1.2.3:22", TargetClass::Private),
            ("127.0.0.1:22", TargetClass::Private),
            ("[2606:4700::1111]:53", TargetClass::IPv6),
            ("[fe80::1]:53", TargetClass::Private),
        ] {
            assert_eq!(class_of(&target.parse().unwrap()), class, "{target}");
        }
    }
}
