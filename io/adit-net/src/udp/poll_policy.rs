//! The choice between registering a socket with the reactor and polling it with a timer.
//!
//! Datagrams that arrive one by one, thousands per second, wake a thread each, and waking it costs more
//! than all the rest. Polled every [`POLL_INTERVAL`], they arrive in batches, each of them at most that much later.
//! This would slow down a sender that waits for answers: a flow that becomes slower is registered again,
//! and if that makes it faster it is not polled for a while.

use std::time::{Duration, Instant};

/// The polling interval.
pub(super) const POLL_INTERVAL: Duration = Duration::from_micros(500);
/// Number of polls that are evaluated together.
const WINDOW_POLLS: u32 = 256;
/// The same right after polling has begun, 10 ms: a sender that waits for each answer has four times fewer
/// per second then, and with 256 polls one echo in a hundred through KCP took 0.55 ms instead of 0.2.
const TRIAL_POLLS: u32 = 20;
/// The same if every poll found something, and none more than [`MAX_EXCHANGE_DATAGRAMS`].
const SHORT_TRIAL_POLLS: u32 = 6;
/// Maximum number of datagrams of an answer: itself, its acknowledgement, and parity now and then.
const MAX_EXCHANGE_DATAGRAMS: u32 = 6;
/// Maximum duration of [`WINDOW_POLLS`] polls for which a timer pays, since it saves half of them: 4,000 per
/// second.
const MAX_WINDOW_TIME: Duration = Duration::from_millis(64);
/// Average number of datagrams per poll from which on a wakeup is worth its cost.
const MIN_REGISTERED_BATCH: u32 = 3;
/// Minimum number of datagrams per timer interval for which polling is worthwhile.
const MIN_POLLED_BATCH: u32 = 2;
/// Number of datagrams per timer interval above which a socket of a usual system may soon overflow.
const MAX_POLLED_BATCH: usize = 64;
/// Polling is to blame for a flow's slowness if the flow is faster by this factor without it.
const SLOWDOWN: f64 = 1.3;
/// The same for a trial, which sees one or two bursts of what is sent every ten milliseconds.
const SLOWDOWN_IN_TRIAL: f64 = 2.0;
/// Minimum and maximum time for which such a flow is not polled; four times as long each time.
const SUSPENSION: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));
/// Polling that lasted longer than this did not slow the flow down.
const LASTING_POLLING: Duration = Duration::from_secs(2);

/// The decision after a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No change.
    Same,
    /// Poll with the timer.
    Poll,
    /// Register with the reactor.
    Register,
}

/// The measurements of one socket.
#[derive(Debug, Default)]
pub(super) struct PollPolicy {
    polls: u32,
    datagrams: u32,
    /// Maximum number of datagrams in one poll.
    most: u32,
    /// Allocated after the first window: most sockets never get that far.
    history: Option<Box<PollHistory>>,
}

/// The results of earlier windows.
#[derive(Debug, Default)]
struct PollHistory {
    /// The start of the current window.
    since: Option<Instant>,
    polling: Option<Polling>,
    /// Set if the socket has just been registered again: the start of the polling before it, and the rate
    /// then, in datagrams per second.
    just_registered: Option<(Instant, f64)>,
    suspended: Option<Suspension>,
}

/// The state while the socket is polled.
#[derive(Debug)]
struct Polling {
    since: Instant,
    /// The rate before, in datagrams per second.
    before: f64,
    /// True until the first evaluation.
    trial: bool,
}

/// The state while the socket stays registered because polling did not help.
#[derive(Debug)]
struct Suspension {
    until: Instant,
    /// The intended duration.
    time: Duration,
    /// The rate, in datagrams per second: one that is much lower or higher belongs to another flow.
    rate: f64,
}

