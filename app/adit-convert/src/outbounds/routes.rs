//! A route and groups, from a complete list of outbounds.

use std::collections::HashMap;

use adit_config::GroupKind;
use adit_config::text::Problem;
use adit_wire::Role;
use zeroize::Zeroizing;

use super::chains::{self, Hops};
use super::{DIRECT, Named, OutboundGroup, OutboundList, group_members, list_names};
use crate::conversion_context::ConversionContext;
use crate::local_listeners;
use crate::toml_output::{Group, Route, RouteSet, Stage, unique_name};

/// The name of a group that the document does not have, and of one whose name has no letters that can stay.
const FALLBACK_NAME: &str = "group";

/// The outbounds that the route uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Group(usize),
    Outbound(usize),
    /// All servers, with failover.
    All,
}

/// A document whose names are resolved.
struct Resolved {
    list: OutboundList,
    /// The hops of each outbound.
    chains: Vec<Option<Hops>>,
    /// The outbounds of each group.
    members: Vec<Vec<usize>>,
    /// The name of each group in the file.
    names: Vec<String>,
}

impl OutboundList {
    /// Returns a client with one proxy for everything, and the groups of the document.
    pub(in super::super) fn into_routes(
        mut self,
        what: &str,
        clerk: &mut ConversionContext<'_>,
    ) -> RouteSet {
        if clerk.options.role == Some(Role::Server) {
            let title = format!("{what} is for clients");
            clerk.add_problem(Problem::without_place(title, "omit `--role server`"));
        }
        self.report_unusable(clerk);
        if !clerk.problems.is_empty() {
            return RouteSet::default();
        }
        let chains = chains::resolve(&self, clerk);
        let is_usable = |at: usize| chains.get(at).is_some_and(Option::is_some);
        let members = group_members::resolve(&self, &is_usable, clerk);
        if !clerk.problems.is_empty() {
            return RouteSet::default();
        }
        let mut taken = HashMap::new();
        let names = self.groups.iter();
        let names = names.map(|group| unique_name(&group.name, FALLBACK_NAME, &mut taken));
        let resolved = Resolved {
            names: names.collect(),
            members: members.unwrap_or_default(),
            chains,
            list: self,
        };
        let Some(choice) = resolved.choose(clerk) else {
            return RouteSet::default();
        };
        resolved.to_route_set(choice, &mut taken, clerk)
    }
}

impl Resolved {
    /// Finds out what the route uses. `None` after a problem.
    fn choose(&self, clerk: &mut ConversionContext<'_>) -> Option<Choice> {
        if let Some(name) = clerk.options.select.clone() {
            return self.choose_by_name(&name, clerk);
        }
        let mut groups = self.list.groups.iter().enumerate();
        let with_members = |at: &usize| self.has_servers(*at);
        let selector =
            groups.find(|(at, group)| group.kind == GroupKind::Manual && with_members(at));
        let first = selector
            .map(|(at, _)| at)
            .or_else(|| (0..self.list.groups.len()).find(with_members));
        let Some(mut at) = first else {
            return Some(Choice::All);
        };
        // The member that the program itself would use can be another group. Groups do not contain each other.
        while let Some(inner) = self.selected_group(at) {
            if let (Some(outer), Some(group)) =
                (self.list.groups.get(at), self.list.groups.get(inner))
            {
                clerk.add_note(
                    "",
                    format!(
                        "the route uses `{}`, which `{}` selects; `--select` names another group or server",
                        group.name, outer.name
                    ),
                );
            }
            at = inner;
        }
        Some(Choice::Group(at))
    }

    fn choose_by_name(&self, name: &str, clerk: &mut ConversionContext<'_>) -> Option<Choice> {
        let by_file_name = || {
            let found = self.names.iter().position(|known| known == name);
            found.map(Named::Group)
        };
        let found = self.list.names.get(name).copied().or_else(by_file_name);
        let why = match found {
            Some(Named::Group(at)) if self.members.get(at).is_some_and(|m| !m.is_empty()) => {
                return Some(Choice::Group(at));
            }
            Some(Named::Outbound(at)) if self.chains.get(at).is_some_and(Option::is_some) => {
                return Some(Choice::Outbound(at));
            }
            Some(_) => format!("`{name}` has no servers that can be used"),
            None => format!("no group or server is called `{name}`"),
        };
        let groups = self.list.groups.iter().map(|group| group.name.as_str());
        let help = format!(
            "groups and servers: {}",
            list_names(groups.chain(self.list.server_names()))
        );
        clerk.add_problem(Problem::without_place(why, help));
        None
    }

    /// True if a member of the group is a server.
    fn has_servers(&self, group: usize) -> bool {
        let members = self.members.get(group);
        members.is_some_and(|members| members.iter().any(|at| !self.is_direct(*at)))
    }

    fn is_direct(&self, outbound: usize) -> bool {
        let found = self.list.outbounds.get(outbound);
        found.is_some_and(|outbound| outbound.is_direct)
    }

    /// The name of the member that a manual group selects.
    fn selected_name(group: &OutboundGroup) -> Option<&str> {
        if group.kind != GroupKind::Manual {
            return None;
        }
        let first = group.members.first();
        group.selected.as_ref().or(first).map(String::as_str)
    }

