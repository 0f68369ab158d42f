//! Authentication by `authorized_keys`, which is read again for each key that a client presents.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use adit_net::system;
use adit_ssh::BoxFuture;
use adit_ssh::server::{AuthPolicy, KeyProof};
use adit_ssh_proto::auth::sanitize_for_display;
use adit_ssh_proto::key::{
    AnyKey, AuthorizedKeys, KeyGrant, KeyOffer, MAX_AUTHORIZED_KEYS, UserPresence,
};
use tracing::{debug, warn};

use super::account::Account;
use super::login_log::LoginAttempts;

/// The `authorized_keys` files of an account.
#[derive(Debug)]
pub(super) struct AuthorizedKeysFiles {
    account: Arc<Account>,
    files: Vec<PathBuf>,
}

impl AuthorizedKeysFiles {
    pub(super) const fn new(account: Arc<Account>, files: Vec<PathBuf>) -> Self {
        Self { account, files }
    }

    /// Reads all files. Problems are logged; the lines or files concerned accept no key.
    pub(super) fn read(&self) -> AuthorizedKeys {
        let mut keys = AuthorizedKeys::default();
        for file in &self.files {
            let name = file.display().to_string();
            let text = self
                .account
                .file_owner()
                .read_trusted(file, MAX_AUTHORIZED_KEYS);
            let read = text.and_then(|text| {
                let problems = keys.add_file(&name, &text).map_err(io::Error::other)?;
                Ok(problems)
            });
            match read {
                Ok(problems) => problems.iter().for_each(|problem| warn!("{problem}")),
                Err(why) => warn!("no key in {name} is accepted: {why}"),
            }
        }
        keys
    }
}

/// Authenticates one connection, and stores the permissions of its user.
#[derive(Debug)]
pub(super) struct LoginPolicy {
    keys: Arc<AuthorizedKeysFiles>,
    from: IpAddr,
    grant: Mutex<Option<KeyGrant>>,
    refused: AtomicU32,
    /// True once a key exchange was computed for this client.
    computed: AtomicBool,
    attempts: Mutex<LoginAttempts>,
}

impl LoginPolicy {
    pub(super) fn new(keys: Arc<AuthorizedKeysFiles>, from: IpAddr) -> Self {
        Self {
            keys,
            from,
            grant: Mutex::new(None),
            refused: AtomicU32::new(0),
            computed: AtomicBool::new(false),
            attempts: Mutex::default(),
        }
    }

    /// Returns the permissions of the key that logged in; none before.
    pub(super) fn grant(&self) -> KeyGrant {
        let grant = self.grant.lock().unwrap_or_else(PoisonError::into_inner);
        grant.clone().unwrap_or_else(KeyGrant::deny_all)
    }

    /// Returns true if a key or a user was refused.
    pub(super) fn has_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed) > 0
    }

    /// Returns true if a key exchange was computed.
    pub(super) fn has_computed_keys(&self) -> bool {
        self.computed.load(Ordering::Relaxed)
    }

    /// Returns the attempts of the client.
    pub(super) fn attempts(&self) -> LoginAttempts {
        let tries = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        tries.clone()
    }

    /// Checks a key. The work is the same for unknown users, so that timing does not reveal the account.
    async fn check_key(&self, user: &str, key: &AnyKey, proof: KeyProof) -> bool {
        let (files, from, offered) = (Arc::clone(&self.keys), self.from, key.clone());
        let presence = match proof {
            KeyProof::None => None,
            KeyProof::Signature(presence) => presence,
        };
        let found =
            tokio::task::spawn_blocking(move || find_grant(&files, from, &offered, presence));
        let ours = user == self.keys.account.name;
        let shown = key.key().fingerprint();
        match found.await {
            Ok(Ok(grant)) if ours => {
                if matches!(proof, KeyProof::Signature(_)) {
                    *self.grant.lock().unwrap_or_else(PoisonError::into_inner) = Some(grant);
                }
                return true;
            }
            Ok(Ok(_)) => debug!(
                "{}: refused the user {:?}: only {} can log in",
                self.from,
                sanitize_for_display(user),
                self.keys.account.name
            ),
            Ok(Err(why)) => debug!(
                "{}: refused the key {shown} of {:?}: {why}",
                self.from,
                sanitize_for_display(user)
            ),
            Err(why) => warn!("{}: cannot check a key: {why}", self.from),
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        false
    }
}

/// Reads the files and finds the grant for a key.
fn find_grant(
    keys: &AuthorizedKeysFiles,
    from: IpAddr,
    key: &AnyKey,
    presence: Option<UserPresence>,
) -> Result<KeyGrant, adit_ssh_proto::key::KeyDenied> {
    keys.read().find_grant(&KeyOffer {
        user: &keys.account.name,
        key,
        presence,
        from,
        from_name: None,
        now: system::unix_now(),
    })
}

impl AuthPolicy for LoginPolicy {
    fn client_address(&self) -> Option<IpAddr> {
        Some(self.from)
    }

    fn on_keys_computed(&self) {
        self.computed.store(true, Ordering::Relaxed);
    }

    fn on_attempt(&self, user: &str, method: &'static str) {
        let mut tries = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        tries.record_attempt(user, method);
    }

    fn check_public_key<'a>(
        &'a self,
        user: &'a str,
        key: &'a AnyKey,
        proof: KeyProof,
    ) -> BoxFuture<'a, bool> {
        Box::pin(self.check_key(user, key, proof))
    }
}
