//! The differences between the running plan and a new one.

use std::collections::BTreeSet;

use adit_config::{CarrierSettings, ListenerConfig, ListenerKind, Plan, Route, RuleCondition};

use crate::chain_builder::ends_alike;

/// The place of a listener in a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) route: usize,
    pub(super) listen: usize,
}

impl Place {
    /// Returns the route and the listener at this place.
    pub(super) fn of(self, plan: &Plan) -> Option<(&Route, &ListenerConfig)> {
        let route = plan.routes.get(self.route)?;
        Some((route, route.listen.get(self.listen)?))
    }
}

/// The rule sets and the DNS tables that have changed, by name.
#[derive(Debug, Default)]
pub(super) struct ChangedNames<'a> {
    pub(super) sets: BTreeSet<&'a str>,
    pub(super) dns: BTreeSet<&'a str>,
}

/// The way from a running listener to one of the new plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListenerTransition {
    /// Nothing changes, except perhaps the name of the route.
    Keep { before: Place, now: Place },
    /// The sockets stay; new requests have other rules or chains, or new connections other settings.
    Change {
        before: Place,
        now: Place,
        /// True if rules, chains or their end change.
        routing: bool,
        /// True if the settings of the listener itself change.
        settings: bool,
    },
    /// The listener is closed and opened again, at the same address.
    Replace { before: Place, now: Place },
    /// A new listener.
    Add { now: Place },
    /// The listener is closed.
    Remove { before: Place },
}

/// Returns the steps from one plan to another: those of the new listeners in their order, then the removals.
///
/// A listener is the same as before if its address is, and its transport: ordinary ports, a plugin, KCP and so on.
/// Among several, the one in the route of the same name is preferred. A route that uses one of `changed` has other
/// rules or chains.
pub(super) fn compare_plans(
    before: &Plan,
    now: &Plan,
    changed: &ChangedNames<'_>,
) -> Vec<ListenerTransition> {
    let mut rest = places_of(before);
    let mut steps = Vec::new();
    // Two passes: an exact counterpart must not be taken by a listener that has none.
    let mut found: Vec<(Place, Option<Place>)> = Vec::new();
    for place in places_of(now) {
        found.push((place, take_counterpart(&mut rest, before, now, place, true)));
    }
    for (place, counterpart) in &mut found {
        if counterpart.is_none() {
            *counterpart = take_counterpart(&mut rest, before, now, *place, false);
        }
    }
    for (now_place, counterpart) in found {
        steps.push(match counterpart {
            None => ListenerTransition::Add { now: now_place },
            Some(place) => step_between(before, place, now, now_place, changed),
        });
    }
    steps.extend(
        rest.into_iter()
            .map(|before| ListenerTransition::Remove { before }),
    );
    steps
}

fn places_of(plan: &Plan) -> Vec<Place> {
    let routes = plan.routes.iter().enumerate();
    let places = routes.flat_map(|(route, plan)| {
        (0..plan.listen.len()).map(move |listen| Place { route, listen })
    });
    places.collect()
}

/// Takes the running listener that one of the new plan continues. If `same_route` is set, it belongs to the route of
/// the same name.
fn take_counterpart(
    rest: &mut Vec<Place>,
    before: &Plan,
    now: &Plan,
    place: Place,
    same_route: bool,
) -> Option<Place> {
    let (route, listen) = place.of(now)?;
    let at = rest.iter().position(|known| {
        known.of(before).is_some_and(|(old_route, old)| {
            old.addr == listen.addr
                && Transport::of(old) == Transport::of(listen)
                && (!same_route || old_route.name == route.name)
        })
    })?;
    Some(rest.remove(at))
}

fn step_between(
    before: &Plan,
    old: Place,
    now: &Plan,
    new: Place,
    changed: &ChangedNames<'_>,
) -> ListenerTransition {
    let same = ListenerTransition::Keep {
        before: old,
        now: new,
    };
    let (Some((old_route, old_listen)), Some((route, listen))) = (old.of(before), new.of(now))
    else {
        return same;
    };
    let settings = !serves_alike(old_listen, listen);
    let routing = old_route.via != route.via
        || old_route.rules != route.rules
        || uses_set(route, &changed.sets)
        || old_route.dns != route.dns
        || route
            .dns
            .as_deref()
            .is_some_and(|name| changed.dns.contains(name))
        || !ends_alike(old_listen, listen);
    if settings && !can_change(old_listen, listen) {
        return ListenerTransition::Replace {
            before: old,
            now: new,
        };
    }
    if !settings && !routing {
        return same;
    }
    ListenerTransition::Change {
        before: old,
        now: new,
        routing,
        settings,
    }
}

