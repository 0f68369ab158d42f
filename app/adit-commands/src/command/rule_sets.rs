//! The rule sets of a plan, and the explanation of a decision.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use adit_admin::rule_sets::RuleSetLoader;
use adit_admin::subscription::TrustedRoots;
use adit_cli::{Failure, FailureCode};
use adit_config::{
    Hop, ListenerConfig, Origin, Plan, Problem, Route, RuleSetConfig, Stage, describe_chain,
};
use adit_engine::{
    DnsTables, Explanation, LoadedRuleSet, NameResolver, RequestContext, RuleSetError,
    RuleSetFailure, RuleSetStore, RuleSetTable, explain_request,
};
use adit_wire::{Host, Name, Target};
use tokio::task::JoinSet;

use crate::args;

/// The port of a target without one.
const PORT: u16 = 443;

/// Loads rule sets, and refreshes them in a task.
pub(super) struct PlanRuleSets {
    loader: Arc<RuleSetLoader>,
    /// The task that refreshes them; it ends with this value.
    follower: JoinSet<()>,
}

impl PlanRuleSets {
    /// Loads the sets of a plan, and prints what is skipped.
    pub(super) async fn load(plan: &Plan) -> Result<(Self, RuleSetTable), Failure> {
        let loader = Arc::new(RuleSetLoader::new(state_store(), TrustedRoots::Machine));
        let resolver = async |sets: &RuleSetTable| download_resolver(plan, sets).await;
        let loaded = loader.load(&plan.sets, resolver).await;
        let (table, loaded) = loaded.map_err(to_failure)?;
        loaded.iter().for_each(warn_skipped);
        let follower = JoinSet::new();
        Ok((Self { loader, follower }, table))
    }

    /// Loads the sets of a plan that replaces `before`, whose sets are in the table `running`. Sets that are the
    /// same stay in use.
    pub(super) async fn load_again(
        &self,
        plan: &Plan,
        before: &Plan,
        running: &RuleSetTable,
    ) -> Result<RuleSetTable, Vec<Problem>> {
        let resolver = async |sets: &RuleSetTable| download_resolver(plan, sets).await;
        let (sets, before) = (&plan.sets, &before.sets);
        let loaded = self.loader.load_again(sets, before, running, resolver);
        let (table, loaded) = loaded.await.map_err(to_problems)?;
        loaded.iter().for_each(warn_skipped);
        Ok(table)
    }

    /// Refreshes the sets of a plan, which are in `table`, and no longer those of another plan. `names` looks the names of
    /// their servers up.
    pub(super) fn follow(&mut self, plan: &Plan, table: RuleSetTable, names: NameResolver) {
        self.follower = JoinSet::new();
        if plan.sets.is_empty() {
            return;
        }
        let (loader, sets) = (self.loader.clone(), plan.sets.clone());
        let follow = async move { loader.follow(&sets, &table, &names).await };
        self.follower.spawn(follow);
    }
}

/// Returns the resolver of downloads for a plan that does not run yet.
async fn download_resolver(plan: &Plan, sets: &RuleSetTable) -> Result<NameResolver, String> {
    if plan.default_dns.is_none() {
        return Ok(NameResolver::system());
    }
    let tables = DnsTables::start(plan, sets).await;
    let tables = tables.map_err(|why| why.to_string())?;
    Ok(tables.default_resolver())
}

/// Returns the store in the state folder; without a home nothing is stored.
fn state_store() -> RuleSetStore {
    adit_cli::state_folder(None).map_or_else(
        |_| RuleSetStore::default(),
        |folder| RuleSetStore::in_state_folder(&folder),
    )
}

fn to_failure(errors: Vec<RuleSetError>) -> Failure {
    Failure::Config(to_problems(errors))
}

fn to_problems(errors: Vec<RuleSetError>) -> Vec<Problem> {
    errors.into_iter().map(RuleSetError::into_problem).collect()
}

