//! The users of the fleet in memory: what listeners and limits need, and no sealed records.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use adit_config::{FleetIdentity, Secret};
use adit_engine::{
    FleetDirectory, FleetLimitSource, FleetQuota, FleetUser as EngineUser, FleetUserLimits,
    NamedUsers, UserLimits,
};
use adit_fleet::lease::MIN_LEASE;
use adit_fleet::{FleetUser, PackedUser, PeriodLabel, RateScope, RealmKey, RecordLimits};
use adit_net::system;
use adit_wire::{QuotaPeriod, UnixTime};
use zeroize::Zeroizing;

/// The users of the fleet, with what is known of their usage.
pub(crate) struct Directory {
    realm_key: RealmKey,
    node: u32,
    users: RwLock<UserIndex>,
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory")
            .field("users", &self.read().named.by_id().len())
            .finish_non_exhaustive()
    }
}

struct UserIndex {
    named: NamedUsers<PackedUser>,
    /// The activity of users who have any.
    activity: HashMap<u32, Activity>,
}

/// The sessions and the usage of a user at all nodes, as far as this node knows.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Activity {
    /// Number of nodes where the user has sessions, for rates that they share.
    nodes: u32,
    /// Bytes of the period over all nodes, as far as this node knows; only with a quota.
    used: u64,
}

impl UserIndex {
    fn activity(&self, id: u32) -> Activity {
        self.activity.get(&id).copied().unwrap_or_default()
    }

    /// Sets the activity of a user, and returns the one before. Users without any take no memory.
    fn set_activity(&mut self, id: u32, now: Activity) -> Activity {
        let before = match now == Activity::default() {
            true => self.activity.remove(&id),
            false => self.activity.insert(id, now),
        };
        before.unwrap_or_default()
    }
}

/// The effect of a change of the directory on listeners.
#[derive(Default)]
pub(crate) struct DirectoryChange {
    /// Numbers and names of users who may not connect any more.
    pub(crate) removed: Vec<(u32, Box<str>)>,
    /// Users who are new or changed, after all changes.
    pub(crate) put: BTreeMap<u32, PackedUser>,
}

impl DirectoryChange {
    pub(crate) fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.put.is_empty()
    }
}

/// A user as listeners see it.
pub(crate) struct Served<'a>(pub(crate) &'a FleetUser);

impl EngineUser for Served<'_> {
    fn id(&self) -> u32 {
        self.0.id
    }

    fn name(&self) -> &str {
        &self.0.name
    }

    fn password(&self) -> Secret {
        Secret::from(self.0.password().as_str())
    }

    fn key(&self, len: usize) -> Option<Secret> {
        self.0.psk(len).map(|key| Secret::from(key.as_str()))
    }
}

/// Returns what the fleet has decided about a user.
fn limits_of(id: u32, user: &PackedUser, activity: Activity) -> FleetUserLimits {
    let RecordLimits {
        quota,
        expires,
        rate,
        rate_scope,
        sessions,
        devices,
        ..
    } = user.limits();
    let nodes = match rate_scope {
        RateScope::Node => 1,
        RateScope::Fleet => u64::from(activity.nodes.max(1)),
    };
    let quota = match quota.map(|quota| quota.saturating_sub(activity.used)) {
        None => FleetQuota::None,
        Some(0) => FleetQuota::UsedUp,
        // Small: the first session of a user asks the store at once.
        Some(left) => FleetQuota::Lease(left.min(MIN_LEASE)),
    };
    FleetUserLimits {
        id,
        limits: UserLimits {
            quota: None,
            expires: expires.map(UnixTime),
            rate: rate.map(|rate| (rate / nodes).max(1)),
            sessions,
            devices,
            ..UserLimits::default()
        },
        quota,
    }
}

impl Directory {
    pub(crate) fn new(realm_key: RealmKey, node: u32) -> Self {
        Self {
            realm_key,
            node,
            users: RwLock::new(UserIndex {
                named: NamedUsers::new(PackedUser::name),
                activity: HashMap::new(),
            }),
        }
    }

    /// Returns the number of users.
    pub(crate) fn len(&self) -> usize {
        self.read().named.by_id().len()
    }

    /// Returns the numbers of users who may connect, who are disabled, and whose time has expired.
    pub(crate) fn states(&self) -> [u64; 3] {
        let now = system::unix_now().0;
        let mut states = [0; 3];
        for user in self.read().named.by_id().values() {
            let expires = user.limits().expires;
            let at = match (user.is_disabled(), expires) {
                (true, _) => 1,
                (false, Some(at)) if at <= now => 2,
                _ => 0,
            };
            if let Some(count) = states.get_mut(at) {
                *count += 1;
            }
        }
        states
    }

