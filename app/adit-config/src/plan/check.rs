//! Checks between endpoints, which a single URL does not allow.

use core::ops::RangeInclusive;

use adit_wire::Host;
use ipnet::IpNet;

use super::{loops, remote_targets};
use crate::plan::unchecked_route::{
    UncheckedListener, UncheckedRoute, UncheckedRule, UncheckedStage,
};
use crate::plan::{Chain, Plan, Route, Rule, RunSettings, Stage};
use crate::scheme::endpoint_types::{
    Hop, ListenAddr, ListenerConfig, ListenerKind, PrivateAccess, SsRole, SsServer, SsrServer,
    TransparentListener,
};
use crate::text::{Diagnostics, Problem, WarningKind};

/// Returns the plan, or all problems.
pub(super) fn check_plan(
    mut diagnostics: Diagnostics,
    drafts: Vec<UncheckedRoute>,
    has_fleet: bool,
) -> Result<Plan, Vec<Problem>> {
    check_same_address(&mut diagnostics, &drafts);
    if !has_fleet {
        report_users_without_fleet(&mut diagnostics, &drafts);
    }
    check_fake_networks(&mut diagnostics, &drafts);
    loops::report_loops(&mut diagnostics, &drafts);
    let mut routes = Vec::with_capacity(drafts.len());
    for draft in drafts {
        routes.push(check_route(&mut diagnostics, draft));
    }
    Ok(Plan {
        routes,
        sets: Vec::new(),
        dns: Vec::new(),
        default_dns: None,
        warnings: diagnostics.into_result()?,
        run: RunSettings::default(),
        log: crate::plan::LogSettings::default(),
        admin: None,
        fleet: None,
        webhooks: Vec::new(),
    })
}

/// Checks a route.
fn check_route(diagnostics: &mut Diagnostics, draft: UncheckedRoute) -> Route {
    for listen in &draft.listen {
        check_udp(diagnostics, listen, &draft.via);
        warn_unchecked_names(diagnostics, listen, &draft);
        warn_nameless_rules(diagnostics, listen, &draft.rules);
        remote_targets::check_remote_target(diagnostics, listen, &draft.via);
        for rule in &draft.rules {
            remote_targets::check_remote_target(diagnostics, listen, &rule.via);
        }
    }
    for via in draft.rules.iter().map(|rule| &rule.via).chain([&draft.via]) {
        remote_targets::check_carriers(diagnostics, via);
    }
    let via = check_chain(diagnostics, draft.via);
    warn_never_reached(diagnostics, &draft.rules);
    let rules = draft
        .rules
        .into_iter()
        .map(|rule| Rule {
            matches: rule.matches,
            and: rule.and,
            resolve: rule.resolve,
            via: check_chain(diagnostics, rule.via),
            place: rule.place,
        })
        .collect();
    Route {
        name: draft.name,
        listen: draft.listen.into_iter().flat_map(split_ports).collect(),
        via,
        rules,
        dns: draft.dns,
    }
}

/// Returns a listener for each port of a range.
fn split_ports(draft: UncheckedListener) -> Vec<ListenerConfig> {
    let ports = draft.listen.port_range();
    if ports.start() == ports.end() {
        return vec![draft.listen];
    }
    ports
        .filter_map(|port| draft.listen.with_ports(&(port..=port)))
        .collect()
}

