//! Metrics as text: OpenMetrics 1.0, or the older format of Prometheus.

use std::fmt::{Display, Write};

use adit_engine::HistogramStats;
use hyper::header::{ACCEPT, HeaderMap};

/// The format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricsFormat {
    /// Prometheus text, version 0.0.4.
    Prometheus,
    /// OpenMetrics, version 1.0.0.
    OpenMetrics,
}

/// The units that the name of a metric can end with.
const UNITS: [&str; 2] = ["seconds", "bytes"];

impl MetricsFormat {
    /// Returns the format that a client prefers; Prometheus text if it states no preference.
    pub(super) fn preferred_by(headers: &HeaderMap) -> Self {
        let (mut open, mut plain) = (0.0_f32, 0.0_f32);
        for value in headers.get_all(ACCEPT) {
            for range in value.to_str().unwrap_or_default().split(',') {
                let mut parts = range.split(';').map(str::trim);
                let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
                let quality = parts.find_map(|part| part.strip_prefix("q="));
                // A quality that cannot be read is that of a range without one (RFC 9110 section 12.4.2).
                let quality = quality.and_then(|text| text.parse().ok()).unwrap_or(1.0);
                match kind.as_str() {
                    "application/openmetrics-text" => open = open.max(quality),
                    "text/plain" => plain = plain.max(quality),
                    _ => {}
                }
            }
        }
        match open > 0.0 && open >= plain {
            true => Self::OpenMetrics,
            false => Self::Prometheus,
        }
    }

    /// Returns the media type.
    pub(super) const fn media_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricKind {
    /// A counter; its name ends with `_total`.
    Counter,
    /// A value that rises and falls.
    Gauge,
    /// Labels with the value 1; its name ends with `_info`.
    Info,
    /// A histogram.
    Histogram,
}

/// Metrics that are being written.
#[derive(Debug)]
pub(super) struct MetricsText {
    format: MetricsFormat,
    text: String,
}

impl MetricsText {
    pub(super) const fn new(format: MetricsFormat) -> Self {
        Self {
            format,
            text: String::new(),
        }
    }

    /// Appends the samples of a metric, each with its labels.
    pub(super) fn add_family<V: Display>(
        &mut self,
        name: &str,
        kind: MetricKind,
        help: &str,
        samples: impl IntoIterator<Item = (String, V)>,
    ) {
        self.add_head(name, kind, help);
        for (labels, value) in samples {
            self.add_sample(name, "", &labels, value);
        }
    }

    /// Appends histograms of durations, each with its labels.
    pub(super) fn add_histograms(
        &mut self,
        name: &str,
        help: &str,
        histograms: impl IntoIterator<Item = (String, HistogramStats)>,
    ) {
        self.add_head(name, MetricKind::Histogram, help);
        for (labels, stats) in histograms {
            for (bound, count) in &stats.buckets {
                let labels = format!("{labels},le=\"{:?}\"", bound.as_secs_f64());
                self.add_sample(name, "_bucket", &labels, count);
            }
            let infinite = format!("{labels},le=\"+Inf\"");
            self.add_sample(name, "_bucket", &infinite, stats.count);
            self.add_sample(name, "_sum", &labels, stats.sum.as_secs_f64());
            self.add_sample(name, "_count", &labels, stats.count);
        }
    }

    fn add_head(&mut self, name: &str, kind: MetricKind, help: &str) {
        let is_open = self.format == MetricsFormat::OpenMetrics;
        let (suffix, kind) = match kind {
            MetricKind::Counter => ("_total", "counter"),
            MetricKind::Info if is_open => ("_info", "info"),
            MetricKind::Gauge | MetricKind::Info => ("", "gauge"),
            MetricKind::Histogram => ("", "histogram"),
        };
        let family = name.strip_suffix(suffix);
        debug_assert!(family.is_some(), "{name} does not end with {suffix}");
        let family = family.unwrap_or(name);
        // OpenMetrics describes the family, whose samples have suffixes; Prometheus text the samples of a counter.
        let described = if is_open { family } else { name };
        let _ = writeln!(
            self.text,
            "# HELP {described} {help}\n# TYPE {described} {kind}"
        );
        let (_, last) = family.rsplit_once('_').unwrap_or_default();
        if is_open && let Some(unit) = UNITS.iter().find(|unit| **unit == last) {
            let _ = writeln!(self.text, "# UNIT {described} {unit}");
        }
    }

