//! The DNS tables of a plan: rules, and the servers for everything else.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Weak};

use adit_config::{DnsAction, DnsConfig, Plan, Route, RuleCondition, SYSTEM_DNS};
use adit_dns::{CachedAnswer, RecordType};
use adit_dns_client::{DnsClient, LookupCounts, ServerCounts};
use adit_net::names::LookupOrigin;
use adit_rules::{Decision, Rule, RuleList};
use adit_wire::{Host, Target};

use super::error::DnsStartError;
use super::resolver::{DefaultDns, NameResolver, NameTable, Selected};
use super::upstream;
use crate::chain_builder::{self, ChainResources};
use crate::route_rules::{self, CompileError};
use crate::{BoxFuture, RuleSetTable, StartError};

/// A DNS table: its rules decide which servers look a name up.
#[derive(Debug)]
pub struct DnsTable {
    name: String,
    rules: RuleList,
    /// The action of each rule.
    actions: Vec<TableAction>,
    client: DnsClient,
}

#[derive(Debug)]
enum TableAction {
    Reject,
    System,
    Table(Arc<DnsTable>),
}

impl DnsTable {
    /// Returns the name of the table.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the counters of its servers, in their order.
    #[must_use]
    pub fn server_counts(&self) -> Vec<ServerCounts> {
        self.client.server_counts()
    }

    /// Returns the counters of lookups with its servers.
    #[must_use]
    pub fn lookup_counts(&self) -> LookupCounts {
        self.client.lookup_counts()
    }
}

impl NameTable for DnsTable {
    fn name(&self) -> &str {
        &self.name
    }

    fn select(&self, name: &str) -> Selected<'_> {
        let mut table = self;
        let Ok(host) = Host::parse(name) else {
            // The root, or a name that no rule can mean.
            return Selected::Table(table);
        };
        let target = Target::new(host, 0);
        let request = adit_rules::Request::new(&target);
        loop {
            let Decision::Rule(at) = table.rules.decide(&request) else {
                return Selected::Table(table);
            };
            match table.actions.get(at) {
                Some(TableAction::Reject) => return Selected::Reject,
                Some(TableAction::System) => return Selected::System,
                // Tables are built from those that they refer to, so this ends.
                Some(TableAction::Table(next)) => table = next,
                None => return Selected::Table(table),
            }
        }
    }

    fn cached(&self, name: &str, record_type: RecordType) -> Option<CachedAnswer> {
        self.client.cached(name, record_type)
    }

    fn look_up<'a>(
        &'a self,
        name: &'a str,
        record_type: RecordType,
        origin: LookupOrigin,
    ) -> BoxFuture<'a, io::Result<CachedAnswer>> {
        Box::pin(async move {
            let found = self.client.look_up(name, record_type, origin).await;
            found.map_err(Into::into)
        })
    }
}

/// The DNS tables of the running plan.
#[derive(Debug, Clone, Default)]
pub(crate) struct DnsRegistry {
    tables: BTreeMap<String, Arc<DnsTable>>,
    default: Option<Arc<DnsTable>>,
}

/// The tables that run, with the plan and the rule sets that they were built from.
#[derive(Clone, Copy)]
pub(crate) struct RunningDns<'a> {
    pub(crate) registry: &'a DnsRegistry,
    pub(crate) plan: &'a Plan,
    pub(crate) sets: &'a RuleSetTable,
}

impl RunningDns<'_> {
    /// Returns the running table for a configuration that has not changed. Tables of `now` are those that it refers to.
    fn unchanged_table(
        &self,
        config: &DnsConfig,
        sets: &RuleSetTable,
        now: &DnsRegistry,
    ) -> Option<Arc<DnsTable>> {
        let known = self.registry.tables.get(&config.name)?;
        let conditions = config
            .rules
            .iter()
            .flat_map(|rule| rule.matches.iter().chain(&rule.and));
        let mut names = conditions.filter_map(|condition| match condition {
            RuleCondition::Set(name) => Some(name),
            RuleCondition::Condition(_) => None,
        });
        let same_table = |name: &str| match (self.registry.tables.get(name), now.tables.get(name)) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (before, now) => before.is_none() && now.is_none(),
        };
        let same = self.plan.dns.contains(config)
            && names.all(|name| sets.shares_set(name, self.sets))
            && config.references().all(same_table);
        same.then(|| known.clone())
    }
}

