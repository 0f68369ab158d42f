//! Tests of limits, from the side of accounts.

use std::future::pending;
use std::net::{IpAddr, Ipv4Addr};
use std::task::Waker;

use adit_stream::{CountBytes, TrafficMeter};
use adit_wire::QuotaPeriod;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use std::task::{Context, Poll};

use super::*;
use crate::user_account::DualCounter;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn limits() -> UserLimits {
    UserLimits::default()
}

/// Moves bytes as a session does.
fn move_bytes(account: &Arc<UserAccount>, up: usize, down: usize) {
    let meter = TrafficMeter::default();
    let both = DualCounter {
        meter: &meter,
        account: Some(account),
    };
    both.add_up(up);
    both.add_down(down);
}

fn used(registry: &UserRegistry, name: &str) -> (u64, u64) {
    let report = registry.report(name).unwrap();
    (report.used_in_period.up, report.used_in_period.down)
}

#[tokio::test]
async fn sessions_at_all_listeners_share_a_quota_and_end_with_it() {
    let registry = UserRegistry::default();
    let quota = Some(1000);
    registry.set_limits("ann", UserLimits { quota, ..limits() });
    let one = registry.new_account("ann", "ann");
    let other = registry.new_account("ann", "ann");
    let bob = registry.new_account("bob", "bob");
    let watched = other.clone();
    let _permit = other.admit_session(HERE).unwrap();
    let session = tokio::spawn(async move { watched.run_until_ended(None, pending::<()>()).await });
    sleep(Duration::from_millis(20)).await;
    move_bytes(&one, 500, 499);
    assert!(!session.is_finished());
    assert_eq!(registry.report("ann").unwrap().state, UserState::Active);
    move_bytes(&one, 0, 1);
    assert_eq!(session.await.unwrap(), None);
    let report = registry.report("ann").unwrap();
    assert_eq!(report.state, UserState::OverQuota);
    assert_eq!(report.used_in_period.sum(), 1000);
    for account in [&one, &other] {
        assert_eq!(
            account.admit_session(HERE).unwrap_err(),
            UserRefusal::OverQuota
        );
        assert!(!account.pass_datagram(1, true));
        assert_eq!(account.run_until_ended(None, async {}).await, None);
    }
    move_bytes(&bob, 10_000, 0);
    assert!(bob.admit_session(HERE).is_ok(), "bob has no quota");

    registry.set_limits(
        "ann",
        UserLimits {
            quota: Some(2000),
            ..limits()
        },
    );
    assert!(one.admit_session(HERE).is_ok(), "the quota was raised");
    assert!(one.pass_datagram(999, false));
    assert!(other.pass_datagram(1, false), "the last byte");
    assert!(!other.pass_datagram(1, false));
    assert!(registry.reset_usage("ann"));
    assert!(one.admit_session(HERE).is_ok());
    assert_eq!(used(&registry, "ann"), (0, 0));
    let total = registry.report("ann").unwrap().total;
    assert_eq!((total.up, total.down), (500, 1500));
}

#[tokio::test]
async fn a_new_period_starts_from_zero() {
    let registry = UserRegistry::default();
    let monthly = UserLimits {
        quota: Some(100),
        period: QuotaPeriod::Month,
        ..limits()
    };
    registry.set_limits("ann", monthly);
    let ann = registry.new_account("ann", "ann");
    move_bytes(&ann, 100, 0);
    assert!(ann.admit_session(HERE).is_err());
    let entry = registry.find("ann").unwrap();
    let now = system::unix_now();
    let next = QuotaPeriod::Month.next_start(now).unwrap();
    assert_eq!(entry.update(now), Some(next), "the timer waits for the end");
    assert_eq!(entry.report(UnixTime(next.0 - 1)).used_in_period.up, 100);
    let after = entry.report(next);
    assert_eq!(
        (after.state, after.used_in_period.up),
        (UserState::Active, 0)
    );
    assert_eq!(after.total.up, 100);
    // The clock is set back.
    let back = entry.report(now);
    assert_eq!((back.state, back.used_in_period.up), (UserState::Active, 0));
}

#[tokio::test]
async fn expiry_ends_sessions_without_traffic() {
    let registry = Arc::new(UserRegistry::default());
    let _timer = registry.start_timer();
    let ann = registry.new_account("ann", "ann");
    let _permit = ann.admit_session(HERE).unwrap();
    let session = ann.run_until_ended(None, pending::<()>());
    let at = UnixTime(system::unix_now().0 + 2);
    let expires = Some(at);
    registry.set_limits(
        "ann",
        UserLimits {
            expires,
            ..limits()
        },
    );
    let late = Duration::from_secs(20);
    assert_eq!(timeout(late, session).await.unwrap(), None);
    assert!(system::unix_now() >= at, "too early");
    assert_eq!(ann.admit_session(HERE).unwrap_err(), UserRefusal::Expired);
    registry.set_limits("ann", limits());
    assert!(ann.admit_session(HERE).is_ok());
}