    /// Returns a user.
    pub(crate) fn user(&self, id: u32) -> Option<FleetUser> {
        self.packed(id)?.unpack(id)
    }

    /// Returns the user of this name.
    pub(crate) fn user_named(&self, name: &str) -> Option<FleetUser> {
        let users = self.read();
        let (id, packed) = users.named.find(name)?;
        let packed = packed.clone();
        drop(users);
        packed.unpack(id)
    }

    /// Returns the limits of a user.
    pub(crate) fn limits(&self, id: u32) -> Option<RecordLimits> {
        let users = self.read();
        users.named.by_id().get(&id).map(PackedUser::limits)
    }

    fn packed(&self, id: u32) -> Option<PackedUser> {
        let users = self.read();
        users.named.by_id().get(&id).cloned()
    }

    /// Returns the period that usage of a user now belongs to; that of all time for a user who is gone.
    pub(crate) fn period_of(&self, id: u32) -> PeriodLabel {
        let limits = self.limits(id);
        let period = limits.map_or(QuotaPeriod::Total, |limits| limits.period);
        PeriodLabel::new(period, system::unix_now())
    }

    /// Returns the numbers of users with a quota, by the period that usage now belongs to.
    pub(crate) fn users_with_quota(&self) -> Vec<(PeriodLabel, Vec<u32>)> {
        let now = system::unix_now();
        let mut by_period = QuotaPeriod::ALL.map(|period| (period, Vec::new()));
        for (id, user) in self.read().named.by_id() {
            let limits = user.limits();
            let own = by_period.iter_mut().find(|own| own.0 == limits.period);
            if let Some((_, ids)) = own.filter(|_| limits.quota.is_some()) {
                ids.push(*id);
            }
        }
        let labels = by_period.into_iter();
        labels
            .map(|(period, ids)| (PeriodLabel::new(period, now), ids))
            .collect()
    }

    /// Records the usage of a user, and returns the name and the quota; `None` for a user without a quota.
    pub(crate) fn set_used(&self, id: u32, used: u64) -> Option<(Box<str>, u64)> {
        let mut users = self.write();
        let user = users.named.by_id().get(&id)?.clone();
        let known = users.activity(id);
        users.set_activity(id, Activity { used, ..known });
        let quota = user.limits().quota?;
        Some((user.name().into(), quota))
    }

    /// Returns the usage of a user over all nodes, as far as it is known.
    pub(crate) fn used(&self, id: u32) -> u64 {
        self.read().activity(id).used
    }

    /// Records the number of nodes where a user is active. Returns true if that changes the rate.
    pub(crate) fn set_nodes(&self, id: u32, nodes: u32) -> bool {
        let mut users = self.write();
        let Some(limits) = users.named.by_id().get(&id).map(PackedUser::limits) else {
            return false;
        };
        let known = users.activity(id);
        users.set_activity(id, Activity { nodes, ..known });
        known.nodes != nodes && limits.rate_scope == RateScope::Fleet && limits.rate.is_some()
    }

    /// Returns the numbers of users whose quota is used up, as far as this node knows.
    pub(crate) fn over_quota(&self) -> Vec<u32> {
        let users = self.read();
        let each = users.named.by_id().iter().filter(|(id, user)| {
            let quota = user.limits().quota;
            quota.is_some_and(|quota| users.activity(**id).used >= quota)
        });
        each.map(|(id, _)| *id).collect()
    }

    /// Makes room for the names of further users.
    pub(crate) fn reserve(&self, count: usize) {
        self.write().named.reserve(count);
    }

    /// Adds or replaces a user.
    pub(crate) fn put(&self, id: u32, user: &PackedUser, done: &mut DirectoryChange) {
        let mut users = self.write();
        let (period, name) = (user.limits().period, user.name());
        if let Some(known) = users.named.by_id().get(&id).cloned() {
            let activity = users.activity(id);
            if known.limits().period != period {
                // Another period has its own usage.
                let used = 0;
                users.set_activity(id, Activity { used, ..activity });
            }
            let is_gone = known.name() != name || user.is_disabled();
            if is_gone && !known.is_disabled() {
                done.removed.push((id, known.name().into()));
            }
        }
        users.named.insert(id, user.clone());
        // An earlier change may have put the user.
        match user.is_disabled() {
            true => done.put.remove(&id),
            false => done.put.insert(id, user.clone()),
        };
    }

    /// Rebuilds the tree after many users: one that was filled in order is half empty.
    pub(crate) fn fill_nodes(&self) {
        self.write().named.fill_nodes();
    }

    /// Removes a user.
    pub(crate) fn remove(&self, id: u32, done: &mut DirectoryChange) {
        let mut users = self.write();
        let Some(known) = users.named.by_id().get(&id).cloned() else {
            return;
        };
        users.named.remove(id);
        users.activity.remove(&id);
        done.put.remove(&id);
        done.removed.push((id, known.name().into()));
    }

