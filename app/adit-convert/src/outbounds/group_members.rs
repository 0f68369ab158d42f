//! The members of each group: outbounds alone, since groups of adit have no groups among their members.

use std::collections::HashSet;

use adit_config::text::Problem;

use super::{Named, OutboundGroup, OutboundList, list_names};
use crate::conversion_context::ConversionContext;

/// Maximum number of members of all groups.
const MAX_MEMBERS: usize = 50_000;
/// Maximum depth of groups inside groups. Documents of programs have three levels; the limit bounds the recursion.
const MAX_DEPTH: usize = 32;

/// Returns the outbounds of each group, by their position. `None` after a problem: groups that contain each other, or
/// too many members.
pub(super) fn resolve(
    list: &OutboundList,
    is_usable: &dyn Fn(usize) -> bool,
    clerk: &mut ConversionContext<'_>,
) -> Option<Vec<Vec<usize>>> {
    let mut resolver = Resolver {
        list,
        is_usable,
        groups: list.groups.iter().map(|_| State::New).collect(),
        unknown: Vec::new(),
        nested: 0,
        members: 0,
    };
    let mut resolved = Vec::with_capacity(list.groups.len());
    for at in 0..list.groups.len() {
        if let Err(why) = resolver.visit(at, 0) {
            clerk.add_problem(*why);
            return None;
        }
    }
    if !resolver.unknown.is_empty() {
        let names = list_names(resolver.unknown.iter().copied());
        let text = format!("members that the document does not define are skipped: {names}");
        clerk.add_note("", text);
    }
    if resolver.nested > 0 {
        let text = "groups inside groups are replaced by their members";
        clerk.add_note("", text);
    }
    for state in resolver.groups {
        resolved.push(match state {
            State::Done(members) => members,
            State::New | State::Open => Vec::new(),
        });
    }
    Some(resolved)
}

enum State {
    New,
    /// Its members are being resolved.
    Open,
    Done(Vec<usize>),
}

struct Resolver<'l> {
    list: &'l OutboundList,
    is_usable: &'l dyn Fn(usize) -> bool,
    groups: Vec<State>,
    unknown: Vec<&'l str>,
    nested: usize,
    members: usize,
}

impl<'l> Resolver<'l> {
    /// Resolves a group and those that it contains.
    fn visit(&mut self, at: usize, depth: usize) -> Result<(), Box<Problem>> {
        let list = self.list;
        let Some(group) = list.groups.get(at) else {
            return Ok(());
        };
        match self.groups.get_mut(at) {
            Some(state @ State::New) => *state = State::Open,
            Some(State::Open) => return Err(Box::new(cycle_problem(group))),
            Some(State::Done(_)) | None => return Ok(()),
        }
        if depth > MAX_DEPTH {
            let title = format!("groups are inside each other to a depth of more than {MAX_DEPTH}");
            let help = "list their members in one group";
            return Err(Box::new(Problem::without_place(title, help)));
        }
        let mut seen = HashSet::new();
        let mut members: Vec<usize> = Vec::new();
        for name in &group.members {
            match list.names.get(name) {
                Some(Named::Outbound(one)) => {
                    if seen.insert(*one) {
                        members.push(*one);
                    }
                }
                Some(Named::Group(inner)) => {
                    self.visit(*inner, depth + 1)?;
                    self.nested += 1;
                    if let Some(State::Done(inner)) = self.groups.get(*inner) {
                        members.extend(inner.iter().copied().filter(|one| seen.insert(*one)));
                    }
                }
                Some(Named::Skipped) => {}
                None if self.unknown.contains(&name.as_str()) => {}
                None => self.unknown.push(name),
            }
        }
        members.retain(|one| (self.is_usable)(*one));
        self.members += members.len();
        if self.members > MAX_MEMBERS {
            let title = format!("the groups have more than {MAX_MEMBERS} members");
            let help = "remove some of the groups";
            return Err(Box::new(Problem::without_place(title, help)));
        }
        if let Some(state) = self.groups.get_mut(at) {
            *state = State::Done(members);
        }
        Ok(())
    }
}

fn cycle_problem(group: &OutboundGroup) -> Problem {
    let names = list_names([group.name.as_str()].into_iter());
    Problem::without_place(
        format!("group {names} contains itself, directly or through other groups"),
        "remove one of the groups from the members of the other",
    )
}
