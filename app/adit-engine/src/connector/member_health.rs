//! The health of a group member.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use adit_net::system::ThreadRng;
use adit_wire::Entropy;

use super::answer_time::AnswerTime;

/// Time that a member rests after its first failure. Doubles with each further failure.
const FIRST_REST: Duration = Duration::from_secs(5);
/// Maximum of that time.
const MAX_REST: Duration = Duration::from_secs(300);
/// The time is changed by up to this part at random, in per mille, so that many clients of a restarted server do
/// not return together.
const REST_JITTER: u16 = 250;
/// Minimum interval between two lines in the log that a member is out.
const WARN_INTERVAL: Duration = Duration::from_secs(60);

/// The position of a member in the order of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// It works, as far as is known.
    Up,
    /// Another member was faster; whether this one works is being found out.
    Suspect,
    /// It has failed.
    Out,
}

/// The health of a group member, which decides its position. All sessions of the group share it.
#[derive(Debug, Default)]
pub(super) struct MemberHealth(Mutex<MemberState>);

#[derive(Debug, Default)]
struct MemberState {
    /// Number of consecutive failures.
    failures: u32,
    /// Time of the last failure.
    failed: Option<Instant>,
    /// Time at which it last served a session.
    last_success: Option<Instant>,
    /// Time since which it is out.
    out_since: Option<Instant>,
    /// Time at which it may return.
    rest_until: Option<Instant>,
    is_suspect: bool,
    /// True while a probe looks at it.
    is_probed: bool,
    /// Time of the last line in the log that it is out, and true if its return has to be logged.
    warned: Option<Instant>,
    return_is_news: bool,
    /// Datagrams: consecutive silences, and the time until which other members are preferred.
    datagram_failures: u32,
    datagrams_rest_until: Option<Instant>,
    answer_time: AnswerTime,
    /// Time at which it was last measured, or a probe for that began.
    measured: Option<Instant>,
    /// Number of failures by their cause.
    causes: BTreeMap<&'static str, u64>,
    reason: String,
}

/// A member that has become out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NewlyOut {
    /// Time until it may return.
    pub(super) rest: Duration,
    /// True if the log should have a line about it.
    pub(super) is_news: bool,
}

/// The health of a member at one time.
#[derive(Debug, Clone)]
pub(super) struct HealthSnapshot {
    pub(super) standing: Standing,
    pub(super) usual_time: Duration,
    pub(super) is_measured: bool,
    pub(super) out_for: Option<Duration>,
    pub(super) reason: String,
    pub(super) causes: Vec<(&'static str, u64)>,
}

/// Returns the time of rest after this number of consecutive failures, before it is changed at random.
fn rest_after(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    FIRST_REST.saturating_mul(1 << doublings).min(MAX_REST)
}

/// Changes a time at random by up to a quarter.
fn with_jitter(time: Duration) -> Duration {
    time * u32::from(ThreadRng.in_range(1000 - REST_JITTER, 1000 + REST_JITTER)) / 1000
}

impl MemberState {
    fn clear_failure(&mut self) {
        self.failures = 0;
        self.out_since = None;
        self.rest_until = None;
        self.is_suspect = false;
    }
}

impl MemberHealth {
    fn lock_state(&self) -> MutexGuard<'_, MemberState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the position of the member.
    pub(super) fn standing(&self) -> Standing {
        let known = self.lock_state();
        match (known.out_since.is_some(), known.is_suspect) {
            (true, _) => Standing::Out,
            (false, true) => Standing::Suspect,
            (false, false) => Standing::Up,
        }
    }