impl PollPolicy {
    /// Records the number of datagrams of one poll. `now` is called once in many polls.
    pub(super) fn record_poll(
        &mut self,
        datagrams: usize,
        now: impl FnOnce() -> Instant,
    ) -> Verdict {
        if datagrams > MAX_POLLED_BATCH
            && let Some(beating) = self.history.as_mut().and_then(|past| past.polling.take())
        {
            let now = now();
            let rate = datagrams as f64 / POLL_INTERVAL.as_secs_f64();
            self.history_mut().suspend_polling(now, beating.since, rate);
            self.begin_window(now);
            return Verdict::Register;
        }
        self.polls += 1;
        let datagrams = u32::try_from(datagrams).unwrap_or(u32::MAX);
        self.datagrams = self.datagrams.saturating_add(datagrams);
        self.most = self.most.max(datagrams);
        if self.polls < self.window_length() {
            return Verdict::Same;
        }
        let now = now();
        let counted = (self.polls, self.datagrams);
        let past = self.history_mut();
        let verdict = past.since.map_or(Verdict::Same, |since| {
            past.evaluate_window(counted, now, now.saturating_duration_since(since))
        });
        self.begin_window(now);
        verdict
    }

    /// Returns the number of polls that are evaluated together.
    fn window_length(&self) -> u32 {
        // Between two bursts there may be polls that find nothing.
        let steady = self.most <= MAX_EXCHANGE_DATAGRAMS && self.datagrams >= self.polls;
        let beating = self.history.as_ref().and_then(|past| past.polling.as_ref());
        match beating {
            Some(Polling { trial: true, .. }) if steady => SHORT_TRIAL_POLLS,
            Some(Polling { trial: true, .. }) => TRIAL_POLLS,
            _ => WINDOW_POLLS,
        }
    }

    fn begin_window(&mut self, now: Instant) {
        (self.polls, self.datagrams, self.most) = (0, 0, 0);
        self.history_mut().since = Some(now);
    }

    fn history_mut(&mut self) -> &mut PollHistory {
        self.history.get_or_insert_default()
    }
}

impl PollHistory {
    /// Suspends polling for a while, after a phase that did not help.
    fn suspend_polling(&mut self, now: Instant, since: Instant, rate: f64) {
        let lasted = now.saturating_duration_since(since) > LASTING_POLLING;
        let last = self.suspended.as_ref().filter(|_| !lasted);
        let time = last.map_or(SUSPENSION.0, |last| (4 * last.time).min(SUSPENSION.1));
        let until = now + time;
        self.suspended = Some(Suspension { until, time, rate });
    }

