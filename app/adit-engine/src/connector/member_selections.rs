//! The members that were selected in manual groups while a plan ran.

use std::collections::BTreeMap;

/// Maximum number of groups whose selection is kept.
const MAX_SELECTIONS: usize = 4096;

/// A selection in a manual group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberSelection {
    /// The name of the selected member.
    pub member: String,
    /// The name of the member that the configuration selected at that time. If the configuration selects another one
    /// later, that decision is newer, and this selection is ignored.
    pub configured: String,
}

/// The selections in the groups of a process, by the name of the group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemberSelections(BTreeMap<String, MemberSelection>);

/// The effect of an earlier selection on a group.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EarlierSelection<'a> {
    /// There is none.
    None,
    /// It selects the member at this position.
    Applies(usize),
    /// The group has no such member any more.
    MemberGone(&'a str),
    /// The configuration selects another member than it did then.
    Outdated(&'a str),
}

impl MemberSelections {
    /// Returns the selections, sorted by the name of the group.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &MemberSelection)> {
        self.0.iter().map(|(group, made)| (group.as_str(), made))
    }

    /// Records a selection. An earlier one of the same group is replaced. Returns false, and changes nothing, if the
    /// selections of 4096 other groups are recorded.
    pub fn record(&mut self, group: String, selection: MemberSelection) -> bool {
        let fits = self.0.len() < MAX_SELECTIONS || self.0.contains_key(&group);
        if fits {
            self.0.insert(group, selection);
        }
        fits
    }

    /// Returns the effect of the selection that was made in `group`, which has these members and whose configuration
    /// selects the one at the position `configured`.
    pub(super) fn effect_on(
        &self,
        group: &str,
        members: &[String],
        configured: usize,
    ) -> EarlierSelection<'_> {
        let Some(made) = self.0.get(group) else {
            return EarlierSelection::None;
        };
        let found = members.iter().position(|name| *name == made.member);
        match found {
            None => EarlierSelection::MemberGone(&made.member),
            Some(at) if at == configured => EarlierSelection::None,
            Some(_) if members.get(configured) != Some(&made.configured) => {
                EarlierSelection::Outdated(&made.member)
            }
            Some(at) => EarlierSelection::Applies(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_applies_while_the_configuration_is_the_same() {
        let members = ["a", "b", "c"].map(str::to_owned);
        let mut made = MemberSelections::default();
        assert_eq!(made.effect_on("g", &members, 0), EarlierSelection::None);
        let selection = |member: &str| MemberSelection {
            member: member.to_owned(),
            configured: "a".to_owned(),
        };
        assert!(made.record("g".to_owned(), selection("c")));
        let effect = |at| made.effect_on("g", &members, at);
        assert_eq!(effect(0), EarlierSelection::Applies(2));
        assert_eq!(effect(1), EarlierSelection::Outdated("c"));
        assert_eq!(effect(2), EarlierSelection::None);
        let fewer = &members[..2];
        let gone = EarlierSelection::MemberGone("c");
        assert_eq!(made.effect_on("g", fewer, 0), gone);
        assert_eq!(made.effect_on("h", &members, 0), EarlierSelection::None);
    }

    #[test]
    fn the_number_of_groups_is_limited() {
        let mut made = MemberSelections::default();
        let selection = MemberSelection {
            member: "a".to_owned(),
            configured: "b".to_owned(),
        };
        for group in 0..MAX_SELECTIONS {
            assert!(made.record(group.to_string(), selection.clone()));
        }
        assert!(!made.record("one more".to_owned(), selection.clone()));
        assert!(made.record("7".to_owned(), selection));
        assert_eq!(made.iter().count(), MAX_SELECTIONS);
    }
}
