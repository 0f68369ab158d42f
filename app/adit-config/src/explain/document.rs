//! The same as the drawing of a plan, as a document for programs.

use serde::Serialize;

use super::{describe_chain, describe_splice, describe_udp, hop_line, listener_lines};
use crate::plan::{DnsAction, DnsConfig, GroupKind, NamedGroup, Plan, Route, Stage};
use crate::scheme::endpoint_types::{Hop, ListenerConfig, ListenerKind};

/// A plan for programs. It contains no secrets.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedPlan {
    routes: Vec<ExplainedRoute>,
    dns: Vec<ExplainedDnsTable>,
    sets: Vec<ExplainedSet>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ExplainedRoute {
    name: String,
    listeners: Vec<ExplainedListener>,
    rules: Vec<ExplainedRule>,
    /// The DNS table that looks names up.
    dns: Option<String>,
    /// The chain of requests that no rule matches, in one line.
    chain: String,
    hops: Vec<ExplainedStage>,
    /// The passage of UDP, and the splicing of connections; null for a route that only answers DNS queries.
    udp: Option<String>,
    splice: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ExplainedListener {
    url: String,
    details: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ExplainedRule {
    matches: Vec<String>,
    and: Vec<String>,
    resolve: bool,
    chain: String,
}

/// One hop of a chain: a server, or several to choose from.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ExplainedStage {
    /// Name and kind of a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<String>,
    members: Vec<ExplainedMember>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ExplainedMember {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Only in a group whose member is selected by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    selected: Option<bool>,
    /// The servers that a connection passes, in their order.
    servers: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ExplainedDnsTable {
    name: String,
    /// Number of answers.
    cache: u32,
    rules: Vec<ExplainedDnsRule>,
    chain: String,
    servers: Vec<String>,
    /// True for the table that looks up the names of hops in chains of DNS tables.
    is_default: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ExplainedDnsRule {
    matches: Vec<String>,
    and: Vec<String>,
    /// The other table, or null if the name is rejected.
    dns: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ExplainedSet {
    name: String,
    source: String,
}

/// Returns every route with its listeners, rules and hops, the DNS tables and the rule sets.
#[must_use]
pub fn explain_plan_as_document(plan: &Plan) -> ExplainedPlan {
    let table = |table: &DnsConfig| explain_table(plan, table);
    let set = |set: &crate::plan::RuleSetConfig| ExplainedSet {
        name: set.name.clone(),
        source: set.source.to_string(),
    };
    ExplainedPlan {
        routes: plan.routes.iter().map(explain_route).collect(),
        dns: plan.dns.iter().map(table).collect(),
        sets: plan.sets.iter().map(set).collect(),
    }
}

fn explain_route(route: &Route) -> ExplainedRoute {
    let listener = |listen: &ListenerConfig| ExplainedListener {
        url: listen.to_string(),
        details: listener_lines(listen),
    };
    let rule = |rule: &crate::plan::Rule| ExplainedRule {
        matches: texts(&rule.matches),
        and: texts(&rule.and),
        resolve: rule.resolve,
        chain: describe_chain(&rule.via),
    };
    let is_dns = |listen: &ListenerConfig| matches!(listen.kind, ListenerKind::Dns(_));
    let carries = !route.listen.iter().all(is_dns);
    ExplainedRoute {
        name: route.name.clone(),
        listeners: route.listen.iter().map(listener).collect(),
        rules: route.rules.iter().map(rule).collect(),
        dns: route.dns.as_deref().map(str::to_owned),
        chain: describe_chain(&route.via),
        hops: route.via.stages.iter().map(explain_stage).collect(),
        udp: carries.then(|| describe_udp(route)),
        splice: carries.then(|| describe_splice(route)),
    }
}

fn explain_stage(stage: &Stage) -> ExplainedStage {
    let anonymous = |hop: &Hop| ExplainedMember {
        name: None,
        selected: None,
        servers: vec![hop_line(hop)],
    };
    match stage {
        Stage::Named(group) => ExplainedStage {
            group: Some(group.name.to_string()),
            kind: Some(group.kind.name()),
            check: group.check.as_ref().map(ToString::to_string),
            members: explain_members(group),
        },
        Stage::Single(_) | Stage::Group(_) => ExplainedStage {
            group: None,
            kind: None,
            check: None,
            members: stage.hops().iter().map(anonymous).collect(),
        },
    }
}

fn explain_members(group: &NamedGroup) -> Vec<ExplainedMember> {
    let is_manual = group.kind == GroupKind::Manual;
    let names = group.member_names.iter().enumerate();
    let member = |(at, name): (usize, &String)| ExplainedMember {
        name: Some(name.clone()),
        selected: is_manual.then_some(at == group.selected),
        servers: group.member_hops(at).map(hop_line).collect(),
    };
    names.map(member).collect()
}

fn explain_table(plan: &Plan, table: &DnsConfig) -> ExplainedDnsTable {
    let rule = |rule: &crate::plan::DnsRule| ExplainedDnsRule {
        matches: texts(&rule.matches),
        and: texts(&rule.and),
        dns: match &rule.action {
            DnsAction::Use(name) => Some(name.to_string()),
            DnsAction::Reject => None,
        },
    };
    ExplainedDnsTable {
        name: table.name.to_string(),
        cache: table.cache,
        rules: table.rules.iter().map(rule).collect(),
        chain: describe_chain(&table.via),
        servers: texts(&table.servers),
        is_default: plan.default_dns.as_ref() == Some(&table.name),
    }
}

fn texts(values: &[impl ToString]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}
