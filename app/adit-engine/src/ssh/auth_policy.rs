//! Authorization of a listener's clients.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adit_config::SshServer;
use adit_crypto::Secret;
use adit_net::persistent_file::FileOwner;
use adit_net::system;
use adit_ssh::BoxFuture;
use adit_ssh::server::{AuthPolicy, KeyProof};
use adit_ssh_proto::auth::{AuthMethod, ServerAnswer, ServerAuthConfig};
use adit_ssh_proto::key::{
    AnyKey, AuthorizedKeys, KeyDenied, KeyGrant, KeyOffer, LinePosition, MAX_AUTHORIZED_KEYS,
};
use tokio::task::spawn_blocking;
use tracing::{debug, warn};

use super::SshPlanError;
use crate::credentials::ListenerCredentials;

/// The rules of a listener.
pub(super) struct AuthRules {
    /// The only user name that keys are accepted for.
    user: Option<String>,
    keys: Option<PathBuf>,
    passwords: ListenerCredentials,
    /// Problems of the keys file when it was last read. It is read for each key that a client offers, so that
    /// only new problems are reported.
    complaints: Mutex<Vec<String>>,
}

/// The contents of an authorized keys file that other users cannot change.
struct AuthorizedKeysFile {
    keys: AuthorizedKeys,
    /// Authorities that were skipped because, without a user of the listener, any name in a certificate would
    /// be accepted.
    unrestricted: Vec<LinePosition>,
    /// Errors of lines that were skipped.
    problems: Vec<String>,
}

/// The rules for one connection, and the permissions that were granted.
pub(super) struct ConnectionPolicy {
    rules: Arc<AuthRules>,
    from: IpAddr,
    grant: Mutex<Option<KeyGrant>>,
    refused: AtomicBool,
    /// True if a key exchange was computed for this client.
    computed_keys: AtomicBool,
}

impl AuthRules {
    pub(super) fn new(server: &SshServer, passwords: ListenerCredentials) -> Self {
        Self {
            user: server.user.clone(),
            keys: server.authorized_keys.clone(),
            passwords,
            complaints: Mutex::default(),
        }
    }

    /// Checks that the current keys can be used. Later changes are checked when they are read.
    pub(super) fn check_keys(&self) -> Result<(), SshPlanError> {
        let Some(path) = self.keys.as_deref() else {
            return Ok(());
        };
        let read = self.read_keys(path);
        let open = read
            .as_ref()
            .ok()
            .and_then(|read| read.unrestricted.first());
        if let Some(place) = open {
            return Err(SshPlanError::Authority(place.clone()));
        }
        // Unreadable keys may be added, or get safe permissions, later.
        self.report_problems(&read);
        Ok(())
    }

    /// Reports problems of the keys file, except those that were reported last time.
    fn report_problems(&self, read: &Result<AuthorizedKeysFile, String>) {
        let now = match read {
            Ok(read) => {
                let open = read
                    .unrestricted
                    .iter()
                    .cloned()
                    .map(SshPlanError::Authority);
                let open = open.map(|why| why.to_string());
                read.problems.iter().cloned().chain(open).collect()
            }
            Err(why) => vec![format!("no key is accepted: {why}")],
        };
        let mut known = lock_ignoring_poison(&self.complaints);
        for complaint in now.iter().filter(|complaint| !known.contains(complaint)) {
            warn!("{complaint}");
        }
        *known = now;
    }

    fn read_keys(&self, path: &Path) -> Result<AuthorizedKeysFile, String> {
        let file = path.display().to_string();
        let told = |why: &dyn std::fmt::Display| format!("{file}: {why}");
        let text = FileOwner::current().read_trusted(path, MAX_AUTHORIZED_KEYS);
        let text = text.map_err(|why| told(&why))?;
        let mut keys = AuthorizedKeys::default();
        let problems = keys.add_file(&file, &text).map_err(|why| told(&why))?;
        let open = match self.user {
            Some(_) => Vec::new(),
            None => keys.drop_authorities_without_principals(),
        };
        Ok(AuthorizedKeysFile {
            keys,
            unrestricted: open,
            problems: problems.iter().map(ToString::to_string).collect(),
        })
    }