#[test]
fn sessions_and_devices_are_counted_until_they_end() {
    let registry = UserRegistry::default();
    let few = UserLimits {
        sessions: Some(3),
        devices: Some(2),
        ..limits()
    };
    registry.set_limits("ann", few);
    let ann = registry.new_account("ann", "ann");
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    let first = ann.admit_session(ip("10.0.0.1")).unwrap();
    let second = ann.admit_session(ip("2001:db8::1")).unwrap();
    assert_eq!(
        ann.admit_session(ip("10.0.0.2")).unwrap_err(),
        UserRefusal::TooManyDevices
    );
    // An address of the same network is no other device.
    let third = ann.admit_session(ip("2001:db8::2")).unwrap();
    assert_eq!(
        ann.admit_session(ip("10.0.0.1")).unwrap_err(),
        UserRefusal::TooManySessions
    );
    let connection = ann.admit_connection(ip("10.0.0.1")).unwrap();
    let report = registry.report("ann").unwrap();
    assert_eq!((report.sessions, report.devices), (3, 2));
    drop((second, third));
    let report = registry.report("ann").unwrap();
    assert_eq!((report.sessions, report.devices), (1, 1));
    assert!(ann.admit_session(ip("10.0.0.2")).is_ok());
    drop(first);
    assert_eq!(registry.report("ann").unwrap().devices, 1, "connected");
    drop(connection);
    assert_eq!(registry.report("ann").unwrap().devices, 0);
}

#[test]
fn near_the_end_of_a_quota_pieces_are_small() {
    let registry = UserRegistry::default();
    let ann = registry.new_account("ann", "ann");
    let (cx, ticket) = (Context::from_waker(Waker::noop()), QueueTicket::default());
    let allowed = |n| Poll::Ready(n);
    let poll = || ann.poll_allowance(&cx, true, &ticket);
    assert_eq!(poll(), allowed(usize::MAX));
    for (quota, piece) in [(1 << 30, 16 << 20), (1 << 20, 16 << 10), (700, 700)] {
        let quota = Some(quota);
        registry.set_limits("ann", UserLimits { quota, ..limits() });
        assert_eq!(poll(), allowed(piece));
    }
    registry.set_limits(
        "ann",
        UserLimits {
            quota: Some(0),
            ..limits()
        },
    );
    assert!(poll().is_pending());
}

#[test]
fn what_is_stored_is_restored_and_counted_once() {
    let registry = UserRegistry::default();
    let weekly = UserLimits {
        quota: Some(1000),
        period: QuotaPeriod::Week,
        rate: Some(5),
        ..limits()
    };
    registry.set_limits("ann", weekly);
    let ann = registry.new_account("ann", "ann");
    let idle = registry.new_account("idle", "idle");
    move_bytes(&ann, 100, 50);
    let stored: Vec<StoredUser> = registry.to_stored().collect();
    assert_eq!(stored.len(), 1, "a user without limits and usage");

    let next = UserRegistry::default();
    // A session that started before.
    let again = next.new_account("ann", "ann");
    move_bytes(&again, 30, 60);
    next.restore(&stored);
    next.restore(&stored);
    let report = next.report("ann").unwrap();
    assert_eq!(report.limits, weekly);
    assert_eq!((report.total.up, report.total.down), (100, 60));
    assert_eq!(used(&next, "ann"), (100, 60));
    move_bytes(&again, 5, 0);
    assert_eq!(next.report("ann").unwrap().total.up, 105);
    drop(idle);
}

#[test]
fn counters_of_panels_and_of_other_processes_change_no_total() {
    let registry = UserRegistry::default();
    let ann = registry.new_account("ann", "ann");
    move_bytes(&ann, 10, 0);
    assert_eq!(ann.read_usage(true).up, 10);
    assert_eq!(ann.read_usage(false).up, 0);
    move_bytes(&ann, 1, 0);
    assert_eq!(ann.read_usage(false).up, 1);
    // The process that this one succeeds reports a user twice: at the listener, and by name.
    let foreign = Usage {
        up: 100,
        ..Usage::default()
    };
    ann.add_usage(foreign);
    registry.add_usages(&[UserCounters {
        name: "ann".to_owned(),
        usage: foreign,
    }]);
    assert_eq!(ann.read_usage(false).up, 101);
    assert_eq!(registry.report("ann").unwrap().total.up, 111);
    // An account that is gone.
    drop(ann);
    assert_eq!(registry.report("ann").unwrap().total.up, 111);
}

