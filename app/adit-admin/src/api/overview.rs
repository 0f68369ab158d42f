//! `GET /overview`: the counters of the process and its listeners.

use std::collections::BTreeMap;
use std::process;

use adit_engine::{Engine, ListenerInfo, MeterStats};
use adit_net::system;
use serde::Serialize;

use super::Api;
use super::reply::Reply;

/// The counters of a process.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Overview {
    version: &'static str,
    pid: u32,
    /// Start of the process, in seconds of Unix time.
    started: u64,
    /// Seconds since then.
    uptime: u64,
    up: u64,
    down: u64,
    sessions_open: u64,
    sessions_total: u64,
    connections_open: usize,
    /// Maximum number of connections.
    connections_limit: usize,
    associations_open: usize,
    listeners: Vec<ListenerOverview>,
    /// The counters of KCP, by name.
    kcp: BTreeMap<&'static str, u64>,
    /// Connections without a request that was served, by cause.
    rejects: Vec<RejectCount>,
}

/// The number of rejected connections of a cause.
#[derive(Debug, Serialize)]
struct RejectCount {
    cause: &'static str,
    count: u64,
}

/// The counters of a listener.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListenerOverview {
    route: String,
    listen: String,
    transports: &'static str,
    up: u64,
    down: u64,
    sessions_open: u64,
    sessions_total: u64,
    datagrams_lost: u64,
}

impl Overview {
    /// Reads the counters of an engine.
    pub(super) fn of(engine: &Engine) -> Self {
        let total = engine.total_counts();
        let started = engine.started().0;
        let listeners = engine.listener_counts().into_iter();
        let kcp = engine.kcp_counts().all();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            pid: process::id(),
            started,
            uptime: system::unix_now().0.saturating_sub(started),
            up: total.up,
            down: total.down,
            sessions_open: open_sessions(&total),
            sessions_total: total.opened,
            connections_open: engine.open_connections(),
            connections_limit: engine.connection_limit(),
            associations_open: engine.open_associations(),
            listeners: listeners.map(ListenerOverview::from).collect(),
            kcp: kcp.iter().map(|count| (count.key, count.value)).collect(),
            rejects: rejects_of(engine),
        }
    }
}

/// Returns the rejected connections of all listeners, of the causes that have occurred.
fn rejects_of(engine: &Engine) -> Vec<RejectCount> {
    let mut counts: BTreeMap<&'static str, u64> = BTreeMap::new();
    for (_, stats) in engine.stage_stats() {
        for (cause, count) in stats.rejects.into_iter().chain(stats.datagram_rejects) {
            *counts.entry(cause.label()).or_default() += count;
        }
    }
    let occurred = counts.into_iter().filter(|(_, count)| *count > 0);
    occurred
        .map(|(cause, count)| RejectCount { cause, count })
        .collect()
}

impl From<(ListenerInfo, MeterStats)> for ListenerOverview {
    fn from((listener, stats): (ListenerInfo, MeterStats)) -> Self {
        Self {
            listen: listener.addr.to_string(),
            route: listener.route,
            transports: listener.transports,
            up: stats.up,
            down: stats.down,
            sessions_open: open_sessions(&stats),
            sessions_total: stats.opened,
            datagrams_lost: stats.lost,
        }
    }
}

/// Several threads count while the counters are read, so that more may seem to be closed than opened.
const fn open_sessions(stats: &MeterStats) -> u64 {
    stats.opened.saturating_sub(stats.closed)
}

impl Api {
    /// Answers `GET /overview`.
    pub(super) fn get_overview(&self) -> Reply {
        Reply::ok(&Overview::of(&self.engine))
    }
}
