//! The documents of OTLP: protocol buffers in their JSON form, with IDs in hexadecimal (OTLP 1.x, "JSON Protobuf
//! Encoding").

use std::time::Duration;

use adit_engine::HistogramStats;
use serde_json::{Map, Value, json};

use super::{FinishedSpan, SpanValue};
use crate::api::metric_family::{
    Labels, MetricFamily, MetricKind, MetricPoints, MetricValue, Sample,
};

/// The span of a request that the process has served (`SPAN_KIND_SERVER`).
const KIND_SERVER: u8 = 2;
/// The span of a request to another server (`SPAN_KIND_CLIENT`).
const KIND_CLIENT: u8 = 3;
/// `STATUS_CODE_ERROR`.
const STATUS_ERROR: u8 = 2;
/// `AGGREGATION_TEMPORALITY_CUMULATIVE`: sums since the start.
const CUMULATIVE: u8 = 2;

/// The process that documents are about.
#[derive(Debug)]
pub(super) struct ProcessResource {
    attributes: Value,
}

impl ProcessResource {
    /// Creates the description of this process, which `instance` tells from others.
    pub(super) fn new(instance: [u8; 16]) -> Self {
        let attributes = json!([
            text_attribute("service.name", "adit"),
            text_attribute("service.version", env!("CARGO_PKG_VERSION")),
            text_attribute("service.instance.id", &hex(&instance)),
        ]);
        Self { attributes }
    }

    /// Returns a request with spans.
    pub(super) fn traces(&self, spans: &[FinishedSpan]) -> Value {
        let spans: Vec<Value> = spans.iter().map(span_value).collect();
        json!({ "resourceSpans": [{
            "resource": { "attributes": self.attributes },
            "scopeSpans": [{ "scope": scope(), "spans": spans }],
        }] })
    }

    /// Returns a request with metrics, counted from `start` to `now`.
    pub(super) fn metrics(
        &self,
        families: &[MetricFamily],
        start: Duration,
        now: Duration,
    ) -> Value {
        let period = Period {
            start: nanos(start),
            now: nanos(now),
        };
        let metrics: Vec<Value> = families
            .iter()
            .map(|family| metric_value(family, &period))
            .collect();
        json!({ "resourceMetrics": [{
            "resource": { "attributes": self.attributes },
            "scopeMetrics": [{ "scope": scope(), "metrics": metrics }],
        }] })
    }
}

/// The time of data points.
struct Period {
    start: String,
    now: String,
}

fn scope() -> Value {
    json!({ "name": "adit", "version": env!("CARGO_PKG_VERSION") })
}

fn span_value(span: &FinishedSpan) -> Value {
    let fields = span.fields.iter().map(|(name, value)| {
        let value = match value {
            SpanValue::Text(text) => json!({ "stringValue": text }),
            SpanValue::Number(number) => json!({ "intValue": number.to_string() }),
            SpanValue::Truth(truth) => json!({ "boolValue": truth }),
        };
        json!({ "key": format!("adit.{name}"), "value": value })
    });
    let mut object = Map::from_iter([
        ("traceId".to_owned(), hex(&span.trace_id).into()),
        ("spanId".to_owned(), hex(&span.span_id).into()),
        ("name".to_owned(), span.name.into()),
        ("startTimeUnixNano".to_owned(), nanos(span.start).into()),
        ("endTimeUnixNano".to_owned(), nanos(span.end).into()),
        ("attributes".to_owned(), fields.collect()),
    ]);
    let kind = match span.parent_id {
        Some(parent) => {
            object.insert("parentSpanId".to_owned(), hex(&parent).into());
            KIND_CLIENT
        }
        None => KIND_SERVER,
    };
    object.insert("kind".to_owned(), kind.into());
    let failure = span.fields.iter().find(|(name, _)| *name == "failure");
    if let Some((_, SpanValue::Text(cause))) = failure {
        let status = json!({ "code": STATUS_ERROR, "message": cause });
        object.insert("status".to_owned(), status);
    }
    Value::Object(object)
}

/// Returns a metric. Its name has no suffix of its kind, and its unit is a field: those who store it add both.
fn metric_value(family: &MetricFamily, period: &Period) -> Value {
    let data = match &family.points {
        MetricPoints::Histograms(histograms) => {
            let points: Vec<Value> = histograms
                .iter()
                .map(|(labels, stats)| histogram_point(labels, stats, period))
                .collect();
            json!({ "aggregationTemporality": CUMULATIVE, "dataPoints": points })
        }
        MetricPoints::Values(samples) => {
            let points: Vec<Value> = samples
                .iter()
                .map(|sample| number_point(sample, period))
                .collect();
            match family.kind {
                MetricKind::Counter => json!({
                    "aggregationTemporality": CUMULATIVE,
                    "isMonotonic": true,
                    "dataPoints": points,
                }),
                _ => json!({ "dataPoints": points }),
            }
        }
    };
    let form = match family.kind {
        MetricKind::Counter => "sum",
        MetricKind::Histogram => "histogram",
        MetricKind::Gauge | MetricKind::Info => "gauge",
    };
    let unit = match family.unit() {
        Some("seconds") => "s",
        Some("bytes") => "By",
        _ => "1",
    };
    json!({
        "name": family.base_name(),
        "description": family.help,
        "unit": unit,
        form: data,
    })
}

