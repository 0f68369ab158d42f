//! Detects loops: hops that lead back to a listener of the same plan.

use core::ops::RangeInclusive;

use adit_wire::{Host, Target};

use crate::plan::check::ports_overlap;
use crate::plan::unchecked_route::{UncheckedRoute, UncheckedStage};
use crate::scheme::endpoint_types::{Hop, ListenerConfig, ListenerKind};
use crate::text::{Diagnostics, Problem, SourceLocation, is_this_machine};

/// A step from one route to another.
struct RouteStep {
    /// Index of the first route.
    from: usize,
    /// Index of the second route.
    to: usize,
    /// The hop or listener that leads there.
    what: String,
    /// The place of that hop or listener.
    place: SourceLocation,
}

/// Reports hops that form a loop. A request would go round until no descriptors are left.
///
/// The chains of rules are followed only if they lead back to the same route: whether another route
/// sends a request back depends on its target.
pub(super) fn report_loops(diagnostics: &mut Diagnostics, routes: &[UncheckedRoute]) {
    let mut steps = Vec::new();
    for (from, route) in routes.iter().enumerate() {
        let all = route.rules.iter().find(|rule| rule.catches_all());
        let otherwise = all.map_or(&route.via, |rule| &rule.via);
        steps.extend(chain_steps(routes, from, otherwise));
        steps.extend(target_steps(routes, from));
        for rule in &route.rules {
            let back = chain_steps(routes, from, &rule.via);
            steps.extend(back.into_iter().filter(|step| step.to == from));
        }
    }
    let mut said = Vec::new();
    for begin in 0..routes.len() {
        let Some(path) = shortest_loop(&steps, begin, routes.len()) else {
            continue;
        };
        let mut members: Vec<usize> = path.iter().map(|step| step.from).collect();
        members.sort_unstable();
        let (Some(first), false) = (path.first(), said.contains(&members)) else {
            continue;
        };
        let names = path.iter().chain([first]);
        let names = names.filter_map(|step| routes.get(step.from));
        let names: Vec<String> = names.map(|route| format!("`{}`", route.name)).collect();
        let title = match path.len() {
            1 => format!("{} leads back to its own listener", first.what),
            _ => format!("{} is part of a loop: {}", first.what, names.join(", ")),
        };
        diagnostics.add_problem(Problem::at_place(
            title,
            first.place.clone(),
            "requests would loop until no file descriptors are left: use another server or port",
        ));
        said.push(members);
    }
}

/// Returns the steps of a chain, as long as its hops are listeners of the plan.
fn chain_steps(routes: &[UncheckedRoute], from: usize, chain: &[UncheckedStage]) -> Vec<RouteStep> {
    let mut steps = Vec::new();
    for UncheckedStage { stage, place } in chain {
        let before = steps.len();
        for hop in stage.all_hops() {
            let Hop::Server(server) = hop else { continue };
            let by_tcp = server.carrier.is_none();
            for to in routes_at(
                routes,
                &server.server,
                &server.port_range(),
                by_tcp,
                !by_tcp,
            ) {
                let what = format!("`{hop}`");
                let place = place.clone();
                steps.push(RouteStep {
                    from,
                    to,
                    what,
                    place,
                });
            }
        }
        // After a server outside of the plan, the next one can be anywhere.
        if steps.len() == before {
            break;
        }
    }
    steps
}

/// Returns the steps of listeners with a fixed target.
fn target_steps(routes: &[UncheckedRoute], from: usize) -> Vec<RouteStep> {
    let route = routes.get(from).filter(|route| route.via.is_empty());
    let mut steps = Vec::new();
    for draft in route.into_iter().flat_map(|route| &route.listen) {
        let ListenerKind::Forward(forward) = &draft.listen.kind else {
            continue;
        };
        let Some(target) = &forward.target else {
            continue;
        };
        for to in routes_at(
            routes,
            target,
            &(target.port..=target.port),
            forward.tcp,
            forward.udp,
        ) {
            let what = format!("`{}`", draft.listen);
            let place = draft.place.clone();
            steps.push(RouteStep {
                from,
                to,
                what,
                place,
            });
        }
    }
    steps
}

/// Returns the routes that listen at `server`.
pub(super) fn routes_at(
    routes: &[UncheckedRoute],
    server: &Target,
    ports: &RangeInclusive<u16>,
    tcp: bool,
    udp: bool,
) -> Vec<usize> {
    let listens = |route: &&(usize, &UncheckedRoute)| {
        route.1.listen.iter().any(|draft| {
            let (has_tcp, has_udp) = draft.listen.bound_transports();
            listens_at(&draft.listen, server, ports) && ((tcp && has_tcp) || (udp && has_udp))
        })
    };
    let numbered: Vec<(usize, &UncheckedRoute)> = routes.iter().enumerate().collect();
    numbered.iter().filter(listens).map(|(at, _)| *at).collect()
}

/// True if a connection to `server` reaches this listener, as far as the text shows.
fn listens_at(listen: &ListenerConfig, server: &Target, ports: &RangeInclusive<u16>) -> bool {
    let to_all = |host: &Host| matches!(host, Host::Ip(ip) if ip.is_unspecified());
    listen.addr.port != 0
        && ports_overlap(&listen.port_range(), ports)
        && match &listen.addr.host {
            Some(host) if !to_all(host) => {
                *host == server.host
                    || (is_this_machine(host)
                        && (to_all(&server.host) || is_name_of_this_machine(&server.host, host)))
            }
            _ => is_this_machine(&server.host) || to_all(&server.host),
        }
}

/// True if both are names of this machine: `localhost` means the loopback addresses of both families.
fn is_name_of_this_machine(server: &Host, listen: &Host) -> bool {
    is_this_machine(server) && (matches!(server, Host::Name(_)) || matches!(listen, Host::Name(_)))
}

/// Returns the shortest path from a route back to itself.
fn shortest_loop(steps: &[RouteStep], begin: usize, most: usize) -> Option<Vec<&RouteStep>> {
    let mut paths: Vec<Vec<&RouteStep>> = steps
        .iter()
        .filter(|step| step.from == begin)
        .map(|step| vec![step])
        .collect();
    let mut seen = vec![begin];
    for _ in 0..most {
        let mut longer = Vec::new();
        for path in paths {
            let end = path.last()?.to;
            if end == begin {
                return Some(path);
            }
            if seen.contains(&end) {
                continue;
            }
            seen.push(end);
            for step in steps.iter().filter(|step| step.from == end) {
                longer.push(path.iter().copied().chain([step]).collect());
            }
        }
        paths = longer;
    }
    None
}