impl DnsRegistry {
    /// Builds the tables of a plan. Those of `running` that are the same stay, with their caches and connections.
    pub(crate) async fn build(
        plan: &Plan,
        sets: &RuleSetTable,
        resources: &ChainResources,
        running: Option<RunningDns<'_>>,
    ) -> Result<Self, StartError> {
        let default = plan
            .default_dns
            .as_deref()
            .filter(|name| *name != SYSTEM_DNS);
        if default.is_some() && running.is_none() {
            // Until it exists, the servers of chains are not looked up by the system.
            let none: Weak<dyn NameTable> = Weak::<DnsTable>::new();
            resources.default_dns.set(Some(none));
        }
        let mut registry = Self::default();
        for config in order_by_references(&plan.dns)? {
            let known =
                running.and_then(|running| running.unchanged_table(config, sets, &registry));
            let table = match known {
                Some(known) => known,
                None => Arc::new(registry.build_table(config, sets, resources).await?),
            };
            registry.tables.insert(config.name.clone(), table);
        }
        if let Some(name) = default {
            let table = registry.tables.get(name).cloned();
            registry.default = Some(table.ok_or_else(|| DnsStartError::NoTable(name.to_owned()))?);
        }
        Ok(registry)
    }

    async fn build_table(
        &self,
        config: &DnsConfig,
        sets: &RuleSetTable,
        resources: &ChainResources,
    ) -> Result<DnsTable, StartError> {
        let mut rules = Vec::with_capacity(config.rules.len());
        let mut actions = Vec::with_capacity(config.rules.len());
        for (at, rule) in config.rules.iter().enumerate() {
            let compile = |conditions| {
                route_rules::compile_conditions(conditions, "", sets).map_err(|why| {
                    let (table, number) = (config.name.clone(), at + 1);
                    match why {
                        CompileError::Conditions(why) => {
                            DnsStartError::Conditions { table, number, why }
                        }
                        CompileError::NoSet(name) => DnsStartError::NoSet {
                            table,
                            number,
                            name,
                        },
                    }
                })
            };
            rules.push(Rule {
                sets: compile(&rule.matches)?,
                and: compile(&rule.and)?,
                resolve: false,
            });
            actions.push(match &rule.action {
                DnsAction::Reject => TableAction::Reject,
                DnsAction::Use(name) if name == SYSTEM_DNS => TableAction::System,
                DnsAction::Use(name) => {
                    let table = self.tables.get(name).cloned();
                    TableAction::Table(table.ok_or_else(|| DnsStartError::NoTable(name.clone()))?)
                }
            });
        }
        let name = format!("dns.{}", config.name);
        let chain = chain_builder::build_dns_chain(&name, &config.via, resources).await?;
        Ok(DnsTable {
            name: config.name.clone(),
            rules: RuleList::new(rules),
            actions,
            client: upstream::build_client(config, chain),
        })
    }

    /// Returns the table with this name; `None` is the system's resolver.
    fn table(&self, name: Option<&str>) -> Result<Option<&Arc<DnsTable>>, DnsStartError> {
        match name {
            None | Some(SYSTEM_DNS) => Ok(None),
            Some(name) => {
                let table = self.tables.get(name);
                table
                    .map(Some)
                    .ok_or_else(|| DnsStartError::NoTable(name.to_owned()))
            }
        }
    }

    /// Returns the resolver of routes with this table.
    pub(crate) fn resolver(&self, name: Option<&str>) -> Result<NameResolver, DnsStartError> {
        let table = self.table(name)?;
        Ok(table.map_or_else(NameResolver::system, |table| {
            NameResolver::with_table(table.clone())
        }))
    }

