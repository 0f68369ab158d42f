//! Rule sets whose lists are downloaded.
//!
//! The last valid list is stored in a file, from which the next start loads it. A download that fails, or that
//! is not a list, changes nothing.

use std::time::Duration;

use adit_config::{RuleSetConfig, RuleSetSource};
use adit_engine::{
    LoadedRuleSet, NameResolver, RuleSetError, RuleSetFailure, RuleSetStore, RuleSetTable,
};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, info, warn};

use crate::subscription::{Fetcher, Source, TrustedRoots, scattered};

/// Maximum delay before the next try after a failure.
const RETRY: Duration = Duration::from_secs(300);
/// Time limit of a download.
const PATIENCE: Duration = Duration::from_secs(300);
/// Maximum size of a list, in bytes.
const MAX_LIST: usize = 64 << 20;

/// Loads the rule sets of a plan, and refreshes those that are downloaded.
#[derive(Debug)]
pub struct RuleSetLoader {
    store: RuleSetStore,
    fetcher: Fetcher,
}

impl RuleSetLoader {
    /// Creates a loader that keeps lists and compiled sets in `store`.
    #[must_use]
    pub const fn new(store: RuleSetStore, roots: TrustedRoots) -> Self {
        let fetcher = Fetcher::new(roots, MAX_LIST).with_time_limit(PATIENCE);
        Self { store, fetcher }
    }

    /// Loads all sets. Lists with URLs are downloaded if they are not stored; stored ones are used at any age,
    /// so that a start does not depend on the network. `find_resolver` returns the resolver of downloads, and is called
    /// if there are any, with all sets that are known; those that are not downloaded yet are empty.
    ///
    /// # Errors
    ///
    /// All sets that cannot be loaded.
    pub async fn load(
        &self,
        sets: &[RuleSetConfig],
        find_resolver: impl AsyncFnOnce(&RuleSetTable) -> Result<NameResolver, String>,
    ) -> Result<(RuleSetTable, Vec<LoadedRuleSet>), Vec<RuleSetError>> {
        let nothing = RuleSetTable::default();
        self.load_again(sets, &[], &nothing, find_resolver).await
    }

