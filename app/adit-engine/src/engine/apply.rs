//! Changing a running plan to another one.
//!
//! Everything that can fail happens first: new listeners are bound, keys are parsed, chains and their plugins are
//! started. Then the running listeners are changed. The exception are listeners whose address another one occupies
//! until it is closed; if such a listener cannot be opened, those that were closed for it are opened again.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use adit_config::{ListenerConfig, Plan, Route};
use tokio::time::sleep;
use tracing::warn;

use super::comparison::{ChangedNames, ListenerTransition, Place, compare_plans};
use super::{Engine, RunningListener};
use crate::chain_builder::{NamedResources, RunningChains, build_router};
use crate::dns::{DnsRegistry, RunningDns};
use crate::handover::{SharedSockets, SocketSource};
use crate::listener::{
    self, BoundListener, ListenerChange, LiveState, PartsShape, PreviousListener,
};
use crate::stage_meter::ListenerMeters;
use crate::{Router, RuleSetTable, StartError};

/// Number of attempts to bind an address that was in use by a listener of this process, and the pause between them.
const REBIND_TRIES: usize = 40;
const REBIND_PAUSE: Duration = Duration::from_millis(25);

/// The numbers of listeners that a change of the plan has affected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReloadSummary {
    /// New listeners.
    pub added: usize,
    /// Listeners with other rules, chains or settings.
    pub changed: usize,
    /// Listeners that were closed.
    pub removed: usize,
}

impl fmt::Display for ReloadSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            added,
            changed,
            removed,
        } = self;
        let s = if *added == 1 { "" } else { "s" };
        write!(
            f,
            "{added} listener{s} added, {changed} changed, {removed} removed"
        )
    }
}

/// The error of a plan that cannot replace the running one.
#[derive(Debug, thiserror::Error)]
#[error("{}{why}", if route.is_empty() { String::new() } else { format!("route `{route}`: ") })]
pub struct ApplyError {
    /// The name of the route; empty if the error is not about a single one.
    pub route: String,
    /// The reason.
    pub why: StartError,
}

/// The plan that runs and the one that replaces it, with their rule sets.
#[derive(Clone, Copy)]
struct PlanChange<'a> {
    before: &'a Plan,
    now: &'a Plan,
    sets_before: &'a RuleSetTable,
    dns_before: &'a DnsRegistry,
    /// The sets and the DNS tables of `now`.
    named: NamedResources<'a>,
}

impl<'a> PlanChange<'a> {
    const fn named_before(&self) -> NamedResources<'a> {
        NamedResources {
            sets: self.sets_before,
            dns: self.dns_before,
        }
    }
}

/// The state of a running listener at the start of a change.
struct Snapshot {
    id: u64,
    addr: SocketAddr,
    live: LiveState,
    shape: PartsShape,
}

/// A step that cannot fail any more.
enum Prepared<'a> {
    Keep {
        id: u64,
        name: ListenerName<'a>,
    },
    Change {
        id: u64,
        name: ListenerName<'a>,
        router: Option<Router>,
        change: Option<Box<ListenerChange>>,
    },
    Open {
        name: ListenerName<'a>,
        bound: Box<BoundListener>,
        /// The listener that it replaces, at the same address.
        replaces: Option<LiveState>,
    },
    Remove {
        id: u64,
    },
}

/// The name of a listener in the new plan: its route, and its number among the listeners of that.
#[derive(Debug, Clone, Copy)]
struct ListenerName<'a> {
    route: &'a str,
    index: usize,
}

/// A listener whose address is occupied by one that will be closed.
struct Late<'a> {
    /// Its index among the steps.
    at: usize,
    name: ListenerName<'a>,
    route: &'a Route,
    listen: &'a ListenerConfig,
    replaces: Option<Snapshot>,
}

