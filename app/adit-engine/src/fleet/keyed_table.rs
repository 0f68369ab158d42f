//! The users of a fleet at a Shadowsocks listener.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use adit_config::Secret;
use adit_shadowsocks::{Key, MAX_TRIAL_USERS, Method, Users, UsersError};
use tracing::{info, warn};

use super::{FleetDirectory, FleetTable, FleetUser};
use crate::UserTable;

/// Fills the table of a listener, for as long as that is in use.
pub(crate) struct KeyedFleetTable {
    method: Method,
    /// `None` with the AEAD edition.
    identity: Option<Key>,
    table: Weak<UserTable>,
    /// Number of users beyond those that the listener can try.
    left_out: AtomicUsize,
}

impl KeyedFleetTable {
    pub(crate) fn new(method: Method, identity: Option<Key>, table: &Arc<UserTable>) -> Self {
        Self {
            method,
            identity,
            table: Arc::downgrade(table),
            left_out: AtomicUsize::new(0),
        }
    }

    /// Returns the key text of a user.
    fn secret_of(&self, user: &dyn FleetUser) -> Option<Secret> {
        if self.identity.is_none() {
            return Some(user.password());
        }
        let secret = user.key(self.method.key_len());
        if secret.is_none() {
            let (method, name) = (self.method, user.name());
            warn!(
                user = name,
                "has a key that is not one for {method}: not served there"
            );
        }
        secret
    }

    /// Records the number of users who are not served, which is logged when there are any, and when there are none again.
    fn set_left_out(&self, count: usize) {
        let before = self.left_out.swap(count, Ordering::Relaxed);
        let method = self.method;
        match (before, count) {
            (0, 1..) => warn!(
                "{method} finds users by trying every password, and serves the first {MAX_TRIAL_USERS}: {count} users of \
                 the fleet are not served there, and get no URL of it. A listener of the 2022 edition \
                 (ss://2022-blake3-aes-128-gcm@:PORT?users=fleet) serves all"
            ),
            (1.., 0) => info!("{method} serves all users of the fleet again"),
            _ => {}
        }
    }

    /// Replaces the users of the table by those that `make` returns.
    fn replace(
        &self,
        make: impl FnOnce(&Users, &mut dyn FnMut(UsersError)) -> Result<Arc<Users>, UsersError>,
    ) {
        let Some(table) = self.table.upgrade() else {
            return;
        };
        let mut left_out = 0;
        let mut report = |why| match why {
            UsersError::TooMany { .. } => left_out += 1,
            why => warn!("a user of the fleet is not served: {why}"),
        };
        match make(&table.users(), &mut report) {
            Ok(users) => table.replace_users(users),
            Err(why) => report(why),
        }
        self.set_left_out(left_out);
    }
}

impl FleetTable for KeyedFleetTable {
    fn is_full(&self) -> bool {
        self.left_out.load(Ordering::Relaxed) > 0
    }

    fn load(&self, directory: &dyn FleetDirectory) {
        let mut put: Vec<(Box<str>, Secret)> = Vec::new();
        directory.for_each(&mut |user| {
            if let Some(secret) = self.secret_of(user) {
                put.push((user.name().into(), secret));
            }
        });
        self.replace(|_, refused| {
            let put = put.iter().map(|(name, secret)| (&**name, secret.expose()));
            Users::without_users(self.method, self.identity.as_ref())?.with_updates(
                &[],
                put,
                refused,
            )
        });
    }

    fn change(&self, removed: &[(u32, &str)], put: &[&dyn FleetUser]) {
        let gone: Vec<&str> = removed.iter().map(|(_, name)| *name).collect();
        let put = put
            .iter()
            .filter_map(|user| Some((user.name(), self.secret_of(*user)?)));
        let put: HashMap<&str, Secret> = put.collect();
        self.replace(|before, refused| {
            // A user whose key is the same keeps the place, and the sessions.
            let put = put.iter().map(|(name, secret)| (*name, secret.expose()));
            before.with_updates(&gone, put, refused)
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use adit_config::FleetIdentity;

    use super::*;
    use crate::fleet::FleetUsers;
    use crate::user_registry::{FleetLimitSource, FleetUserLimits};

    #[derive(Debug, Default)]
    struct Directory(Mutex<BTreeMap<u32, Named>>);

    #[derive(Debug, Clone)]
    struct Named(u32, String);

    impl FleetUser for Named {
        fn id(&self) -> u32 {
            self.0
        }

        fn name(&self) -> &str {
            &self.1
        }

        fn password(&self) -> Secret {
            Secret::from(self.1.as_str())
        }

        fn key(&self, _: usize) -> Option<Secret> {
            None
        }
    }

    impl FleetLimitSource for Directory {
        fn limits_of(&self, _: &str) -> Option<FleetUserLimits> {
            None
        }
    }

    impl FleetDirectory for Directory {
        fn identity_key(&self, _: FleetIdentity, _: usize) -> Secret {
            Secret::from("")
        }

        fn for_each(&self, each: &mut dyn FnMut(&dyn FleetUser)) {
            self.0.lock().unwrap().values().for_each(|user| each(user));
        }
    }

    /// A user who leaves makes room for the next, in the order of the numbers.
    #[test]
    fn the_first_users_are_served_by_trial_after_each_change() {
        let most = u32::try_from(MAX_TRIAL_USERS).unwrap();
        let directory = Arc::new(Directory::default());
        let set = |id: u32| {
            let user = Named(id, format!("user-{id}"));
            directory.0.lock().unwrap().insert(id, user.clone());
            user
        };
        (2..=most + 1).for_each(|id| drop(set(id)));
        let users = FleetUsers::new(directory.clone());
        let method = Method::Aes256Gcm;
        let table = Users::without_users(method, None).unwrap();
        let table = Arc::new(UserTable::new(table, None));
        let filled = Arc::new(KeyedFleetTable::new(method, None, &table));
        let served: Arc<dyn FleetTable> = filled.clone();
        users.serve(&served).unwrap();
        let has = |id: u32| table.users().find_by_name(&format!("user-{id}")).is_some();
        let left_out = || filled.left_out.load(Ordering::Relaxed);
        assert_eq!((table.users().len(), left_out()), (MAX_TRIAL_USERS, 0));
        // Two more: one at the end, and one who was disabled.
        let (late, early) = (set(most + 2), set(1));
        users.change(&[], &[&late, &early]);
        assert_eq!((table.users().len(), left_out()), (MAX_TRIAL_USERS, 2));
        assert_eq!(
            [1, most, most + 1, most + 2].map(has),
            [true, true, false, false]
        );
        directory.0.lock().unwrap().remove(&5);
        users.change(&[(5, "user-5")], &[]);
        assert_eq!([5, most + 1, most + 2].map(has), [false, true, false]);
        directory.0.lock().unwrap().remove(&6);
        users.change(&[(6, "user-6")], &[]);
        assert_eq!((has(most + 2), left_out()), (true, 0));
    }
}
