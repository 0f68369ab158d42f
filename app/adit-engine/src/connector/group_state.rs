//! The state of a group that all its connectors share: the health of its members and whose turn it is.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use adit_config::GroupKind;
use adit_wire::Target;
use tracing::{info, warn};

use super::member_health::{MemberHealth, Standing};
use super::member_selections::{EarlierSelection, MemberSelection, MemberSelections};
use crate::DialError;

/// Part of the best member's time that another may take without a change, so that two equal ones do not
/// alternate: four fifths.
const CLEARLY_FASTER: (u32, u32) = (4, 5);
/// Minimum interval between two lines in the log that no member works.
const WARN_INTERVAL: Duration = Duration::from_secs(60);
/// Value of `selected` and `fastest` without a member.
const NONE: usize = usize::MAX;

/// A group: its members' health, and its policy.
#[derive(Debug)]
pub struct GroupState {
    name: String,
    kind: GroupKind,
    /// The target that probes request, if the configuration has one.
    check: Option<Target>,
    /// The target of the last answered request.
    last_target: Mutex<Option<Target>>,
    members: Vec<MemberState>,
    /// The member that the configuration of a manual group selects.
    configured: usize,
    /// The member that a manual group uses.
    selected: AtomicUsize,
    /// The member that was the fastest.
    fastest: AtomicUsize,
    turn: AtomicUsize,
    /// Time of the last warning that no member works.
    warned: Mutex<Option<Instant>>,
}

/// A member's part of the state.
#[derive(Debug)]
pub(super) struct MemberState {
    pub(super) name: String,
    pub(super) health: MemberHealth,
    /// Number of open streams and datagram paths.
    pub(super) open: AtomicUsize,
}

/// The settings of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSettings {
    /// Its name, for logs and metrics.
    pub name: String,
    /// The way that members are chosen.
    pub kind: GroupKind,
    /// The member that a manual group uses at first.
    pub selected: usize,
    /// The target that probes request.
    pub check: Option<Target>,
    /// The names of the members, in their order.
    pub members: Vec<String>,
}

/// A group as it is now.
#[derive(Debug, Clone)]
pub struct GroupReport {
    /// Its name.
    pub name: String,
    /// The way that members are chosen.
    pub kind: GroupKind,
    /// Its members, in their order.
    pub members: Vec<MemberReport>,
}

/// A member of a group as it is now.
#[derive(Debug, Clone)]
pub struct MemberReport {
    /// Its name.
    pub name: String,
    /// True unless it has failed and not returned.
    pub is_up: bool,
    /// True if a manual group uses it.
    pub is_selected: bool,
    /// Time within which its answers usually arrive; `None` if it was not measured.
    pub usual_time: Option<Duration>,
    /// Number of open streams and associations.
    pub open: usize,
    /// Time since it failed.
    pub out_for: Option<Duration>,
    /// The reason of that failure.
    pub reason: String,
    /// Number of failures by their cause.
    pub failures: Vec<(&'static str, u64)>,
}

impl GroupState {
    /// Creates the state of a group.
    #[must_use]
    pub fn new(settings: GroupSettings) -> Self {
        let member = |name| MemberState {
            name,
            health: MemberHealth::default(),
            open: AtomicUsize::new(0),
        };
        Self {
            name: settings.name,
            kind: settings.kind,
            check: settings.check,
            last_target: Mutex::default(),
            members: settings.members.into_iter().map(member).collect(),
            configured: settings.selected,
            selected: AtomicUsize::new(settings.selected),
            fastest: AtomicUsize::new(NONE),
            turn: AtomicUsize::new(0),
            warned: Mutex::default(),
        }
    }

    /// Returns true if the group has these settings, so that what is known about its members stays true.
    pub(crate) fn has_settings(&self, settings: &GroupSettings) -> bool {
        let names = self.members.iter().map(|member| &member.name);
        self.name == settings.name
            && self.kind == settings.kind
            && (self.kind != GroupKind::Manual || self.configured == settings.selected)
            && self.check == settings.check
            && names.eq(&settings.members)
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) const fn kind(&self) -> GroupKind {
        self.kind
    }

    /// Returns a member's part of the state. `None` if there is no such member.
    pub(super) fn member(&self, at: usize) -> Option<&MemberState> {
        self.members.get(at)
    }

    /// Returns the names of the members.
    pub(super) fn member_names(&self) -> Vec<String> {
        self.members
            .iter()
            .map(|member| member.name.clone())
            .collect()
    }

    /// Selects the member of a manual group by its name, or by its number from 1. Returns false if the group is not
    /// manual or has no such member.
    pub(crate) fn select_member(&self, member: &str) -> bool {
        let found = self.members.iter().position(|known| known.name == member);
        let by_number = || {
            let at = member.parse::<usize>().ok()?.checked_sub(1)?;
            (at < self.members.len()).then_some(at)
        };
        match found.or_else(by_number) {
            Some(at) if self.kind == GroupKind::Manual => {
                self.selected.store(at, Ordering::Relaxed);
                true
            }
            _ => false,
        }
    }

