//! The messages between a process and its successor.
//!
//! ```text
//! successor                      predecessor
//!     ──── Hello ──────────────────▶        version
//!     ◀─── Sockets … ───────────────        names, with their descriptors
//!     ◀─── Plugins … ───────────────        the processes before listeners, with their descriptors
//!     ◀─── Replays … ───────────────        a snapshot of the replay states
//!     ◀─── Prepare ─────────────────
//!     ──── Ready | Failed ──────────▶       everything is bound, or the reason why not
//!     ◀─── Counters … ───────────────        accepting is paused
//!     ◀─── Users … ──────────────────        with their limits and usage
//!     ◀─── SharedSocket … ───────────        the peers that the predecessor still serves on it
//!     ◀─── Replays … ───────────────        a snapshot of the replay states, from which on the successor decides
//!     ◀─── Go ──────────────────────
//!     ──── Started ─────────────────▶       accepts connections
//!     ◀─── Counters … ──────────────        of the connections that end in the predecessor
//!     ◀─── Replays …, ReplaysEnd ───        a later snapshot of those of datagrams, whenever it has changed
//!     ◀─── Claim ────────────────────        what a handshake in the predecessor has accepted
//!     ──── ClaimAnswer ──────────────▶       1 if the successor has not seen it
//! ```

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use adit_admin::user_record::UserRecord;
use adit_engine::carrier::KcpCounts;
use adit_engine::plugin::{HandedOverPlugin, PluginSpec, PluginTransports};
use adit_engine::{EngineCounters, ListenerCounters, MeterStats, StoredUser, Usage, UserCounters};
use adit_net::child::guarded::HandedOverChild;
use serde::{Deserialize, Serialize};

use super::Exchange;

/// The environment variable with the process ID of the predecessor, whose channel is standard input.
pub(super) const ENVIRONMENT: &str = "ADIT_HANDOVER";
/// The version of these messages.
pub(super) const VERSION: u32 = 2;
/// Maximum number of sockets in one message.
pub(super) const SOCKETS_PER_MESSAGE: usize = 32;
/// Maximum number of users in one message, which remains far below its maximum size.
const USERS_PER_MESSAGE: usize = 8192;

/// The kinds of messages.
pub(super) mod kind {
    pub(crate) const HELLO: u16 = 1;
    pub(crate) const SOCKETS: u16 = 2;
    pub(crate) const PREPARE: u16 = 3;
    pub(crate) const READY: u16 = 4;
    pub(crate) const FAILED: u16 = 5;
    pub(crate) const COUNTERS: u16 = 6;
    pub(crate) const GO: u16 = 7;
    pub(crate) const STARTED: u16 = 8;
    pub(crate) const REPLAYS: u16 = 9;
    pub(crate) const REPLAYS_END: u16 = 10;
    pub(crate) const SHARED_SOCKET: u16 = 11;
    pub(crate) const SELECTED_MEMBERS: u16 = 12;
    pub(crate) const PLUGINS: u16 = 13;
    pub(crate) const CLAIM: u16 = 14;
    pub(crate) const CLAIM_ANSWER: u16 = 15;
    pub(crate) const USERS: u16 = 16;
}

/// The first message of a successor.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// The version of the messages.
    pub(super) handover: u32,
    /// The version of adit.
    pub(super) version: String,
}

/// A selection in a manual group: the names of the group, of the selected member, and of the member that the
/// configuration selected then.
pub(super) type SelectedMember = (String, String, String);

/// The owner of a socket.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SocketOwner {
    /// A listener of a route.
    Listener {
        route: String,
        listener: usize,
        /// The name of the [`SocketKind`](adit_engine::SocketKind).
        kind: String,
        addr: SocketAddr,
    },
    /// The management API, at this address.
    Api(String),
}

/// The plugin of a listener.
#[derive(Serialize, Deserialize)]
pub(super) struct PluginMessage {
    program: String,
    options: String,
    /// The name of the [`PluginTransports`].
    mode: String,
    public: SocketAddr,
    local: SocketAddr,
    id: u32,
}