/// Returns true if a rule of the route uses one of these rule sets.
fn uses_set(route: &Route, sets: &BTreeSet<&str>) -> bool {
    let mut conditions = route
        .rules
        .iter()
        .flat_map(|rule| rule.matches.iter().chain(&rule.and));
    conditions.any(|condition| match condition {
        RuleCondition::Set(name) => sets.contains(name.as_str()),
        RuleCondition::Condition(_) => false,
    })
}

/// The kind of socket that a listener has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    Ports,
    Plugin,
    Transparent,
    Dns,
    Kcp,
    Fec,
}

impl Transport {
    fn of(listen: &ListenerConfig) -> Self {
        match (&listen.kind, &listen.carrier) {
            (_, Some(CarrierSettings::Kcp(_))) => Self::Kcp,
            (_, Some(CarrierSettings::Fec(_))) => Self::Fec,
            (ListenerKind::Transparent(_), None) => Self::Transparent,
            (ListenerKind::Dns(_), None) => Self::Dns,
            (kind, None) if kind.plugin().is_some() => Self::Plugin,
            _ => Self::Ports,
        }
    }
}

/// Returns true if clients of both listeners are served in the same way, whatever becomes of their requests.
fn serves_alike(a: &ListenerConfig, b: &ListenerConfig) -> bool {
    let limits = |listen: &ListenerConfig| {
        let mut limits = listen.limits;
        // Belongs to the chains.
        limits.dial = b.limits.dial;
        limits
    };
    a.kind == b.kind
        && a.carrier == b.carrier
        && a.proxy_protocol == b.proxy_protocol
        && a.sniff == b.sniff
        && limits(a) == limits(b)
}