/// Checks the positions of `direct://` and `reject://`, and returns the chain. A single `direct://` is
/// the empty chain.
pub(super) fn check_chain(diagnostics: &mut Diagnostics, stages: Vec<UncheckedStage>) -> Chain {
    let alone = stages.len() == 1;
    let mut hops = Vec::with_capacity(stages.len());
    for (i, UncheckedStage { stage, place }) in stages.into_iter().enumerate() {
        match &stage {
            Stage::Single(Hop::Direct) if alone => continue,
            Stage::Single(Hop::Direct) => diagnostics.add_problem(Problem::at_place(
                "`direct://` has no effect with other hops",
                place,
                "remove it; in a group that comes first it means: without this hop",
            )),
            Stage::Single(Hop::Reject) if !alone => diagnostics.add_problem(Problem::at_place(
                "`reject://` has no effect with other hops",
                place,
                "use it as the only hop of its chain",
            )),
            Stage::Group(_) | Stage::Named(_) if stage.hops().contains(&Hop::Reject) => {
                diagnostics.add_problem(Problem::at_place(
                    "`reject://` has no effect in a group",
                    place,
                    "remove it; a group without a working hop refuses requests anyway",
                ));
            }
            Stage::Group(_) | Stage::Named(_) if i > 0 && stage.hops().contains(&Hop::Direct) => {
                diagnostics.add_problem(Problem::at_place(
                    "`direct://` in this group would bypass the hops before it",
                    place,
                    "use it only in a group that comes first",
                ));
            }
            Stage::Single(_) | Stage::Group(_) | Stage::Named(_) => {}
        }
        hops.push(stage);
    }
    Chain { stages: hops }
}

/// Reports UDP that is offered but cannot pass the chain: an error for forwarded UDP, otherwise a
/// warning.
fn check_udp(diagnostics: &mut Diagnostics, draft: &UncheckedListener, via: &[UncheckedStage]) {
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
        ListenerKind::Forward(forward) if forward.udp => diagnostics.add_problem(about),
        ListenerKind::Shadowsocks(SsServer { udp: true, .. })
        | ListenerKind::ShadowsocksR(SsrServer { udp: true, .. })
        | ListenerKind::Transparent(TransparentListener { udp: true, .. }) => {
            about.help.push("`?udp=false` turns UDP off".to_owned());
            diagnostics.add_warning(WarningKind::UdpStops, about);
        }
        ListenerKind::Proxy(proxy) if proxy.udp => {
            if let Some(place) = &draft.udp_written {
                about.place = Some(place.clone());
                about.label = "UDP is turned on here".to_owned();
                diagnostics.add_warning(WarningKind::UdpStops, about);
            }
        }
        _ => {}
    }
}