impl Engine {
    /// Changes the running plan `before` to `now`.
    ///
    /// Listeners that are the same stay untouched. Those with other rules, chains or settings keep their sockets:
    /// connections, associations and sessions that are open continue as they started, new ones use the new
    /// settings. The sessions of users that were removed, or whose key or password changed, end. Connections of
    /// removed listeners continue. Counters continue too.
    ///
    /// A listener is closed and opened again if an option of its socket changes: its carrier, its plugin or TCP fast
    /// open.
    ///
    /// Rules use the rule sets that are loaded, see [`Self::apply_with_rule_sets`] for others.
    ///
    /// # Errors
    ///
    /// Returns the first listener or chain of `now` that cannot be used, or rule whose set is not loaded. In this
    /// case nothing has changed.
    pub async fn apply(&self, before: &Plan, now: &Plan) -> Result<ReloadSummary, ApplyError> {
        self.apply_with_rule_sets(before, now, self.rule_sets())
            .await
    }

    /// Does the same as [`Self::apply`] with the rule sets `sets`, which replace the loaded ones. Sets that are shared
    /// with those, see [`RuleSetTable::share_set`], are the same; routes whose rules use another one have other rules.
    ///
    /// # Errors
    ///
    /// As for [`Self::apply`].
    pub async fn apply_with_rule_sets(
        &self,
        before: &Plan,
        now: &Plan,
        sets: RuleSetTable,
    ) -> Result<ReloadSummary, ApplyError> {
        let _only_one = self.changing.lock().await;
        let (sets_before, dns_before) = (&self.rule_sets(), &self.dns_registry());
        let running = RunningDns {
            registry: dns_before,
            plan: before,
            sets: sets_before,
        };
        let dns = DnsRegistry::build(now, &sets, &self.chains, Some(running)).await;
        let dns = dns.map_err(|why| ApplyError {
            route: String::new(),
            why,
        })?;
        let plans = PlanChange {
            before,
            now,
            sets_before,
            dns_before,
            named: NamedResources {
                sets: &sets,
                dns: &dns,
            },
        };
        let changed = ChangedNames {
            sets: sets.names_changed_since(sets_before),
            dns: dns.names_changed_since(dns_before),
        };
        let steps = compare_plans(before, now, &changed);
        let frees = |step: &ListenerTransition| {
            matches!(
                step,
                ListenerTransition::Remove { .. } | ListenerTransition::Replace { .. }
            )
        };
        let frees_addresses = steps.iter().any(frees);
        let mut prepared = Vec::with_capacity(steps.len());
        let mut late = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            let ready = self.prepare_step(*step, plans, frees_addresses);
            match ready.await? {
                Ready::Now(step) => prepared.push(Some(step)),
                Ready::Nothing => prepared.push(None),
                Ready::Late(mut one) => {
                    one.at = at;
                    late.push(one);
                    prepared.push(None);
                }
            }
        }
        let summary = summary_of(&steps);
        let closed = self.open_late(plans, late, &mut prepared).await?;
        let mut removed = self.commit(prepared.into_iter().flatten());
        *self.lock_sets() = sets;
        self.use_dns(dns);
        removed.extend(closed);
        self.count_closed(&removed);
        for listener in &mut removed {
            listener.stop().await;
        }
        Ok(summary)
    }

    /// Opens the listeners of the plan again that [`Self::drain_and_stop`] has closed. Connections that are still open
    /// continue.
    ///
    /// # Errors
    ///
    /// As for [`Self::apply`]; the engine accepts nothing then, as before.
    pub async fn resume(&self, plan: &Plan) -> Result<(), ApplyError> {
        for _ in 1..REBIND_TRIES {
            match self.apply(plan, plan).await {
                // The system may not have released an address yet.
                Err(failed) if is_in_use(&failed.why) => sleep(REBIND_PAUSE).await,
                done => return done.map(|_| self.announce_drain(false)),
            }
        }
        self.apply(plan, plan).await?;
        self.announce_drain(false);
        Ok(())
    }

    async fn prepare_step<'a>(
        &self,
        step: ListenerTransition,
        plans: PlanChange<'a>,
        frees_addresses: bool,
    ) -> Result<Ready<'a>, ApplyError> {
        let PlanChange {
            before, now, named, ..
        } = plans;
        let (old, new) = match step {
            ListenerTransition::Remove { before: old } => {
                return Ok(match self.snapshot(before, old) {
                    Some(running) => Ready::Now(Prepared::Remove { id: running.id }),
                    None => Ready::Nothing,
                });
            }
            ListenerTransition::Add { now: new } => (None, new),
            ListenerTransition::Keep { before: old, now }
            | ListenerTransition::Change {
                before: old, now, ..
            }
            | ListenerTransition::Replace { before: old, now } => (Some(old), now),
        };
        let Some((route, listen)) = new.of(now) else {
            return Ok(Ready::Nothing);
        };
        let name = ListenerName {
            route: &route.name,
            index: new.listen,
        };
        let failed = |why| ApplyError {
            route: route.name.clone(),
            why,
        };
        let running = old.and_then(|old| Some((self.snapshot(before, old)?, old.of(before)?)));
        let Some((running, (old_route, old_listen))) = running else {
            return self
                .prepare_addition(name, (route, listen), named, frees_addresses)
                .await
                .map_err(failed);
        };
        match step {
            ListenerTransition::Replace { .. } => {
                listener::check_settings(listen, &running.live, &self.process_state(named))
                    .map_err(failed)?;
                Ok(Ready::Late(Late {
                    at: 0,
                    name,
                    route,
                    listen,
                    replaces: Some(running),
                }))
            }
            ListenerTransition::Change {
                routing, settings, ..
            } => {
                let mut router = None;
                if routing {
                    let old = (old_route, old_listen, plans.sets_before);
                    let new = (route, listen, named.sets);
                    let same_names = plans.dns_before.looks_up_alike(
                        old_route.dns.as_deref(),
                        named.dns,
                        route.dns.as_deref(),
                    );
                    let chains = match same_names {
                        true => RunningChains::new(&running.live.router, old, new),
                        false => RunningChains::default(),
                    };
                    let built = build_router(route, listen, &self.chains, named, Some(&chains));
                    router = Some(built.await.map_err(failed)?);
                }
                let mut change = None;
                if settings {
                    let previous = PreviousListener {
                        config: old_listen,
                        live: &running.live,
                    };
                    let process = self.process_state(named);
                    let (shape, addr) = (running.shape, running.addr);
                    let ready = ListenerChange::prepare(listen, previous, shape, addr, &process);
                    change = Some(Box::new(ready.await.map_err(failed)?));
                }
                Ok(Ready::Now(Prepared::Change {
                    id: running.id,
                    name,
                    router,
                    change,
                }))
            }
            _ => Ok(Ready::Now(Prepared::Keep {
                id: running.id,
                name,
            })),
        }
    }

    async fn prepare_addition<'a>(
        &self,
        name: ListenerName<'a>,
        (route, listen): (&'a Route, &'a ListenerConfig),
        named: NamedResources<'_>,
        frees_addresses: bool,
    ) -> Result<Ready<'a>, StartError> {
        match self
            .bind_listener(route, listen, None, named, SocketSource::NONE)
            .await
        {
            Ok(bound) => Ok(Ready::Now(Prepared::Open {
                name,
                bound: Box::new(bound),
                replaces: None,
            })),
            Err(why) if frees_addresses && is_in_use(&why) => Ok(Ready::Late(Late {
                at: 0,
                name,
                route,
                listen,
                replaces: None,
            })),
            Err(why) => Err(why),
        }
    }

    /// Closes the listeners that are in the way of `late`, and opens those. If that fails, opens the closed ones
    /// again, as they were.
    async fn open_late<'a>(
        &self,
        plans: PlanChange<'_>,
        late: Vec<Late<'a>>,
        prepared: &mut [Option<Prepared<'a>>],
    ) -> Result<Vec<RunningListener>, ApplyError> {
        if late.is_empty() {
            return Ok(Vec::new());
        }
        let removed = prepared.iter().flatten().filter_map(|step| match step {
            Prepared::Remove { id } => Some(*id),
            _ => None,
        });
        let replaced = late
            .iter()
            .filter_map(|one| Some(one.replaces.as_ref()?.id));
        let ids: Vec<u64> = removed.chain(replaced).collect();
        let places = self.places_of(plans.before, &ids);
        let mut closed: Vec<RunningListener> = {
            let mut running = self.lock_running();
            running.extract_if(.., |r| ids.contains(&r.id)).collect()
        };
        for listener in &mut closed {
            listener.spares_sessions = true;
            listener.stop().await;
        }
        for one in late {
            let meters = one.replaces.as_ref().map(|old| old.live.meters());
            let bound = self.rebind(one.route, one.listen, meters, plans.named);
            match bound.await {
                Ok(bound) => {
                    if let Some(step) = prepared.get_mut(one.at) {
                        *step = Some(Prepared::Open {
                            name: one.name,
                            bound: Box::new(bound),
                            replaces: one.replaces.map(|old| old.live),
                        });
                    }
                }
                Err(why) => {
                    // Frees the addresses of those that were opened for nothing.
                    prepared.iter_mut().for_each(|step| *step = None);
                    self.reopen(plans, &places, &closed).await;
                    let route = one.route.name.clone();
                    return Err(ApplyError { route, why });
                }
            }
        }
        // Those that were replaced continue to count in their successors.
        let replaced = |r: &RunningListener| {
            prepared.iter().flatten().any(|step| {
            matches!(step, Prepared::Open { replaces: Some(live), .. } if std::sync::Arc::ptr_eq(&live.meter, &r.live.meter))
        })
        };
        closed.retain(|listener| !replaced(listener));
        Ok(closed)
    }

    /// Binds an address that was in use until now.
    async fn rebind(
        &self,
        route: &Route,
        listen: &ListenerConfig,
        meters: Option<ListenerMeters>,
        named: NamedResources<'_>,
    ) -> Result<BoundListener, StartError> {
        for _ in 1..REBIND_TRIES {
            let bound =
                self.bind_listener(route, listen, meters.clone(), named, SocketSource::NONE);
            match bound.await {
                Err(why) if is_in_use(&why) => sleep(REBIND_PAUSE).await,
                done => return done,
            }
        }
        self.bind_listener(route, listen, meters, named, SocketSource::NONE)
            .await
    }

    /// Opens listeners again that were closed for others.
    async fn reopen(
        &self,
        plans: PlanChange<'_>,
        places: &[(u64, Place)],
        closed: &[RunningListener],
    ) {
        let before = plans.before;
        for (id, place) in places {
            let listener = closed.iter().find(|listener| listener.id == *id);
            let meters = listener.map(|listener| listener.live.meters());
            let Some((route, listen)) = place.of(before) else {
                continue;
            };
            let bound = self.rebind(route, listen, meters, plans.named_before());
            match bound.await {
                Ok(bound) => {
                    let listener = self.start_listener(
                        &route.name,
                        place.listen,
                        bound,
                        &mut SharedSockets::default(),
                    );
                    self.lock_running().push(listener);
                }
                Err(why) => warn!("route `{}`: {why}", route.name),
            }
        }
        let position = |r: &RunningListener| {
            let named = |route: &Route| route.name == r.listening.route;
            let route = before.routes.iter().position(named);
            (route.unwrap_or(usize::MAX), r.index)
        };
        self.lock_running().sort_by_key(position);
    }

    /// Applies all steps. Returns the listeners that were removed.
    fn commit<'a>(&self, steps: impl Iterator<Item = Prepared<'a>>) -> Vec<RunningListener> {
        let mut removed = Vec::new();
        let mut running = self.lock_running();
        let mut before = std::mem::take(&mut *running);
        let mut take = |id: u64| {
            let at = before.iter().position(|r| r.id == id)?;
            Some(before.remove(at))
        };
        for step in steps {
            match step {
                Prepared::Keep { id, name } => {
                    if let Some(mut listener) = take(id) {
                        listener.rename(name);
                        running.push(listener);
                    }
                }
                Prepared::Change {
                    id,
                    name,
                    router,
                    change,
                } => {
                    if let Some(mut listener) = take(id) {
                        listener.rename(name);
                        listener.apply_change(router, change);
                        running.push(listener);
                    }
                }
                Prepared::Open {
                    name,
                    bound,
                    replaces,
                } => {
                    let listener = self.start_listener(
                        name.route,
                        name.index,
                        *bound,
                        &mut SharedSockets::default(),
                    );
                    let old = replaces.and_then(|live| live.user_table);
                    if let (Some(old), Some(new)) = (old, &listener.live.user_table) {
                        new.take_over(&old);
                    }
                    running.push(listener);
                }
                Prepared::Remove { id } => {
                    if let Some(mut listener) = take(id) {
                        listener.spares_sessions = true;
                        removed.push(listener);
                    }
                }
            }
        }
        // Those that were added otherwise.
        running.append(&mut before);
        removed
    }

    /// Returns the state of the running listener at a place of the running plan.
    fn snapshot(&self, before: &Plan, place: Place) -> Option<Snapshot> {
        let (route, _) = place.of(before)?;
        let running = self.lock_running();
        let is_here =
            |r: &&RunningListener| r.listening.route == route.name && r.index == place.listen;
        let listener = running.iter().find(is_here)?;
        Some(Snapshot {
            id: listener.id,
            addr: listener.listening.addr,
            live: listener.live.clone(),
            shape: listener.parts.shape(),
        })
    }

    /// Returns the places of running listeners.
    fn places_of(&self, before: &Plan, ids: &[u64]) -> Vec<(u64, Place)> {
        let routes = before.routes.iter().enumerate();
        let places = routes.flat_map(|(route, plan)| {
            (0..plan.listen.len()).map(move |listen| Place { route, listen })
        });
        let known = places.filter_map(|place| Some((self.snapshot(before, place)?.id, place)));
        known.filter(|(id, _)| ids.contains(id)).collect()
    }
}