    /// Makes this plan's default table that of `default`.
    pub(crate) fn set_default(&self, default: &DefaultDns) {
        let weak = |table: &Arc<DnsTable>| -> Weak<dyn NameTable> {
            let table: Arc<dyn NameTable> = table.clone();
            Arc::downgrade(&table)
        };
        default.set(self.default.as_ref().map(weak));
    }

    /// True if names of routes with the table `name` are looked up as those of routes with `other_name` of `other`.
    pub(crate) fn looks_up_alike(
        &self,
        name: Option<&str>,
        other: &Self,
        other_name: Option<&str>,
    ) -> bool {
        match (self.table(name), other.table(other_name)) {
            (Ok(Some(a)), Ok(Some(b))) => Arc::ptr_eq(a, b),
            (Ok(None), Ok(None)) => true,
            _ => false,
        }
    }

    /// Returns the tables, ordered by name.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<DnsTable>> {
        self.tables.values()
    }

    /// Returns the names of the tables that `before` does not have as well.
    pub(crate) fn names_changed_since<'a>(&'a self, before: &Self) -> BTreeSet<&'a str> {
        let changed = self.tables.iter().filter(|(name, table)| {
            let known = before.tables.get(*name);
            !known.is_some_and(|known| Arc::ptr_eq(known, table))
        });
        changed.map(|(name, _)| name.as_str()).collect()
    }
}

/// The DNS tables of a plan for a command, which runs no listener.
pub struct DnsTables {
    registry: DnsRegistry,
    /// The tables refer to it.
    _resources: ChainResources,
}

impl DnsTables {
    /// Builds the tables of a plan. Plugins of their chains are started.
    ///
    /// # Errors
    ///
    /// Returns a [`StartError`] if a table or its chain cannot be used.
    pub async fn start(plan: &Plan, sets: &RuleSetTable) -> Result<Self, StartError> {
        let resources = ChainResources::default();
        let registry = DnsRegistry::build(plan, sets, &resources, None).await?;
        registry.set_default(&resources.default_dns);
        Ok(Self {
            registry,
            _resources: resources,
        })
    }

    /// Returns the resolver of the plan, for names that belong to no route.
    #[must_use]
    pub fn default_resolver(&self) -> NameResolver {
        let table = self.registry.default.clone();
        table.map_or_else(NameResolver::system, |table| {
            NameResolver::with_table(table)
        })
    }

    /// Returns the resolver of a route of the plan.
    ///
    /// # Errors
    ///
    /// The plan has no such table.
    pub fn resolver_of(&self, route: &Route) -> Result<NameResolver, DnsStartError> {
        self.registry.resolver(route.dns.as_deref())
    }
}

