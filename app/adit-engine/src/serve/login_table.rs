//! The accounts of users with passwords, through which a reload ends the sessions of removed users.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use adit_config::{ListenerKind, UserPassword};
use adit_crypto::{CredentialDigest, CredentialHasher};
use adit_net::system::SystemRng;
use adit_wire::Entropy;

use crate::UserRegistry;
use crate::fleet::{FleetLogins, FleetUsers};
use crate::usage::Usage;
use crate::user_account::UserAccount;

/// The accounts of a listener's users with names and passwords, or SSH keys. A reload creates a new table, which
/// shares the accounts of users whose credentials are the same.
#[derive(Debug, Default)]
pub(crate) struct LoginTable {
    /// The registry and the hasher of new accounts; `None` for a table that stays empty.
    source: Option<AccountSource>,
    logins: RwLock<HashMap<String, Login>>,
    /// The users of the fleet, if the listener has them.
    fleet: Option<Arc<FleetLogins>>,
    /// True if only users of this table can log in: a name that is not here any more is that of a removed user.
    is_complete: AtomicBool,
}

/// Creates the accounts of a table and of those that succeed it.
#[derive(Debug, Clone)]
struct AccountSource {
    /// Has the limits of the users.
    registry: Arc<UserRegistry>,
    hasher: Arc<CredentialHasher>,
}

/// A user: the account, and a digest of the credentials.
#[derive(Debug)]
struct Login {
    account: Arc<UserAccount>,
    credentials: CredentialDigest,
}

/// A configured user.
struct ConfiguredLogin<'a> {
    name: &'a str,
    /// The name as requests state it.
    shown: String,
    /// The parts of the credentials: passwords, and the file of SSH keys.
    parts: Vec<&'a [u8]>,
}

impl LoginTable {
    /// Creates the accounts of a listener's users, who have the limits that `registry` has for their names.
    pub(crate) fn new(kind: &ListenerKind, registry: &Arc<UserRegistry>) -> Self {
        let mut key = [0; 32];
        SystemRng.fill(&mut key);
        let source = AccountSource {
            registry: registry.clone(),
            hasher: Arc::new(CredentialHasher::new(key)),
        };
        Self::default().build(source, logins_of(kind), checks_names(kind))
    }

    /// Creates the accounts of the users of `kind`, which replaces the settings of this table.
    pub(crate) fn successor(&self, kind: &ListenerKind, registry: &Arc<UserRegistry>) -> Self {
        match &self.source {
            Some(source) => self.build(source.clone(), logins_of(kind), checks_names(kind)),
            None => Self::new(kind, registry),
        }
    }

