//! Metrics for Prometheus, and readiness.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use adit_engine::{Engine, MeterStats, StageStats, Usage};
use adit_wire::u64_from;
use hyper::StatusCode;
use hyper::header::HeaderMap;

use super::metrics_text::{MetricKind, MetricsFormat, MetricsText, escape_label};
use super::reply::Reply;
use super::{Api, dns, groups};

impl Api {
    /// Answers `GET /readyz`: 200 if all listeners of the plan are open, until adit ends.
    pub(super) fn get_readiness(&self) -> Reply {
        let expected = self.expected_listeners.load(Ordering::Relaxed);
        let open = self.engine.listeners().len();
        let (status, text) = match self.engine.is_draining() {
            true => (StatusCode::SERVICE_UNAVAILABLE, "draining\n".to_owned()),
            false if open < expected => {
                let text = format!("{open} of {expected} listeners are open\n");
                (StatusCode::SERVICE_UNAVAILABLE, text)
            }
            false => (StatusCode::OK, "ready\n".to_owned()),
        };
        Reply::text("text/plain; charset=utf-8", text).with_status(status)
    }

    /// Answers `GET /metrics`, without destinations and clients, and without users unless they are opted in (SEC-E9).
    pub(super) fn get_metrics(&self, headers: &HeaderMap) -> Reply {
        let format = MetricsFormat::preferred_by(headers);
        let mut text = MetricsText::new(format);
        let engine = &*self.engine;
        add_traffic(&mut text, engine);
        add_stages(&mut text, engine);
        if self.shows_users_in_metrics {
            add_users(&mut text, engine);
        }
        add_process(&mut text, engine);
        // Counted over all sessions of the process, as in kcp-go.
        for count in engine.kcp_counts().all() {
            let (name, kind) = match count.kind {
                "counter" => (format!("adit_kcp_{}_total", count.key), MetricKind::Counter),
                _ => (format!("adit_kcp_{}", count.key), MetricKind::Gauge),
            };
            let help = format!("KCP: {}", count.help);
            text.add_family(&name, kind, &help, [(String::new(), count.value)]);
        }
        let reports: Vec<_> = engine.groups().iter().map(|group| group.report()).collect();
        for (name, kind, help, samples) in groups::metrics(&reports) {
            text.add_family(name, kind, help, samples);
        }
        for (name, help, samples) in dns::metrics(engine) {
            text.add_family(name, MetricKind::Counter, help, samples);
        }
        Reply::text(format.media_type(), text.finish())
    }
}

/// Returns the labels of a listener. Names of routes consist of letters, digits, `-`, `_` and `.`, so they need no
/// escaping.
fn listener_labels(route: &str, addr: SocketAddr) -> String {
    format!("route=\"{route}\",listen=\"{addr}\"")
}

/// Adds the payload and the sessions of each listener.
fn add_traffic(text: &mut MetricsText, engine: &Engine) {
    let traffic = engine.listener_counts();
    let traffic: Vec<(String, MeterStats)> = traffic
        .into_iter()
        .map(|(at, counts)| (listener_labels(&at.route, at.addr), counts))
        .collect();
    let both = traffic.iter().flat_map(|(labels, counts)| {
        [("up", counts.up), ("down", counts.down)]
            .map(|(way, bytes)| (format!("{labels},direction=\"{way}\""), bytes))
    });
    text.add_family(
        "adit_bytes_total",
        MetricKind::Counter,
        "Payload bytes that listeners carried; up is from the client.",
        both,
    );
    let each = |value: fn(&MeterStats) -> u64| {
        let all = traffic.iter();
        all.map(move |(labels, counts)| (labels.clone(), value(counts)))
    };
    text.add_family(
        "adit_sessions_total",
        MetricKind::Counter,
        "Sessions started: connections that reached a destination, and associations.",
        each(|counts| counts.opened),
    );
    text.add_family(
        "adit_sessions_open",
        MetricKind::Gauge,
        "Open sessions.",
        each(|counts| counts.opened.saturating_sub(counts.closed)),
    );
    text.add_family(
        "adit_datagrams_lost_total",
        MetricKind::Counter,
        "Datagrams from clients that could not be forwarded.",
        each(|counts| counts.lost),
    );
    let buffers = engine.listeners().into_iter().filter_map(|at| {
        let buffers = at.buffers?;
        let labels = listener_labels(&at.route, at.addr);
        let sizes = [("receive", buffers.receive), ("send", buffers.send)];
        Some(sizes.map(|(direction, size)| {
            let labels = format!("{labels},direction=\"{direction}\"");
            (labels, u64_from(size))
        }))
    });
    text.add_family(
        "adit_udp_buffer_bytes",
        MetricKind::Gauge,
        "Size of the socket buffers of a UDP socket, as the system reports it.",
        buffers.flatten(),
    );
    let keyed = engine.keyed_servers().into_iter();
    let keyed = keyed.filter(|server| server.user_table.users().has_names());
    let users = keyed.map(|server| {
        let at = &server.listening;
        let count = server.user_table.users().len();
        (listener_labels(&at.route, at.addr), u64_from(count))
    });
    text.add_family("adit_users", MetricKind::Gauge, "Users of a server.", users);
}