impl PluginMessage {
    /// Returns the message about a plugin, and its descriptors.
    pub(super) fn new(plugin: HandedOverPlugin) -> (Self, [OwnedFd; HandedOverChild::DESCRIPTORS]) {
        let PluginSpec {
            program,
            options,
            mode,
        } = plugin.spec;
        let (id, fds) = plugin.process.into_parts();
        let message = Self {
            program,
            options,
            mode: mode.name().to_owned(),
            public: plugin.public,
            local: plugin.local,
            id,
        };
        (message, fds)
    }

    /// Returns the plugin.
    pub(super) fn into_plugin(self, fds: Vec<OwnedFd>) -> Exchange<HandedOverPlugin> {
        let mode = PluginTransports::from_name(&self.mode)
            .ok_or_else(|| format!("a plugin has an unknown mode `{}`", self.mode))?;
        let process = HandedOverChild::from_parts(self.id, fds).map_err(|why| why.to_string())?;
        Ok(HandedOverPlugin {
            spec: PluginSpec {
                program: self.program,
                options: self.options,
                mode,
            },
            public: self.public,
            local: self.local,
            process,
        })
    }
}

/// The message of a successor that has bound everything.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ready {
    /// True if it continues the socket of the API.
    pub(super) api: bool,
}

/// Counters of an engine, or of a part of its users.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct CountersMessage {
    listeners: Vec<ListenerPart>,
    closed: Numbers<5>,
    /// Those of KCP sessions.
    #[serde(default)]
    kcp: Numbers<30>,
    /// Those of users at all listeners together.
    #[serde(default)]
    users: Vec<(String, Numbers<6>)>,
}

/// A user with their limits and usage.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct UserMessage {
    name: String,
    #[serde(flatten)]
    record: UserRecord,
}

impl UserMessage {
    /// Divides users into messages of limited size.
    pub(super) fn divide(users: &[StoredUser]) -> impl Iterator<Item = Vec<Self>> {
        let parts = users.chunks(USERS_PER_MESSAGE);
        parts.map(|users| users.iter().map(Self::from).collect())
    }
}

impl From<&StoredUser> for UserMessage {
    fn from(user: &StoredUser) -> Self {
        Self {
            name: user.name.clone(),
            record: user.into(),
        }
    }
}

impl TryFrom<UserMessage> for StoredUser {
    type Error = String;

    fn try_from(message: UserMessage) -> Exchange<Self> {
        let user = message.record.into_user(message.name);
        user.map_err(|why| format!("a user has an unknown period `{}`", why.0))
    }
}

/// Counters in the order of their fields.
type Numbers<const N: usize> = [u64; N];

#[derive(Debug, Serialize, Deserialize)]
struct ListenerPart {
    route: String,
    listener: usize,
    addr: SocketAddr,
    stats: Numbers<5>,
    others: Numbers<6>,
    users: Vec<(String, Numbers<6>)>,
}

impl CountersMessage {
    /// Divides counters into messages of limited size.
    pub(super) fn divide(counters: &EngineCounters) -> Vec<Self> {
        let mut messages = vec![Self {
            listeners: Vec::new(),
            closed: from_stats(counters.closed),
            kcp: counters.kcp.values(),
            users: Vec::new(),
        }];
        let mut users_in_last = 0;
        for listener in &counters.listeners {
            let mut part = Some((listener.stats, listener.others));
            let mut chunks = listener.users.chunks(USERS_PER_MESSAGE);
            loop {
                let users = chunks.next().unwrap_or(&[]);
                if part.is_none() && users.is_empty() {
                    break;
                }
                // The sums of the listener are only in its first part.
                let (stats, others) = part.take().unwrap_or_default();
                if users_in_last + users.len() > USERS_PER_MESSAGE {
                    messages.push(Self::default());
                    users_in_last = 0;
                }
                users_in_last += users.len();
                let part = ListenerPart {
                    route: listener.route.clone(),
                    listener: listener.listener,
                    addr: listener.addr,
                    stats: from_stats(stats),
                    others: others.to_counts(),
                    users: from_users(users),
                };
                if let Some(last) = messages.last_mut() {
                    last.listeners.push(part);
                }
            }
        }
        let parts = counters.users.chunks(USERS_PER_MESSAGE);
        messages.extend(parts.map(|users| Self {
            users: from_users(users),
            ..Self::default()
        }));
        messages
    }
}

