//! Metrics for Prometheus, and readiness.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use adit_engine::{Engine, MeterStats, StageStats, Usage};
use adit_wire::u64_from;
use hyper::StatusCode;
use hyper::header::HeaderMap;

use super::metric_family::{Labels, MetricFamily, MetricKind, MetricValue};
use super::metrics_text::{MetricsFormat, write_metrics};
use super::reply::Reply;
use super::{Api, PartReadiness, ProcessPart, dns, groups};

impl Api {
    /// Answers `GET /readyz`: 200 if all listeners of the plan are open, until adit ends.
    pub(super) fn get_readiness(&self) -> Reply {
        let expected = self.expected_listeners.load(Ordering::Relaxed);
        let open = self.engine.listeners().len();
        let part = self.part.as_ref().map(|part| part.readiness());
        let (status, text) = match self.engine.is_draining() {
            true => (StatusCode::SERVICE_UNAVAILABLE, "draining\n".to_owned()),
            false if open < expected => {
                let text = format!("{open} of {expected} listeners are open\n");
                (StatusCode::SERVICE_UNAVAILABLE, text)
            }
            false => match part {
                Some(PartReadiness::NotReady(why)) => (
                    StatusCode::SERVICE_UNAVAILABLE,
                    format!("not ready: {why}\n"),
                ),
                Some(PartReadiness::Degraded(why)) => {
                    (StatusCode::OK, format!("degraded: {why}\n"))
                }
                Some(PartReadiness::Ready) | None => (StatusCode::OK, "ready\n".to_owned()),
            },
        };
        Reply::text("text/plain; charset=utf-8", text).with_status(status)
    }

    /// Answers `GET /metrics`, without destinations and clients, and without users unless they are opted in (SEC-E9).
    pub(super) fn get_metrics(&self, headers: &HeaderMap) -> Reply {
        let format = MetricsFormat::preferred_by(headers);
        let mut families = collect_metrics(&self.engine, self.shows_users_in_metrics);
        if let Some(part) = &self.part {
            add_part(&mut families, &**part);
        }
        Reply::text(format.media_type(), write_metrics(format, &families))
    }
}

/// Returns all metrics of an engine. They have users only if `shows_users` is set.
pub(crate) fn collect_metrics(engine: &Engine, shows_users: bool) -> Vec<MetricFamily> {
    let mut families = Vec::new();
    add_traffic(&mut families, engine);
    add_stages(&mut families, engine);
    if shows_users {
        add_users(&mut families, engine);
    }
    add_process(&mut families, engine);
    // Counted over all sessions of the process, as in kcp-go.
    for count in engine.kcp_counts().all() {
        let (name, kind) = match count.kind {
            "counter" => (format!("adit_kcp_{}_total", count.key), MetricKind::Counter),
            _ => (format!("adit_kcp_{}", count.key), MetricKind::Gauge),
        };
        let help = format!("KCP: {}", count.help);
        let sample = (Labels::default(), count.value.into());
        families.push(MetricFamily::new(name, kind, help, [sample]));
    }
    let reports: Vec<_> = engine.groups().iter().map(|group| group.report()).collect();
    families.extend(groups::metrics(&reports));
    families.extend(dns::metrics(engine));
    families
}

/// Adds the metrics of a part of the process.
fn add_part(families: &mut Vec<MetricFamily>, part: &dyn ProcessPart) {
    families.extend(part.metrics().into_iter().map(|metric| {
        let kind = match metric.is_counter {
            true => MetricKind::Counter,
            false => MetricKind::Gauge,
        };
        let samples = metric.samples.into_iter();
        let samples =
            samples.map(|(labels, value)| (Labels::new(labels), MetricValue::Measure(value)));
        MetricFamily::new(metric.name, kind, metric.help, samples)
    }));
    for (name, help, stats) in part.histograms() {
        families.push(MetricFamily::histograms(
            name,
            help,
            [(Labels::default(), stats)],
        ));
    }
}

fn listener_labels(route: &str, addr: SocketAddr) -> Labels {
    Labels::default()
        .with("route", route)
        .with("listen", addr.to_string())
}

/// Adds the payload and the sessions of each listener.
fn add_traffic(families: &mut Vec<MetricFamily>, engine: &Engine) {
    let traffic = engine.listener_counts();
    let traffic: Vec<(Labels, MeterStats)> = traffic
        .into_iter()
        .map(|(at, counts)| (listener_labels(&at.route, at.addr), counts))
        .collect();
    let both = traffic.iter().flat_map(|(labels, counts)| {
        [("up", counts.up), ("down", counts.down)]
            .map(|(way, bytes)| (labels.clone().with("direction", way), bytes.into()))
    });
    families.push(MetricFamily::new(
        "adit_bytes_total",
        MetricKind::Counter,
        "Payload bytes that listeners carried; up is from the client.",
        both,
    ));
    let each = |value: fn(&MeterStats) -> u64| {
        let all = traffic.iter();
        all.map(move |(labels, counts)| (labels.clone(), value(counts).into()))
    };
    families.push(MetricFamily::new(
        "adit_sessions_total",
        MetricKind::Counter,
        "Sessions started: connections that reached a destination, and associations.",
        each(|counts| counts.opened),
    ));
    families.push(MetricFamily::new(
        "adit_sessions_open",
        MetricKind::Gauge,
        "Open sessions.",
        each(|counts| counts.opened.saturating_sub(counts.closed)),
    ));
    families.push(MetricFamily::new(
        "adit_datagrams_lost_total",
        MetricKind::Counter,
        "Datagrams from clients that could not be forwarded.",
        each(|counts| counts.lost),
    ));
    let buffers = engine.listeners().into_iter().filter_map(|at| {
        let buffers = at.buffers?;
        let labels = listener_labels(&at.route, at.addr);
        let sizes = [("receive", buffers.receive), ("send", buffers.send)];
        Some(sizes.map(|(direction, size)| {
            let labels = labels.clone().with("direction", direction);
            (labels, u64_from(size).into())
        }))
    });
    families.push(MetricFamily::new(
        "adit_udp_buffer_bytes",
        MetricKind::Gauge,
        "Size of the socket buffers of a UDP socket, as the system reports it.",
        buffers.flatten(),
    ));
    let keyed = engine.keyed_servers().into_iter();
    let keyed = keyed.filter(|server| server.user_table.users().has_names());
    let users = keyed.map(|server| {
        let at = &server.listening;
        let count = server.user_table.users().len();
        (listener_labels(&at.route, at.addr), u64_from(count).into())
    });
    families.push(MetricFamily::new(
        "adit_users",
        MetricKind::Gauge,
        "Users of a server.",
        users,
    ));
}