    /// Returns the selection of a manual group, to be recorded.
    pub(super) fn selection(&self) -> Option<MemberSelection> {
        let name = |at| self.member(at).map(|member| member.name.clone());
        Some(MemberSelection {
            member: name(self.selected.load(Ordering::Relaxed))?,
            configured: name(self.configured)?,
        })
    }

    /// Applies a selection that was made earlier, and logs what becomes of it.
    pub(super) fn restore_selection(&self, made: &MemberSelections, names: &[String]) {
        let group = &self.name;
        let configured = names.get(self.configured).map_or("", String::as_str);
        match made.effect_on(group, names, self.configured) {
            EarlierSelection::None => {}
            EarlierSelection::Applies(at) => {
                self.selected.store(at, Ordering::Relaxed);
                let name = names.get(at).map_or("", String::as_str);
                info!("group {group}: uses {name}, which was selected earlier");
            }
            EarlierSelection::MemberGone(member) => warn!(
                "group {group}: uses {configured}, because {member}, which was selected earlier, is not a member any \
                 more"
            ),
            EarlierSelection::Outdated(member) => info!(
                "group {group}: uses {configured}, which the configuration selects now; {member} was selected earlier"
            ),
        }
    }

    /// Logs that a request has failed because no member works, once a minute.
    pub(super) fn report_no_member(&self, why: &DialError) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.is_none_or(|at| at.elapsed() >= WARN_INTERVAL) {
            *warned = Some(Instant::now());
            warn!(
                "group {}: no member works, requests fail: {why}. Is this machine online?",
                self.name
            );
        }
    }

    /// Records the target of a request that a server answered.
    pub(super) fn record_target(&self, target: &Target) {
        let mut last = self
            .last_target
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if last.as_ref() != Some(target) {
            *last = Some(target.clone());
        }
    }

    /// Returns the target that a probe should request.
    pub(super) fn probe_target(&self) -> Option<Target> {
        let last = self.last_target.lock();
        let last = || last.unwrap_or_else(PoisonError::into_inner).clone();
        self.check.clone().or_else(last)
    }

