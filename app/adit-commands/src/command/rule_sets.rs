//! The rule sets of a plan.

use std::fmt;
use std::sync::Arc;

use adit_admin::rule_sets::RuleSetLoader;
use adit_admin::subscription::TrustedRoots;
use adit_cli::Failure;
use adit_config::{Plan, Problem, RuleSetConfig};
use adit_engine::{
    DnsTables, LoadedRuleSet, NameResolver, RuleSetError, RuleSetFailure, RuleSetStore,
    RuleSetTable,
};
use serde::Serialize;
use tokio::task::JoinSet;

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
pub(super) fn state_store() -> RuleSetStore {
    adit_cli::state_folder(None).map_or_else(
        |_| RuleSetStore::default(),
        |folder| RuleSetStore::in_state_folder(&folder),
    )
}

pub(super) fn to_failure(errors: Vec<RuleSetError>) -> Failure {
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

/// A rule set that compiles.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CheckedSet {
    name: String,
    source: String,
    /// `None` if it has not been downloaded.
    entries: Option<usize>,
    /// Number of entries that are skipped, and the first of them.
    skipped: usize,
    first_skipped: Option<String>,
}

impl fmt::Display for CheckedSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match self.entries {
            Some(1) => write!(f, "rule set {name}: 1 entry in {}", self.source),
            Some(entries) => write!(f, "rule set {name}: {entries} entries in {}", self.source),
            None => write!(f, "rule set {name}: not downloaded yet"),
        }
    }
}

/// Compiles the sets of a plan. Lists that have not been downloaded are no error.
pub(super) fn check(plan: &Plan) -> Result<Vec<CheckedSet>, Failure> {
    let mut checked = Vec::with_capacity(plan.sets.len());
    let mut errors = Vec::new();
    for config in &plan.sets {
        let mut set = CheckedSet {
            name: config.name.to_string(),
            source: config.source.to_string(),
            entries: None,
            skipped: 0,
            first_skipped: None,
        };
        match compile(config) {
            Ok(loaded) => {
                set.entries = Some(loaded.entries);
                if let Some((count, first)) = &loaded.skipped {
                    set.skipped = *count;
                    set.first_skipped = Some(first.to_string());
                }
                checked.push(set);
            }
            Err(why) if matches!(why.why, RuleSetFailure::NotDownloaded) => checked.push(set),
            Err(why) => errors.push(why),
        }
    }
    if errors.is_empty() {
        return Ok(checked);
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
