//! Export of metrics and traces to a collector, over OTLP/HTTP with JSON.
//!
//! ```text
//! spans of sessions ─▶ SpanQueue (bounded) ─┐
//!                                           ├─▶ OtlpExport, one task ─▶ POST /v1/traces, /v1/metrics
//! Engine ─▶ metrics, once per interval ─────┘
//! ```
//!
//! Nothing on the path of bytes waits for a collector: a full queue drops its oldest spans, whose number the next export
//! that works reports in the log. Metrics are sums since the start, so that a lost export loses nothing. Neither has
//! destinations or clients (SEC-E9).

mod documents;
mod span_queue;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use adit_config::Secret;
use adit_engine::Engine;
use adit_net::system::SystemRng;
use adit_wire::Entropy;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::{info, warn};

use self::documents::ProcessResource;
use crate::api::metrics::collect_metrics;
use crate::subscription::{FetchError, Fetcher, Source, TrustedRoots};

pub use self::span_queue::{FinishedSpan, SpanQueue, SpanValue};

/// Number of spans in one request.
const SPANS_PER_REQUEST: usize = 512;
/// Time limit of a request.
const REQUEST_TIME: Duration = Duration::from_secs(5);
/// Time limit of the last export.
const LAST_EXPORT_TIME: Duration = Duration::from_secs(2);
/// Maximum size of an answer, in bytes.
const MAX_ANSWER: usize = 64 << 10;

/// The address of a collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpEndpoint(Source);

/// The error for text that is not the address of a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a URL of the form http://HOST:PORT or https://HOST[:PORT][/PATH]")]
pub struct BadOtlpEndpoint;

impl FromStr for OtlpEndpoint {
    type Err = BadOtlpEndpoint;

    fn from_str(text: &str) -> Result<Self, BadOtlpEndpoint> {
        let is_http = text.starts_with("http://") || text.starts_with("https://");
        // A query would be a part of the path that the names of signals are appended to.
        if !is_http || text.contains(['?', '#']) {
            return Err(BadOtlpEndpoint);
        }
        let source = Source::parse_at_any_host(text).map_err(|_| BadOtlpEndpoint)?;
        Ok(Self(source))
    }
}

/// Shows the host alone: a path can contain a token.
impl fmt::Display for OtlpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The settings of an export.
#[derive(Debug, Clone)]
pub struct OtlpSettings {
    /// The collector.
    pub endpoint: OtlpEndpoint,
    /// The interval of exports; traces are sent earlier if there are many.
    pub interval: Duration,
    /// True if metrics contain the names and the usage of users.
    pub shows_users: bool,
    /// Headers of the requests: names, and values that are never logged.
    pub headers: Vec<(String, Secret)>,
}

impl OtlpSettings {
    /// Returns the headers of a request. The configuration has checked them; others are left out.
    fn header_map(&self) -> HeaderMap {
        let parse = |(name, value): &(String, Secret)| {
            let mut value = HeaderValue::from_str(value.expose()).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::from_bytes(name.as_bytes()).ok()?, value))
        };
        let headers: HeaderMap = self.headers.iter().filter_map(parse).collect();
        debug_assert_eq!(
            headers.len(),
            self.headers.len(),
            "headers are checked, and differ"
        );
        headers
    }
}

/// A running export.
#[derive(Debug)]
pub struct OtlpExport {
    task: JoinHandle<()>,
    stop: Arc<Notify>,
}

impl OtlpExport {
    /// Starts to export the metrics of `engine` and the spans in a queue.
    #[must_use]
    pub fn start(settings: OtlpSettings, engine: Arc<Engine>, spans: SpanQueue) -> Self {
        let stop = Arc::new(Notify::new());
        let exporter = Exporter::new(settings, engine, spans);
        let task = tokio::spawn(exporter.run(stop.clone()));
        Self { task, stop }
    }

    /// Exports what is left, for at most two seconds, and ends.
    pub async fn finish(self) {
        self.stop.notify_one();
        let abort = self.task.abort_handle();
        if timeout(LAST_EXPORT_TIME, self.task).await.is_err() {
            abort.abort();
        }
    }
}

struct Exporter {
    settings: OtlpSettings,
    engine: Arc<Engine>,
    spans: SpanQueue,
    resource: ProcessResource,
    fetcher: Fetcher,
    traces_at: Source,
    metrics_at: Source,
    /// True while the collector does not answer, which is logged once.
    is_failing: bool,
}

impl Exporter {
    fn new(settings: OtlpSettings, engine: Arc<Engine>, spans: SpanQueue) -> Self {
        let mut instance = [0; 16];
        SystemRng.fill(&mut instance);
        Self {
            traces_at: settings.endpoint.0.joined("v1/traces"),
            metrics_at: settings.endpoint.0.joined("v1/metrics"),
            resource: ProcessResource::new(instance),
            fetcher: Fetcher::new(TrustedRoots::Machine, MAX_ANSWER).with_time_limit(REQUEST_TIME),
            settings,
            engine,
            spans,
            is_failing: false,
        }
    }

