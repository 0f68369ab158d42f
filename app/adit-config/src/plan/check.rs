//! Checks between endpoints, which a single URL does not allow.

use core::ops::RangeInclusive;

use adit_wire::Host;

use super::{circle, ends};
use crate::plan::unchecked::{UncheckedListen, UncheckedRoute, UncheckedRule, UncheckedStage};
use crate::plan::{Chain, Match, Plan, Route, Rule, Stage};
use crate::scheme::typed::{
    Hop, Listen, ListenAddr, ListenKind, Private, SsRole, SsServer, SsrServer, Transparent,
};
use crate::text::{Diagnostics, Problem, WarningKind};

/// Returns the plan, or all problems.
pub(super) fn finish(
    mut diagnostics: Diagnostics,
    drafts: Vec<UncheckedRoute>,
) -> Result<Plan, Vec<Problem>> {
    same_address(&mut diagnostics, &drafts);
    circle::circles(&mut diagnostics, &drafts);
    let mut routes = Vec::with_capacity(drafts.len());
    for draft in drafts {
        routes.push(route(&mut diagnostics, draft));
    }
    if diagnostics.problems.is_empty() {
        Ok(Plan {
            routes,
            warnings: diagnostics.warnings,
        })
    } else {
        Err(diagnostics.problems)
    }
}

/// Checks a route.
fn route(diagnostics: &mut Diagnostics, draft: UncheckedRoute) -> Route {
    for listen in &draft.listen {
        udp_stops(diagnostics, listen, &draft.via);
        unchecked_names(diagnostics, listen, &draft);
        ends::fit(diagnostics, listen, &draft.via);
        for rule in &draft.rules {
            ends::fit(diagnostics, listen, &rule.via);
        }
    }
    for via in draft.rules.iter().map(|rule| &rule.via).chain([&draft.via]) {
        ends::carriers(diagnostics, via);
    }
    let via = chain(diagnostics, draft.via);
    never_reached(diagnostics, &draft.rules);
    let rules = draft
        .rules
        .into_iter()
        .map(|rule| Rule {
            matches: rule.matches,
            resolve: rule.resolve,
            via: chain(diagnostics, rule.via),
        })
        .collect();
    Route {
        name: draft.name,
        listen: draft.listen.into_iter().flat_map(one_a_port).collect(),
        via,
        rules,
    }
}

/// Returns a listener for each port of a range.
fn one_a_port(draft: UncheckedListen) -> Vec<Listen> {
    let ports = draft.listen.ports();
    if ports.start() == ports.end() {
        return vec![draft.listen];
    }
    ports
        .filter_map(|port| draft.listen.on_ports(&(port..=port)))
        .collect()
}

/// Checks the positions of `direct://` and `reject://`, and returns the chain. A single `direct://` is
/// the empty chain.
fn chain(diagnostics: &mut Diagnostics, stages: Vec<UncheckedStage>) -> Chain {
    let alone = stages.len() == 1;
    let mut hops = Vec::with_capacity(stages.len());
    for (i, UncheckedStage { stage, place }) in stages.into_iter().enumerate() {
        match &stage {
            Stage::One(Hop::Direct) if alone => continue,
            Stage::One(Hop::Direct) => diagnostics.problem(Problem::at(
                "`direct://` has no effect with other hops",
                place,
                "remove it; in a group that comes first it means: without this hop",
            )),
            Stage::One(Hop::Reject) if !alone => diagnostics.problem(Problem::at(
                "`reject://` has no effect with other hops",
                place,
                "use it as the only hop of its chain",
            )),
            Stage::Group(group) if group.contains(&Hop::Reject) => {
                diagnostics.problem(Problem::at(
                    "`reject://` has no effect in a group",
                    place,
                    "remove it; a group without a working hop refuses requests anyway",
                ));
            }
            Stage::Group(group) if i > 0 && group.contains(&Hop::Direct) => {
                diagnostics.problem(Problem::at(
                    "`direct://` in this group would bypass the hops before it",
                    place,
                    "use it only in a group that comes first",
                ));
            }
            Stage::One(_) | Stage::Group(_) => {}
        }
        hops.push(stage);
    }
    Chain { hops }
}