    /// Returns true if fewer than `count` users before this one may connect: a listener for this number of users serves
    /// the user.
    pub(crate) fn is_among_first(&self, id: u32, count: usize) -> bool {
        let users = self.read();
        if users.named.by_id().len() <= count {
            return true;
        }
        let before = users.named.by_id().range(..id);
        let enabled = before.filter(|(_, user)| !user.is_disabled());
        enabled.count() < count
    }

    /// Ignores poisoning: a panic of another thread leaves the users intact.
    fn read(&self) -> RwLockReadGuard<'_, UserIndex> {
        self.users.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, UserIndex> {
        self.users.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FleetLimitSource for Directory {
    fn limits_of(&self, name: &str) -> Option<FleetUserLimits> {
        let users = self.read();
        let (id, user) = users.named.find(name)?;
        (!user.is_disabled()).then(|| limits_of(id, user, users.activity(id)))
    }
}

impl FleetDirectory for Directory {
    fn identity_key(&self, identity: FleetIdentity, len: usize) -> Secret {
        let key = match identity {
            FleetIdentity::Node => self.realm_key.identity_psk(self.node, len),
            FleetIdentity::Shared => self.realm_key.shared_psk(len),
        };
        // The methods with identity headers have keys of 16 and 32 bytes.
        let key = key.unwrap_or_else(|| Zeroizing::new(String::new()));
        Secret::from(key.as_str())
    }

    fn for_each(&self, each: &mut dyn FnMut(&dyn EngineUser)) {
        // In the order of their numbers: a listener for a limited number of users serves the same ones everywhere.
        let all: Vec<(u32, PackedUser)> = {
            let users = self.read();
            let enabled = users.named.by_id().iter();
            let enabled = enabled.filter(|(_, user)| !user.is_disabled());
            enabled.map(|(id, user)| (*id, user.clone())).collect()
        };
        for (id, user) in all {
            if let Some(user) = user.unpack(id) {
                each(&Served(&user));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, disabled: bool) -> PackedUser {
        let mut user = FleetUser::new(0, name, [1; 32]);
        user.disabled = disabled;
        PackedUser::new(&user).unwrap()
    }

    fn directory() -> Directory {
        Directory::new(RealmKey::new([1; 32]), 1)
    }

    #[test]
    fn users_are_found_by_their_current_names() {
        let (directory, mut change) = (directory(), DirectoryChange::default());
        for (id, name) in [(1, "anna"), (2, "bert"), (3, "cleo")] {
            directory.put(id, &named(name, false), &mut change);
        }
        let found = |name: &str| directory.user_named(name).map(|user| user.id);
        assert_eq!(found("bert"), Some(2));
        // A name passes to another user before its last one is renamed, and removed.
        directory.put(3, &named("bert", false), &mut change);
        assert_eq!((found("bert"), found("cleo")), (Some(3), None));
        directory.put(2, &named("doro", false), &mut change);
        assert_eq!((found("bert"), found("doro")), (Some(3), Some(2)));
        directory.put(1, &named("doro", false), &mut change);
        directory.remove(2, &mut change);
        assert_eq!((found("doro"), found("anna")), (Some(1), None));
        directory.remove(1, &mut change);
        assert_eq!((found("doro"), directory.len()), (None, 1));
        for id in 10..1000 {
            directory.put(id, &named(&format!("user-{id}"), false), &mut change);
        }
        for id in 10..1000 {
            assert_eq!(found(&format!("user-{id}")), Some(id));
        }
    }

    #[test]
    fn the_last_of_several_changes_counts() {
        let (directory, mut change) = (directory(), DirectoryChange::default());
        directory.put(1, &named("anna", false), &mut change);
        directory.put(1, &named("anne", false), &mut change);
        directory.put(2, &named("bert", false), &mut change);
        directory.put(2, &named("bert", true), &mut change);
        directory.put(3, &named("cleo", false), &mut change);
        directory.remove(3, &mut change);
        let put: Vec<_> = change
            .put
            .iter()
            .map(|(id, user)| (*id, user.name()))
            .collect();
        assert_eq!(put, [(1, "anne")]);
        let mut removed: Vec<_> = change.removed.iter().map(|(id, _)| *id).collect();
        removed.sort_unstable();
        assert_eq!(removed, [1, 2, 3]);
    }

    #[test]
    fn the_first_users_are_those_who_may_connect() {
        let (directory, mut change) = (directory(), DirectoryChange::default());
        for id in 1..=5 {
            let user = named(&format!("user-{id}"), id == 2);
            directory.put(id, &user, &mut change);
        }
        let first = |count| (1..=5).filter(move |id| directory.is_among_first(*id, count));
        assert!(first(3).eq([1, 2, 3, 4]));
    }
}
