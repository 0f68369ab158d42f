//! The users of a fleet with passwords, for SOCKS, HTTP, SSH and ShadowsocksR: one table for all listeners.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use adit_crypto::{CredentialDigest, CredentialHasher};
use adit_net::system::SystemRng;
use adit_wire::Entropy;

use super::{FleetDirectory, FleetTable, FleetUser};
use crate::UserRegistry;
use crate::user_account::UserAccount;

/// The users of a fleet by name and by number. Accounts are created with the first session.
pub(crate) struct FleetLogins {
    hasher: CredentialHasher,
    /// The digest against which the login of an unknown user is checked.
    nobody: CredentialDigest,
    users: RwLock<LoginIndex>,
    accounts: Mutex<HashMap<u32, Arc<UserAccount>>>,
    registry: Arc<UserRegistry>,
}

#[derive(Default)]
struct LoginIndex {
    by_name: HashMap<Arc<str>, Login>,
    names: HashMap<u32, Arc<str>>,
}

struct Login {
    id: u32,
    digest: CredentialDigest,
}

impl std::fmt::Debug for FleetLogins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FleetLogins").finish_non_exhaustive()
    }
}

impl FleetLogins {
    pub(super) fn new(registry: Arc<UserRegistry>) -> Self {
        let mut key = [0; 32];
        SystemRng.fill(&mut key);
        let hasher = CredentialHasher::new(key);
        let mut password = [0; 32];
        SystemRng.fill(&mut password);
        Self {
            nobody: hasher.digest_parts(&[b"", &password]),
            hasher,
            users: RwLock::default(),
            accounts: Mutex::default(),
            registry,
        }
    }

    /// Returns true if the pair belongs to a user. An unknown name takes as long as a wrong password.
    pub(crate) fn matches(&self, user: &[u8], password: &[u8]) -> bool {
        let attempt = self.hasher.digest_parts(&[user, password]);
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        let known = std::str::from_utf8(user).ok();
        let known = known.and_then(|name| users.by_name.get(name));
        let digest = known.map_or(&self.nobody, |login| &login.digest);
        *digest == attempt
    }

    /// Returns the account of a user, by the name as logs show it.
    pub(crate) fn account_of(&self, shown: &str) -> Option<Arc<UserAccount>> {
        let (id, name) = {
            let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
            let found = users.by_name.get_key_value(shown);
            let found = found.or_else(|| {
                // Acceptors escape names that are not plain ASCII.
                let mut all = users.by_name.iter();
                let escaped = |name: &str| name.as_bytes().escape_ascii().to_string();
                all.find(|(name, _)| shown.contains('\\') && escaped(name) == shown)
            });
            let (name, login) = found?;
            (login.id, name.clone())
        };
        Some(self.account(id, &name))
    }

    /// Returns the account of a user, and the name.
    pub(crate) fn account_of_id(&self, id: u32) -> Option<(Arc<UserAccount>, Arc<str>)> {
        let name = {
            let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
            users.names.get(&id)?.clone()
        };
        Some((self.account(id, &name), name))
    }

    fn account(&self, id: u32, name: &str) -> Arc<UserAccount> {
        let account = {
            let mut accounts = lock(&self.accounts);
            let new = || {
                let shown = name.escape_debug().to_string();
                self.registry.new_account(name, &shown)
            };
            accounts.entry(id).or_insert_with(new).clone()
        };
        // The user may have been removed meanwhile.
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        if !users.names.contains_key(&id) {
            account.end_sessions();
            lock(&self.accounts).remove(&id);
        }
        account
    }

    fn end_sessions(&self, id: u32) {
        if let Some(account) = lock(&self.accounts).remove(&id) {
            account.end_sessions();
        }
    }

    fn login(&self, user: &dyn FleetUser) -> Login {
        let password = user.password();
        let parts = [user.name().as_bytes(), password.expose().as_bytes()];
        Login {
            id: user.id(),
            digest: self.hasher.digest_parts(&parts),
        }
    }
}

impl LoginIndex {
    /// Adds or replaces a user. Returns true if sessions of the user have to end.
    fn put(&mut self, name: &str, login: Login) -> bool {
        let (id, name) = (login.id, Arc::<str>::from(name));
        let renamed = self.names.insert(id, name.clone());
        let renamed = renamed.filter(|before| *before != name);
        if let Some(before) = &renamed {
            self.by_name.remove(before);
        }
        let same = |known: &Login| known.id == id && known.digest == login.digest;
        let is_same = self.by_name.get(&name).is_none_or(same);
        self.by_name.insert(name, login);
        renamed.is_some() || !is_same
    }

    fn remove(&mut self, id: u32) {
        if let Some(name) = self.names.remove(&id)
            && self.by_name.get(&name).is_some_and(|login| login.id == id)
        {
            self.by_name.remove(&name);
        }
    }
}

impl FleetTable for FleetLogins {
    fn load(&self, directory: &dyn FleetDirectory) {
        let mut fresh = LoginIndex::default();
        directory.for_each(&mut |user| {
            fresh.put(user.name(), self.login(user));
        });
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *users, fresh);
        let ended: Vec<u32> = before
            .by_name
            .iter()
            .filter(|(name, login)| {
                let now = users.by_name.get(*name);
                now.is_none_or(|now| now.id != login.id || now.digest != login.digest)
            })
            .map(|(_, login)| login.id)
            .collect();
        drop(users);
        for id in ended {
            self.end_sessions(id);
        }
    }

    fn change(&self, removed: &[(u32, &str)], put: &[&dyn FleetUser]) {
        // Digests take longer than anything else, and need no lock.
        let put: Vec<(&str, Login)> = put
            .iter()
            .map(|user| (user.name(), self.login(*user)))
            .collect();
        let mut ended: Vec<u32> = removed.iter().map(|(id, _)| *id).collect();
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        for id in &ended {
            users.remove(*id);
        }
        for (name, login) in put {
            let id = login.id;
            if users.put(name, login) {
                ended.push(id);
            }
        }
        drop(users);
        for id in ended {
            self.end_sessions(id);
        }
    }
}

/// Ignores poisoning: a panic of another thread leaves the accounts intact.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
