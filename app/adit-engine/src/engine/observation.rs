//! Numbers for metrics and panels: durations, failures, users, and the state of the process.

use std::sync::atomic::Ordering;

use adit_wire::UnixTime;

use super::{Engine, ListenerInfo, RunningListener};
use crate::stage_meter::StageStats;
use crate::usage::Usage;

impl Engine {
    /// Returns durations and failures of the connections of each listener since it was opened, in the order of opening.
    #[must_use]
    pub fn stage_stats(&self) -> Vec<(ListenerInfo, StageStats)> {
        let running = self.lock_running();
        let each = running.iter();
        each.map(|r| (r.listening.clone(), r.live.stages.stats()))
            .collect()
    }

    /// Returns the usage of each user that has connected to a listener, by the name that logs show. A user of several
    /// listeners is counted at each.
    #[must_use]
    pub fn user_usages(&self) -> Vec<(ListenerInfo, Vec<(String, Usage)>)> {
        let usages = |r: &RunningListener| {
            let mut usages = r.live.login_usages();
            if let Some(table) = &r.live.user_table {
                let (_, named) = table.unnamed_and_user_usages();
                let named = named.into_iter();
                usages.extend(named.map(|(user, usage)| (user.name().to_owned(), usage)));
            }
            (r.listening.clone(), usages)
        };
        self.lock_running().iter().map(usages).collect()
    }

    /// Returns true once [`Self::drain_and_stop`] was called, or while [`Self::announce_drain`] says that it will be.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Returns the maximum number of open connections.
    #[must_use]
    pub fn max_connections(&self) -> usize {
        self.gate.limit()
    }

    /// Returns the time at which the process has started, or the one whose counters it continues.
    #[must_use]
    pub const fn start_time(&self) -> UnixTime {
        self.started
    }
}