    fn evaluate_window(&mut self, counted: (u32, u32), now: Instant, took: Duration) -> Verdict {
        let (looks, datagrams) = counted;
        let rate = f64::from(datagrams) / took.as_secs_f64().max(f64::EPSILON);
        if let Some(beating) = &mut self.polling {
            let trial = std::mem::take(&mut beating.trial);
            let blame = if trial { SLOWDOWN_IN_TRIAL } else { SLOWDOWN };
            if datagrams >= looks * MIN_POLLED_BATCH && rate > beating.before / blame {
                return Verdict::Same;
            }
            self.just_registered = Some((beating.since, rate));
            self.polling = None;
            return Verdict::Register;
        }
        if let Some((since, slower)) = self.just_registered.take()
            && rate > slower * SLOWDOWN
        {
            self.suspend_polling(now, since, rate);
        }
        let another = |last: &Suspension| !(last.rate / 2.0..last.rate * 2.0).contains(&rate);
        let rested = |last: &Suspension| now >= last.until || another(last);
        let rested = self.suspended.as_ref().is_none_or(rested);
        if rested && took <= MAX_WINDOW_TIME && datagrams < WINDOW_POLLS * MIN_REGISTERED_BATCH {
            self.polling = Some(Polling {
                since: now,
                before: rate,
                trial: true,
            });
            return Verdict::Poll;
        }
        Verdict::Same
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flow with this number of datagrams per poll and this time between two polls.
    struct Flow {
        pace: PollPolicy,
        now: Instant,
    }

    impl Flow {
        fn new() -> Self {
            Self {
                pace: PollPolicy::default(),
                now: Instant::now(),
            }
        }

        /// Returns the verdicts of this many windows.
        fn go(&mut self, windows: u32, datagrams: usize, between: Duration) -> Vec<Verdict> {
            self.look(windows * WINDOW_POLLS, datagrams, between)
        }

        /// Returns the verdicts of this many polls.
        fn look(&mut self, looks: u32, datagrams: usize, between: Duration) -> Vec<Verdict> {
            let looks = (0..looks).map(|_| {
                self.now += between;
                self.pace.record_poll(datagrams, || self.now)
            });
            looks.filter(|verdict| *verdict != Verdict::Same).collect()
        }
    }

    const MICRO: Duration = Duration::from_micros(1);

    #[test]
    fn slow_flows_and_batches_are_watched() {
        assert_eq!(Flow::new().go(50, 1, 260 * MICRO), []);
        assert_eq!(Flow::new().go(50, 3, 20 * MICRO), []);
    }

    #[test]
    fn a_fast_one_goes_in_a_beat_until_it_ends() {
        let mut flow = Flow::new();
        assert_eq!(flow.go(2, 1, 50 * MICRO), [Verdict::Poll]);
        assert_eq!(flow.look(TRIAL_POLLS, 10, POLL_INTERVAL), []);
        assert_eq!(flow.go(1000, 10, POLL_INTERVAL), []);
        assert_eq!(flow.go(1, 1, POLL_INTERVAL), [Verdict::Register]);
        assert_eq!(flow.go(9, 1, 260 * MICRO), [], "too slow for one");
    }

    #[test]
    fn one_that_became_slower_by_itself_goes_on_in_a_beat() {
        let mut flow = Flow::new();
        assert_eq!(flow.go(2, 2, 13 * MICRO), [Verdict::Poll]);
        assert_eq!(flow.look(TRIAL_POLLS, 60, POLL_INTERVAL), []);
        assert_eq!(flow.go(9, 60, POLL_INTERVAL), []);
        assert_eq!(flow.go(1, 10, POLL_INTERVAL), [Verdict::Register]);
        assert_eq!(flow.go(1, 1, 50 * MICRO), [Verdict::Poll]);
        assert_eq!(flow.look(TRIAL_POLLS, 10, POLL_INTERVAL), []);
        assert_eq!(flow.go(9, 10, POLL_INTERVAL), []);
    }

    /// KCP sends every ten milliseconds unless something else triggers it.
    #[test]
    fn bursts_are_no_slowness() {
        for first in 0..TRIAL_POLLS {
            let mut flow = Flow::new();
            // 22,000 per second, also in bursts.
            assert_eq!(flow.go(2, 1, 45 * MICRO), [Verdict::Poll]);
            for look in 0..10_000 {
                // 128 datagrams in a millisecond, then few for twelve.
                let datagrams = if (first + look) % 26 < 2 { 64 } else { 6 };
                assert_eq!(
                    flow.look(1, datagrams, POLL_INTERVAL),
                    [],
                    "{first}, {look}"
                );
            }
        }
    }

    #[test]
    fn a_flood_is_watched_at_once() {
        let mut flow = Flow::new();
        assert_eq!(flow.go(2, 1, 50 * MICRO), [Verdict::Poll]);
        assert_eq!(flow.pace.record_poll(65, || flow.now), Verdict::Register);
        assert_eq!(flow.go(30, 2, 12 * MICRO), [], "not again immediately");
        assert_eq!(flow.go(1, 1, 50 * MICRO), [Verdict::Poll], "another flow");
    }

    #[test]
    fn who_waits_for_answers_is_left_alone_ever_longer() {
        let mut flow = Flow::new();
        let began = flow.now;
        let mut beats = 0;
        while flow.now - began < Duration::from_secs(100) {
            if flow.go(1, 1, 50 * MICRO) == [Verdict::Poll] {
                beats += 1;
                // An answer and its acknowledgement.
                let slowly = flow.look(SHORT_TRIAL_POLLS, 2, POLL_INTERVAL + 50 * MICRO);
                assert_eq!(slowly, [Verdict::Register], "after three milliseconds");
            }
        }
        assert!((4..9).contains(&beats), "{beats} times");
    }
}