/// Warns about a listener that others use and a chain: names are resolved at the chain's end, so that
/// their addresses cannot be checked here.
fn warn_unchecked_names(
    diagnostics: &mut Diagnostics,
    draft: &UncheckedListener,
    route: &UncheckedRoute,
) {
    let listen = &draft.listen;
    let relays = matches!(&listen.kind, ListenerKind::Shadowsocks(server)
        if matches!(server.role, SsRole::Relay { .. }));
    // Redirected traffic is sent to an address.
    let by_address = matches!(listen.kind, ListenerKind::Transparent(_));
    if relays || by_address || listen.access.private == PrivateAccess::All {
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
    diagnostics.add_warning(WarningKind::UncheckedNames, about);
}

/// Warns about rules on names at a listener whose clients request addresses, and about a search for names that no rule
/// is about.
fn warn_nameless_rules(
    diagnostics: &mut Diagnostics,
    draft: &UncheckedListener,
    rules: &[UncheckedRule],
) {
    let listen = &draft.listen;
    let name = rules.iter().find_map(UncheckedRule::name_condition);
    let has_set = rules.iter().any(UncheckedRule::has_set);
    let takes_tcp =
        matches!(&listen.kind, ListenerKind::Transparent(transparent) if transparent.tcp);
    let (title, label, help) = match name {
        Some(name) if takes_tcp && !listen.sniff => (
            format!("`{name}` does not match requests of `{listen}`"),
            "targets are addresses here",
            "`?sniff=true` finds names in the first bytes of connections",
        ),
        None if listen.sniff && !has_set => (
            format!("`sniff=true` has no effect at `{listen}`"),
            "it finds names for rules",
            "the route has no rule about names: remove `sniff=true`, or add a rule",
        ),
        _ => return,
    };
    let about = Problem {
        title,
        place: Some(draft.place.clone()),
        label: label.to_owned(),
        help: vec![help.to_owned()],
    };
    diagnostics.add_warning(WarningKind::NamelessRules, about);
}

/// Warns about rules after one that matches everything.
fn warn_never_reached(diagnostics: &mut Diagnostics, rules: &[UncheckedRule]) {
    let Some(last) = rules.iter().position(UncheckedRule::catches_all) else {
        return;
    };
    for rule in rules.iter().skip(last + 1) {
        let about = Problem::at_place(
            "this rule is never reached",
            rule.place.clone(),
            "a rule before it matches everything (`*`)",
        );
        diagnostics.add_warning(WarningKind::NeverReached, about);
    }
}

/// Reports listeners on the same port.
fn check_same_address(diagnostics: &mut Diagnostics, routes: &[UncheckedRoute]) {
    let all: Vec<&UncheckedListener> = routes.iter().flat_map(|route| &route.listen).collect();
    for (i, later) in all.iter().enumerate() {
        let clash = all
            .iter()
            .take(i)
            .find(|earlier| listeners_clash(earlier, later));
        if let Some(earlier) = clash {
            let title = format!(
                "`{}` and `{}` use the same port",
                earlier.listen, later.listen
            );
            diagnostics.add_problem(Problem::at_place(
                &title,
                later.place.clone(),
                "use another port for one of them",
            ));
        }
    }
}

/// Reports listeners with users of a fleet where there is none.
fn report_users_without_fleet(diagnostics: &mut Diagnostics, routes: &[UncheckedRoute]) {
    let listeners = routes.iter().flat_map(|route| &route.listen);
    for draft in listeners.filter(|draft| draft.listen.kind.has_fleet_users()) {
        let title = format!(
            "`{}` has the users of a fleet, without `[fleet]`",
            draft.listen
        );
        diagnostics.add_problem(Problem::at_place(
            title,
            draft.place.clone(),
            "add `[fleet]` with `membership = \"FILE\"` to the configuration file: `adit fleet join` writes that file",
        ));
    }
}

/// Reports DNS listeners whose made-up addresses could stand for different names: listeners have the same networks
/// and the same file, or neither in common.
fn check_fake_networks(diagnostics: &mut Diagnostics, routes: &[UncheckedRoute]) {
    let listeners = routes.iter().flat_map(|route| &route.listen);
    let fake = listeners.filter_map(|draft| match &draft.listen.kind {
        ListenerKind::Dns(dns) if !dns.fake_ip.is_empty() => Some((draft, dns)),
        _ => None,
    });
    let all: Vec<_> = fake.collect();
    for (i, (later, b)) in all.iter().enumerate() {
        let clash = all.iter().take(i).find(|(_, a)| {
            let overlap = |x: &IpNet| b.fake_ip.iter().any(|y| x.contains(y) || y.contains(x));
            let shares = a.state == b.state || a.fake_ip.iter().any(overlap);
            shares && (a.state != b.state || a.fake_ip != b.fake_ip)
        });
        if let Some((earlier, _)) = clash {
            let (earlier, later_name) = (&earlier.listen, &later.listen);
            diagnostics.add_problem(Problem::at_place(
                format!("`{later_name}` and `{earlier}` share made-up addresses in part"),
                later.place.clone(),
                "write the same `fake_ip` and `state` in both, or networks and files that have nothing in common",
            ));
        }
    }
}

/// True if two listeners cannot be bound together.
fn listeners_clash(a: &UncheckedListener, b: &UncheckedListener) -> bool {
    let (tcp_a, udp_a) = a.listen.bound_transports();
    let (tcp_b, udp_b) = b.listen.bound_transports();
    let (ports_a, ports_b) = (a.listen.port_range(), b.listen.port_range());
    let (a, b) = (&a.listen.addr, &b.listen.addr);
    ports_overlap(&ports_a, &ports_b)
        && a.port != 0
        && ((tcp_a && tcp_b) || (udp_a && udp_b))
        && hosts_overlap(a, b)
}

/// True if two ranges have a port in common.
pub(super) fn ports_overlap(a: &RangeInclusive<u16>, b: &RangeInclusive<u16>) -> bool {
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