/// Reports UDP that is offered but cannot pass the chain: an error for forwarded UDP, otherwise a
/// warning.
fn udp_stops(diagnostics: &mut Diagnostics, draft: &UncheckedListen, via: &[UncheckedStage]) {
    let Some(stage) = via.iter().find(|stage| !stage.stage.carries_udp()) else {
        return;
    };
    let listen = &draft.listen;
    let title = format!("UDP from `{listen}` cannot pass `{}`", stage.stage);
    let mut about = Problem {
        title,
        place: Some(draft.place.clone()),
        label: "this listener accepts UDP".to_owned(),
        help: vec!["`ss` and `socks5` hops carry UDP".to_owned()],
    };
    match &listen.kind {
        ListenKind::Forward(forward) if forward.udp => diagnostics.problem(about),
        ListenKind::Shadowsocks(SsServer { udp: true, .. })
        | ListenKind::ShadowsocksR(SsrServer { udp: true, .. })
        | ListenKind::Transparent(Transparent { udp: true, .. }) => {
            about.help.push("`?udp=false` turns UDP off".to_owned());
            diagnostics.warning(WarningKind::UdpStops, about);
        }
        ListenKind::Proxy(proxy) if proxy.udp => {
            if let Some(place) = &draft.udp_written {
                about.place = Some(place.clone());
                about.label = "UDP is turned on here".to_owned();
                diagnostics.warning(WarningKind::UdpStops, about);
            }
        }
        _ => {}
    }
}

/// Warns about a listener that others use and a chain: names are resolved at the chain's end, so that
/// their addresses cannot be checked here.
fn unchecked_names(diagnostics: &mut Diagnostics, draft: &UncheckedListen, route: &UncheckedRoute) {
    let listen = &draft.listen;
    let relays = matches!(&listen.kind, ListenKind::Shadowsocks(server)
        if matches!(server.role, SsRole::Relay { .. }));
    // Redirected traffic is sent to an address.
    let by_address = matches!(listen.kind, ListenKind::Transparent(_));
    if relays || by_address || listen.access.private == Private::All {
        return;
    }
    let is_server = |stage: &&UncheckedStage| {
        let mut hops = stage.stage.hops().iter();
        hops.any(|hop| matches!(hop, Hop::Server(_)))
    };
    let mut chains = route.rules.iter().map(|rule| &rule.via).chain([&route.via]);
    let Some(last) = chains.find_map(|via| via.iter().rfind(is_server)) else {
        return;
    };
    let stage = &last.stage;
    let about = Problem {
        title: format!("names can lead `{stage}` into its private networks"),
        place: Some(draft.place.clone()),
        label: "other users choose the destinations here".to_owned(),
        help: vec![
            "private addresses and names like `localhost` are refused before the first hop, but other \
             names are resolved after it: let that server refuse private networks, too"
                .to_owned(),
            "`allow_private=all` allows its private networks".to_owned(),
        ],
    };
    diagnostics.warning(WarningKind::UncheckedNames, about);
}

/// Warns about rules after one that matches everything.
fn never_reached(diagnostics: &mut Diagnostics, rules: &[UncheckedRule]) {
    let catches_all = |rule: &UncheckedRule| rule.matches.contains(&Match::Any);
    let Some(last) = rules.iter().position(catches_all) else {
        return;
    };
    for rule in rules.iter().skip(last + 1) {
        let about = Problem::at(
            "this rule is never reached",
            rule.place.clone(),
            "a rule before it matches everything (`*`)",
        );
        diagnostics.warning(WarningKind::NeverReached, about);
    }
}

/// Reports listeners on the same port.
fn same_address(diagnostics: &mut Diagnostics, routes: &[UncheckedRoute]) {
    let all: Vec<&UncheckedListen> = routes.iter().flat_map(|route| &route.listen).collect();
    for (i, later) in all.iter().enumerate() {
        let clash = all.iter().take(i).find(|earlier| clash(earlier, later));
        if let Some(earlier) = clash {
            let title = format!(
                "`{}` and `{}` use the same port",
                earlier.listen, later.listen
            );
            diagnostics.problem(Problem::at(
                &title,
                later.place.clone(),
                "use another port for one of them",
            ));
        }
    }
}

/// True if two listeners cannot be bound together.
fn clash(a: &UncheckedListen, b: &UncheckedListen) -> bool {
    let (tcp_a, udp_a) = a.listen.transports();
    let (tcp_b, udp_b) = b.listen.transports();
    let (ports_a, ports_b) = (a.listen.ports(), b.listen.ports());
    let (a, b) = (&a.listen.addr, &b.listen.addr);
    overlap(&ports_a, &ports_b)
        && a.port != 0
        && ((tcp_a && tcp_b) || (udp_a && udp_b))
        && hosts_overlap(a, b)
}

/// True if two ranges have a port in common.
pub(super) fn overlap(a: &RangeInclusive<u16>, b: &RangeInclusive<u16>) -> bool {
    a.start() <= b.end() && b.start() <= a.end()
}

/// True if two addresses overlap for certain.
fn hosts_overlap(a: &ListenAddr, b: &ListenAddr) -> bool {
    let (Some(a), Some(b)) = (&a.host, &b.host) else {
        return true;
    };
    match (a, b) {
        (Host::Ip(a), Host::Ip(b)) => {
            // `::` may include IPv4, but need not: only addresses of the same family clash for certain.
            a == b || (a.is_ipv4() == b.is_ipv4() && (a.is_unspecified() || b.is_unspecified()))
        }
        _ => a == b,
    }
}