/// Adds the durations and failures of the connections of each listener.
fn add_stages(families: &mut Vec<MetricFamily>, engine: &Engine) {
    let stages = engine.stage_stats();
    let stages: Vec<(Labels, StageStats)> = stages
        .into_iter()
        .map(|(at, stats)| (listener_labels(&at.route, at.addr), stats))
        .collect();
    let histograms: [(_, _, fn(&StageStats) -> _); 3] = [
        (
            "adit_handshake_seconds",
            "Time from an accepted connection to its authenticated request.",
            |stats| stats.handshake.clone(),
        ),
        (
            "adit_dial_seconds",
            "Time from a request to the open path to its destination.",
            |stats| stats.dial.clone(),
        ),
        (
            "adit_first_byte_seconds",
            "Time from a request to the first byte from its destination.",
            |stats| stats.first_byte.clone(),
        ),
    ];
    for (name, help, stage) in histograms {
        let each = stages.iter();
        let each = each.map(|(labels, stats)| (labels.clone(), stage(stats)));
        families.push(MetricFamily::histograms(name, help, each));
    }
    let by_cause = |labels: &Labels, cause: &str, count: u64| {
        (labels.clone().with("cause", cause), count.into())
    };
    let rejects = stages.iter().flat_map(|(labels, stats)| {
        let each = stats.rejects.iter();
        each.map(move |(cause, count)| by_cause(labels, cause.label(), *count))
    });
    families.push(MetricFamily::new(
        "adit_rejects_total",
        MetricKind::Counter,
        "Connections of clients without a request that was served, by cause.",
        rejects,
    ));
    let datagrams = stages.iter().flat_map(|(labels, stats)| {
        let each = stats.datagram_rejects.iter();
        each.map(move |(cause, count)| by_cause(labels, cause.label(), *count))
    });
    families.push(MetricFamily::new(
        "adit_datagram_rejects_total",
        MetricKind::Counter,
        "Datagrams of clients that were not forwarded, by cause.",
        datagrams,
    ));
    let failures = stages.iter().flat_map(|(labels, stats)| {
        let each = stats.dial_failures.iter();
        each.map(move |(cause, count)| by_cause(labels, cause.label(), *count))
    });
    families.push(MetricFamily::new(
        "adit_dial_failures_total",
        MetricKind::Counter,
        "Requests whose destination could not be reached, by cause.",
        failures,
    ));
}

/// Adds the usage of each user that has connected.
fn add_users(families: &mut Vec<MetricFamily>, engine: &Engine) {
    let usages = engine.user_usages();
    let usages: Vec<(Labels, Usage)> = usages
        .into_iter()
        .flat_map(|(at, users)| {
            let labels = listener_labels(&at.route, at.addr);
            users
                .into_iter()
                .map(move |(user, usage)| (labels.clone().with("user", user), usage))
        })
        .collect();
    let bytes = usages.iter().flat_map(|(labels, usage)| {
        [("up", usage.up), ("down", usage.down)]
            .map(|(way, bytes)| (labels.clone().with("direction", way), bytes.into()))
    });
    families.push(MetricFamily::new(
        "adit_user_bytes_total",
        MetricKind::Counter,
        "Payload bytes of a user; up is from the client.",
        bytes,
    ));
    let sessions = usages.iter().flat_map(|(labels, usage)| {
        [("tcp", usage.tcp_sessions), ("udp", usage.udp_sessions)]
            .map(|(kind, count)| (labels.clone().with("kind", kind), count.into()))
    });
    families.push(MetricFamily::new(
        "adit_user_sessions_total",
        MetricKind::Counter,
        "Sessions that a user started.",
        sessions,
    ));
}

/// Adds facts of the process.
fn add_process(families: &mut Vec<MetricFamily>, engine: &Engine) {
    let numbers = [
        (
            "adit_connections_open",
            "Open connections of clients, including those in the handshake.",
            u64_from(engine.open_connections()),
        ),
        (
            "adit_connections_max",
            "Connections that can be open at the same time.",
            u64_from(engine.max_connections()),
        ),
        (
            "adit_start_time_seconds",
            "Time at which adit started, in seconds since 1970.",
            engine.start_time().0,
        ),
        (
            "adit_draining",
            "1 while adit ends, and only waits for open connections.",
            u64::from(engine.is_draining()),
        ),
    ];
    for (name, help, value) in numbers {
        let sample = (Labels::default(), value.into());
        families.push(MetricFamily::new(name, MetricKind::Gauge, help, [sample]));
    }
    let version = Labels::default().with("version", env!("CARGO_PKG_VERSION"));
    families.push(MetricFamily::new(
        "adit_node_info",
        MetricKind::Info,
        "The version of the program.",
        [(version, 1_u64.into())],
    ));
}
