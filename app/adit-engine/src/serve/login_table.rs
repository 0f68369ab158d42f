//! The accounts of users with passwords, through which a reload ends the sessions of removed users.

use std::collections::HashMap;
use std::sync::Arc;

use adit_config::{ListenerKind, UserPassword};

use crate::user_account::{Usage, UserAccount};

/// The accounts of a listener's users with names and passwords, or SSH keys. A reload creates a new table, which
/// shares the accounts of users whose credentials are the same.
#[derive(Debug, Default)]
pub(crate) struct LoginTable {
    accounts: HashMap<String, Arc<UserAccount>>,
}

impl LoginTable {
    /// Creates the accounts of a listener's users. Those that `kept` returns are shared.
    fn build(kind: &ListenerKind, kept: impl Fn(&str) -> Option<Arc<UserAccount>>) -> Self {
        let account = |name: String| {
            let new = || Arc::new(UserAccount::for_one_user().with_name(&name));
            let account = kept(&name).unwrap_or_else(new);
            (name, account)
        };
        Self {
            accounts: names_of(kind).into_iter().map(account).collect(),
        }
    }

    /// Creates the accounts of a listener's users.
    pub(crate) fn new(kind: &ListenerKind) -> Self {
        Self::build(kind, |_| None)
    }

    /// Creates the accounts of the users of `kind`, which replaces `before`.
    pub(crate) fn successor(&self, before: &ListenerKind, kind: &ListenerKind) -> Self {
        Self::build(kind, |name| {
            let same = credentials_of(before, name) == credentials_of(kind, name);
            self.accounts.get(name).filter(|_| same).cloned()
        })
    }

    /// Returns the account of a configured user.
    pub(crate) fn account_of(&self, name: &str) -> Option<Arc<UserAccount>> {
        self.accounts.get(name).cloned()
    }

    /// Returns the usage of each user.
    pub(crate) fn usages(&self) -> Vec<(String, Usage)> {
        let each = self.accounts.iter();
        each.map(|(name, account)| (name.clone(), account.read_usage(false)))
            .collect()
    }

    /// Ends the sessions of all users that `successor` does not share.
    pub(crate) fn end_sessions_missing_in(&self, successor: &Self) {
        for (name, account) in &self.accounts {
            let kept = successor.accounts.get(name);
            if kept.is_none_or(|kept| !Arc::ptr_eq(kept, account)) {
                account.end_sessions();
            }
        }
    }
}

/// The credentials of one user: passwords, and the file of SSH keys.
type Credentials<'a> = (Vec<&'a UserPassword>, Option<&'a std::path::Path>);

/// Returns the names of the users of a listener as requests state them.
fn names_of(kind: &ListenerKind) -> Vec<String> {
    let names = |users: &[UserPassword]| -> Vec<String> {
        users
            .iter()
            .map(|user| shown_name(kind, &user.user))
            .collect()
    };
    match kind {
        ListenerKind::Proxy(proxy) => names(&proxy.users),
        ListenerKind::Ssh(server) => {
            let mut all = names(&server.users);
            all.extend(server.user.clone());
            all
        }
        _ => Vec::new(),
    }
}

fn credentials_of<'a>(kind: &'a ListenerKind, name: &str) -> Credentials<'a> {
    let of = |users: &'a [UserPassword]| -> Vec<&'a UserPassword> {
        let same = users
            .iter()
            .filter(|user| shown_name(kind, &user.user) == name);
        same.collect()
    };
    match kind {
        ListenerKind::Proxy(proxy) => (of(&proxy.users), None),
        ListenerKind::Ssh(server) => {
            let keys = server.user.as_deref() == Some(name);
            let file = server.authorized_keys.as_deref().filter(|_| keys);
            (of(&server.users), file)
        }
        _ => (Vec::new(), None),
    }
}

/// Returns a user name as the acceptor of this kind states it: proxies escape it.
fn shown_name(kind: &ListenerKind, name: &str) -> String {
    match kind {
        ListenerKind::Proxy(_) => name.as_bytes().escape_ascii().to_string(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use adit_config::Plan;

    use super::*;

    fn kind(url: &str) -> ListenerKind {
        let mut plan = Plan::from_words(&[url.to_owned()]).unwrap();
        plan.routes.remove(0).listen.remove(0).kind
    }

    #[tokio::test]
    async fn a_user_with_another_password_loses_their_sessions_and_the_others_do_not() {
        let before = kind("mixed://ann:one@127.0.0.1:0");
        let table = LoginTable::new(&before);
        let ann = table.account_of("ann").unwrap();
        assert!(table.account_of("bob").is_none(), "not a configured user");

        let same = table.successor(&before, &kind("socks5://ann:one@127.0.0.1:0"));
        table.end_sessions_missing_in(&same);
        assert_eq!(ann.run_until_removed(async {}).await, Some(()));

        let other = same.successor(&before, &kind("mixed://ann:two@127.0.0.1:0"));
        same.end_sessions_missing_in(&other);
        assert_eq!(ann.run_until_removed(async {}).await, None);
        let ann = other.account_of("ann").unwrap();
        assert_eq!(ann.run_until_removed(async {}).await, Some(()));
    }
}