    /// Returns true if datagrams should rather use another member.
    pub(super) fn loses_datagrams(&self) -> bool {
        let until = self.lock_state().datagrams_rest_until;
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Returns the time within which its answers usually arrive.
    pub(super) fn usual_time(&self) -> Duration {
        self.lock_state().answer_time.usual()
    }

    /// Returns its mean answer time, if it was measured.
    pub(super) fn mean_time(&self) -> Option<Duration> {
        self.lock_state().answer_time.mean()
    }

    /// Returns true if it has served a session since then.
    pub(super) fn has_served_since(&self, since: Instant) -> bool {
        self.lock_state().last_success.is_some_and(|at| at >= since)
    }

    /// Returns true, once per `interval`, if no session has measured the member for that long.
    pub(super) fn should_measure(&self, interval: Duration) -> bool {
        let (mut known, now) = (self.lock_state(), Instant::now());
        let due = known.measured.is_none_or(|at| now - at >= interval);
        if due {
            known.measured = Some(now);
        }
        due
    }

    /// Records that the member serves sessions; `took` is the time to its answer. Returns the time that it was out
    /// if the log should have a line about its return.
    pub(super) fn record_success(&self, took: Option<Duration>) -> Option<Duration> {
        let (mut known, now) = (self.lock_state(), Instant::now());
        known.last_success = Some(now);
        if let Some(took) = took {
            known.answer_time.add_sample(took);
            known.measured = Some(now);
        }
        let out_for = known.out_since.map(|since| now - since);
        known.clear_failure();
        let is_news = std::mem::take(&mut known.return_is_news);
        out_for.filter(|_| is_news)
    }

    /// Records that another member was faster than this one, which may still answer.
    pub(super) fn record_late(&self) {
        self.lock_state().is_suspect = true;
    }

    /// Records that it has answered after all, without proof that it serves.
    pub(super) fn record_answer(&self) {
        self.lock_state().is_suspect = false;
    }

    /// Records a failure of a session that started at `since`. Returns what follows if the member was not out.
    ///
    /// Simultaneous failures count once, and do not count at all if the member has served a session since.
    pub(super) fn record_failure(
        &self,
        since: Instant,
        cause: &'static str,
        reason: &str,
    ) -> Option<NewlyOut> {
        let (mut known, now) = (self.lock_state(), Instant::now());
        if [known.last_success, known.failed]
            .iter()
            .flatten()
            .any(|at| *at >= since)
        {
            known.is_suspect = false;
            return None;
        }
        known.failures = known.failures.saturating_add(1);
        known.failed = Some(now);
        known.is_suspect = false;
        *known.causes.entry(cause).or_default() += 1;
        reason.clone_into(&mut known.reason);
        let rest = with_jitter(rest_after(known.failures));
        known.rest_until = Some(now + rest);
        if known.out_since.is_some() {
            return None;
        }
        known.out_since = Some(now);
        let is_news = known.warned.is_none_or(|at| now - at >= WARN_INTERVAL);
        if is_news {
            known.warned = Some(now);
            known.return_is_news = true;
        }
        Some(NewlyOut { rest, is_news })
    }

    /// Returns the time until the member may return, `None` if it is not out.
    pub(super) fn rest_left(&self) -> Option<Duration> {
        let known = self.lock_state();
        known.out_since?;
        let until = known.rest_until?;
        Some(until.saturating_duration_since(Instant::now()))
    }

    /// Lets one request try a member that no probe can reach a conclusion about.
    pub(super) fn allow_trial(&self) {
        let mut known = self.lock_state();
        known.out_since = None;
        known.rest_until = None;
        known.is_suspect = true;
    }

    /// Returns true if the caller should start the probe of this member, and is the only one to do so until
    /// [`end_probe`](Self::end_probe).
    pub(super) fn start_probe(&self) -> bool {
        !std::mem::replace(&mut self.lock_state().is_probed, true)
    }

    /// Records that the probe has ended.
    pub(super) fn end_probe(&self) {
        self.lock_state().is_probed = false;
    }

    /// Records that no datagram has come back. Returns false if that was known.
    pub(super) fn record_lost_datagrams(&self) -> bool {
        let (mut known, now) = (self.lock_state(), Instant::now());
        if known.datagrams_rest_until.is_some_and(|until| now < until) {
            return false;
        }
        known.datagram_failures = known.datagram_failures.saturating_add(1);
        let rest = with_jitter(rest_after(known.datagram_failures));
        known.datagrams_rest_until = Some(now + rest);
        *known.causes.entry("datagrams").or_default() += 1;
        true
    }

    /// Records that a datagram has come back.
    pub(super) fn record_datagram(&self) {
        let mut known = self.lock_state();
        known.datagram_failures = 0;
        known.datagrams_rest_until = None;
    }

    /// Returns the health as it is now.
    pub(super) fn snapshot(&self) -> HealthSnapshot {
        let standing = self.standing();
        let known = self.lock_state();
        HealthSnapshot {
            standing,
            usual_time: known.answer_time.usual(),
            is_measured: known.answer_time.mean().is_some(),
            out_for: known.out_since.map(|since| since.elapsed()),
            reason: known
                .out_since
                .map(|_| known.reason.clone())
                .unwrap_or_default(),
            causes: known.causes.iter().map(|(k, n)| (*k, *n)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(health: &MemberHealth) -> Option<NewlyOut> {
        health.record_failure(Instant::now(), "refused", "connection refused")
    }

    fn seconds_left(health: &MemberHealth) -> u64 {
        health.rest_left().unwrap().as_secs()
    }

    #[test]
    fn a_failing_member_is_out_for_longer_and_longer() {
        let health = MemberHealth::default();
        assert_eq!(health.standing(), Standing::Up);
        for (i, seconds) in [5u64, 10, 20, 40, 80, 160, 300, 300]
            .into_iter()
            .enumerate()
        {
            let newly = fail(&health);
            assert_eq!(newly.is_some(), i == 0, "it was out already");
            assert_eq!(health.standing(), Standing::Out);
            let range = seconds * 3 / 4 - 1..=seconds * 5 / 4 + 1;
            assert!(range.contains(&seconds_left(&health)), "{seconds}");
        }
        assert!(health.record_success(None).is_some(), "news");
        assert_eq!(health.standing(), Standing::Up);
        let again = fail(&health).unwrap();
        assert!(again.rest < Duration::from_secs(7), "from the beginning");
        assert!(!again.is_news, "once a minute");
        assert_eq!(health.record_success(None), None, "nor is its return");
        assert_eq!(health.snapshot().causes, [("refused", 9)]);
    }

    #[test]
    fn what_fails_together_counts_once() {
        let (health, since) = (MemberHealth::default(), Instant::now());
        for _ in 0..50 {
            health.record_failure(since, "reset", "reset");
        }
        assert!(seconds_left(&health) < 7);
        health.record_success(None);
        assert_eq!(health.record_failure(since, "reset", "reset"), None);
        assert_eq!(health.standing(), Standing::Up, "it has served since");
    }

    #[test]
    fn a_slow_member_returns_once_it_answers() {
        let health = MemberHealth::default();
        health.record_late();
        assert_eq!(health.standing(), Standing::Suspect);
        health.record_answer();
        assert_eq!(health.standing(), Standing::Up);
        fail(&health);
        health.record_answer();
        assert_eq!(
            health.standing(),
            Standing::Out,
            "a connection is no service"
        );
        health.allow_trial();
        assert_eq!(health.standing(), Standing::Suspect);
    }

    #[test]
    fn lost_datagrams_are_apart_from_streams() {
        let health = MemberHealth::default();
        assert!(health.record_lost_datagrams());
        assert!(!health.record_lost_datagrams(), "known");
        assert!(health.loses_datagrams());
        assert_eq!(health.standing(), Standing::Up);
        health.record_datagram();
        assert!(!health.loses_datagrams());
    }

    #[test]
    fn rests_differ() {
        let all: std::collections::BTreeSet<_> = (0..50).map(|_| with_jitter(FIRST_REST)).collect();
        assert!(all.len() > 10);
        assert!(*all.first().unwrap() >= Duration::from_millis(3750));
        assert!(*all.last().unwrap() <= Duration::from_millis(6250));
    }
}