    async fn run(mut self, stop: Arc<Notify>) {
        let mut ticks = interval(self.settings.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let with_metrics = tokio::select! {
                _ = ticks.tick() => true,
                // A collector that does not answer is tried once per interval.
                () = self.spans.wait_many(), if !self.is_failing => false,
                () = stop.notified() => break,
            };
            self.export(with_metrics).await;
        }
        self.export(true).await;
    }

    /// Sends the spans, and the metrics if `with_metrics` is set.
    async fn export(&mut self, with_metrics: bool) {
        let mut done = self.export_spans().await;
        if with_metrics && done.is_ok() {
            done = self.export_metrics().await;
        }
        match done {
            Ok(()) if self.is_failing => {
                self.is_failing = false;
                info!("the collector at {} answers again", self.settings.endpoint);
            }
            Err(why) if !self.is_failing => {
                self.is_failing = true;
                warn!(
                    "nothing is exported to the collector at {}: {why} (logged once until it answers)",
                    self.settings.endpoint
                );
            }
            _ => {}
        }
    }

    async fn export_spans(&self) -> Result<(), FetchError> {
        loop {
            let batch = self.spans.take(SPANS_PER_REQUEST);
            if batch.is_empty() {
                break;
            }
            let body = self.resource.traces(&batch).to_string();
            match self.post(&self.traces_at, body).await {
                Ok(()) => {}
                Err(why) => {
                    // One that refuses the batch would refuse it again.
                    if is_worth_retrying(&why) {
                        self.spans.put_back(batch);
                    }
                    return Err(why);
                }
            }
        }
        let dropped = self.spans.take_dropped();
        if dropped > 0 {
            warn!(
                "{dropped} spans were not exported: the collector is too slow, or did not answer"
            );
        }
        Ok(())
    }

    async fn export_metrics(&self) -> Result<(), FetchError> {
        let families = collect_metrics(&self.engine, self.settings.shows_users);
        let start = Duration::from_secs(self.engine.start_time().0);
        let now = SystemTime::now();
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let body = self.resource.metrics(&families, start, now).to_string();
        self.post(&self.metrics_at, body).await
    }

    async fn post(&self, to: &Source, body: String) -> Result<(), FetchError> {
        let names = self.engine.names();
        let answer = self
            .fetcher
            .post_json(to, &names, self.settings.header_map(), body.into());
        let answer = answer.await?;
        if let Some(why) = partial_success(&answer) {
            warn!("the collector at {} {why}", self.settings.endpoint);
        }
        Ok(())
    }
}

/// Returns true if the same request may succeed later (OTLP/HTTP, "Retryable Response Codes").
fn is_worth_retrying(why: &FetchError) -> bool {
    match why {
        FetchError::Status(status) => matches!(status.as_u16(), 429 | 502 | 503 | 504),
        _ => true,
    }
}

/// Returns what a collector has not accepted of a request that it has answered with 200.
fn partial_success(answer: &[u8]) -> Option<String> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let partial = answer.get("partialSuccess")?;
    let rejected = ["rejectedSpans", "rejectedDataPoints"]
        .into_iter()
        .find_map(|key| partial.get(key))
        .and_then(|count| {
            count
                .as_str()
                .map_or_else(|| count.as_u64(), |text| text.parse().ok())
        })
        .filter(|count| *count > 0)?;
    let why = partial.get("errorMessage").and_then(Value::as_str);
    let why: String = why.unwrap_or_default().chars().take(200).collect();
    Some(format!("has rejected {rejected} items: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_collectors_are_urls() {
        for (text, traces) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://otel.lan:4318/", "http://otel.lan:4318/v1/traces"),
            (
                "https://otel.example/tenant/a",
                "https://otel.example/tenant/a/v1/traces",
            ),
        ] {
            let endpoint: OtlpEndpoint = text.parse().unwrap();
            assert_eq!(&*endpoint.0.joined("v1/traces").whole(), traces);
            assert!(!endpoint.to_string().contains("tenant"));
        }
        for text in [
            "",
            "127.0.0.1:4318",
            "ssconf://a.example",
            "grpc://a.example:4317",
            "http://",
            "http://a.example:0",
            "http://me:pw@a.example",
            "http://a.example/?x=y",
        ] {
            assert_eq!(text.parse::<OtlpEndpoint>(), Err(BadOtlpEndpoint), "{text}");
        }
    }

    #[test]
    fn rejected_items_are_reported() {
        for answer in [
            "",
            "{}",
            r#"{"partialSuccess":{}}"#,
            r#"{"partialSuccess":{"rejectedSpans":"0"}}"#,
        ] {
            assert_eq!(partial_success(answer.as_bytes()), None, "{answer}");
        }
        let answer = br#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}"#;
        let why = partial_success(answer).unwrap();
        assert_eq!(why, "has rejected 3 items: too old");
    }
}