    /// Returns the authentication methods for clients.
    pub(super) fn server_config(&self) -> ServerAuthConfig {
        let mut methods = Vec::new();
        if self.keys.is_some() {
            methods.push(AuthMethod::PublicKey);
        }
        if self.passwords.required() {
            methods.push(AuthMethod::Password);
        }
        let mut config = ServerAuthConfig::default();
        config.methods = methods;
        config
    }
}

impl ConnectionPolicy {
    pub(super) fn new(rules: Arc<AuthRules>, from: IpAddr) -> Self {
        Self {
            rules,
            from,
            grant: Mutex::default(),
            refused: AtomicBool::new(false),
            computed_keys: AtomicBool::new(false),
        }
    }

    /// Returns true if a key or a password was refused.
    pub(super) fn has_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns true if a key exchange was computed for the client.
    pub(super) fn has_computed_keys(&self) -> bool {
        self.computed_keys.load(Ordering::Relaxed)
    }

    /// Returns the permissions of the user that has logged in.
    pub(super) fn into_grant(self) -> KeyGrant {
        let grant = self.grant.into_inner();
        let grant = grant.unwrap_or_else(PoisonError::into_inner);
        grant.unwrap_or_else(KeyGrant::deny_all)
    }

    fn record_grant(&self, grant: KeyGrant) {
        let mut place = lock_ignoring_poison(&self.grant);
        *place = Some(grant);
    }

    fn record_refusal(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }

    async fn find_grant(&self, user: &str, key: &AnyKey, proof: KeyProof) -> Option<KeyGrant> {
        let path = self.rules.keys.clone()?;
        let rules = Arc::clone(&self.rules);
        let (name, key, from) = (user.to_owned(), key.clone(), self.from);
        let presence = match proof {
            KeyProof::None => None,
            KeyProof::Signature(presence) => presence,
        };
        let found = spawn_blocking(move || {
            let read = rules.read_keys(&path);
            rules.report_problems(&read);
            let offer = KeyOffer {
                user: &name,
                key: &key,
                presence,
                from,
                from_name: None,
                now: system::unix_now(),
            };
            Some(read.ok()?.keys.find_grant(&offer))
        });
        let fits = self.rules.user.as_deref().is_none_or(|only| only == user);
        match found.await {
            Ok(Some(Ok(grant))) if fits => Some(grant),
            Ok(Some(Ok(_))) => {
                debug!(client = %self.from, "the key is not for user {user:?}");
                None
            }
            // Not logged: most clients try all keys that they have.
            Ok(Some(Err(KeyDenied::Unknown))) | Ok(None) => None,
            Ok(Some(Err(why))) => {
                debug!(client = %self.from, "{why}");
                None
            }
            Err(why) => {
                warn!("no key is accepted: {why}");
                None
            }
        }
    }
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AuthPolicy for ConnectionPolicy {
    fn client_address(&self) -> Option<IpAddr> {
        Some(self.from)
    }

    fn on_keys_computed(&self) {
        self.computed_keys.store(true, Ordering::Relaxed);
    }

    fn check_public_key<'a>(
        &'a self,
        user: &'a str,
        key: &'a AnyKey,
        proof: KeyProof,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let found = self.find_grant(user, key, proof).await;
            let fine = found.is_some();
            match (found, proof) {
                (Some(grant), KeyProof::Signature(_)) => self.record_grant(grant),
                (Some(_), KeyProof::None) => {}
                (None, _) => self.record_refusal(),
            }
            fine
        })
    }

    fn check_password<'a>(
        &'a self,
        user: &'a str,
        password: &'a Secret<String>,
    ) -> BoxFuture<'a, ServerAnswer> {
        let known = self
            .rules
            .passwords
            .matches(user.as_bytes(), password.expose().as_bytes());
        let answer = if known {
            self.record_grant(KeyGrant::allow_all());
            ServerAnswer::Accept
        } else {
            self.record_refusal();
            ServerAnswer::Reject
        };
        Box::pin(std::future::ready(answer))
    }
}