fn number_point((labels, value): &Sample, period: &Period) -> Value {
    let (form, value): (_, Value) = match value {
        MetricValue::Count(count) => {
            // The format has signed numbers.
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            ("asInt", count.to_string().into())
        }
        MetricValue::Measure(value) => ("asDouble", (*value).into()),
    };
    json!({
        "attributes": label_attributes(labels),
        "startTimeUnixNano": period.start,
        "timeUnixNano": period.now,
        form: value,
    })
}

fn histogram_point(labels: &Labels, stats: &HistogramStats, period: &Period) -> Value {
    let bounds: Vec<f64> = stats
        .buckets
        .iter()
        .map(|(bound, _)| bound.as_secs_f64())
        .collect();
    // Each bucket of OTLP counts what is in it alone; the last has what is above all bounds.
    let sums = stats.buckets.iter().map(|(_, sum)| *sum);
    let mut below = 0;
    let counts: Vec<String> = sums
        .chain([stats.count])
        .map(|sum| {
            sum.saturating_sub(std::mem::replace(&mut below, sum))
                .to_string()
        })
        .collect();
    json!({
        "attributes": label_attributes(labels),
        "startTimeUnixNano": period.start,
        "timeUnixNano": period.now,
        "count": stats.count.to_string(),
        "sum": stats.sum.as_secs_f64(),
        "bucketCounts": counts,
        "explicitBounds": bounds,
    })
}

fn label_attributes(labels: &Labels) -> Vec<Value> {
    let pairs = labels.pairs();
    pairs
        .map(|(name, value)| text_attribute(name, value))
        .collect()
}

fn text_attribute(name: &str, value: &str) -> Value {
    json!({ "key": name, "value": { "stringValue": value } })
}

/// Returns a time since 1970 as 64-bit numbers are written in JSON: in quotes.
fn nanos(time: Duration) -> String {
    time.as_nanos().to_string()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource() -> ProcessResource {
        ProcessResource::new([0xab; 16])
    }

    #[test]
    fn spans_have_ids_in_hexadecimal_and_times_in_quotes() {
        let span = FinishedSpan {
            trace_id: [0x0f; 16],
            span_id: [0x01; 8],
            parent_id: Some([0xf0; 8]),
            name: "hop",
            start: Duration::new(1_700_000_000, 5),
            end: Duration::new(1_700_000_001, 0),
            fields: vec![
                ("hop", SpanValue::Text("ss://a:1".to_owned())),
                ("failure", SpanValue::Text("timed-out".to_owned())),
                ("up", SpanValue::Number(7)),
                ("again", SpanValue::Truth(true)),
            ],
        };
        let document = resource().traces(&[span]);
        let found = &document["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        let expected = json!({
            "traceId": "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f",
            "spanId": "0101010101010101",
            "parentSpanId": "f0f0f0f0f0f0f0f0",
            "name": "hop",
            "kind": 3,
            "startTimeUnixNano": "1700000000000000005",
            "endTimeUnixNano": "1700000001000000000",
            "attributes": [
                { "key": "adit.hop", "value": { "stringValue": "ss://a:1" } },
                { "key": "adit.failure", "value": { "stringValue": "timed-out" } },
                { "key": "adit.up", "value": { "intValue": "7" } },
                { "key": "adit.again", "value": { "boolValue": true } },
            ],
            "status": { "code": 2, "message": "timed-out" },
        });
        assert_eq!(*found, expected);
        let attributes = &document["resourceSpans"][0]["resource"]["attributes"];
        assert_eq!(attributes[0]["value"]["stringValue"], "adit");
        assert_eq!(attributes[2]["value"]["stringValue"], "ab".repeat(16));
    }

    #[test]
    fn metrics_have_forms_units_and_counts_of_single_buckets() {
        let labels = || Labels::default().with("route", "a");
        let stats = HistogramStats {
            buckets: vec![(Duration::from_micros(500), 2), (Duration::from_secs(1), 3)],
            count: 7,
            sum: Duration::from_millis(20_500),
        };
        let families = [
            MetricFamily::new(
                "a_bytes_total",
                MetricKind::Counter,
                "Bytes.",
                [(labels(), u64::MAX.into())],
            ),
            MetricFamily::new(
                "a_seconds",
                MetricKind::Gauge,
                "Time.",
                [(labels(), MetricValue::Measure(0.25))],
            ),
            MetricFamily::histograms("a_wait_seconds", "Time.", [(labels(), stats)]),
        ];
        let (start, now) = (Duration::from_secs(5), Duration::from_secs(6));
        let document = resource().metrics(&families, start, now);
        let metrics = &document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
        let attributes = json!([{ "key": "route", "value": { "stringValue": "a" } }]);
        let counter = json!({
            "name": "a_bytes",
            "description": "Bytes.",
            "unit": "By",
            "sum": { "aggregationTemporality": 2, "isMonotonic": true, "dataPoints": [{
                "attributes": attributes,
                "startTimeUnixNano": "5000000000",
                "timeUnixNano": "6000000000",
                "asInt": i64::MAX.to_string(),
            }] },
        });
        assert_eq!(metrics[0], counter);
        assert_eq!(metrics[1]["gauge"]["dataPoints"][0]["asDouble"], 0.25);
        let point = &metrics[2]["histogram"]["dataPoints"][0];
        assert_eq!(point["bucketCounts"], json!(["2", "1", "4"]));
        assert_eq!(point["explicitBounds"], json!([0.0005, 1.0]));
        assert_eq!(point["count"], "7");
        assert_eq!(metrics[2]["unit"], "s");
    }
}
