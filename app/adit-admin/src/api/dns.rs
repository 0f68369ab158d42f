//! DNS tables: the counters of their servers, for panels and Prometheus. Names that were looked up are not shown (SEC-E9).

use adit_dns_client::ServerCounts;
use adit_engine::Engine;
use serde::Serialize;

use super::Api;
use super::metric_family::{Labels, MetricFamily, MetricKind, Sample};
use super::reply::Reply;

#[derive(Serialize)]
struct DnsList {
    dns: Vec<DnsTableInfo>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DnsTableInfo {
    name: String,
    lookups: u64,
    cache_hits: u64,
    servers: Vec<DnsServerInfo>,
}

#[derive(Serialize)]
struct DnsServerInfo {
    server: String,
    queries: u64,
    failures: u64,
    /// True while it is queried last, because it has failed.
    paused: bool,
}

impl From<ServerCounts> for DnsServerInfo {
    fn from(counts: ServerCounts) -> Self {
        Self {
            server: counts.server,
            queries: counts.queries,
            failures: counts.failures,
            paused: counts.paused,
        }
    }
}

impl Api {
    /// Answers `GET /dns`.
    pub(super) fn list_dns(&self) -> Reply {
        let tables = self.engine.dns_tables().into_iter().map(|table| {
            let counts = table.lookup_counts();
            DnsTableInfo {
                name: table.name().to_owned(),
                lookups: counts.lookups,
                cache_hits: counts.hits,
                servers: table.server_counts().into_iter().map(Into::into).collect(),
            }
        });
        Reply::ok(&DnsList {
            dns: tables.collect(),
        })
    }
}

/// Returns the metrics of all tables.
pub(super) fn metrics(engine: &Engine) -> [MetricFamily; 4] {
    let (mut lookups, mut hits) = (Vec::new(), Vec::new());
    let (mut queries, mut failures) = (Vec::new(), Vec::new());
    for table in engine.dns_tables() {
        let labels = Labels::default().with("table", table.name());
        let counts = table.lookup_counts();
        lookups.push((labels.clone(), counts.lookups.into()));
        hits.push((labels.clone(), counts.hits.into()));
        for counts in table.server_counts() {
            let labels = labels.clone().with("server", counts.server);
            queries.push((labels.clone(), counts.queries.into()));
            failures.push((labels, counts.failures.into()));
        }
    }
    let counter = |name: &str, help: &str, samples: Vec<Sample>| {
        MetricFamily::new(name, MetricKind::Counter, help, samples)
    };
    [
        counter(
            "adit_dns_lookups_total",
            "Lookups with a DNS table.",
            lookups,
        ),
        counter(
            "adit_dns_cache_hits_total",
            "Lookups that the cache of a DNS table has answered.",
            hits,
        ),
        counter(
            "adit_dns_queries_total",
            "Queries to a server of a DNS table.",
            queries,
        ),
        counter(
            "adit_dns_failures_total",
            "Queries to a server of a DNS table without an answer.",
            failures,
        ),
    ]
}
