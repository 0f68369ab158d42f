//! The groups of a process, and the selections in those of the kind `manual`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use adit_config::GroupKind;
use tracing::warn;

use super::group_state::{GroupSettings, GroupState};
use super::member_selections::MemberSelections;

/// The groups of a process. Routes and listeners that use the same group share its state.
#[derive(Debug, Default)]
pub(crate) struct GroupRegistry {
    groups: Mutex<Vec<Weak<GroupState>>>,
    /// The selections that were made in manual groups.
    selections: Mutex<MemberSelections>,
}

impl GroupRegistry {
    /// Creates a registry for groups in which these selections were made.
    pub(crate) fn with_selections(selections: MemberSelections) -> Self {
        Self {
            groups: Mutex::default(),
            selections: Mutex::new(selections),
        }
    }

    /// Selects the member of a manual group. Returns all selections, to be stored; `None` if the group is not
    /// manual or has no such member.
    pub(crate) fn select_member(
        &self,
        group: &GroupState,
        member: &str,
    ) -> Option<MemberSelections> {
        if !group.select_member(member) {
            return None;
        }
        let mut made = self.lock_selections();
        if let Some(selection) = group.selection()
            && !made.record(group.name().to_owned(), selection)
        {
            let name = group.name();
            warn!("group {name}: the selection is not kept, because those of too many groups are");
        }
        Some(made.clone())
    }

    /// Returns all selections.
    pub(crate) fn selections(&self) -> MemberSelections {
        self.lock_selections().clone()
    }

    /// Replaces all selections, and applies them to the groups.
    pub(crate) fn restore_selections(&self, made: MemberSelections) {
        let groups = self.groups();
        let mut known = self.lock_selections();
        if *known == made {
            return;
        }
        *known = made;
        for group in groups {
            if group.kind() == GroupKind::Manual {
                group.restore_selection(&known, &group.member_names());
            }
        }
    }

    fn lock_groups(&self) -> MutexGuard<'_, Vec<Weak<GroupState>>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_selections(&self) -> MutexGuard<'_, MemberSelections> {
        let locked = self.selections.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state of a group with these settings, which is created if there is none.
    pub(crate) fn state_for(&self, settings: GroupSettings) -> Arc<GroupState> {
        let mut known = self.lock_groups();
        known.retain(|group| group.strong_count() > 0);
        let mut alive = known.iter().filter_map(Weak::upgrade);
        if let Some(same) = alive.find(|group| group.has_settings(&settings)) {
            return same;
        }
        let names = settings.members.clone();
        let group = Arc::new(GroupState::new(settings));
        if group.kind() == GroupKind::Manual {
            group.restore_selection(&self.lock_selections(), &names);
        }
        known.push(Arc::downgrade(&group));
        group
    }

    /// Returns the groups in use. Of several with the same name, which a change of the configuration can leave for
    /// a while, the newest.
    pub(crate) fn groups(&self) -> Vec<Arc<GroupState>> {
        let known = self.lock_groups();
        let mut found: Vec<Arc<GroupState>> = Vec::new();
        for group in known.iter().rev().filter_map(Weak::upgrade) {
            if found.iter().all(|other| other.name() != group.name()) {
                found.push(group);
            }
        }
        found.reverse();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_keeps_its_state_while_it_is_used() {
        let registry = GroupRegistry::default();
        let settings = |kind| GroupSettings {
            name: "g".to_owned(),
            kind,
            selected: 0,
            check: None,
            members: vec!["a".to_owned(), "b".to_owned()],
        };
        let one = registry.state_for(settings(GroupKind::Failover));
        let same = registry.state_for(settings(GroupKind::Failover));
        assert!(Arc::ptr_eq(&one, &same));
        let other = registry.state_for(settings(GroupKind::Spread));
        assert_eq!(registry.groups().len(), 1);
        assert!(Arc::ptr_eq(&registry.groups()[0], &other));
        drop(other);
        assert!(Arc::ptr_eq(&registry.groups()[0], &one));
    }

    #[test]
    fn a_selection_outlives_the_state_of_its_group() {
        let registry = GroupRegistry::default();
        let settings = |members: &str, selected| GroupSettings {
            name: "g".to_owned(),
            kind: GroupKind::Manual,
            selected,
            check: None,
            members: members.chars().map(String::from).collect(),
        };
        let used = |registry: &GroupRegistry, members, selected| {
            let report = registry.state_for(settings(members, selected)).report();
            let mut members = report.members.into_iter();
            members.find(|member| member.is_selected).unwrap().name
        };
        let group = registry.state_for(settings("abc", 0));
        assert_eq!(registry.select_member(&group, "d"), None);
        let made = registry.select_member(&group, "3").unwrap();
        let next = GroupRegistry::with_selections(made);
        for registry in [&registry, &next] {
            assert_eq!(used(registry, "abc", 0), "c");
            assert_eq!(used(registry, "adc", 0), "c", "another member is new");
            assert_eq!(used(registry, "ab", 0), "a", "the member is gone");
            assert_eq!(used(registry, "abc", 1), "b", "the configuration is newer");
        }
    }
}