impl From<CountersMessage> for EngineCounters {
    fn from(message: CountersMessage) -> Self {
        let listeners = message.listeners.into_iter().map(|part| ListenerCounters {
            route: part.route,
            listener: part.listener,
            addr: part.addr,
            stats: to_stats(part.stats),
            others: Usage::from_counts(part.others),
            users: to_users(part.users),
        });
        Self {
            listeners: listeners.collect(),
            closed: to_stats(message.closed),
            kcp: KcpCounts::from_values(message.kcp),
            users: to_users(message.users),
        }
    }
}

fn from_users(users: &[UserCounters]) -> Vec<(String, Numbers<6>)> {
    let each = users.iter();
    each.map(|user| (user.name.clone(), user.usage.to_counts()))
        .collect()
}

fn to_users(users: Vec<(String, Numbers<6>)>) -> Vec<UserCounters> {
    let each = users.into_iter();
    each.map(|(name, usage)| UserCounters {
        name,
        usage: Usage::from_counts(usage),
    })
    .collect()
}

const fn from_stats(stats: MeterStats) -> Numbers<5> {
    let MeterStats {
        up,
        down,
        opened,
        closed,
        lost,
    } = stats;
    [up, down, opened, closed, lost]
}

const fn to_stats([up, down, opened, closed, lost]: Numbers<5>) -> MeterStats {
    MeterStats {
        up,
        down,
        opened,
        closed,
        lost,
    }
}

#[cfg(feature = "kcp")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_survive_their_division() {
        let usage = |up: usize| Usage {
            up: up as u64,
            tcp_sessions: 1,
            ..Usage::default()
        };
        let users = |count: usize| -> Vec<UserCounters> {
            let user = |at| UserCounters {
                name: format!("user {at}"),
                usage: usage(at),
            };
            (0..count).map(user).collect()
        };
        let listener = |count: usize, port: u16| ListenerCounters {
            route: "a".to_owned(),
            listener: 0,
            addr: SocketAddr::from(([127, 0, 0, 1], port)),
            stats: MeterStats {
                up: 1,
                down: 2,
                opened: 3,
                closed: 4,
                lost: 5,
            },
            others: usage(7),
            users: users(count),
        };
        let counters = EngineCounters {
            listeners: vec![
                listener(0, 1),
                listener(USERS_PER_MESSAGE * 2 + 1, 2),
                listener(3, 3),
            ],
            closed: MeterStats {
                up: 9,
                ..MeterStats::default()
            },
            kcp: KcpCounts {
                in_pkts: 11,
                curr_estab: 2,
                ..KcpCounts::default()
            },
            users: users(USERS_PER_MESSAGE + 1),
        };
        let mut sum = EngineCounters::default();
        let messages = CountersMessage::divide(&counters);
        assert!(messages.len() >= 3);
        for message in messages {
            let text = serde_json::to_vec(&message).unwrap();
            assert!(text.len() < 4 << 20);
            let part =
                EngineCounters::from(serde_json::from_slice::<CountersMessage>(&text).unwrap());
            sum.closed.up += part.closed.up;
            sum.kcp.in_pkts += part.kcp.in_pkts;
            sum.kcp.curr_estab += part.kcp.curr_estab;
            sum.users.extend(part.users);
            for one in part.listeners {
                match sum
                    .listeners
                    .iter_mut()
                    .find(|known| known.addr == one.addr)
                {
                    None => sum.listeners.push(one),
                    Some(known) => {
                        assert_eq!(one.stats, MeterStats::default());
                        assert_eq!(one.others, Usage::default());
                        known.users.extend(one.users);
                    }
                }
            }
        }
        assert_eq!(sum, counters);
    }
}
