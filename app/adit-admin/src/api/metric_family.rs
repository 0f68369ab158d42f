//! Metrics as data: what `/metrics` writes as text, and the export over OTLP as JSON.

use std::fmt;

use adit_engine::HistogramStats;

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetricKind {
    /// A counter; its name ends with `_total`.
    Counter,
    /// A value that rises and falls.
    Gauge,
    /// Labels with the value 1; its name ends with `_info`.
    Info,
    /// A histogram.
    Histogram,
}

impl MetricKind {
    /// Returns what the names of samples have after the name of the family.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::Counter => "_total",
            Self::Info => "_info",
            Self::Gauge | Self::Histogram => "",
        }
    }
}

/// The labels of a sample, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Labels(Vec<(&'static str, String)>);

impl Labels {
    /// Creates labels of these names and values.
    pub(crate) const fn new(pairs: Vec<(&'static str, String)>) -> Self {
        Self(pairs)
    }

    /// Returns these labels and one more.
    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.push((name, value.into()));
        self
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names and the values.
    #[cfg(feature = "otlp")]
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }
}

/// Writes the labels as Prometheus reads them, without braces.
impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{name}=\"{}\"", escape_label(value))?;
        }
        Ok(())
    }
}

/// Escapes the value of a label.
fn escape_label(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// The value of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum MetricValue {
    /// A count.
    Count(u64),
    /// Seconds, or a value of another kind that is no count.
    Measure(f64),
}

impl From<u64> for MetricValue {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl fmt::Display for MetricValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => fmt::Display::fmt(count, f),
            Self::Measure(value) => fmt::Display::fmt(value, f),
        }
    }
}

/// Labels and a value of a metric.
pub(crate) type Sample = (Labels, MetricValue);

/// A metric with its samples.
#[derive(Debug)]
pub(crate) struct MetricFamily {
    /// The name, with the suffix of its kind.
    pub(crate) name: String,
    pub(crate) kind: MetricKind,
    pub(crate) help: String,
    pub(crate) points: MetricPoints,
}

/// The samples of a metric.
#[derive(Debug)]
pub(crate) enum MetricPoints {
    /// Numbers.
    Values(Vec<Sample>),
    /// Histograms of durations.
    Histograms(Vec<(Labels, HistogramStats)>),
}

/// The units that the name of a family can end with.
const UNITS: [&str; 2] = ["seconds", "bytes"];

impl MetricFamily {
    pub(crate) fn new(
        name: impl Into<String>,
        kind: MetricKind,
        help: impl Into<String>,
        samples: impl IntoIterator<Item = Sample>,
    ) -> Self {
        Self {
            name: name.into(),
            kind,
            help: help.into(),
            points: MetricPoints::Values(samples.into_iter().collect()),
        }
    }

    pub(crate) fn histograms(
        name: impl Into<String>,
        help: impl Into<String>,
        histograms: impl IntoIterator<Item = (Labels, HistogramStats)>,
    ) -> Self {
        Self {
            name: name.into(),
            kind: MetricKind::Histogram,
            help: help.into(),
            points: MetricPoints::Histograms(histograms.into_iter().collect()),
        }
    }

    /// Returns the name without the suffix of its kind.
    pub(crate) fn base_name(&self) -> &str {
        let base = self.name.strip_suffix(self.kind.suffix());
        debug_assert!(base.is_some(), "{} lacks the suffix of its kind", self.name);
        base.unwrap_or(&self.name)
    }

    /// Returns the unit that the name states: `seconds` or `bytes`.
    pub(crate) fn unit(&self) -> Option<&'static str> {
        let (_, last) = self.base_name().rsplit_once('_')?;
        UNITS.into_iter().find(|unit| *unit == last)
    }
}
