//! The metrics of a node, whose names are stable.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use adit_fleet::replay::ClaimBatcher;
use adit_fleet::{NodeState, StoreCall};

use crate::replay;
use crate::state::Shared;

/// Upper bounds of the buckets of calls, in microseconds.
const BOUNDS: [u64; 9] = [
    500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000, 1_000_000, 5_000_000,
];

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// It only increases.
    Counter,
    /// It rises and falls.
    Gauge,
}

/// The names and values of labels.
pub type Labels = Vec<(&'static str, String)>;

/// A metric with its samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// The name.
    pub name: &'static str,
    /// The kind.
    pub kind: MetricKind,
    /// One sentence.
    pub help: &'static str,
    /// Labels and values.
    pub samples: Vec<(Labels, f64)>,
}

/// Durations in buckets.
#[derive(Debug, Clone, PartialEq)]
pub struct CallDurations {
    /// Upper bounds, each with the number of calls up to it.
    pub buckets: Vec<(Duration, u64)>,
    /// Number of calls.
    pub count: u64,
    /// Sum of their durations.
    pub sum: Duration,
}

/// Returns the metrics of a node, and those of its checks of replays if it has any.
pub(crate) fn node_metrics(node: &Shared, replays: Option<&ClaimBatcher>) -> Vec<Metric> {
    let facts = &node.facts;
    let flag = |yes: bool| if yes { 1.0 } else { 0.0 };
    let offset = facts.clock_offset_ms.load(Ordering::Relaxed);
    let seconds = to_f64(offset.unsigned_abs()) / 1000.0;
    let states = ["active", "disabled", "expired"]
        .into_iter()
        .zip(node.directory.states());
    let states = states.map(|(state, count)| (vec![("state", state.to_owned())], to_f64(count)));
    let mut metrics = vec![
        gauge(
            "adit_fleet_up",
            "1 while the store of the fleet answers.",
            flag(facts.store_is_up.load(Ordering::Relaxed)),
        ),
        gauge(
            "adit_fleet_lag_seconds",
            "Time from the arrival of the last change until it was applied.",
            to_f64(facts.lag_ms.load(Ordering::Relaxed)) / 1000.0,
        ),
        gauge(
            "adit_fleet_change_number",
            "The number of the last change that was applied.",
            to_f64(node.position().0),
        ),
        gauge(
            "adit_fleet_unacked_bytes",
            "Bytes of users that the store has not acknowledged.",
            to_f64(facts.unacknowledged_bytes.load(Ordering::Relaxed)),
        ),
        gauge(
            "adit_fleet_regression",
            "1 while the store has lost changes, and this node keeps its users.",
            flag(node.regression().is_some()),
        ),
        gauge(
            "adit_fleet_nodes",
            "Nodes that report to the store.",
            f64::from(facts.live_nodes.load(Ordering::Relaxed)),
        ),
        gauge(
            "adit_fleet_outage_seconds",
            "Time for which the store has not answered.",
            facts.outage().unwrap_or_default().as_secs_f64(),
        ),
        gauge(
            "adit_fleet_draining",
            "1 while the node is drained.",
            flag(facts.state() != NodeState::Active),
        ),
        gauge(
            "adit_clock_offset_seconds",
            "The clock of this machine minus that of the store server.",
            if offset < 0 { -seconds } else { seconds },
        ),
        Metric {
            name: "adit_fleet_users",
            kind: MetricKind::Gauge,
            help: "Users of the fleet, by state.",
            samples: states.collect(),
        },
    ];
    metrics.extend(node.counters.metrics());
    if let Some(replays) = replays {
        metrics.extend(replay::metrics(&replays.stats()));
    }
    metrics
}

/// The outcome of a call to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallResult {
    Ok,
    Unreachable,
    Error,
}

impl CallResult {
    const ALL: [Self; 3] = [Self::Ok, Self::Unreachable, Self::Error];

    const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unreachable => "unreachable",
            Self::Error => "error",
        }
    }
}

