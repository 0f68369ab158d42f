//! The users of the fleet in memory: what listeners and limits need, and no sealed records.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use adit_config::{FleetIdentity, Secret};
use adit_engine::{
    FleetDirectory, FleetLimitSource, FleetQuota, FleetUser as EngineUser, FleetUserLimits,
    UserLimits,
};
use adit_fleet::lease::MIN_LEASE;
use adit_fleet::{FleetUser, PeriodLabel, QuotaPeriod, RateScope, RealmKey, RecordLimits};
use adit_net::system;
use adit_wire::UnixTime;
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
            .field("users", &self.read().by_id.len())
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct UserIndex {
    by_id: HashMap<u32, Entry>,
    by_name: HashSet<NamedUser>,
}

struct Entry {
    user: Arc<FleetUser>,
    /// Bytes of the period over all nodes, as far as this node knows; only with a quota.
    used: u64,
    /// Number of nodes where the user has sessions, for rates that they share.
    nodes: u32,
}

/// A user in the set, found by the name.
struct NamedUser(Arc<FleetUser>);

impl Borrow<str> for NamedUser {
    fn borrow(&self) -> &str {
        &self.0.name
    }
}

impl Hash for NamedUser {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.as_str().hash(state);
    }
}

impl PartialEq for NamedUser {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for NamedUser {}

/// The effect of a change of the directory on listeners.
#[derive(Default)]
pub(crate) struct DirectoryChange {
    /// Numbers and names of users who may not connect any more.
    pub(crate) removed: Vec<(u32, Box<str>)>,
    /// Users who are new or changed.
    pub(crate) put: Vec<Arc<FleetUser>>,
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

impl Entry {
    fn limits(&self) -> FleetUserLimits {
        let RecordLimits {
            quota,
            expires,
            rate,
            rate_scope,
            sessions,
            devices,
            ..
        } = self.user.limits;
        let nodes = match rate_scope {
            RateScope::Node => 1,
            RateScope::Fleet => u64::from(self.nodes.max(1)),
        };
        let quota = match quota.map(|quota| quota.saturating_sub(self.used)) {
            None => FleetQuota::None,
            Some(0) => FleetQuota::UsedUp,
            // Small: the first session of a user asks the store at once.
            Some(left) => FleetQuota::Lease(left.min(MIN_LEASE)),
        };
        FleetUserLimits {
            id: self.user.id,
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
}

impl Directory {
    pub(crate) fn new(realm_key: RealmKey, node: u32) -> Self {
        Self {
            realm_key,
            node,
            users: RwLock::default(),
        }
    }

    /// Returns the number of users.
    pub(crate) fn len(&self) -> usize {
        self.read().by_id.len()
    }

    /// Returns the numbers of users who may connect, who are disabled, and whose time has expired.
    pub(crate) fn states(&self) -> [u64; 3] {
        let now = system::unix_now().0;
        let mut states = [0; 3];
        for entry in self.read().by_id.values() {
            let limits = entry.user.limits;
            let at = match (entry.user.disabled, limits.expires) {
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
    pub(crate) fn user(&self, id: u32) -> Option<Arc<FleetUser>> {
        let users = self.read();
        users.by_id.get(&id).map(|entry| entry.user.clone())
    }

    /// Returns the user of this name.
    pub(crate) fn user_named(&self, name: &str) -> Option<Arc<FleetUser>> {
        let users = self.read();
        users.by_name.get(name).map(|named| named.0.clone())
    }

    /// Returns the period that usage of a user now belongs to; that of all time for a user who is gone.
    pub(crate) fn period_of(&self, id: u32) -> PeriodLabel {
        let user = self.user(id);
        let period = user.map_or(QuotaPeriod::Total, |user| user.limits.period);
        period.label(system::unix_now())
    }

    /// Returns the numbers of users with a quota, by the period that usage now belongs to.
    pub(crate) fn users_with_quota(&self) -> Vec<(PeriodLabel, Vec<u32>)> {
        let now = system::unix_now();
        let users = self.read();
        let with_quota = |period: QuotaPeriod| {
            let each = users.by_id.values().map(|entry| &entry.user);
            let each =
                each.filter(|user| user.limits.quota.is_some() && user.limits.period == period);
            (period.label(now), each.map(|user| user.id).collect())
        };
        QuotaPeriod::ALL.into_iter().map(with_quota).collect()
    }

    /// Records the usage of a user, and returns the name and the quota; `None` for a user without a quota.
    pub(crate) fn set_used(&self, id: u32, used: u64) -> Option<(Box<str>, u64)> {
        let mut users = self.write();
        let entry = users.by_id.get_mut(&id)?;
        entry.used = used;
        Some((entry.user.name.as_str().into(), entry.user.limits.quota?))
    }

    /// Returns the usage of a user over all nodes, as far as it is known.
    pub(crate) fn used(&self, id: u32) -> u64 {
        let users = self.read();
        users.by_id.get(&id).map_or(0, |entry| entry.used)
    }

    /// Records the number of nodes where a user is active. Returns true if that changes the rate.
    pub(crate) fn set_nodes(&self, id: u32, nodes: u32) -> bool {
        let mut users = self.write();
        let Some(entry) = users.by_id.get_mut(&id) else {
            return false;
        };
        let before = std::mem::replace(&mut entry.nodes, nodes);
        let limits = entry.user.limits;
        before != nodes && limits.rate_scope == RateScope::Fleet && limits.rate.is_some()
    }

    /// Returns the numbers of users whose quota is used up, as far as this node knows.
    pub(crate) fn over_quota(&self) -> Vec<u32> {
        let users = self.read();
        let each = users.by_id.values();
        let each = each.filter(|entry| {
            let quota = entry.user.limits.quota;
            quota.is_some_and(|quota| entry.used >= quota)
        });
        each.map(|entry| entry.user.id).collect()
    }

    /// Adds or replaces a user.
    pub(crate) fn put(&self, user: &Arc<FleetUser>, done: &mut DirectoryChange) {
        let mut users = self.write();
        let before = users.by_id.get(&user.id);
        // Another period has its own usage.
        let same = before.filter(|known| known.user.limits.period == user.limits.period);
        let used = same.map_or(0, |known| known.used);
        let nodes = before.map_or(0, |known| known.nodes);
        let before = before.map(|known| known.user.clone());
        if let Some(known) = before {
            users.by_name.remove(known.name.as_str());
            let is_gone = known.name != user.name || user.disabled;
            if is_gone && !known.disabled {
                done.removed.push((known.id, known.name.as_str().into()));
            }
        }
        users.by_name.replace(NamedUser(user.clone()));
        let entry = Entry {
            user: user.clone(),
            used,
            nodes,
        };
        users.by_id.insert(user.id, entry);
        if !user.disabled {
            done.put.push(user.clone());
        }
    }

    /// Removes a user.
    pub(crate) fn remove(&self, id: u32, done: &mut DirectoryChange) {
        let mut users = self.write();
        let Some(Entry { user, .. }) = users.by_id.remove(&id) else {
            return;
        };
        let named = users.by_name.get(user.name.as_str());
        // Another user may have the name by now.
        if named.is_some_and(|named| named.0.id == id) {
            users.by_name.remove(user.name.as_str());
        }
        done.put.retain(|put| put.id != id);
        done.removed.push((id, user.name.as_str().into()));
    }

    /// Returns what the fleet has decided about a user, for the registry.
    pub(crate) fn decided(&self, name: &str) -> Option<FleetUserLimits> {
        let users = self.read();
        let entry = users.by_id.get(&users.by_name.get(name)?.0.id)?;
        (!entry.user.disabled).then(|| entry.limits())
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
        self.decided(name)
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
        let users = self.read();
        // In the order of their numbers: a listener for a limited number of users serves the same ones everywhere.
        let mut all: Vec<&Entry> = users.by_id.values().collect();
        all.sort_unstable_by_key(|entry| entry.user.id);
        for entry in all.iter().filter(|entry| !entry.user.disabled) {
            each(&Served(&entry.user));
        }
    }
}