    /// Loads all sets of a plan that replaces another one, whose sets `before` are in the table `running`. Sets that
    /// are the same are shared with that table and not among those that are returned as loaded; lists with URLs are
    /// the same if their configuration is, because [`follow`](Self::follow) refreshes them.
    ///
    /// # Errors
    ///
    /// All sets that cannot be loaded. `running` is never changed.
    pub async fn load_again(
        &self,
        sets: &[RuleSetConfig],
        before: &[RuleSetConfig],
        running: &RuleSetTable,
        find_resolver: impl AsyncFnOnce(&RuleSetTable) -> Result<NameResolver, String>,
    ) -> Result<(RuleSetTable, Vec<LoadedRuleSet>), Vec<RuleSetError>> {
        let mut table = RuleSetTable::default();
        let mut found = Vec::with_capacity(sets.len());
        let (mut missing, mut errors) = (Vec::new(), Vec::new());
        for config in sets {
            let is_followed = before.iter().any(|known| is_same_download(known, config));
            if is_followed && table.share_set(&config.name, running) {
                continue;
            }
            match self.load_stored(config).await {
                Ok(set) => found.push(set),
                Err(why) if matches!(config.source, RuleSetSource::Url(_)) => {
                    debug!("{why}");
                    missing.push(config);
                }
                Err(why) => errors.push(why),
            }
        }
        if !missing.is_empty() {
            let mut known = table.clone();
            for set in &found {
                known.insert(&set.name, set.set.clone());
            }
            for config in &missing {
                known.insert(&config.name, Default::default());
            }
            let names = find_resolver(&known).await;
            for config in missing {
                let downloaded = match &names {
                    Ok(names) => self.download(config, names).await,
                    Err(why) => Err(download_error(config, why.clone())),
                };
                match downloaded {
                    Ok(set) => found.push(set),
                    Err(why) => errors.push(why),
                }
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        found.retain(|found| {
            let known = running.get(&found.name);
            let is_same = known.is_some_and(|known| *known.current() == found.set);
            let is_shared = is_same && table.share_set(&found.name, running);
            if !is_shared {
                table.insert(&found.name, found.set.clone());
            }
            !is_shared
        });
        Ok((table, found))
    }

    /// Loads the set of a file, or of the stored list of a URL.
    async fn load_stored(&self, config: &RuleSetConfig) -> Result<LoadedRuleSet, RuleSetError> {
        let (store, own) = (self.store.clone(), config.clone());
        let found = spawn_blocking(move || store.load(&own)).await;
        found.unwrap_or_else(|why| {
            let why = std::io::Error::other(why);
            Err(RuleSetError::new(config, why))
        })
    }

    /// Refreshes the sets of `table` that are downloaded. `names` looks the names of their servers up. Never returns.
    pub async fn follow(&self, sets: &[RuleSetConfig], table: &RuleSetTable, names: &NameResolver) {
        let mut due = Vec::new();
        for config in sets {
            // A list with a known digest cannot change.
            if matches!(config.source, RuleSetSource::Url(_)) && config.sha256.is_none() {
                due.push((self.first_update(config).await, config));
            }
        }
        while let Some((at, config)) = due.iter_mut().min_by_key(|(at, _)| *at) {
            sleep_until(*at).await;
            let mut wait = config.refresh;
            match self.download(config, names).await {
                Ok(found) => replace(table, found),
                Err(why) => {
                    warn!("{why}; the current list stays in use");
                    wait = wait.min(RETRY);
                }
            }
            *at = Instant::now() + scattered(wait);
        }
        std::future::pending::<()>().await;
    }

    /// Returns the time of the first update, which depends on the age of the stored list.
    async fn first_update(&self, config: &RuleSetConfig) -> Instant {
        let (store, own) = (self.store.clone(), config.clone());
        let stored = spawn_blocking(move || store.stored_document(&own)).await;
        let age = match stored {
            Ok(Ok(Some(stored))) => stored.age,
            _ => Duration::ZERO,
        };
        Instant::now() + scattered(config.refresh).saturating_sub(age)
    }

    /// Downloads, compiles and stores a list.
    async fn download(
        &self,
        config: &RuleSetConfig,
        names: &NameResolver,
    ) -> Result<LoadedRuleSet, RuleSetError> {
        let fails = |why| download_error(config, why);
        let RuleSetSource::Url(url) = &config.source else {
            return Err(fails("the list is a file".to_owned()));
        };
        let source: Source = url
            .parse()
            .map_err(|why| fails(format!("not the URL of a list: {why}")))?;
        let document = self.fetcher.get_bytes(&source, names).await;
        let document = document.map_err(|why| fails(why.to_string()))?;
        let (store, own) = (self.store.clone(), config.clone());
        let compile = move || {
            let found = store.load_document(&own, &document)?;
            if let Err(why) = store.store_document(&own, &document) {
                warn!("rule set `{}`: cannot store the list: {why}", own.name);
            }
            Ok(found)
        };
        let found = spawn_blocking(compile).await;
        found.unwrap_or_else(|why| Err(fails(why.to_string())))
    }
}

fn download_error(config: &RuleSetConfig, why: String) -> RuleSetError {
    RuleSetError::new(config, RuleSetFailure::Download(why))
}

/// Returns true if both sets are the same download.
fn is_same_download(a: &RuleSetConfig, b: &RuleSetConfig) -> bool {
    let list = |config: &RuleSetConfig| (config.format, config.sha256);
    matches!(a.source, RuleSetSource::Url(_))
        && a.name == b.name
        && a.source == b.source
        && a.category == b.category
        && list(a) == list(b)
}

/// Replaces a set for all routers, unless it is the same.
fn replace(table: &RuleSetTable, found: LoadedRuleSet) {
    let Some(shared) = table.get(&found.name) else {
        return;
    };
    if *shared.current() == found.set {
        debug!("rule set `{}`: the list has not changed", found.name);
        return;
    }
    info!(
        "rule set `{}`: the list has changed, there are now {} entries",
        found.name, found.entries
    );
    shared.replace(found.set);
}