fn warn_skipped(set: &LoadedRuleSet) {
    if let Some((count, first)) = &set.skipped {
        let entries = if *count == 1 {
            "entry is"
        } else {
            "entries are"
        };
        eprintln!(
            "warning: rule set `{}`: {count} {entries} skipped; the first: {first}",
            set.name
        );
    }
}

/// Compiles the sets of a plan, and returns a line about each. Lists that have not been downloaded are no
/// error.
pub(super) fn check(plan: &Plan) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::with_capacity(plan.sets.len());
    let mut errors = Vec::new();
    for config in &plan.sets {
        match compile(config) {
            Ok(set) => {
                warn_skipped(&set);
                let plural = if set.entries == 1 { "y" } else { "ies" };
                let (name, source) = (&config.name, &config.source);
                lines.push(format!(
                    "rule set {name}: {} entr{plural} in {source}",
                    set.entries
                ));
            }
            Err(why) if matches!(why.why, RuleSetFailure::NotDownloaded) => {
                lines.push(format!("rule set {}: not downloaded yet", config.name));
            }
            Err(why) => errors.push(why),
        }
    }
    if errors.is_empty() {
        return Ok(lines);
    }
    Err(to_failure(errors))
}

/// Compiles a set anew, so that its notes are complete.
fn compile(config: &RuleSetConfig) -> Result<LoadedRuleSet, RuleSetError> {
    let stored = state_store().stored_document(config);
    match stored.map_err(|why| RuleSetError::new(config, why))? {
        Some(stored) => RuleSetStore::default().load_document(config, &stored.bytes),
        None => RuleSetStore::default().load(config),
    }
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
                let decision = draw_decision(route, listeners, &target, name, explanation, &names);
                print!("{decision}");
            }
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

fn draw_decision(
    route: &Route,
    listeners: &[&ListenerConfig],
    target: &Target,
    sniffed: Option<&Name>,
    found: &Explanation,
    names: &NameResolver,
) -> String {
    let mut text = format!("route {}\n", route.name);
    let mut line = |name: &str, value: &str| {
        // A text in memory accepts everything.
        let _ = writeln!(text, "  {name:<8}{value}");
    };
    for listen in listeners {
        line("from", &listen.to_string());
    }
    line("target", &target.to_string());
    if let Some(name) = sniffed {
        line("name", &name.to_string());
    }
    let rule = found.rule.and_then(|at| route.rules.get(at));
    let via = rule.map_or(&route.via, |rule| &rule.via);
    if let Host::Name(name) = &target.host
        && !names.is_system()
        && !matches!(via.stages.as_slice(), [Stage::Single(Hop::Reject)])
    {
        let table = match names.table_name(name.as_str()) {
            Ok(Some(name)) => name,
            Ok(None) => "no: a rule of its DNS table rejects the name".to_owned(),
            Err(why) => why.to_string(),
        };
        match (via.stages.is_empty(), &found.looked_up) {
            (true, _) => line("dns", &table),
            (false, None) => line("dns", "the last hop looks the name up"),
            (false, Some(_)) => line("dns", &format!("{table}, then the last hop")),
        }
    }
    if let Some(addresses) = &found.looked_up {
        let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        let addresses = match addresses.is_empty() {
            true => "no address".to_owned(),
            false => addresses.join(", "),
        };
        line("is", &addresses);
    }
    let Some((at, rule)) = found.rule.and_then(|at| Some((at, route.rules.get(at)?))) else {
        line("rule", "none matches");
        line("chain", &describe_chain(&route.via));
        return text;
    };
    let place = match &rule.place.origin {
        Origin::File(file) => format!(
            "{} of the route, {file}:{}:{}",
            at + 1,
            rule.place.line,
            rule.place.column
        ),
        _ => format!("{} of the route", at + 1),
    };
    line("rule", &place);
    for reason in &found.reasons {
        match &reason.entry {
            Some(entry) => line("match", &format!("{}, entry {entry}", reason.condition)),
            None => line("match", &reason.condition.to_string()),
        }
    }
    line("chain", &describe_chain(&rule.via));
    text
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