/// The result of preparing a step.
enum Ready<'a> {
    Now(Prepared<'a>),
    Late(Late<'a>),
    Nothing,
}

impl RunningListener {
    fn rename(&mut self, name: ListenerName<'_>) {
        name.route.clone_into(&mut self.listening.route);
        self.index = name.index;
    }

    fn apply_change(&mut self, router: Option<Router>, change: Option<Box<ListenerChange>>) {
        if let Some(router) = router {
            self.live.router.replace_rules(router);
        }
        if let Some(change) = change {
            self.listening.transports = change.transports(self.listening.transports);
            change.apply(&mut self.live, &mut self.parts, &mut self.kept);
        }
    }
}

fn summary_of(steps: &[ListenerTransition]) -> ReloadSummary {
    let mut summary = ReloadSummary::default();
    for step in steps {
        match step {
            ListenerTransition::Keep { .. } => {}
            ListenerTransition::Change { .. } | ListenerTransition::Replace { .. } => {
                summary.changed += 1;
            }
            ListenerTransition::Add { .. } => summary.added += 1,
            ListenerTransition::Remove { .. } => summary.removed += 1,
        }
    }
    summary
}

/// Returns true if an address could not be bound because it is in use.
fn is_in_use(why: &StartError) -> bool {
    matches!(why, StartError::Listen { why, .. } if why.kind() == io::ErrorKind::AddrInUse)
}