/// Returns the tables in an order in which each comes after those that its rules refer to.
fn order_by_references(tables: &[DnsConfig]) -> Result<Vec<&DnsConfig>, DnsStartError> {
    let mut rest: Vec<&DnsConfig> = tables.iter().collect();
    let mut ordered: Vec<&DnsConfig> = Vec::with_capacity(tables.len());
    while let Some(first) = rest.first() {
        let is_ready = |table: &&DnsConfig| {
            table.references().all(|name| {
                // A name without a table is reported when this one is built.
                let exists = tables.iter().any(|table| table.name == name);
                !exists || ordered.iter().any(|before| before.name == name)
            })
        };
        let Some(at) = rest.iter().position(is_ready) else {
            return Err(DnsStartError::Circle(first.name.clone()));
        };
        ordered.push(rest.remove(at));
    }
    Ok(ordered)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        [route.a]
        listen = "1080"
        dns = "main"
        [dns.main]
        server = "udp://192.0.2.1"
        rules = [
          { match = "suffix:corp.example", dns = "corp" },
          { match = "*.ads.example", dns = "reject" },
          { match = "*.lan", dns = "system" },
        ]
        [dns.corp]
        server = "udp://192.0.2.2"
        rules = [{ match = "deep.corp.example", dns = "last" }]
        [dns.last]
        server = "udp://192.0.2.3"
    "#;

    fn plan(toml: &str) -> Plan {
        Plan::from_toml(toml, "test.toml").unwrap()
    }

    async fn registry(plan: &Plan, running: Option<RunningDns<'_>>) -> DnsRegistry {
        let resources = ChainResources::default();
        let sets = RuleSetTable::default();
        DnsRegistry::build(plan, &sets, &resources, running)
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn rules_lead_from_table_to_table() {
        let plan = plan(FILE);
        let registry = registry(&plan, None).await;
        let names = registry.resolver(plan.routes[0].dns.as_deref()).unwrap();
        for (name, table) in [
            ("example.com", Some("main")),
            ("corp.example", Some("corp")),
            ("Deep.Corp.Example.", Some("last")),
            ("x.ads.example", None),
            ("ads.example", Some("main")),
            ("printer.lan", Some("system")),
            ("localhost", Some("system")),
            ("127.1", Some("system")),
        ] {
            let found = names.table_name(name).unwrap();
            assert_eq!(found.as_deref(), table, "{name}");
        }
        assert!(names.table_name("not a name").is_err());
        let missing = registry.resolver(Some("none")).unwrap_err();
        assert_eq!(missing, DnsStartError::NoTable("none".into()));
        assert!(registry.resolver(Some("system")).unwrap().is_system());
    }

    #[tokio::test]
    async fn tables_that_are_the_same_stay() {
        let sets = RuleSetTable::default();
        let before = plan(FILE);
        let running_registry = registry(&before, None).await;
        let running = RunningDns {
            registry: &running_registry,
            plan: &before,
            sets: &sets,
        };
        let same = registry(&before, Some(running)).await;
        assert!(same.names_changed_since(&running_registry).is_empty());
        assert!(same.looks_up_alike(Some("main"), &running_registry, Some("main")));
        assert!(!same.looks_up_alike(Some("main"), &running_registry, Some("corp")));
        assert!(!same.looks_up_alike(Some("main"), &running_registry, None));
        // A table that leads to a changed one has changed, too.
        let now = plan(&FILE.replace("192.0.2.2", "192.0.2.9"));
        let now = registry(&now, Some(running)).await;
        let changed = now.names_changed_since(&running_registry);
        assert_eq!(changed, BTreeSet::from(["corp", "main"]));
    }

    #[tokio::test]
    async fn circles_that_were_not_checked_are_errors() {
        let mut plan = plan(FILE);
        let main = DnsAction::Use("main".into());
        plan.dns.iter_mut().for_each(|table| {
            if let Some(rule) = table.rules.first_mut().filter(|_| table.name == "corp") {
                rule.action = main.clone();
            }
        });
        let (sets, resources) = (RuleSetTable::default(), ChainResources::default());
        let built = DnsRegistry::build(&plan, &sets, &resources, None).await;
        let why = built.unwrap_err().to_string();
        assert!(
            why.starts_with("the rules of DNS table `main` lead back"),
            "{why}"
        );
    }

    #[tokio::test]
    async fn the_default_does_not_keep_a_table_alive() {
        let plan = plan(&format!("{FILE}\n[run]\ndns = \"main\"\n"));
        let default = DefaultDns::default();
        let names = NameResolver::with_default(default.clone());
        assert_eq!(
            names.table_name("a.example").unwrap().as_deref(),
            Some("system")
        );
        let registry = registry(&plan, None).await;
        registry.set_default(&default);
        assert_eq!(
            names.table_name("a.example").unwrap().as_deref(),
            Some("main")
        );
        drop(registry);
        let why = names.table_name("a.example").unwrap_err();
        assert_eq!(
            why.to_string(),
            "the DNS tables are being started or replaced"
        );
    }
}
