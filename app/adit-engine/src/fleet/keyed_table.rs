//! The users of a fleet at a Shadowsocks listener.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use adit_config::Secret;
use adit_shadowsocks::{Key, MAX_TRIAL_USERS, Method, Users, UsersError};
use tracing::warn;

use super::{FleetDirectory, FleetTable, FleetUser};
use crate::UserTable;

/// Fills the table of a listener, for as long as that is in use.
pub(crate) struct KeyedFleetTable {
    method: Method,
    /// `None` with the AEAD edition.
    identity: Option<Key>,
    table: Weak<UserTable>,
    /// True once users were too many, which is logged once.
    is_full: AtomicBool,
}

impl KeyedFleetTable {
    pub(crate) fn new(method: Method, identity: Option<Key>, table: &Arc<UserTable>) -> Self {
        Self {
            method,
            identity,
            table: Arc::downgrade(table),
            is_full: AtomicBool::new(false),
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

    fn report_refused(&self, why: &UsersError) {
        match why {
            UsersError::TooMany { .. } => {
                if !self.is_full.swap(true, Ordering::Relaxed) {
                    let method = self.method;
                    warn!(
                        "{method} finds users by trying every password: those of the fleet after the first \
                         {MAX_TRIAL_USERS} are not served there"
                    );
                }
            }
            why => warn!("a user of the fleet is not served: {why}"),
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
        let mut report = |why| self.report_refused(&why);
        match make(&table.users(), &mut report) {
            Ok(users) => table.replace_users(users),
            Err(why) => report(why),
        }
    }
}

impl FleetTable for KeyedFleetTable {
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
