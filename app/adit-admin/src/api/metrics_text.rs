//! Metrics as text: OpenMetrics 1.0, or the older format of Prometheus.

use std::fmt::{Display, Write};

use hyper::header::{ACCEPT, HeaderMap};

use super::metric_family::{Labels, MetricFamily, MetricKind, MetricPoints};

/// The format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricsFormat {
    /// Prometheus text, version 0.0.4.
    Prometheus,
    /// OpenMetrics, version 1.0.0.
    OpenMetrics,
}

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

/// Returns the text of metrics.
pub(super) fn write_metrics(format: MetricsFormat, families: &[MetricFamily]) -> String {
    let mut text = MetricsText {
        format,
        text: String::new(),
    };
    for family in families {
        text.add_family(family);
    }
    if format == MetricsFormat::OpenMetrics {
        text.text.push_str("# EOF\n");
    }
    text.text
}

/// Metrics that are being written.
#[derive(Debug)]
struct MetricsText {
    format: MetricsFormat,
    text: String,
}

impl MetricsText {
    fn add_family(&mut self, family: &MetricFamily) {
        self.add_head(family);
        let name = &family.name;
        match &family.points {
            MetricPoints::Values(samples) => {
                for (labels, value) in samples {
                    self.add_sample(name, "", labels, value);
                }
            }
            MetricPoints::Histograms(histograms) => {
                for (labels, stats) in histograms {
                    for (bound, count) in &stats.buckets {
                        let bound = format!("{:?}", bound.as_secs_f64());
                        let labels = labels.clone().with("le", bound);
                        self.add_sample(name, "_bucket", &labels, count);
                    }
                    let infinite = labels.clone().with("le", "+Inf");
                    self.add_sample(name, "_bucket", &infinite, stats.count);
                    self.add_sample(name, "_sum", labels, stats.sum.as_secs_f64());
                    self.add_sample(name, "_count", labels, stats.count);
                }
            }
        }
    }

    fn add_head(&mut self, family: &MetricFamily) {
        let is_open = self.format == MetricsFormat::OpenMetrics;
        let kind = match family.kind {
            MetricKind::Counter => "counter",
            MetricKind::Info if is_open => "info",
            MetricKind::Gauge | MetricKind::Info => "gauge",
            MetricKind::Histogram => "histogram",
        };
        // OpenMetrics describes the family, whose samples have suffixes; Prometheus text the samples of a counter.
        let described = match is_open {
            true => family.base_name(),
            false => &family.name,
        };
        let help = &family.help;
        let _ = writeln!(
            self.text,
            "# HELP {described} {help}\n# TYPE {described} {kind}"
        );
        if is_open && let Some(unit) = family.unit() {
            let _ = writeln!(self.text, "# UNIT {described} {unit}");
        }
    }

    fn add_sample(&mut self, name: &str, suffix: &str, labels: &Labels, value: impl Display) {
        let _ = match labels.is_empty() {
            true => writeln!(self.text, "{name}{suffix} {value}"),
            false => writeln!(self.text, "{name}{suffix}{{{labels}}} {value}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use adit_engine::HistogramStats;
    use hyper::header::HeaderValue;

    use super::*;

    fn write_all(format: MetricsFormat) -> String {
        let labelled = || Labels::default().with("b", "c");
        let one = |name, kind, help, labels| {
            MetricFamily::new(name, kind, help, [(labels, 1_u64.into())])
        };
        let stats = HistogramStats {
            buckets: vec![(Duration::from_micros(500), 2), (Duration::from_secs(1), 3)],
            count: 4,
            sum: Duration::from_millis(20_500),
        };
        let families = [
            one("a_bytes_total", MetricKind::Counter, "Bytes.", labelled()),
            one(
                "a_kilobytes",
                MetricKind::Gauge,
                "Not a unit.",
                Labels::default(),
            ),
            one(
                "a_node_info",
                MetricKind::Info,
                "Labels.",
                Labels::default().with("v", "1"),
            ),
            MetricFamily::histograms("a_wait_seconds", "Time.", [(labelled(), stats)]),
        ];
        write_metrics(format, &families)
    }

    #[test]
    fn values_of_labels_are_escaped() {
        let labels = Labels::default().with("a", "b \"c\"\n\\").with("d", "e");
        assert_eq!(labels.to_string(), r#"a="b \"c\"\n\\",d="e""#);
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
