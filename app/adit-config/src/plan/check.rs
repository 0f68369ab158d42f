//! Checks between endpoints: what no URL can know alone.

use core::ops::RangeInclusive;

use adit_wire::Host;

use super::{circle, ends};
use crate::plan::unchecked::{UncheckedListen, UncheckedRoute, UncheckedRule, UncheckedStage};
use crate::plan::{Chain, Match, Plan, Route, Rule, Stage};
use crate::scheme::typed::{
    Hop, Listen, ListenAddr, ListenKind, Private, SsRole, SsServer, SsrServer, Transparent,
};
use crate::text::{Diagnostics, Problem, WarningKind};

/// Makes the plan, or says everything that is in its way.
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

/// A listener for each port of a range.
fn one_a_port(draft: UncheckedListen) -> Vec<Listen> {
    let ports = draft.listen.ports();
    if ports.start() == ports.end() {
        return vec![draft.listen];
    }
    ports
        .filter_map(|port| draft.listen.on_ports(&(port..=port)))
        .collect()
}

/// Ends stand where they mean something; a lone `direct://` is the empty chain.
fn chain(diagnostics: &mut Diagnostics, stages: Vec<UncheckedStage>) -> Chain {
    let alone = stages.len() == 1;
    let mut hops = Vec::with_capacity(stages.len());
    for (i, UncheckedStage { stage, place }) in stages.into_iter().enumerate() {
        match &stage {
            Stage::One(Hop::Direct) if alone => continue,
            Stage::One(Hop::Direct) => diagnostics.problem(Problem::at(
                "`direct://` beside other hops says nothing",
                place,
                "leave it away; in a group that comes first it means: without this hop",
            )),
            Stage::One(Hop::Reject) if !alone => diagnostics.problem(Problem::at(
                "`reject://` beside other hops says nothing",
                place,
                "a chain that rejects has no other hop",
            )),
            Stage::Group(group) if group.contains(&Hop::Reject) => {
                diagnostics.problem(Problem::at(
                    "`reject://` in a group says nothing",
                    place,
                    "a group that has no hop left refuses by itself",
                ));
            }
            Stage::Group(group) if i > 0 && group.contains(&Hop::Direct) => {
                diagnostics.problem(Problem::at(
                    "`direct://` in this group would go around the hops before it",
                    place,
                    "only a group that comes first can do without its hops",
                ));
            }
            Stage::One(_) | Stage::Group(_) => {}
        }
        hops.push(stage);
    }
    Chain { hops }
}

/// UDP that is offered and cannot pass: wrong if it is all that was asked for, else a warning.
fn udp_stops(diagnostics: &mut Diagnostics, draft: &UncheckedListen, via: &[UncheckedStage]) {
    let Some(stage) = via.iter().find(|stage| !stage.stage.carries_udp()) else {
        return;
    };
    let listen = &draft.listen;
    let title = format!("UDP from `{listen}` cannot pass `{}`", stage.stage);
    let mut about = Problem {
        title,
        place: Some(draft.place.clone()),
        label: "UDP comes in here".to_owned(),
        help: vec!["`ss` and `socks5` hops carry UDP".to_owned()],
    };
    match &listen.kind {
        ListenKind::Forward(forward) if forward.udp => diagnostics.problem(about),
        ListenKind::Shadowsocks(SsServer { udp: true, .. })
        | ListenKind::ShadowsocksR(SsrServer { udp: true, .. })
        | ListenKind::Transparent(Transparent { udp: true, .. }) => {
            about
                .help
                .push("`?udp=false` says that it is not wanted".to_owned());
            diagnostics.warning(WarningKind::UdpStops, about);
        }
        ListenKind::Proxy(proxy) if proxy.udp => {
            if let Some(place) = &draft.udp_written {
                about.place = Some(place.clone());
                about.label = "UDP is asked for here".to_owned();
                diagnostics.warning(WarningKind::UdpStops, about);
            }
        }
        _ => {}
    }
}

/// A listener that others use, and a chain: what a name stands for is found out at the chain's end.
fn unchecked_names(diagnostics: &mut Diagnostics, draft: &UncheckedListen, route: &UncheckedRoute) {
    let listen = &draft.listen;
    let relays = matches!(&listen.kind, ListenKind::Shadowsocks(server)
        if matches!(server.role, SsRole::Relay { .. }));
    // What a firewall takes goes to an address.
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
        title: format!("`{stage}` can be led into its own networks by names"),
        place: Some(draft.place.clone()),
        label: "others choose the destinations here".to_owned(),
        help: vec![
            "private addresses and names like `localhost` are refused before any hop; what other \
             names stand for is looked up behind it: let that server refuse private networks, too"
                .to_owned(),
            "`allow_private=all` says that its networks are meant to be reached".to_owned(),
        ],
    };
    diagnostics.warning(WarningKind::UncheckedNames, about);
}

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

fn same_address(diagnostics: &mut Diagnostics, routes: &[UncheckedRoute]) {
    let all: Vec<&UncheckedListen> = routes.iter().flat_map(|route| &route.listen).collect();
    for (i, later) in all.iter().enumerate() {
        let clash = all.iter().take(i).find(|earlier| clash(earlier, later));
        if let Some(earlier) = clash {
            let title = format!(
                "`{}` and `{}` want the same port",
                earlier.listen, later.listen
            );
            diagnostics.problem(Problem::at(
                &title,
                later.place.clone(),
                "give one of them another port",
            ));
        }
    }
}

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

pub(super) fn overlap(a: &RangeInclusive<u16>, b: &RangeInclusive<u16>) -> bool {
    a.start() <= b.end() && b.start() <= a.end()
}

fn hosts_overlap(a: &ListenAddr, b: &ListenAddr) -> bool {
    let (Some(a), Some(b)) = (&a.host, &b.host) else {
        return true;
    };
    match (a, b) {
        (Host::Ip(a), Host::Ip(b)) => {
            // `::` can take IPv4 too, but need not: only the same family is sure to clash.
            a == b || (a.is_ipv4() == b.is_ipv4() && (a.is_unspecified() || b.is_unspecified()))
        }
        _ => a == b,
    }
}