    /// Returns the members in the order in which a request to `target` should try them.
    pub(super) fn order(&self, target: Option<&Target>, for_datagrams: bool) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        match self.kind {
            GroupKind::Failover => {}
            GroupKind::Manual => return vec![self.selected.load(Ordering::Relaxed)],
            GroupKind::Fastest => self.put_fastest_first(&mut order),
            GroupKind::LeastLoaded => {
                order.sort_by_key(|at| self.member(*at).map(|m| m.open.load(Ordering::Relaxed)));
            }
            GroupKind::Spread => {
                order.rotate_left(self.next_turn());
            }
            GroupKind::SpreadByDestination => {
                if let Some(target) = target {
                    // Rendezvous hashing: a member that fails moves only its own destinations.
                    order.sort_by_key(|at| self.destination_hash(target, *at));
                } else {
                    order.rotate_left(self.next_turn());
                }
            }
        }
        order.sort_by_key(|at| {
            self.member(*at).map(|member| {
                let loses = for_datagrams && member.health.loses_datagrams();
                (member.health.standing(), loses)
            })
        });
        order
    }

    /// Returns the member whose turn it is.
    fn next_turn(&self) -> usize {
        self.turn.fetch_add(1, Ordering::Relaxed) % self.members.len().max(1)
    }

    /// Returns true if another member than `at` is up and does not lose datagrams.
    pub(super) fn has_better_for_datagrams(&self, at: usize) -> bool {
        let mut others = self.members.iter().enumerate();
        self.kind != GroupKind::Manual
            && others.any(|(other, member)| {
                let health = &member.health;
                other != at && health.standing() == Standing::Up && !health.loses_datagrams()
            })
    }

    fn destination_hash(&self, target: &Target, at: usize) -> u64 {
        let mut hasher = DefaultHasher::new();
        target.host.hash(&mut hasher);
        self.member(at).map(|m| &m.name).hash(&mut hasher);
        hasher.finish()
    }

    /// Sorts by the mean answer time. Members that were not measured are last; the fastest stays until another is
    /// clearly faster.
    fn put_fastest_first(&self, order: &mut [usize]) {
        let time = |at: usize| self.member(at).and_then(|m| m.health.mean_time());
        let is_up = |at: usize| self.member(at).map(|m| m.health.standing()) == Some(Standing::Up);
        order.sort_by_key(|at| time(*at).unwrap_or(Duration::MAX));
        let Some(best) = order.iter().copied().find(|at| is_up(*at)) else {
            return;
        };
        let before = self.fastest.load(Ordering::Relaxed);
        let stays = before != NONE
            && is_up(before)
            && match (time(before), time(best)) {
                (Some(before), Some(best)) => best * CLEARLY_FASTER.1 > before * CLEARLY_FASTER.0,
                (Some(_), None) => true,
                (None, found) => found.is_none(),
            };
        let first = if stays { before } else { best };
        self.fastest.store(first, Ordering::Relaxed);
        if let Some(place) = order.iter().position(|at| *at == first)
            && let Some(front) = order.get_mut(..=place)
        {
            front.rotate_right(1);
        }
    }

    /// Returns the group as it is now.
    #[must_use]
    pub fn report(&self) -> GroupReport {
        let selected = self.selected.load(Ordering::Relaxed);
        let each = self.members.iter().enumerate().map(|(at, member)| {
            let health = member.health.snapshot();
            MemberReport {
                name: member.name.clone(),
                is_up: health.standing != Standing::Out,
                is_selected: self.kind == GroupKind::Manual && at == selected,
                usual_time: health.is_measured.then_some(health.usual_time),
                open: member.open.load(Ordering::Relaxed),
                out_for: health.out_for,
                reason: health.reason,
                failures: health.causes,
            }
        });
        GroupReport {
            name: self.name.clone(),
            kind: self.kind,
            members: each.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn group(kind: GroupKind, members: usize) -> GroupState {
        let names = (1..=members).map(|n| format!("m{n}"));
        GroupState::new(GroupSettings {
            name: "g".to_owned(),
            kind,
            selected: 0,
            check: None,
            members: names.collect(),
        })
    }

    fn fail(group: &GroupState, at: usize) {
        let health = &group.member(at).unwrap().health;
        health.record_failure(Instant::now(), "refused", "refused");
    }

    fn measure(group: &GroupState, at: usize, millis: u64) {
        let health = &group.member(at).unwrap().health;
        health.record_success(Some(Duration::from_millis(millis)));
    }

    #[test]
    fn members_that_fail_go_last_in_every_kind() {
        for kind in [
            GroupKind::Failover,
            GroupKind::Fastest,
            GroupKind::LeastLoaded,
            GroupKind::Spread,
            GroupKind::SpreadByDestination,
        ] {
            let group = group(kind, 3);
            fail(&group, 0);
            for _ in 0..6 {
                let order = group.order(Some(&"a.test:1".parse().unwrap()), false);
                assert_eq!(order.len(), 3);
                assert_eq!(order[2], 0, "{kind:?}");
            }
        }
    }

    #[test]
    fn the_fastest_member_is_first_until_another_is_clearly_faster() {
        let group = group(GroupKind::Fastest, 3);
        measure(&group, 1, 100);
        assert_eq!(group.order(None, false), [1, 0, 2]);
        measure(&group, 2, 95);
        assert_eq!(group.order(None, false), [1, 2, 0]);
        measure(&group, 0, 20);
        assert_eq!(group.order(None, false), [0, 2, 1]);
        fail(&group, 0);
        assert_eq!(group.order(None, false)[0], 2);
    }

    #[test]
    fn the_load_is_balanced() {
        let group = group(GroupKind::LeastLoaded, 3);
        group.members[0].open.store(2, Ordering::Relaxed);
        group.members[1].open.store(1, Ordering::Relaxed);
        assert_eq!(group.order(None, false), [2, 1, 0]);
    }

    #[test]
    fn connections_and_destinations_are_spread() {
        let group = group(GroupKind::Spread, 3);
        let first: Vec<usize> = (0..6).map(|_| group.order(None, false)[0]).collect();
        assert_eq!(first, [0, 1, 2, 0, 1, 2]);
        let group = self::group(GroupKind::SpreadByDestination, 3);
        let first = |n: u32| group.order(Some(&format!("h{n}.test:443").parse().unwrap()), false);
        let used: BTreeSet<usize> = (0..50).map(|n| first(n)[0]).collect();
        assert_eq!(used.len(), 3);
        assert_eq!(first(7), first(7), "a destination keeps its member");
        let before: Vec<usize> = (0..50).map(|n| first(n)[0]).collect();
        fail(&group, 1);
        for (n, before) in (0..50).zip(before) {
            assert!(before == 1 || first(n)[0] == before, "only its own move");
        }
    }

    #[test]
    fn a_manual_group_uses_what_was_selected() {
        let group = group(GroupKind::Manual, 3);
        fail(&group, 0);
        assert_eq!(group.order(None, false), [0]);
        assert!(group.select_member("m3"));
        assert_eq!(group.order(None, false), [2]);
        assert!(group.select_member("2"));
        assert_eq!(group.order(None, true), [1]);
        for bad in ["0", "4", "m4", ""] {
            assert!(!group.select_member(bad), "{bad}");
        }
        assert!(!self::group(GroupKind::Failover, 3).select_member("1"));
    }

    #[test]
    fn datagrams_avoid_a_member_that_loses_them() {
        let group = group(GroupKind::Failover, 2);
        group.members[0].health.record_lost_datagrams();
        assert_eq!(group.order(None, true), [1, 0]);
        assert_eq!(group.order(None, false), [0, 1]);
        assert!(group.has_better_for_datagrams(0));
        fail(&group, 1);
        assert!(!group.has_better_for_datagrams(0));
    }
}
