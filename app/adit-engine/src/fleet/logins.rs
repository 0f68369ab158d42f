//! The users of a fleet with passwords, for SOCKS, HTTP, SSH and ShadowsocksR: one table for all listeners.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use adit_crypto::{CredentialDigest, CredentialHasher};
use adit_net::system::SystemRng;
use adit_wire::Entropy;

use super::shown_name::unescape;
use super::{FleetDirectory, FleetTable, FleetUser, NamedUsers};
use crate::UserRegistry;
use crate::user_account::UserAccount;

/// The users of a fleet by name and by number. Accounts are created with the first session.
pub(crate) struct FleetLogins {
    hasher: CredentialHasher,
    /// The digest against which the login of an unknown user is checked.
    nobody: CredentialDigest,
    users: RwLock<NamedUsers<Login>>,
    accounts: Mutex<HashMap<u32, Arc<UserAccount>>>,
    registry: Arc<UserRegistry>,
}

#[derive(PartialEq)]
struct Login {
    name: Box<str>,
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
            users: RwLock::new(NamedUsers::new(Login::name)),
            accounts: Mutex::default(),
            registry,
        }
    }

    /// Returns true if the pair belongs to a user. An unknown name takes as long as a wrong password.
    pub(crate) fn matches(&self, user: &[u8], password: &[u8]) -> bool {
        let attempt = self.hasher.digest_parts(&[user, password]);
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        let known = std::str::from_utf8(user).ok();
        let known = known.and_then(|name| users.find(name));
        let digest = known.map_or(&self.nobody, |(_, login)| &login.digest);
        *digest == attempt
    }

    /// Returns the account of a user, by the name as logs show it.
    pub(crate) fn account_of(&self, shown: &str) -> Option<Arc<UserAccount>> {
        let (id, name) = {
            let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
            let escaped = shown.contains('\\').then(|| unescape(shown)).flatten();
            let found = escaped.and_then(|name| users.find(&name));
            // SSH does not escape names.
            let (id, login) = found.or_else(|| users.find(shown))?;
            (id, login.name.clone())
        };
        Some(self.account(id, &name))
    }

    /// Returns the account of a user, and the name.
    pub(crate) fn account_of_id(&self, id: u32) -> Option<(Arc<UserAccount>, Box<str>)> {
        let name = {
            let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
            users.by_id().get(&id)?.name.clone()
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
        if !users.by_id().contains_key(&id) {
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
            name: user.name().into(),
            digest: self.hasher.digest_parts(&parts),
        }
    }
}

impl Login {
    fn name(&self) -> &str {
        &self.name
    }
}

/// Adds or replaces a user. Returns true if sessions of the user have to end.
fn put_login(users: &mut NamedUsers<Login>, id: u32, login: Login) -> bool {
    let before = users.by_id().get(&id);
    let is_changed = before.is_some_and(|before| *before != login);
    let is_taken = users
        .find(&login.name)
        .is_some_and(|(owner, _)| owner != id);
    users.insert(id, login);
    is_changed || is_taken
}

impl FleetTable for FleetLogins {
    fn load(&self, directory: &dyn FleetDirectory) {
        let mut logins = Vec::new();
        directory.for_each(&mut |user| logins.push((user.id(), self.login(user))));
        let fresh = NamedUsers::with_users(Login::name, logins);
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *users, fresh);
        let ended: Vec<u32> = before
            .by_id()
            .iter()
            .filter(|(id, login)| users.by_id().get(id) != Some(*login))
            .map(|(id, _)| *id)
            .collect();
        drop(users);
        for id in ended {
            self.end_sessions(id);
        }
    }

    fn change(&self, removed: &[(u32, &str)], put: &[&dyn FleetUser]) {
        // Digests take longer than anything else, and need no lock.
        let put: Vec<(u32, Login)> = put
            .iter()
            .map(|user| (user.id(), self.login(*user)))
            .collect();
        let mut ended: Vec<u32> = removed.iter().map(|(id, _)| *id).collect();
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        for id in &ended {
            users.remove(*id);
        }
        for (id, login) in put {
            if put_login(&mut users, id, login) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_as_they_are_shown() {
        let logins = FleetLogins::new(Arc::default());
        let names = ["ann", "жанна", "\\xd0\\xb6", "do\\main"];
        for (id, name) in (1..).zip(names) {
            let digest = logins.hasher.digest_parts(&[name.as_bytes()]);
            let name = name.into();
            let mut users = logins.users.write().unwrap();
            assert!(!put_login(&mut users, id, Login { name, digest }));
        }
        for name in names {
            let shown = name.as_bytes().escape_ascii().to_string();
            let account = logins.account_of(&shown).unwrap();
            assert_eq!(account.name(), Some(&*name.escape_debug().to_string()));
        }
        assert!(logins.account_of("do\\main").is_some(), "as SSH has it");
        assert!(logins.account_of("\\xd0").is_none() && logins.account_of("bob").is_none());
    }
}
