//! The traffic of the last hour, and the event stream of those who watch it.
//!
//! One task measures once per second. If there are subscribers, it serializes one event for all of them: each reads the
//! newest one when its connection can take it, and skips those in between. A slow reader holds one event.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adit_engine::Engine;
use adit_wire::narrow_int;
use hyper::StatusCode;
use hyper::body::Bytes;
use serde::Serialize;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::Api;
use super::events::EventStream;
use super::overview::Overview;
use super::reply::{ApiResult, Refusal, Reply};

/// Interval of the measurements and of the events.
const TICK: Duration = Duration::from_secs(1);
/// Interval of the history, in seconds.
const HISTORY_INTERVAL: u64 = 5;
/// Number of entries of the history: one hour.
const HISTORY_LENGTH: usize = 720;
/// Maximum number of event streams.
const MAX_STREAMS: usize = 64;

/// Measures the traffic of an engine.
#[derive(Debug)]
pub(super) struct TrafficMonitor {
    state: Mutex<MonitorState>,
    /// The newest event; `None` once there are no more.
    events: watch::Sender<Option<Bytes>>,
    /// The slots of streams.
    streams: Arc<Semaphore>,
}

/// Bytes, or bytes per second, in both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Traffic {
    up: u64,
    down: u64,
}

#[derive(Debug, Default)]
struct MonitorState {
    rate: Traffic,
    history: VecDeque<Traffic>,
}

/// The data of an event.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OverviewEvent {
    #[serde(flatten)]
    overview: Overview,
    up_rate: u64,
    down_rate: u64,
}

#[derive(Serialize)]
struct History {
    interval: u64,
    up: Vec<u64>,
    down: Vec<u64>,
}

impl Traffic {
    fn of(engine: &Engine) -> Self {
        let total = engine.total_counts();
        Self {
            up: total.up,
            down: total.down,
        }
    }

    /// Returns the bytes per second since `before`. A reader of the counters may lag behind.
    fn rate_since(self, before: Self, elapsed: Duration) -> Self {
        let rate = |now: u64, before: u64| {
            let bytes = u128::from(now.saturating_sub(before));
            narrow_int(bytes * 1_000_000 / elapsed.as_micros().max(1))
        };
        Self {
            up: rate(self.up, before.up),
            down: rate(self.down, before.down),
        }
    }
}

impl MonitorState {
    /// Adds the average `rate` of the last `elapsed`, which is several intervals if the machine was suspended. Returns
    /// true if it was at least one.
    fn add_history(&mut self, rate: Traffic, elapsed: Duration) -> bool {
        let count = elapsed.as_secs() / HISTORY_INTERVAL;
        for _ in 0..count.min(narrow_int(HISTORY_LENGTH)) {
            if self.history.len() == HISTORY_LENGTH {
                self.history.pop_front();
            }
            self.history.push_back(rate);
        }
        count > 0
    }
}

impl TrafficMonitor {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::default(),
            events: watch::Sender::new(None),
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, MonitorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Measures until it is dropped, which ends the streams.
    pub(super) async fn run(&self, engine: &Engine) {
        let _end = StreamEnd(&self.events);
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first one is immediate.
        ticks.tick().await;
        let (mut last, mut measured) = (Traffic::of(engine), Instant::now());
        let (mut recorded, mut recorded_at) = (last, measured);
        self.events.send_replace(self.event(engine));
        loop {
            ticks.tick().await;
            let (traffic, now) = (Traffic::of(engine), Instant::now());
            let mut state = self.lock_state();
            state.rate = traffic.rate_since(last, now - measured);
            let average = traffic.rate_since(recorded, now - recorded_at);
            // A tick is never early, so that the intervals are not shorter than stated.
            if state.add_history(average, now - recorded_at) {
                (recorded, recorded_at) = (traffic, now);
            }
            drop(state);
            (last, measured) = (traffic, now);
            if self.events.receiver_count() > 0 {
                self.events.send_replace(self.event(engine));
            }
        }
    }

    /// Serializes the event of now.
    fn event(&self, engine: &Engine) -> Option<Bytes> {
        let Traffic { up, down } = self.lock_state().rate;
        let data = serde_json::to_string(&OverviewEvent {
            overview: Overview::of(engine),
            up_rate: up,
            down_rate: down,
        });
        let data = data.ok()?;
        Some(format!("event: overview\ndata: {data}\n\n").into())
    }
}

/// Ends the streams when dropped.
struct StreamEnd<'a>(&'a watch::Sender<Option<Bytes>>);

impl Drop for StreamEnd<'_> {
    fn drop(&mut self) {
        self.0.send_replace(None);
    }
}

impl Api {
    /// Answers `GET /history`: the rates of the last hour, oldest first.
    pub(super) fn get_history(&self) -> Reply {
        let state = self.monitor.lock_state();
        let history = History {
            interval: HISTORY_INTERVAL,
            up: state.history.iter().map(|rate| rate.up).collect(),
            down: state.history.iter().map(|rate| rate.down).collect(),
        };
        drop(state);
        Reply::ok(&history)
    }

    /// Answers `GET /events`: the overview, once per second.
    pub(super) fn stream_events(&self) -> ApiResult {
        let unavailable = |why: &str| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why);
        let monitor = &self.monitor;
        let slot = monitor.streams.clone().try_acquire_owned();
        let slot = slot.map_err(|_| unavailable("there are 64 event streams already"))?;
        let mut newest = monitor.events.subscribe();
        if newest.borrow_and_update().is_none() {
            return Err(unavailable("adit is about to end"));
        }
        // Without subscribers, the newest one is old.
        let first = monitor.event(&self.engine);
        Ok(Reply::events(EventStream::new(first, newest, slot)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_bytes_per_second() {
        let traffic = |up, down| Traffic { up, down };
        let (before, now) = (traffic(100, 0), traffic(1100, 1 << 50));
        let rate = now.rate_since(before, Duration::from_millis(500));
        assert_eq!((rate.up, rate.down), (2000, 1 << 51));
        assert_eq!(before.rate_since(now, TICK), traffic(0, 0));
        assert_eq!(now.rate_since(before, Duration::from_secs(1000)).up, 1);
    }

    #[test]
    fn the_history_is_an_hour_and_gaps_are_filled() {
        let mut state = MonitorState::default();
        let rate = |up| Traffic { up, down: 0 };
        assert!(!state.add_history(rate(9), Duration::from_millis(4999)));
        assert!(state.add_history(rate(1), Duration::from_millis(5010)));
        assert!(state.add_history(rate(2), Duration::from_secs(12)));
        let ups =
            |state: &MonitorState| -> Vec<u64> { state.history.iter().map(|t| t.up).collect() };
        assert_eq!(ups(&state), [1, 2, 2]);
        assert!(state.add_history(rate(3), Duration::from_hours(2)));
        assert_eq!(ups(&state), vec![3; HISTORY_LENGTH]);
        state.add_history(rate(4), Duration::from_secs(5));
        assert_eq!(state.history.len(), HISTORY_LENGTH);
        assert_eq!(state.history.back(), Some(&rate(4)));
    }
}
