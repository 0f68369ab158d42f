//! Checks of the `[dns.NAME]` tables with each other: a lookup ends, and starts with an address.

use adit_dns::Transport;
use adit_rules::{Request, RuleSet};
use adit_wire::{Host, Target};

use super::{DEFAULT_CACHE, DnsAction, DnsConfig, DnsRule, DnsServer, SYSTEM_DNS};
use crate::plan::check::check_chain;
use crate::plan::loops::routes_at;
use crate::plan::remote_targets::check_carriers;
use crate::plan::unchecked_route::{UncheckedListener, UncheckedRoute, UncheckedStage};
use crate::plan::{RuleCondition, Stage};
use crate::scheme::endpoint_types::{Hop, ListenerKind};
use crate::text::{Diagnostics, Problem, SourceLocation, is_this_machine};

/// A table before the checks.
pub(in crate::plan) struct UncheckedDns {
    /// The name.
    pub(in crate::plan) name: String,
    /// The servers with their places.
    pub(in crate::plan) servers: Vec<(DnsServer, SourceLocation)>,
    /// The chain.
    pub(in crate::plan) via: Vec<UncheckedStage>,
    /// The number of cached answers.
    pub(in crate::plan) cache: u32,
    /// The rules.
    pub(in crate::plan) rules: Vec<DnsRule>,
    /// The place of its name.
    pub(in crate::plan) place: SourceLocation,
}

impl UncheckedDns {
    /// Creates an empty table.
    pub(in crate::plan) const fn new(name: String, place: SourceLocation) -> Self {
        Self {
            name,
            servers: Vec::new(),
            via: Vec::new(),
            cache: DEFAULT_CACHE,
            rules: Vec::new(),
            place,
        }
    }
}

/// Returns the tables. `default` is the table of the process, which looks up the names of the hops' servers; `routes`
/// are those of the plan.
pub(in crate::plan) fn check_dns(
    diagnostics: &mut Diagnostics,
    drafts: Vec<UncheckedDns>,
    routes: &[UncheckedRoute],
    default: Option<&str>,
) -> Vec<DnsConfig> {
    check_circles(diagnostics, &drafts);
    check_own_listeners(diagnostics, &drafts, routes, default);
    if let Some(default) = default {
        check_default(diagnostics, &drafts, default);
    }
    let mut tables = Vec::with_capacity(drafts.len());
    for draft in drafts {
        check_carriers(diagnostics, &draft.via);
        let starts_here = starts_at_this_machine(&draft.via);
        for (server, place) in &draft.servers {
            if let DnsServer::Remote(remote) = server
                && let Host::Name(name) = &remote.server.host
                && starts_here
            {
                diagnostics.add_problem(Problem::at_place(
                    format!(
                        "the address of the DNS server `{}` is missing",
                        name.as_str()
                    ),
                    place.clone(),
                    match remote.transport.has_certificate() {
                        true => "write it beside the name: `?addr=9.9.9.9`",
                        false => "write its address instead of its name",
                    },
                ));
            }
            if *server == DnsServer::System && !draft.via.is_empty() {
                diagnostics.add_problem(Problem::at_place(
                    "the system's resolver does not use the chain",
                    place.clone(),
                    "remove `via`, or use servers with a URL",
                ));
            }
        }
        tables.push(DnsConfig {
            name: draft.name,
            servers: draft
                .servers
                .into_iter()
                .map(|(server, _)| server)
                .collect(),
            via: check_chain(diagnostics, draft.via),
            cache: draft.cache,
            rules: draft.rules,
            place: draft.place,
        });
    }
    tables
}

/// True if a name would be looked up by this machine: no hop passes it on.
fn starts_at_this_machine(via: &[UncheckedStage]) -> bool {
    let direct = |stage: &UncheckedStage| stage.stage.hops().contains(&Hop::Direct);
    via.is_empty() || (via.len() == 1 && via.iter().any(direct))
}

/// Reports servers that are DNS listeners of the plan with the same table: each query would be sent again.
fn check_own_listeners(
    diagnostics: &mut Diagnostics,
    tables: &[UncheckedDns],
    routes: &[UncheckedRoute],
    default: Option<&str>,
) {
    for table in tables.iter().filter(|table| table.via.is_empty()) {
        for (server, place) in &table.servers {
            let DnsServer::Remote(remote) = server else {
                continue;
            };
            let (at, port) = (&remote.server, remote.server.port);
            let (tcp, udp) = match remote.transport {
                Transport::Udp => (true, true),
                Transport::Tcp => (true, false),
                Transport::Tls | Transport::Https => continue,
            };
            let leads_back = |at: usize| {
                let Some(route) = routes.get(at) else {
                    return false;
                };
                let is_dns =
                    |listen: &UncheckedListener| matches!(listen.listen.kind, ListenerKind::Dns(_));
                let begin = route.dns.as_deref().or(default);
                route.listen.iter().any(is_dns)
                    && begin.is_some_and(|begin| reaches(tables, begin, &table.name))
            };
            let mut listening = routes_at(routes, at, &(port..=port), tcp, udp).into_iter();
            if listening.any(leads_back) {
                diagnostics.add_problem(Problem::at_place(
                    format!("`{server}` is a listener of this plan, which would ask itself"),
                    place.clone(),
                    "use another server here, or another `dns` in the route of the listener",
                ));
            }
        }
    }
}