    /// Creates a table of users, which shares the accounts of this one whose credentials are the same.
    fn build(
        &self,
        source: AccountSource,
        users: Vec<ConfiguredLogin<'_>>,
        is_complete: bool,
    ) -> Self {
        let before = self.logins.read().unwrap_or_else(PoisonError::into_inner);
        let login = |user: ConfiguredLogin<'_>| {
            let credentials = source.hasher.digest_parts(&user.parts);
            let kept = before
                .get(&user.shown)
                .filter(|login| login.credentials == credentials);
            let account = match kept {
                Some(login) => login.account.clone(),
                None => source.registry.new_account(user.name, &user.shown),
            };
            let login = Login {
                account,
                credentials,
            };
            (user.shown, login)
        };
        let logins = users.into_iter().map(login).collect();
        drop(before);
        Self {
            source: Some(source),
            logins: RwLock::new(logins),
            fleet: None,
            is_complete: is_complete.into(),
        }
    }

    /// Adds the users of a fleet. Without one, the listener cannot be opened, which its other parts report.
    pub(crate) fn with_fleet(self, fleet: Option<&Arc<FleetUsers>>) -> Self {
        Self {
            fleet: fleet.and_then(|fleet| fleet.logins().ok()),
            ..self
        }
    }

    /// Replaces the users of a proxy. Sessions of users that were removed, or whose password changed, end.
    pub(crate) fn replace<'a>(&self, users: impl IntoIterator<Item = &'a UserPassword>) {
        let Some(source) = &self.source else {
            return;
        };
        let users: Vec<_> = users.into_iter().map(proxy_login).collect();
        // Without users, a proxy accepts any name; but those that it had are removed.
        self.is_complete
            .fetch_or(!users.is_empty(), Ordering::Relaxed);
        let successor = self.build(source.clone(), users, true).logins.into_inner();
        let successor = successor.unwrap_or_else(PoisonError::into_inner);
        let mut logins = self.logins.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *logins, successor);
        end_sessions_missing_in(&before, &logins);
    }

    /// Returns the account of a user who has logged in: one that has ended if the user was removed since. `None` is for
    /// names that no login has checked.
    pub(crate) fn account_of(&self, name: &str) -> Option<Arc<UserAccount>> {
        let logins = self.logins.read().unwrap_or_else(PoisonError::into_inner);
        let found = logins.get(name).map(|login| login.account.clone());
        drop(logins);
        let found = found.or_else(|| self.fleet.as_ref()?.account_of(name));
        found.or_else(|| {
            let is_removed = self.is_complete.load(Ordering::Relaxed);
            is_removed.then(UserAccount::ended)
        })
    }

    /// Returns the usage of each user.
    pub(crate) fn usages(&self) -> Vec<(String, Usage)> {
        let logins = self.logins.read().unwrap_or_else(PoisonError::into_inner);
        let usage = |(name, login): (&String, &Login)| {
            let usage = login.account.read_usage(false);
            (name.clone(), usage)
        };
        logins.iter().map(usage).collect()
    }

    /// Ends the sessions of all users that `successor` does not share.
    pub(crate) fn end_sessions_missing_in(&self, successor: &Self) {
        let before = self.logins.read().unwrap_or_else(PoisonError::into_inner);
        let now = successor
            .logins
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        end_sessions_missing_in(&before, &now);
    }
}

fn end_sessions_missing_in(before: &HashMap<String, Login>, now: &HashMap<String, Login>) {
    for (name, Login { account, .. }) in before {
        let kept = now.get(name);
        if kept.is_none_or(|kept| !Arc::ptr_eq(&kept.account, account)) {
            account.end_sessions();
        }
    }
}

fn password_of(user: &UserPassword) -> &[u8] {
    user.password.expose().as_bytes()
}

/// Returns a user of a proxy, whose acceptors escape names.
fn proxy_login(user: &UserPassword) -> ConfiguredLogin<'_> {
    ConfiguredLogin {
        name: &user.user,
        shown: user.user.as_bytes().escape_ascii().to_string(),
        parts: vec![password_of(user)],
    }
}

/// Returns true if only configured users, and those of a fleet, can log in.
fn checks_names(kind: &ListenerKind) -> bool {
    match kind {
        ListenerKind::Proxy(proxy) => !proxy.users.is_empty() || kind.has_fleet_logins(),
        // A key without a user name is good for every name.
        ListenerKind::Ssh(server) => server.authorized_keys.is_none() || server.user.is_some(),
        _ => false,
    }
}

