//! A table of fake addresses as text, for a file.

use std::fmt::Write;

use adit_wire::{narrow_int, usize_from};

use super::{FakeIpNetworks, FakeIpTable};
use crate::name::MAX_NAME;

/// The start of the first line: the kind of file and its version.
const HEAD: &str = "adit-fake-ip 1";

/// The reason why a snapshot was not restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The first line is not that of a snapshot of this version.
    #[error("not a table of fake addresses, or one of another version")]
    Head,
    /// The snapshot is of other networks, where its addresses have no meaning.
    #[error("the table is of other networks")]
    OtherNetworks,
    /// A line is invalid.
    #[error("line {0} is not a place and a name")]
    Line(usize),
}

impl FakeIpTable {
    /// Returns the table as text: a line with the networks, and a line with place and name for each name, the
    /// least recently used one first.
    #[must_use]
    pub fn snapshot(&self) -> String {
        let mut out = head(&self.networks);
        for place in self.shares.oldest_first() {
            if let Some(name) = self.names.get(usize_from(place)) {
                // A text accepts everything.
                let _ = writeln!(out, "{place} {name}");
            }
        }
        out
    }

    /// Replaces the names by those of a snapshot, and returns their number. Names above the capacity, which may
    /// have become smaller, are dropped. After an error the table is unchanged.
    ///
    /// # Errors
    /// The text is not a snapshot of a table with the same networks.
    pub fn restore(&mut self, snapshot: &str) -> Result<usize, SnapshotError> {
        let body = match snapshot.strip_prefix(&head(&self.networks)) {
            Some(body) => body,
            None if snapshot.starts_with(HEAD) => return Err(SnapshotError::OtherNetworks),
            None => return Err(SnapshotError::Head),
        };
        let mut names: Vec<Option<&str>> = Vec::new();
        let mut order = Vec::new();
        for (at, line) in body.lines().enumerate() {
            let failed = SnapshotError::Line(at + 2);
            let (place, name) = line.split_once(' ').ok_or(failed)?;
            let place: u32 = place.parse().map_err(|_| failed)?;
            let is_name = name.bytes().all(|byte| byte.is_ascii_graphic());
            if name.is_empty() || name.len() > MAX_NAME || !is_name {
                return Err(failed);
            }
            if place >= self.capacity {
                continue;
            }
            let slot = usize_from(place);
            if names.len() <= slot {
                names.resize(slot + 1, None);
            }
            match names.get_mut(slot) {
                Some(free @ None) => *free = Some(name),
                _ => return Err(failed),
            }
            order.push((place, name));
        }
        let mut restored = Self {
            networks: self.networks,
            capacity: self.capacity,
            index: Default::default(),
            names: Vec::new(),
            shares: Default::default(),
            changes: self.changes,
        };
        restored.names.resize(names.len(), Default::default());
        for (place, name) in &order {
            if restored.index.contains_key(*name) {
                continue;
            }
            restored.fill(*place, name, None);
        }
        restored.drop_gaps();
        restored.changes = self.changes;
        *self = restored;
        Ok(self.index.len())
    }

    /// Gives up the places after the first free one: new names take places in order.
    fn drop_gaps(&mut self) {
        let Some(gap) = self.names.iter().position(|name| name.is_empty()) else {
            return;
        };
        for place in gap..self.names.len() {
            let place: u32 = narrow_int(place);
            if let Some(name) = self.names.get(usize_from(place)).filter(|n| !n.is_empty()) {
                self.index.remove(name);
                self.shares.remove(place);
            }
        }
        self.names.truncate(gap);
    }
}

/// Returns the first line of a snapshot.
fn head(networks: &FakeIpNetworks) -> String {
    let mut out = HEAD.to_owned();
    let FakeIpNetworks { v4, v6 } = networks;
    let networks = v4.iter().map(ToString::to_string);
    for network in networks.chain(v6.iter().map(ToString::to_string)) {
        out.push(' ');
        out.push_str(&network);
    }
    out.push('\n');
    out
}