/// Adds the durations and failures of the connections of each listener.
fn add_stages(text: &mut MetricsText, engine: &Engine) {
    let stages = engine.stage_stats();
    let stages: Vec<(String, StageStats)> = stages
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
        text.add_histograms(name, help, each);
    }
    let by_cause =
        |labels: &str, cause: &str, count| (format!("{labels},cause=\"{cause}\""), count);
    let rejects = stages.iter().flat_map(|(labels, stats)| {
        let each = stats.rejects.iter();
        each.map(move |(cause, count)| by_cause(labels, cause.label(), *count))
    });
    text.add_family(
        "adit_rejects_total",
        MetricKind::Counter,
        "Connections of clients without a request that was served, by cause.",
        rejects,
    );
    let failures = stages.iter().flat_map(|(labels, stats)| {
        let each = stats.dial_failures.iter();
        each.map(move |(cause, count)| by_cause(labels, cause.label(), *count))
    });
    text.add_family(
        "adit_dial_failures_total",
        MetricKind::Counter,
        "Requests whose destination could not be reached, by cause.",
        failures,
    );
}

/// Adds the usage of each user that has connected.
fn add_users(text: &mut MetricsText, engine: &Engine) {
    let usages = engine.user_usages();
    let usages: Vec<(String, Usage)> = usages
        .into_iter()
        .flat_map(|(at, users)| {
            let labels = listener_labels(&at.route, at.addr);
            users.into_iter().map(move |(user, usage)| {
                let user = escape_label(&user);
                (format!("{labels},user=\"{user}\""), usage)
            })
        })
        .collect();
    let bytes = usages.iter().flat_map(|(labels, usage)| {
        [("up", usage.up), ("down", usage.down)]
            .map(|(way, bytes)| (format!("{labels},direction=\"{way}\""), bytes))
    });
    text.add_family(
        "adit_user_bytes_total",
        MetricKind::Counter,
        "Payload bytes of a user; up is from the client.",
        bytes,
    );
    let sessions = usages.iter().flat_map(|(labels, usage)| {
        [("tcp", usage.tcp_sessions), ("udp", usage.udp_sessions)]
            .map(|(kind, count)| (format!("{labels},kind=\"{kind}\""), count))
    });
    text.add_family(
        "adit_user_sessions_total",
        MetricKind::Counter,
        "Sessions that a user started.",
        sessions,
    );
}

/// Adds facts of the process.
fn add_process(text: &mut MetricsText, engine: &Engine) {
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
        text.add_family(name, MetricKind::Gauge, help, [(String::new(), value)]);
    }
    let version = format!("version=\"{}\"", env!("CARGO_PKG_VERSION"));
    text.add_family(
        "adit_node_info",
        MetricKind::Info,
        "The version of the program.",
        [(version, 1)],
    );
}