    fn add_sample(&mut self, name: &str, suffix: &str, labels: &str, value: impl Display) {
        let _ = match labels.is_empty() {
            true => writeln!(self.text, "{name}{suffix} {value}"),
            false => writeln!(self.text, "{name}{suffix}{{{labels}}} {value}"),
        };
    }

    /// Returns the text.
    pub(super) fn finish(mut self) -> String {
        if self.format == MetricsFormat::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

/// Escapes the value of a label.
pub(super) fn escape_label(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hyper::header::HeaderValue;

    use super::*;

    fn write_all(format: MetricsFormat) -> String {
        let mut text = MetricsText::new(format);
        let one = |labels: &str| [(labels.to_owned(), 1_u64)];
        text.add_family(
            "a_bytes_total",
            MetricKind::Counter,
            "Bytes.",
            one("b=\"c\""),
        );
        text.add_family("a_kilobytes", MetricKind::Gauge, "Not a unit.", one(""));
        text.add_family("a_node_info", MetricKind::Info, "Labels.", one("v=\"1\""));
        let stats = HistogramStats {
            buckets: vec![(Duration::from_micros(500), 2), (Duration::from_secs(1), 3)],
            count: 4,
            sum: Duration::from_millis(20_500),
        };
        text.add_histograms("a_wait_seconds", "Time.", [("b=\"c\"".to_owned(), stats)]);
        text.finish()
    }

    const HISTOGRAM: &str = "a_wait_seconds_bucket{b=\"c\",le=\"0.0005\"} 2\n\
        a_wait_seconds_bucket{b=\"c\",le=\"1.0\"} 3\na_wait_seconds_bucket{b=\"c\",le=\"+Inf\"} 4\n\
        a_wait_seconds_sum{b=\"c\"} 20.5\na_wait_seconds_count{b=\"c\"} 4\n";

    #[test]
    fn prometheus_text_describes_samples() {
        let expected = format!(
            "# HELP a_bytes_total Bytes.\n# TYPE a_bytes_total counter\na_bytes_total{{b=\"c\"}} 1\n\
             # HELP a_kilobytes Not a unit.\n# TYPE a_kilobytes gauge\na_kilobytes 1\n\
             # HELP a_node_info Labels.\n# TYPE a_node_info gauge\na_node_info{{v=\"1\"}} 1\n\
             # HELP a_wait_seconds Time.\n# TYPE a_wait_seconds histogram\n{HISTOGRAM}"
        );
        assert_eq!(write_all(MetricsFormat::Prometheus), expected);
    }

    #[test]
    fn openmetrics_describes_families_with_units() {
        let expected = format!(
            "# HELP a_bytes Bytes.\n# TYPE a_bytes counter\n# UNIT a_bytes bytes\n\
             a_bytes_total{{b=\"c\"}} 1\n\
             # HELP a_kilobytes Not a unit.\n# TYPE a_kilobytes gauge\na_kilobytes 1\n\
             # HELP a_node Labels.\n# TYPE a_node info\na_node_info{{v=\"1\"}} 1\n\
             # HELP a_wait_seconds Time.\n# TYPE a_wait_seconds histogram\n\
             # UNIT a_wait_seconds seconds\n{HISTOGRAM}# EOF\n"
        );
        assert_eq!(write_all(MetricsFormat::OpenMetrics), expected);
    }

    #[test]
    fn the_client_chooses_the_format() {
        let format = |accepts: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for accept in accepts {
                headers.append(ACCEPT, HeaderValue::from_static(accept));
            }
            MetricsFormat::preferred_by(&headers)
        };
        for accepts in [
            &["application/openmetrics-text"][..],
            // Prometheus 2.42.
            &[
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
               text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            ],
            &["text/plain;q=0.3", "Application/OpenMetrics-Text; q=0.5"],
        ] {
            assert_eq!(format(accepts), MetricsFormat::OpenMetrics, "{accepts:?}");
        }
        for accepts in [
            &[][..],
            &["*/*"],
            &["text/html"],
            &["application/openmetrics-text;q=0"],
            &["application/openmetrics-text;q=0.2,text/plain;q=0.9"],
        ] {
            assert_eq!(format(accepts), MetricsFormat::Prometheus, "{accepts:?}");
        }
    }
}
