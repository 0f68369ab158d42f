//! The counters of an engine, which the successor of a process continues.

use std::collections::HashMap;
use std::net::SocketAddr;

use adit_stream::MeterStats;

use super::{Engine, RunningListener, sum_of};
use crate::carrier::KcpCounts;
use crate::usage::{Usage, UserCounters};

/// The counters of an engine, or what was added to them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineCounters {
    /// Those of each listener.
    pub listeners: Vec<ListenerCounters>,
    /// The sum of those of closed listeners.
    pub closed: MeterStats,
    /// Those of the KCP sessions of all listeners and hops.
    pub kcp: KcpCounts,
    /// Usage of each user at all listeners together, in earlier processes too.
    pub users: Vec<UserCounters>,
}

/// The counters of a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerCounters {
    /// The name of its route.
    pub route: String,
    /// Its number in the route, starting at 0.
    pub listener: usize,
    /// Its bound address.
    pub addr: SocketAddr,
    /// Payload and sessions.
    pub stats: MeterStats,
    /// Usage of all users that are not in `users`: clients without a name, and users that were removed.
    pub others: Usage,
    /// Usage of each user.
    pub users: Vec<UserCounters>,
}

impl EngineCounters {
    /// Returns what was added since `before`, counters of the same engine at an earlier time.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let listeners = self.listeners.iter().map(|now| {
            let same = |old: &&ListenerCounters| {
                old.route == now.route && old.listener == now.listener && old.addr == now.addr
            };
            let Some(old) = before.listeners.iter().find(same) else {
                return now.clone();
            };
            ListenerCounters {
                stats: difference(now.stats, old.stats),
                others: now.others.reduced_by(old.others),
                users: added_by_users(&now.users, &old.users),
                ..now.clone()
            }
        });
        Self {
            listeners: listeners.collect(),
            closed: difference(self.closed, before.closed),
            kcp: self.kcp.since(&before.kcp),
            users: added_by_users(&self.users, &before.users),
        }
    }

    /// Records that all open sessions end now.
    pub fn end_sessions(&mut self) {
        for listener in &mut self.listeners {
            listener.stats.closed = listener.stats.opened;
        }
        self.closed.closed = self.closed.opened;
        self.kcp.curr_estab = 0;
    }

    /// Returns true if all counters are zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        let none = Usage::default();
        self.closed == MeterStats::default()
            && self.kcp == KcpCounts::default()
            && self.users.iter().all(|user| user.usage == none)
            && self.listeners.iter().all(|listener| {
                listener.stats == MeterStats::default()
                    && listener.others == none
                    && listener.users.iter().all(|user| user.usage == none)
            })
    }
}

/// Returns what was added to the usage of each user.
fn added_by_users(now: &[UserCounters], before: &[UserCounters]) -> Vec<UserCounters> {
    let before: HashMap<&str, Usage> = before
        .iter()
        .map(|user| (user.name.as_str(), user.usage))
        .collect();
    let each = now.iter().map(|user| {
        let known = before.get(user.name.as_str()).copied().unwrap_or_default();
        UserCounters {
            name: user.name.clone(),
            usage: user.usage.reduced_by(known),
        }
    });
    each.collect()
}

/// Returns what was added to counters. Several threads add while they are read, so that one may seem to lag behind.
fn difference(now: MeterStats, before: MeterStats) -> MeterStats {
    MeterStats {
        up: now.up.wrapping_sub(before.up),
        down: now.down.wrapping_sub(before.down),
        opened: now.opened.wrapping_sub(before.opened),
        closed: now.closed.wrapping_sub(before.closed),
        lost: now.lost.wrapping_sub(before.lost),
    }
}

impl Engine {
    /// Returns the counters of all listeners and users.
    #[must_use]
    pub fn counters(&self) -> EngineCounters {
        let closed = self.lock_closed().total();
        let running = self.lock_running();
        let listeners = running.iter().map(counters_of).collect();
        EngineCounters {
            listeners,
            closed,
            kcp: self.chains.kcp.counts(),
            users: self.registry.usages(),
        }
    }

    /// Adds the counters of another process, which this one succeeds. Those of listeners that do not exist here are
    /// added to the sum of closed listeners.
    pub fn add_counters(&self, added: &EngineCounters) {
        let mut closed = added.closed;
        {
            let running = self.lock_running();
            for counters in &added.listeners {
                let same = |at: &&RunningListener| {
                    at.listening.addr == counters.addr
                        || at.listening.route == counters.route
                            && at.index == counters.listener
                            && counters.addr.port() == 0
                };
                match running.iter().find(same) {
                    Some(listener) => add_to(listener, counters),
                    None => closed = sum_of(closed, counters.stats),
                }
            }
        }
        let mut sums = self.lock_closed();
        sums.sum = sum_of(sums.sum, closed);
        self.chains.kcp.add_counts(&added.kcp);
        self.registry.add_usages(&added.users);
    }
}

fn counters_of(listener: &RunningListener) -> ListenerCounters {
    let (others, users) = match &listener.live.user_table {
        Some(table) => table.unnamed_and_user_usages(),
        None => (Usage::default(), Vec::new()),
    };
    let users = users.into_iter().map(|(user, usage)| UserCounters {
        name: user.name().to_owned(),
        usage,
    });
    ListenerCounters {
        route: listener.listening.route.clone(),
        listener: listener.index,
        addr: listener.listening.addr,
        stats: listener.live.meter.stats(),
        others,
        users: users.collect(),
    }
}

fn add_to(listener: &RunningListener, counters: &ListenerCounters) {
    listener.live.meter.add_stats(counters.stats);
    if let Some(table) = &listener.live.user_table {
        table.add_usage(counters.others, &counters.users);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(up: u64, ann: u64) -> EngineCounters {
        let usage = |up| Usage {
            up,
            ..Usage::default()
        };
        EngineCounters {
            listeners: vec![ListenerCounters {
                route: "a".to_owned(),
                listener: 0,
                addr: SocketAddr::from(([127, 0, 0, 1], 1)),
                stats: MeterStats {
                    up,
                    ..MeterStats::default()
                },
                others: usage(up - ann),
                users: vec![UserCounters {
                    name: "ann".to_owned(),
                    usage: usage(ann),
                }],
            }],
            closed: MeterStats::default(),
            kcp: KcpCounts {
                in_pkts: up,
                ..KcpCounts::default()
            },
            users: vec![UserCounters {
                name: "ann".to_owned(),
                usage: usage(ann),
            }],
        }
    }

    #[test]
    fn only_the_difference_is_added() {
        let (before, now) = (counters(10, 4), counters(17, 9));
        assert_eq!(now.since(&before), counters(7, 5));
        assert!(now.since(&now).is_zero());
        assert!(!now.since(&before).is_zero());
        assert_eq!(now.since(&EngineCounters::default()), now);
    }
}