#[test]
fn a_removed_user_is_forgotten_and_counted_anew() {
    let registry = UserRegistry::default();
    let expires = Some(UnixTime(1));
    registry.set_limits(
        "gone",
        UserLimits {
            expires,
            ..limits()
        },
    );
    assert!(registry.remove("gone"));
    assert!(registry.report("gone").is_none());
    assert!(!registry.remove("gone"));
    assert!(!registry.reset_usage("gone"));

    registry.set_limits(
        "ann",
        UserLimits {
            expires,
            ..limits()
        },
    );
    let ann = registry.new_account("ann", "ann");
    move_bytes(&ann, 10, 10);
    assert!(registry.remove("ann"));
    assert!(ann.admit_session(HERE).is_ok());
    move_bytes(&ann, 1, 2);
    let report = registry.report("ann").unwrap();
    assert_eq!((report.total.up, report.total.down), (1, 2));
    assert_eq!(report.limits, limits());
}

/// The devices that came last end, whichever account their sessions have; the others go on until a kick.
#[tokio::test]
async fn devices_beyond_a_lower_limit_end() {
    let registry = UserRegistry::default();
    let (one, two) = (
        registry.new_account("ann", "ann"),
        registry.new_account("ann", "ann"),
    );
    let at = |n| IpAddr::from([192, 0, 2, n]);
    let mut sessions = Vec::new();
    for (n, account) in [(1, &one), (2, &two), (3, &one)] {
        let permit = account.admit_session(at(n)).unwrap();
        let account = account.clone();
        sessions.push(tokio::spawn(async move {
            let end = account.run_until_ended(permit.as_ref(), pending::<()>());
            end.await.is_none()
        }));
    }
    let udp = two.admit_session(at(2)).unwrap();
    let mut notice = two.end_notice(udp.as_ref()).unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    let settle = || sleep(Duration::from_millis(50));
    let set = |devices| {
        let devices = Some(devices);
        registry.set_limits(
            "ann",
            UserLimits {
                devices,
                ..limits()
            },
        );
    };
    settle().await;
    set(2);
    settle().await;
    let over = |sessions: &[JoinHandle<bool>]| {
        let over = sessions.iter().map(JoinHandle::is_finished);
        over.collect::<Vec<_>>()
    };
    assert_eq!(over(&sessions), [false, false, true]);
    assert!(notice.poll_ended(&mut cx, &two, udp.as_ref()).is_pending());
    assert!(one.admit_session(at(3)).is_err());
    set(1);
    settle().await;
    assert_eq!(over(&sessions), [false, true, true]);
    assert!(notice.poll_ended(&mut cx, &two, udp.as_ref()).is_ready());
    assert!(one.admit_session(at(2)).is_err(), "it is ending");
    assert!(one.admit_session(at(1)).is_ok());
    assert_eq!(registry.report("ann").unwrap().devices, 1);
    drop(udp);
    assert!(registry.kick("ann"));
    for session in sessions {
        assert!(session.await.unwrap());
    }
    // Nothing remembers the devices.
    assert!(one.admit_session(at(3)).is_ok());
}

#[tokio::test]
async fn a_kick_ends_what_is_being_opened_and_nothing_later() {
    let registry = UserRegistry::default();
    let ann = registry.new_account("ann", "ann");
    let opening = ann.admit_session(HERE).unwrap();
    let association = ann.admit_session(HERE).unwrap();
    assert!(registry.kick("ann"));
    let session = ann.run_until_ended(opening.as_ref(), async {});
    assert_eq!(session.await, None);
    assert!(ann.end_notice(association.as_ref()).is_none());
    let later = ann.admit_session(HERE).unwrap();
    let session = ann.run_until_ended(later.as_ref(), async {});
    assert_eq!(session.await, Some(()));
}

/// Ten thousand users with limits may take 300 bytes each. Besides the entry these are its name, the counts of its
/// pointer, and its place in the set, which is at least half full.
#[test]
fn an_entry_is_small() {
    let name = 24;
    let counts = 2 * size_of::<usize>();
    let place = (size_of::<NamedEntry>() + 1) * 16 / 7;
    let size = size_of::<UserEntry>() + name + counts + place;
    assert!(size <= 300, "{size} bytes");
}

/// A session that is ending keeps no removed user alive, and a user of the same name starts from zero.
#[test]
fn a_removed_user_is_unknown_while_sessions_end() {
    let registry = UserRegistry::default();
    let ann = registry.new_account("ann", "ann");
    let session = ann.admit_session([10, 0, 0, 1].into()).unwrap();
    ann.count_bytes(500, true);
    registry.set_limits("ann", limits());
    assert!(registry.remove("ann"));
    assert!(!registry.remove("ann"), "it is unknown already");
    assert_eq!(registry.report("ann"), None);
    assert!(registry.reports().is_empty());
    assert_eq!(registry.to_stored().count(), 0);
    drop((session, ann));
    let again = registry.new_account("ann", "ann");
    let report = registry.report("ann").unwrap();
    assert_eq!((report.total.up, report.sessions), (0, 0));
    drop(again);
}
