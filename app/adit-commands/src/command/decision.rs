//! `adit explain --target`: the rule that decides about a target, for each route.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use adit_cli::{Failure, FailureCode};
use adit_config::{Hop, ListenerConfig, Origin, Plan, Route, Stage, describe_chain};
use adit_engine::{
    DnsTables, Explanation, NameResolver, RequestContext, RuleSetTable, explain_request,
};
use adit_wire::{Host, Name, Target};
use serde::Serialize;
use serde_json::json;

use super::rule_sets::{state_store, to_failure};
use crate::args;
use crate::json;

/// The port of a target without one.
const PORT: u16 = 443;

/// The decision of a route about a target.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Decision {
    route: String,
    /// The listeners that it applies to; empty if it applies to all.
    listeners: Vec<String>,
    target: String,
    /// The name in the first bytes of the client.
    sniffed: Option<String>,
    /// The DNS table that looks the name up.
    dns: Option<String>,
    /// The addresses that the name was looked up for.
    addresses: Option<Vec<String>>,
    rule: Option<DecidingRule>,
    chain: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DecidingRule {
    /// Its number in the route, from 1.
    number: usize,
    /// Its place in the file.
    #[serde(rename = "where")]
    place: Option<String>,
    matches: Vec<MatchingCondition>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct MatchingCondition {
    condition: String,
    /// The entry of a rule set.
    entry: Option<String>,
}

/// Prints the rule that decides about a target, for each route.
pub(super) fn print_decisions(
    plan: &Plan,
    typed: &args::ExplainArgs,
    target: &str,
) -> Result<(), Failure> {
    let target = parse_target(target)?;
    let (table, _) = RuleSetTable::load(&plan.sets, &state_store()).map_err(to_failure)?;
    let source = typed.source.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let source = SocketAddr::new(source, 0);
    let user = typed.user.as_deref();
    let context = match typed.network {
        args::NetworkKind::Tcp => RequestContext::stream(source, user),
        args::NetworkKind::Udp => RequestContext::datagrams(source, user),
    };
    let sniffed = sniffed_name(plan, &target, typed.sniffed.as_deref())?;
    let is_json = typed.json.json;
    let mut decisions = Vec::new();
    adit_cli::block_on(|mut signals| async move {
        let tables = async {
            let tables = DnsTables::start(plan, &table).await;
            tables.map_err(|why| Failure::new(FailureCode::Config, why.to_string()))
        };
        let tables = signals.run_until_ended(tables).await?;
        for route in &plan.routes {
            let names = tables
                .resolver_of(route)
                .map_err(|why| Failure::new(FailureCode::Config, why.to_string()))?;
            let mut found: Vec<(Vec<&ListenerConfig>, Explanation)> = Vec::new();
            for listen in &route.listen {
                let sniffed = sniffed.as_ref().filter(|_| listen.sniff);
                let context = RequestContext { sniffed, ..context };
                let decide = explain_request(route, listen, &table, &target, &context, &names);
                let decide = async {
                    decide
                        .await
                        .map_err(|why| Failure::new(FailureCode::Config, why.to_string()))
                };
                let explanation = signals.run_until_ended(decide).await?;
                match found.iter_mut().find(|(_, known)| *known == explanation) {
                    Some((listeners, _)) => listeners.push(listen),
                    None => found.push((vec![listen], explanation)),
                }
            }
            let several = found.len() > 1;
            for (listeners, explanation) in &found {
                let reads_names = listeners.iter().any(|listen| listen.sniff);
                let name = sniffed.as_ref().filter(|_| reads_names);
                let listeners = if several { listeners.as_slice() } else { &[] };
                let decision = Decision::new(route, listeners, &target, name, explanation, &names);
                match is_json {
                    true => decisions.push(decision),
                    false => print!("{decision}"),
                }
            }
        }
        if is_json {
            let warnings = json::warnings_of(plan);
            let result = json!({ "decisions": decisions, "warnings": warnings });
            json::print_result("explain", &result);
        }
        Ok(())
    })
}

/// Parses a target; without a port it has 443.
fn parse_target(text: &str) -> Result<Target, Failure> {
    let with_port = || match text.contains(':') && !text.starts_with('[') {
        true => format!("[{text}]:{PORT}"),
        false => format!("{text}:{PORT}"),
    };
    let parsed = text.parse::<Target>();
    parsed.or_else(|_| with_port().parse()).map_err(|_| {
        let what = format!("--target: `{text}` is not HOST or HOST:PORT");
        Failure::new(FailureCode::Usage, what)
    })
}

/// Parses the name in the first bytes of a client, which is of use for an address alone.
fn sniffed_name(
    plan: &Plan,
    target: &Target,
    typed: Option<&str>,
) -> Result<Option<Name>, Failure> {
    let usage = |what: String| Failure::new(FailureCode::Usage, format!("--sniffed: {what}"));
    let Some(typed) = typed else {
        return Ok(None);
    };
    let Ok(Host::Name(name)) = Host::parse(typed) else {
        return Err(usage(format!("`{typed}` is not a name")));
    };
    if matches!(target.host, Host::Name(_)) {
        return Err(usage(format!("the target {target} has a name already")));
    }
    let mut listeners = plan.routes.iter().flat_map(|route| &route.listen);
    if !listeners.any(|listen| listen.sniff) {
        return Err(usage("no listener has `sniff=true`".to_owned()));
    }
    Ok(Some(name))
}

impl Decision {
    fn new(
        route: &Route,
        listeners: &[&ListenerConfig],
        target: &Target,
        sniffed: Option<&Name>,
        found: &Explanation,
        names: &NameResolver,
    ) -> Self {
        let rule = found.rule.and_then(|at| Some((at, route.rules.get(at)?)));
        let via = rule.map_or(&route.via, |(_, rule)| &rule.via);
        let mut dns = None;
        if let Host::Name(name) = &target.host
            && !names.is_system()
            && !matches!(via.stages.as_slice(), [Stage::Single(Hop::Reject)])
        {
            let table = match names.table_name(name.as_str()) {
                Ok(Some(name)) => name.to_string(),
                Ok(None) => "no: a rule of its DNS table rejects the name".to_owned(),
                Err(why) => why.to_string(),
            };
            dns = Some(match (via.stages.is_empty(), &found.looked_up) {
                (true, _) => table,
                (false, None) => "the last hop looks the name up".to_owned(),
                (false, Some(_)) => format!("{table}, then the last hop"),
            });
        }
        let addresses = found.looked_up.as_ref();
        let addresses = addresses.map(|all| all.iter().map(ToString::to_string).collect());
        let matches = found.reasons.iter().map(|reason| MatchingCondition {
            condition: reason.condition.to_string(),
            entry: reason.entry.as_ref().map(ToString::to_string),
        });
        let rule = rule.map(|(at, rule)| DecidingRule {
            number: at + 1,
            place: matches!(rule.place.origin, Origin::File(_)).then(|| rule.place.to_string()),
            matches: matches.collect(),
        });
        Self {
            route: route.name.clone(),
            listeners: listeners.iter().map(ToString::to_string).collect(),
            target: target.to_string(),
            sniffed: sniffed.map(ToString::to_string),
            dns,
            addresses,
            rule,
            chain: describe_chain(via),
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "route {}", self.route)?;
        let mut line = |name: &str, value: &str| writeln!(f, "  {name:<8}{value}");
        for listen in &self.listeners {
            line("from", listen)?;
        }
        line("target", &self.target)?;
        if let Some(name) = &self.sniffed {
            line("name", name)?;
        }
        if let Some(dns) = &self.dns {
            line("dns", dns)?;
        }
        match self.addresses.as_deref() {
            Some([]) => line("is", "no address")?,
            Some(addresses) => line("is", &addresses.join(", "))?,
            None => {}
        }
        match &self.rule {
            None => line("rule", "none matches")?,
            Some(rule) => {
                let number = rule.number;
                match &rule.place {
                    Some(place) => line("rule", &format!("{number} of the route, {place}"))?,
                    None => line("rule", &format!("{number} of the route"))?,
                }
                for found in &rule.matches {
                    match &found.entry {
                        Some(entry) => {
                            line("match", &format!("{}, entry {entry}", found.condition))?;
                        }
                        None => line("match", &found.condition)?,
                    }
                }
            }
        }
        line("chain", &self.chain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_need_no_port() {
        for (text, target) in [
            ("a.example", "a.example:443"),
            ("a.example:80", "a.example:80"),
            ("192.0.2.1", "192.0.2.1:443"),
            ("2001:db8::1", "[2001:db8::1]:443"),
            ("[2001:db8::1]", "[2001:db8::1]:443"),
            ("[2001:db8::1]:80", "[2001:db8::1]:80"),
        ] {
            assert_eq!(parse_target(text).unwrap().to_string(), target, "{text}");
        }
        for text in ["", "a b", "http://a/"] {
            let why = parse_target(text).unwrap_err();
            assert_eq!(why.code(), FailureCode::Usage, "{text}");
        }
    }
}