    /// The group that a manual group selects, if it has servers.
    fn selected_group(&self, at: usize) -> Option<usize> {
        let group = self.list.groups.get(at)?;
        match self.list.names.get(Self::selected_name(group)?) {
            Some(Named::Group(inner)) => Some(*inner).filter(|inner| self.has_servers(*inner)),
            _ => None,
        }
    }

    /// The position of the selected member among the members of a manual group.
    fn selected_member(&self, at: usize, members: &[usize]) -> Option<usize> {
        let group = self.list.groups.get(at)?;
        let wanted = match self.list.names.get(Self::selected_name(group)?) {
            Some(Named::Outbound(one)) => Some(*one),
            Some(Named::Group(inner)) => self.members.get(*inner)?.first().copied(),
            Some(Named::Skipped) | None => None,
        };
        let position = wanted.and_then(|one| members.iter().position(|at| *at == one));
        position
            .filter(|at| members.get(*at).is_some_and(|one| !self.is_direct(*one)))
            // Requests do not bypass the servers unless the user says so.
            .or_else(|| members.iter().position(|one| !self.is_direct(*one)))
    }

    fn to_route_set(
        &self,
        choice: Choice,
        taken: &mut HashMap<String, usize>,
        clerk: &mut ConversionContext<'_>,
    ) -> RouteSet {
        let mut set = RouteSet::default();
        let mut empty = Vec::new();
        for (at, group) in self.list.groups.iter().enumerate() {
            match self.group(at, group) {
                Some(group) => set.groups.push(group),
                None => empty.push(group.name.as_str()),
            }
        }
        if !empty.is_empty() {
            let names = list_names(empty.into_iter());
            clerk.add_note(
                "",
                format!("groups without a member that can be used are skipped: {names}"),
            );
        }
        let via = match choice {
            Choice::Group(at) => self.names.get(at).map(|name| vec![name_stage(name)]),
            Choice::Outbound(at) => self
                .hops(at)
                .map(|hops| hops.map(|hop| vec![hop]).collect()),
            Choice::All => Some(self.all_servers(&mut set, taken, clerk)),
        };
        let via: Vec<Stage> = via.unwrap_or_default();
        if !via.is_empty() {
            set.routes.push(Route {
                name: "main".to_owned(),
                listen: vec![local_listeners::default_proxy()],
                via,
                rules: Vec::new(),
                users: Vec::new(),
            });
        }
        set
    }

    fn hops(&self, outbound: usize) -> Option<impl Iterator<Item = Zeroizing<String>> + '_> {
        let hops = self.chains.get(outbound)?.as_ref()?;
        Some(hops.iter().cloned())
    }

    /// The group as adit writes it; `None` without members.
    fn group(&self, at: usize, group: &OutboundGroup) -> Option<Group> {
        let members = self.members.get(at).filter(|members| !members.is_empty())?;
        let name = self.names.get(at)?.clone();
        let hops = members.iter().filter_map(|one| self.hops(*one));
        let (members, selected) = if group.is_chain {
            // To pass fewer hops is not what the group means.
            let complete = members.len() == group.members.len();
            let hops: Vec<_> = hops
                .flatten()
                .filter(|hop| hop.as_str() != DIRECT)
                .collect();
            (complete && !hops.is_empty()).then_some((vec![hops], None))?
        } else {
            let selected = match group.kind {
                GroupKind::Manual => self.selected_member(at, members).filter(|at| *at > 0),
                _ => None,
            };
            (hops.map(Iterator::collect).collect(), selected)
        };
        Some(Group {
            title: Some(group.name.clone()).filter(|title| *title != name),
            name,
            kind: group.kind,
            members,
            selected,
            check: group.check.clone(),
        })
    }

    /// The chain of all servers, in the order of the document.
    fn all_servers(
        &self,
        set: &mut RouteSet,
        taken: &mut HashMap<String, usize>,
        clerk: &mut ConversionContext<'_>,
    ) -> Vec<Stage> {
        let servers = (0..self.list.outbounds.len()).filter(|at| !self.is_direct(*at));
        let mut members: Vec<Hops> = servers
            .filter_map(|at| self.hops(at))
            .map(Iterator::collect)
            .collect();
        if members.len() < 2 {
            let only = members.pop().unwrap_or_default();
            return only.into_iter().map(|hop| vec![hop]).collect();
        }
        let text = "several servers are a group: the first that works is used, in this order";
        clerk.add_note("", text);
        if members.iter().all(|hops| hops.len() == 1) {
            return vec![members.into_iter().flatten().collect()];
        }
        // Chains can be members of groups with a name alone.
        let name = unique_name("servers", FALLBACK_NAME, taken);
        let via = vec![name_stage(&name)];
        set.groups.push(Group {
            name,
            title: None,
            kind: GroupKind::Failover,
            members,
            selected: None,
            check: None,
        });
        via
    }
}

/// A stage that is a group.
fn name_stage(name: &str) -> Stage {
    vec![Zeroizing::new(name.to_owned())]
}