/// Returns true if a listener can change while its sockets stay.
fn can_change(before: &ListenerConfig, now: &ListenerConfig) -> bool {
    let ports = |listen: &ListenerConfig| match &listen.kind {
        ListenerKind::Shadowsocks(server) => (server.tcp, server.udp, server.fast_open),
        ListenerKind::ShadowsocksR(server) => (server.tcp, server.udp, server.fast_open),
        _ => (true, false, false),
    };
    let ((tcp, udp, fast_open), (new_tcp, new_udp, new_fast_open)) = (ports(before), ports(now));
    match Transport::of(now) {
        // Fast open is an option of the socket.
        Transport::Ports => fast_open == new_fast_open,
        Transport::Plugin => {
            before.kind.plugin() == now.kind.plugin()
                && (tcp, udp, fast_open) == (new_tcp, new_udp, new_fast_open)
        }
        Transport::Transparent => before.kind == now.kind,
        Transport::Kcp => true,
        Transport::Dns | Transport::Fec => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(toml: &str) -> Plan {
        Plan::from_toml(toml, "test.toml").unwrap()
    }

    fn at(route: usize, listen: usize) -> Place {
        Place { route, listen }
    }

    fn changed_set(name: &str) -> ChangedNames<'_> {
        ChangedNames {
            sets: BTreeSet::from([name]),
            ..ChangedNames::default()
        }
    }

    const BEFORE: &str = r#"
        [route.a]
        listen = ["mixed://127.0.0.1:1080", "socks5://127.0.0.1:0"]
        rules = [{ match = ["*.lan"], via = "direct://" }]
        [route.b]
        listen = "ss://chacha20-ietf-poly1305:secret@127.0.0.1:8388"
    "#;

    #[test]
    fn the_same_plan_keeps_everything() {
        let (before, now) = (plan(BEFORE), plan(BEFORE));
        let keep = |place| ListenerTransition::Keep {
            before: place,
            now: place,
        };
        let all = [at(0, 0), at(0, 1), at(1, 0)].map(keep);
        assert_eq!(compare_plans(&before, &now, &ChangedNames::default()), all);
    }

    #[test]
    fn a_rule_a_timeout_and_a_key_change_listeners_in_place() {
        let before = plan(BEFORE);
        for (from, to, changed, routing, settings) in [
            ("*.lan", "*.home", &[at(0, 0), at(0, 1)][..], true, false),
            ("8388\"", "8388?idle=7m\"", &[at(1, 0)], false, true),
            ("secret", "other", &[at(1, 0)], false, true),
            ("8388\"", "8388?udp=false\"", &[at(1, 0)], false, true),
            (
                "8388\"",
                "8388?allow_private=all\"",
                &[at(1, 0)],
                true,
                false,
            ),
        ] {
            assert!(BEFORE.contains(from));
            let now = plan(&BEFORE.replace(from, to));
            for step in compare_plans(&before, &now, &ChangedNames::default()) {
                let expected = match step {
                    ListenerTransition::Keep { now, .. } => !changed.contains(&now),
                    ListenerTransition::Change {
                        now,
                        routing: r,
                        settings: s,
                        ..
                    } => changed.contains(&now) && (r, s) == (routing, settings),
                    _ => false,
                };
                assert!(expected, "{to}: {step:?}");
            }
        }
    }

    #[test]
    fn a_listener_is_found_in_another_route_and_under_another_name() {
        let before = plan(BEFORE);
        let now = plan(&BEFORE.replace("route.b", "route.c"));
        let keep = ListenerTransition::Keep {
            before: at(1, 0),
            now: at(1, 0),
        };
        assert!(compare_plans(&before, &now, &ChangedNames::default()).contains(&keep));
    }

    #[test]
    fn a_changed_rule_set_changes_the_routes_that_use_it() {
        let set = "[set.lan]\nfile = \"lan.txt\"\n[set.ads]\nfile = \"ads.txt\"\n";
        let text = format!("{}{set}", BEFORE.replace("*.lan", "set:lan"));
        let (before, now) = (plan(&text), plan(&text));
        let is_kept = |step: &ListenerTransition| matches!(step, ListenerTransition::Keep { .. });
        let steps = compare_plans(&before, &now, &changed_set("ads"));
        assert!(steps.iter().all(is_kept), "{steps:?}");
        let steps = compare_plans(&before, &now, &changed_set("lan"));
        let change = |place| ListenerTransition::Change {
            before: place,
            now: place,
            routing: true,
            settings: false,
        };
        let keep = ListenerTransition::Keep {
            before: at(1, 0),
            now: at(1, 0),
        };
        assert_eq!(steps, [change(at(0, 0)), change(at(0, 1)), keep]);
    }

    #[test]
    fn another_address_is_another_listener() {
        let before = plan(BEFORE);
        let now = plan(&BEFORE.replace("8388", "8389"));
        let steps = compare_plans(&before, &now, &ChangedNames::default());
        assert!(
            steps.contains(&ListenerTransition::Add { now: at(1, 0) }),
            "{steps:?}"
        );
        assert!(
            steps.contains(&ListenerTransition::Remove { before: at(1, 0) }),
            "{steps:?}"
        );
    }

    #[test]
    fn options_of_a_socket_replace_the_listener() {
        let before = plan(BEFORE);
        let now = plan(&BEFORE.replace("8388\"", "8388?fast_open=true\""));
        let replace = ListenerTransition::Replace {
            before: at(1, 0),
            now: at(1, 0),
        };
        assert!(compare_plans(&before, &now, &ChangedNames::default()).contains(&replace));
    }

    #[test]
    fn a_route_whose_dns_changes_is_routed_anew() {
        let with_dns = |name: &str| {
            plan(&format!(
                "[route.a]\nlisten = 'mixed://127.0.0.1:1080'\ndns = '{name}'\n\
                 [dns.x]\nserver = 'udp://192.0.2.1'\n[dns.y]\nserver = 'udp://192.0.2.2'\n"
            ))
        };
        let (x, y) = (with_dns("x"), with_dns("y"));
        let routing_changes = |before: &Plan, now: &Plan, changed: &ChangedNames<'_>| {
            let steps = compare_plans(before, now, changed);
            matches!(
                steps[..],
                [ListenerTransition::Change {
                    routing: true,
                    settings: false,
                    ..
                }]
            )
        };
        let none = ChangedNames::default();
        let changed_dns = |name| ChangedNames {
            dns: BTreeSet::from([name]),
            ..ChangedNames::default()
        };
        assert!(!routing_changes(&x, &x, &none));
        assert!(routing_changes(&x, &y, &none));
        assert!(routing_changes(&x, &x, &changed_dns("x")));
        assert!(!routing_changes(&x, &x, &changed_dns("y")));
    }

    #[test]
    fn a_dns_listener_is_opened_again_with_other_settings() {
        let listen = |keys: &str| {
            plan(&format!(
                "[route.a]\nlisten = 'dns://127.0.0.1:5353{keys}'\n"
            ))
        };
        let steps = compare_plans(&listen(""), &listen("?udp=false"), &ChangedNames::default());
        assert!(
            matches!(steps[..], [ListenerTransition::Replace { .. }]),
            "{steps:?}"
        );
        let steps = compare_plans(&listen(""), &listen(""), &ChangedNames::default());
        assert!(
            matches!(steps[..], [ListenerTransition::Keep { .. }]),
            "{steps:?}"
        );
    }
}
