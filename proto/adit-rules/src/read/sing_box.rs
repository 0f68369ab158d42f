//! Rules of sing-box as their readers collect them.
//!
//! The conditions on the destination are alternatives, so are the ports, the sources and the ports of
//! sources; a request has to match each of these groups that a rule has.

use super::limits::{NoteKind, Place, ReadError};
use super::tally::Tally;
use crate::bounds::AddError;
use crate::builder::RuleSetBuilder;
use crate::rule_set::RuleSet;

/// The last version of the format that is read. Versions up to 5 differ in conditions on the device alone,
/// which are noted.
pub(super) const MAX_VERSION: u64 = 5;

/// The conditions of a rule that are alternatives: one of each group must match.
#[derive(Debug, Clone, Copy)]
pub(super) enum ConditionGroup {
    Destination,
    Ports,
    Source,
    SourcePorts,
    Transports,
}

/// The conditions of a group.
#[derive(Debug, Default)]
struct Alternatives {
    set: RuleSetBuilder,
    /// A value was not understood.
    incomplete: bool,
}

/// A rule.
#[derive(Debug, Default)]
pub(super) struct SingBoxRule {
    groups: [Alternatives; 5],
    pub(super) invert: bool,
    /// The reason why the rule is skipped as a whole.
    pub(super) refused: Option<NoteKind>,
    /// True for `and`, false for `or`, if this is a rule of rules.
    pub(super) logical: Option<bool>,
    pub(super) parts: Vec<Self>,
    /// The number of its entries that were added.
    pub(super) accepted: usize,
}

impl SingBoxRule {
    /// Adds an entry to a group, and counts it.
    pub(super) fn add(
        &mut self,
        kind: ConditionGroup,
        place: Place,
        text: &str,
        tally: &mut Tally<'_>,
        add: impl FnOnce(&mut RuleSetBuilder) -> Result<(), AddError>,
    ) -> Result<(), ReadError> {
        let Some(group) = self.groups.get_mut(kind as usize) else {
            return Ok(());
        };
        match add(&mut group.set) {
            Ok(()) => {
                self.accepted += 1;
                tally.see()
            }
            added => {
                group.incomplete = true;
                tally.count(place, text, added)
            }
        }
    }

    /// Refuses the rule because of a condition that adit does not have.
    pub(super) fn refuse(&mut self, kind: &str) {
        if self.refused.is_none() {
            self.refused = Some(NoteKind::Unsupported(super::tally::shorten(kind)));
        }
    }

    /// Adds the rule to a set, or notes why it is skipped.
    pub(super) fn finish(
        self,
        place: Place,
        set: &mut RuleSetBuilder,
        tally: &mut Tally<'_>,
    ) -> Result<(), ReadError> {
        let accepted = self.count_accepted();
        match self.compile() {
            Ok(part) => {
                set.append(part)?;
                tally.accepted += accepted;
            }
            Err(Refusal::Note(kind)) => tally.note(place, kind),
            Err(Refusal::Set(why)) => return Err(ReadError::Set(why)),
        }
        Ok(())
    }

    fn count_accepted(&self) -> usize {
        let parts = self.parts.iter().map(Self::count_accepted);
        self.accepted + parts.sum::<usize>()
    }

    fn is_incomplete(&self) -> bool {
        let own = self.groups.iter().any(|group| group.incomplete);
        own || self.parts.iter().any(Self::is_incomplete)
    }

    fn compile(self) -> Result<RuleSetBuilder, Refusal> {
        if let Some(kind) = self.refused {
            return Err(Refusal::Note(kind));
        }
        if self.invert && self.is_incomplete() {
            return Err(Refusal::Note(NoteKind::Incomplete));
        }
        let mut parts = Vec::new();
        let mut any = false;
        if let Some(and) = self.logical {
            any = !and;
            for part in self.parts {
                parts.push(part.compile()?);
            }
        } else {
            let is_lost = |group: &Alternatives| group.incomplete && group.set.is_empty();
            if self.groups.iter().any(is_lost) {
                return Err(Refusal::Note(NoteKind::Incomplete));
            }
            let sets = self.groups.into_iter().map(|group| group.set);
            parts.extend(sets.filter(|set| !set.is_empty()));
        }
        let mut set = RuleSetBuilder::new();
        match parts.len() {
            0 => return Err(Refusal::Note(NoteKind::Empty)),
            // Without a level of its own.
            1 => set = parts.swap_remove(0),
            _ if any => {
                for part in parts {
                    set.append(part)?;
                }
            }
            _ => {
                let parts: Vec<RuleSet> = parts.into_iter().map(RuleSetBuilder::build).collect();
                set.add_all(parts)?;
            }
        }
        if self.invert {
            let mut not = RuleSetBuilder::new();
            not.add_not(set.build())?;
            return Ok(not);
        }
        Ok(set)
    }
}

/// Why a rule is not added.
enum Refusal {
    Note(NoteKind),
    Set(AddError),
}

impl From<AddError> for Refusal {
    fn from(why: AddError) -> Self {
        Self::Set(why)
    }
}
