//! Traffic counters: per server and user for panels, and per listener for Prometheus.

use std::fmt::Write;

use adit_engine::{Engine, KeyedServer, Usage};
use adit_wire::u64_from;
use serde::Serialize;

use super::reply::{ApiResult, Reply};

/// The counters of a server or a user. Up is from the client.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TrafficCounters {
    uplink_packets: u64,
    uplink_bytes: u64,
    downlink_packets: u64,
    downlink_bytes: u64,
    tcp_sessions: u64,
    udp_sessions: u64,
}

#[derive(Serialize)]
struct UserStats<'a> {
    username: &'a str,
    #[serde(flatten)]
    numbers: TrafficCounters,
}

#[derive(Serialize)]
struct ServerStats<'a> {
    #[serde(flatten)]
    numbers: TrafficCounters,
    users: Vec<UserStats<'a>>,
}

impl From<Usage> for TrafficCounters {
    fn from(used: Usage) -> Self {
        Self {
            uplink_packets: used.packets_up,
            uplink_bytes: used.up,
            downlink_packets: used.packets_down,
            downlink_bytes: used.down,
            tcp_sessions: used.tcp_sessions,
            udp_sessions: used.udp_sessions,
        }
    }
}

/// Answers `GET /stats[?clear=true]`: counters since the start, or since they were last cleared.
pub(super) fn get_stats(server: &KeyedServer, clear: bool) -> ApiResult {
    let (sum, each) = server.user_table.total_and_user_usages(clear);
    let users = each.iter().map(|(user, used)| UserStats {
        username: user.name(),
        numbers: (*used).into(),
    });
    Ok(Reply::ok(&ServerStats {
        numbers: sum.into(),
        users: users.collect(),
    }))
}

/// Answers `GET /metrics`, without destinations, clients and users (SEC-E9).
pub(super) fn get_metrics(engine: &Engine) -> Reply {
    let traffic = engine.listener_counts();
    let labels: Vec<String> = traffic
        .iter()
        .map(|(listening, _)| {
            // Route names consist of letters, digits, `-`, `_` and `.`, so they need no escaping.
            format!(
                "route=\"{}\",listen=\"{}\"",
                listening.route, listening.addr
            )
        })
        .collect();
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, lines: Vec<(String, u64)>| {
        write_family(&mut text, name, kind, help, lines);
    };
    let both = traffic
        .iter()
        .zip(&labels)
        .flat_map(|((_, counts), labels)| {
            [("up", counts.up), ("down", counts.down)]
                .map(|(way, bytes)| (format!("{labels},direction=\"{way}\""), bytes))
        });
    family(
        "adit_bytes_total",
        "counter",
        "Payload bytes that listeners carried; up is from the client.",
        both.collect(),
    );
    let each = |value: fn(&adit_engine::MeterStats) -> u64| {
        let all = traffic.iter().zip(&labels);
        all.map(|((_, counts), labels)| (labels.clone(), value(counts)))
            .collect()
    };
    family(
        "adit_sessions_total",
        "counter",
        "Sessions started: connections that reached a destination, and associations.",
        each(|counts| counts.opened),
    );
    family(
        "adit_sessions_open",
        "gauge",
        "Open sessions.",
        each(|counts| counts.opened.saturating_sub(counts.closed)),
    );
    family(
        "adit_datagrams_lost_total",
        "counter",
        "Datagrams from clients that could not be forwarded.",
        each(|counts| counts.lost),
    );
    let buffers = engine.listeners().into_iter().filter_map(|at| {
        let buffers = at.buffers?;
        let labels = format!("route=\"{}\",listen=\"{}\"", at.route, at.addr);
        let sizes = [("receive", buffers.receive), ("send", buffers.send)];
        Some(sizes.map(|(direction, size)| {
            let labels = format!("{labels},direction=\"{direction}\"");
            (labels, u64_from(size))
        }))
    });
    family(
        "adit_udp_buffer_bytes",
        "gauge",
        "Size of the socket buffers of a UDP socket, as the system reports it.",
        buffers.flatten().collect(),
    );
    let keyed = engine
        .keyed_servers()
        .into_iter()
        .filter(|s| s.user_table.users().has_names());
    let users = keyed.map(|server| {
        let at = &server.listening;
        let labels = format!("route=\"{}\",listen=\"{}\"", at.route, at.addr);
        let count = server.user_table.users().len();
        (labels, u64_from(count))
    });
    family("adit_users", "gauge", "Users of a server.", users.collect());
    let open = u64_from(engine.open_connections());
    family(
        "adit_connections_open",
        "gauge",
        "Open connections of clients, including those in the handshake.",
        vec![(String::new(), open)],
    );
    // Counted over all sessions of the process, as in kcp-go.
    for count in engine.kcp_counts().all() {
        let name = match count.kind {
            "counter" => format!("adit_kcp_{}_total", count.key),
            _ => format!("adit_kcp_{}", count.key),
        };
        let value = vec![(String::new(), count.value)];
        family(&name, count.kind, &format!("KCP: {}", count.help), value);
    }
    let groups = engine.groups();
    let groups: Vec<_> = groups.iter().map(|group| group.report()).collect();
    for (name, kind, help, samples) in super::groups::metrics(&groups) {
        write_family(&mut text, name, kind, help, samples);
    }
    for (name, help, samples) in super::dns::metrics(engine) {
        write_family(&mut text, name, "counter", help, samples);
    }
    let version = format!("version=\"{}\"", env!("CARGO_PKG_VERSION"));
    write_family(
        &mut text,
        "adit_node_info",
        "gauge",
        "The version of the program.",
        vec![(version, 1)],
    );
    Reply::text("text/plain; version=0.0.4; charset=utf-8", text)
}

/// Appends the samples of a metric, each with its labels.
fn write_family<V: std::fmt::Display>(
    text: &mut String,
    name: &str,
    kind: &str,
    help: &str,
    samples: Vec<(String, V)>,
) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in samples {
        let _ = match labels.is_empty() {
            true => writeln!(text, "{name} {value}"),
            false => writeln!(text, "{name}{{{labels}}} {value}"),
        };
    }
}
