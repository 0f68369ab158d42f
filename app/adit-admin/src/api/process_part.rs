//! Parts of the process that have metrics and a readiness of their own, such as the node of a fleet.

use adit_engine::HistogramStats;

/// A part of the process.
pub trait ProcessPart: Send + Sync {
    /// Returns whether the part is ready for clients.
    fn readiness(&self) -> PartReadiness;
    /// Returns its metrics.
    fn metrics(&self) -> Vec<PartMetric>;
    /// Returns its histograms: name, one sentence, counts.
    fn histograms(&self) -> Vec<(&'static str, &'static str, HistogramStats)>;
}

/// The readiness of a part for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartReadiness {
    /// It is ready.
    Ready,
    /// It serves clients, with this fault.
    Degraded(String),
    /// It should get no clients, for this reason.
    NotReady(String),
}

/// A metric of a part.
#[derive(Debug, Clone, PartialEq)]
pub struct PartMetric {
    /// The name.
    pub name: &'static str,
    /// True if it only increases; the name ends with `_total` then.
    pub is_counter: bool,
    /// One sentence.
    pub help: &'static str,
    /// Names and values of labels, and values.
    pub samples: Vec<(Vec<(&'static str, String)>, f64)>,
}
