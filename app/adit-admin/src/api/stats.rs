//! Traffic counters for panels: per server and user.

use adit_engine::{KeyedServer, Usage};
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