/// The reason why a user was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutReason {
    /// The quota of the period is used up.
    Quota,
    /// The store does not answer, and the grace is used up.
    Outage,
}

/// The counters of a node.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    calls: Mutex<Vec<((StoreCall, usize), u64)>>,
    buckets: [AtomicU64; BOUNDS.len()],
    above: AtomicU64,
    micros: AtomicU64,
    cut: [AtomicU64; 2],
    pub(crate) bad_records: AtomicU64,
    pub(crate) kicks: AtomicU64,
}

impl Counters {
    /// Counts a call.
    pub(crate) fn count_call(&self, call: StoreCall, result: CallResult, took: Duration) {
        let at = CallResult::ALL.iter().position(|known| *known == result);
        let key = (call, at.unwrap_or_default());
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        match calls.iter_mut().find(|(known, _)| *known == key) {
            Some((_, count)) => *count += 1,
            None => calls.push((key, 1)),
        }
        drop(calls);
        // These wait for a change on purpose.
        if call == StoreCall::Changes {
            return;
        }
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let at = BOUNDS.partition_point(|bound| *bound < micros);
        let bucket = self.buckets.get(at).unwrap_or(&self.above);
        bucket.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Counts a user who was cut.
    pub(crate) fn count_cut(&self, why: CutReason) {
        let [quota, outage] = &self.cut;
        match why {
            CutReason::Quota => quota,
            CutReason::Outage => outage,
        }
        .fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the durations of calls.
    pub(crate) fn durations(&self) -> CallDurations {
        let mut count = 0;
        let buckets = BOUNDS.iter().zip(&self.buckets);
        let buckets = buckets.map(|(bound, bucket)| {
            count += bucket.load(Ordering::Relaxed);
            (Duration::from_micros(*bound), count)
        });
        CallDurations {
            buckets: buckets.collect(),
            count: count + self.above.load(Ordering::Relaxed),
            sum: Duration::from_micros(self.micros.load(Ordering::Relaxed)),
        }
    }

    /// Returns the counters.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let calls = {
            let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            let each = calls.iter().map(|((call, at), count)| {
                let result = CallResult::ALL.get(*at).map_or("", |result| result.name());
                let labels = vec![
                    ("op", call.name().to_owned()),
                    ("result", result.to_owned()),
                ];
                (labels, to_f64(*count))
            });
            each.collect()
        };
        let [quota, outage] = &self.cut;
        let cut = [("quota", quota), ("outage", outage)]
            .map(|(why, count)| (vec![("reason", why.to_owned())], load(count)));
        vec![
            Metric {
                name: "adit_fleet_calls_total",
                kind: MetricKind::Counter,
                help: "Calls to the store of the fleet.",
                samples: calls,
            },
            Metric {
                name: "adit_quota_cut_total",
                kind: MetricKind::Counter,
                help: "Users of the fleet whose sessions were ended: by their quota, or during an outage of the store.",
                samples: cut.into(),
            },
            counter(
                "adit_fleet_bad_records_total",
                "Records of users that this node did not accept.",
                load(&self.bad_records),
            ),
            counter(
                "adit_fleet_kicks_total",
                "Users whose sessions an operator has ended.",
                load(&self.kicks),
            ),
        ]
    }
}

fn load(count: &AtomicU64) -> f64 {
    to_f64(count.load(Ordering::Relaxed))
}

fn counter(name: &'static str, help: &'static str, value: f64) -> Metric {
    Metric {
        name,
        kind: MetricKind::Counter,
        help,
        samples: vec![(Labels::new(), value)],
    }
}

/// Returns a gauge without labels.
pub(crate) fn gauge(name: &'static str, help: &'static str, value: f64) -> Metric {
    Metric {
        name,
        kind: MetricKind::Gauge,
        help,
        samples: vec![(Labels::new(), value)],
    }
}

/// Returns a number for metrics, which need no more than 53 bits.
#[expect(
    clippy::cast_precision_loss,
    reason = "metrics have the precision of their format"
)]
pub(crate) const fn to_f64(number: u64) -> f64 {
    number as f64
}