/// Returns the users of a listener.
fn logins_of(kind: &ListenerKind) -> Vec<ConfiguredLogin<'_>> {
    match kind {
        ListenerKind::Proxy(proxy) => proxy.users.iter().map(proxy_login).collect(),
        ListenerKind::Ssh(server) => {
            let mut all: Vec<ConfiguredLogin<'_>> = Vec::new();
            let users = server.users.iter();
            let users = users.map(|user| (user.user.as_str(), password_of(user)));
            let file = server.authorized_keys.as_deref();
            let file = file.map_or(&b""[..], |file| file.as_os_str().as_encoded_bytes());
            let by_key = server.user.as_deref().map(|user| (user, file));
            for (name, part) in users.chain(by_key) {
                match all.iter_mut().find(|known| known.name == name) {
                    Some(known) => known.parts.push(part),
                    None => all.push(ConfiguredLogin {
                        name,
                        shown: name.to_owned(),
                        parts: vec![part],
                    }),
                }
            }
            all
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use adit_config::{Plan, Secret, SshAlgorithms, SshServer};

    use super::*;

    fn kind(url: &str) -> ListenerKind {
        let mut plan = Plan::from_words(&[url.to_owned()]).unwrap();
        plan.routes.remove(0).listen.remove(0).kind
    }

    #[tokio::test]
    async fn a_user_with_another_password_loses_their_sessions_and_the_others_do_not() {
        let before = kind("mixed://ann:one@127.0.0.1:0");
        let registry = Arc::default();
        let table = LoginTable::new(&before, &registry);
        let ann = table.account_of("ann").unwrap();
        let bob = table.account_of("bob").unwrap();
        let bob = bob.run_until_ended(None, async {}).await;
        assert!(bob.is_none(), "not a configured user");

        let same = table.successor(&kind("socks5://ann:one@127.0.0.1:0"), &Arc::default());
        table.end_sessions_missing_in(&same);
        assert_eq!(ann.run_until_ended(None, async {}).await, Some(()));

        let other = same.successor(&kind("mixed://ann:two@127.0.0.1:0"), &Arc::default());
        same.end_sessions_missing_in(&other);
        assert_eq!(ann.run_until_ended(None, async {}).await, None);
        let ann = other.account_of("ann").unwrap();
        assert_eq!(ann.run_until_ended(None, async {}).await, Some(()));
    }

    /// A client decides how long it waits between its login and its request.
    #[tokio::test]
    async fn a_user_who_is_removed_between_login_and_request_has_no_session() {
        let table = |url: &str| LoginTable::new(&kind(url), &Arc::default());
        let named = table("mixed://ann:one@127.0.0.1:0");
        let has_ended = async |account: Option<Arc<UserAccount>>| {
            let account = account.unwrap();
            account.run_until_ended(None, async {}).await.is_none()
        };
        assert!(!has_ended(named.account_of("ann")).await);
        let none: [UserPassword; 0] = [];
        named.replace(&none);
        assert!(has_ended(named.account_of("ann")).await);
        let open = table("mixed://127.0.0.1:0");
        assert!(
            open.account_of("anyone").is_none(),
            "a name as SOCKS4 has it"
        );
        let ListenerKind::Proxy(proxy) = kind("mixed://ann:one@127.0.0.1:0") else {
            unreachable!();
        };
        open.replace(&proxy.users);
        assert!(has_ended(open.account_of("bob")).await);
    }

    #[test]
    fn keys_for_every_name_leave_names_unknown() {
        let table = |user: Option<&str>, has_keys: bool| {
            let server = SshServer {
                user: user.map(str::to_owned),
                users: vec![UserPassword {
                    user: "ann".to_owned(),
                    password: Secret::from("one"),
                }],
                fleet_users: false,
                authorized_keys: has_keys.then(|| "keys".into()),
                host_key: "host".into(),
                algorithms: SshAlgorithms::default(),
                keepalive: Duration::ZERO,
            };
            LoginTable::new(&ListenerKind::Ssh(Box::new(server)), &Arc::default())
        };
        for (user, has_keys, is_removed) in [
            (None, true, false),
            (Some("me"), true, true),
            (None, false, true),
        ] {
            let table = table(user, has_keys);
            assert!(table.account_of("ann").is_some());
            let unknown = table.account_of("bob");
            assert_eq!(unknown.is_some(), is_removed, "{user:?} {has_keys}");
        }
    }

    #[tokio::test]
    async fn users_are_replaced_in_place() {
        let table = LoginTable::new(&kind("mixed://ann:one@127.0.0.1:0"), &Arc::default());
        let ann = table.account_of("ann").unwrap();
        let (ann_again, bob) = (
            kind("mixed://ann:one@127.0.0.1:0"),
            kind("mixed://bob:1@127.0.0.1:0"),
        );
        let users = |kind| match kind {
            ListenerKind::Proxy(proxy) => proxy.users,
            _ => Vec::new(),
        };
        table.replace(users(ann_again).iter().chain(&users(bob)));
        assert_eq!(ann.run_until_ended(None, async {}).await, Some(()));
        assert!(table.account_of("bob").is_some());
        // A reload with the same users, although the settings before it had others.
        let same = table.successor(&kind("mixed://ann:one@127.0.0.1:0"), &Arc::default());
        table.end_sessions_missing_in(&same);
        assert_eq!(ann.run_until_ended(None, async {}).await, Some(()));
        let none: [UserPassword; 0] = [];
        same.replace(&none);
        assert_eq!(ann.run_until_ended(None, async {}).await, None);
    }
}