/// True if a lookup that begins with the table `begin` can lead to the table `end`.
fn reaches(tables: &[UncheckedDns], begin: &str, end: &str) -> bool {
    let mut reached = vec![begin];
    let mut at = 0;
    while let Some(name) = reached.get(at).copied() {
        at += 1;
        if name == end {
            return true;
        }
        let rules = tables.iter().filter(|table| table.name == name);
        for rule in rules.flat_map(|table| &table.rules) {
            if let DnsAction::Use(next) = &rule.action
                && !reached.contains(&next.as_str())
            {
                reached.push(next);
            }
        }
    }
    false
}

/// Reports rules that lead back to their own table.
fn check_circles(diagnostics: &mut Diagnostics, tables: &[UncheckedDns]) {
    let find = |name: &str| tables.iter().position(|table| table.name == name);
    // A table is done if all tables that its rules lead to are, and none of these leads back.
    let mut done = vec![false; tables.len()];
    for begin in 0..tables.len() {
        // The path to the current table; each with the number of its next rule.
        let mut path = vec![(begin, 0)];
        while let Some((at, next)) = path.last_mut() {
            let (table, rule) = (*at, *next);
            *next += 1;
            let rule = tables.get(table).and_then(|table| table.rules.get(rule));
            let Some(rule) = rule else {
                if let Some(done) = done.get_mut(table) {
                    *done = true;
                }
                path.pop();
                continue;
            };
            let DnsAction::Use(name) = &rule.action else {
                continue;
            };
            let Some(to) = find(name) else { continue };
            if let Some(first) = path.iter().position(|(on_path, _)| *on_path == to) {
                let circle = path.iter().skip(first).map(|(at, _)| *at).chain([to]);
                let names = circle.filter_map(|at| tables.get(at));
                let names: Vec<String> = names.map(|t| format!("`{}`", t.name)).collect();
                diagnostics.add_problem(Problem::at_place(
                    format!("a lookup would not end: {}", names.join(" asks ")),
                    rule.place.clone(),
                    "use another table in one of the rules",
                ));
                // Reported once.
                if let Some(done) = done.get_mut(to) {
                    *done = true;
                }
            } else if done.get(to) == Some(&false) {
                path.push((to, 0));
            }
        }
    }
}

/// Reports hops whose server the default table would look up through the same hop.
fn check_default(diagnostics: &mut Diagnostics, tables: &[UncheckedDns], default: &str) {
    for table in tables {
        for (host, place) in first_names(table) {
            if !leads_back(tables, default, host) {
                continue;
            }
            let title = format!(
                "the lookup of `{host}` would not end: `dns.{}` needs it to reach its servers",
                table.name
            );
            diagnostics.add_problem(Problem {
                title,
                place: Some(place.clone()),
                label: "this server has a name".to_owned(),
                help: vec![
                    "write its address instead of its name".to_owned(),
                    format!("or look it up elsewhere: a rule `{{ match = \"{host}\", dns = \"{SYSTEM_DNS}\" }}` in `dns.{default}`"),
                ],
            });
        }
    }
}

/// True if the lookup of `start` with the default table needs `start` itself.
fn leads_back(tables: &[UncheckedDns], default: &str, start: &str) -> bool {
    let mut needed = vec![start];
    let mut at = 0;
    while let Some(name) = needed.get(at).copied() {
        at += 1;
        let Some(table) = table_of(tables, default, name) else {
            continue;
        };
        for (host, _) in first_names(table) {
            if host == start {
                return true;
            }
            if !needed.contains(&host) {
                needed.push(host);
            }
        }
    }
    false
}

/// Returns the table whose servers look `host` up, beginning with the rules of the table `begin`; `None` if it is the
/// system's resolver, none at all, or depends on a rule set.
fn table_of<'a>(tables: &'a [UncheckedDns], begin: &str, host: &str) -> Option<&'a UncheckedDns> {
    let target = Target::new(Host::parse(host).ok()?, 0);
    let mut name = begin;
    // Circles were reported.
    for _ in 0..=tables.len() {
        let table = tables.iter().find(|table| table.name == name)?;
        let mut next = None;
        for rule in &table.rules {
            let (first, second) = (matches(&rule.matches, &target)?, rule.and.is_empty());
            if first && (second || matches(&rule.and, &target)?) {
                next = Some(&rule.action);
                break;
            }
        }
        match next {
            None => return Some(table),
            Some(DnsAction::Use(other)) => name = other,
            Some(DnsAction::Reject) => return None,
        }
    }
    None
}

/// Returns true if one of the conditions matches; `None` if that depends on a rule set.
fn matches(conditions: &[RuleCondition], target: &Target) -> Option<bool> {
    let own = conditions.iter().filter_map(|condition| match condition {
        RuleCondition::Condition(condition) => Some(condition.clone()),
        RuleCondition::Set(_) => None,
    });
    let compiled = RuleSet::compile(own).ok()?;
    if compiled.matches(&Request::new(target)) {
        return Some(true);
    }
    let is_set = |condition: &RuleCondition| matches!(condition, RuleCondition::Set(_));
    (!conditions.iter().any(is_set)).then_some(false)
}

/// Returns the names of the servers that the chain of a table reaches first, with their places.
fn first_names(table: &UncheckedDns) -> Vec<(&str, &SourceLocation)> {
    let mut names = Vec::new();
    let Some(UncheckedStage { stage, place }) = table.via.first() else {
        return names;
    };
    let first: Vec<&Hop> = match stage {
        Stage::Named(group) => (0..group.hops.len())
            .filter_map(|at| group.member_hops(at).next())
            .collect(),
        Stage::Single(_) | Stage::Group(_) => stage.hops().iter().collect(),
    };
    for hop in first {
        if let Hop::Server(server) = hop
            && let Host::Name(name) = &server.server.host
            && !is_this_machine(&server.server.host)
        {
            names.push((name.as_str(), place));
        }
    }
    names
}
