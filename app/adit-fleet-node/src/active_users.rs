//! The users with sessions at this node, and the bytes that they have moved recently.

use std::collections::HashMap;
use std::time::Duration;

use adit_engine::{ByteCounts, FleetUsage};
use adit_fleet::lease::RecentBytes;

/// Users with sessions here at the last count, or who have had some since the last report.
#[derive(Default)]
pub(crate) struct ActiveUsers(HashMap<u32, ActiveUser>);

struct ActiveUser {
    usage: FleetUsage,
    recent: RecentBytes,
}

impl ActiveUsers {
    /// Replaces the usage of all users by what they have done within the `time` since the last call. Users who have done
    /// nothing remain without sessions, so that they are reported once more.
    pub(crate) fn update(&mut self, taken: Vec<FleetUsage>, time: Duration) {
        for ActiveUser { usage, .. } in self.0.values_mut() {
            usage.bytes = ByteCounts::default();
            usage.sessions = 0;
            usage.devices.clear();
        }
        for usage in taken {
            let recent = self.recent(usage.id);
            self.0.insert(usage.id, ActiveUser { usage, recent });
        }
        for ActiveUser { usage, recent } in self.0.values_mut() {
            recent.add(usage.bytes.sum(), time);
        }
    }

    /// Returns what a user has moved here within the last second.
    pub(crate) fn recent(&self, id: u32) -> RecentBytes {
        let user = self.0.get(&id);
        user.map_or_else(RecentBytes::default, |user| user.recent)
    }

    /// Returns the usage of a user.
    pub(crate) fn usage(&self, id: u32) -> Option<&FleetUsage> {
        self.0.get(&id).map(|user| &user.usage)
    }

    /// Returns the usage of all users.
    pub(crate) fn all(&self) -> impl Iterator<Item = &FleetUsage> {
        self.0.values().map(|user| &user.usage)
    }

    /// Removes users without sessions.
    pub(crate) fn remove_idle(&mut self) {
        self.0.retain(|_, user| user.usage.sessions > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(bytes: u64) -> FleetUsage {
        FleetUsage {
            id: 7,
            name: "ann".into(),
            bytes: ByteCounts { up: bytes, down: 0 },
            lease: None,
            sessions: 1,
            devices: Vec::new(),
            is_last: false,
        }
    }

    /// The lease of a user who returns is that of what they do now.
    #[test]
    fn bytes_of_before_a_pause_are_not_recent() {
        let second = Duration::from_secs(1);
        let mut users = ActiveUsers::default();
        users.update(vec![usage(1 << 30)], second);
        let mut expected = RecentBytes::default();
        expected.add(1 << 30, second);
        assert_eq!(users.recent(7), expected);
        // Between two reports.
        users.update(vec![], second);
        users.update(vec![usage(0)], Duration::ZERO);
        assert_eq!(users.recent(7), RecentBytes::default());
        users.update(vec![], second);
        users.remove_idle();
        assert_eq!(users.all().count(), 0);
    }
}
