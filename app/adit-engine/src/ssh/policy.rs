//! Authorization of a listener's clients.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adit_config::SshServer;
use adit_crypto::Secret;
use adit_net::ambient;
use adit_net::keep::Owner;
use adit_ssh::BoxFuture;
use adit_ssh::server::{AuthPolicy, Proof};
use adit_ssh_proto::auth::{Method, ServerAnswer, ServerConfig};
use adit_ssh_proto::key::{
    AnyKey, AuthorizedKeys, Denied, Grant, MAX_AUTHORIZED_KEYS, Offer, Place,
};
use tokio::task::spawn_blocking;
use tracing::{debug, warn};

use super::SshPlanError;
use crate::credentials::Credentials;

/// The rules of a listener.
pub(super) struct Rules {
    /// The only user name that keys are accepted for.
    user: Option<String>,
    keys: Option<PathBuf>,
    passwords: Credentials,
    /// Problems of the keys file when it was last read. It is read for each key that a client offers, so that
    /// only new problems are reported.
    complaints: Mutex<Vec<String>>,
}

/// The contents of an authorized keys file that other users cannot change.
struct ReadKeys {
    keys: AuthorizedKeys,
    /// Authorities that were skipped because, without a user of the listener, any name in a certificate would
    /// be accepted.
    open: Vec<Place>,
    /// Errors of lines that were skipped.
    problems: Vec<String>,
}

/// The rules for one connection, and the permissions that were granted.
pub(super) struct Gatekeeper {
    rules: Arc<Rules>,
    from: IpAddr,
    grant: Mutex<Option<Grant>>,
    refused: AtomicBool,
    /// True if a key exchange was computed for this client.
    computed: AtomicBool,
}

impl Rules {
    pub(super) fn new(server: &SshServer) -> Self {
        Self {
            user: server.user.clone(),
            keys: server.authorized_keys.clone(),
            passwords: Credentials::new(&server.users),
            complaints: Mutex::default(),
        }
    }

    /// Checks that the current keys can be used. Later changes are checked when they are read.
    pub(super) fn check(&self) -> Result<(), SshPlanError> {
        let Some(path) = self.keys.as_deref() else {
            return Ok(());
        };
        let read = self.read(path);
        let open = read.as_ref().ok().and_then(|read| read.open.first());
        if let Some(place) = open {
            return Err(SshPlanError::Authority(place.clone()));
        }
        // Unreadable keys may be added, or get safe permissions, later.
        self.complain(&read);
        Ok(())
    }

    /// Reports problems of the keys file, except those that were reported last time.
    fn complain(&self, read: &Result<ReadKeys, String>) {
        let now = match read {
            Ok(read) => {
                let open = read.open.iter().cloned().map(SshPlanError::Authority);
                let open = open.map(|why| why.to_string());
                read.problems.iter().cloned().chain(open).collect()
            }
            Err(why) => vec![format!("no key is accepted: {why}")],
        };
        let mut known = lock(&self.complaints);
        for complaint in now.iter().filter(|complaint| !known.contains(complaint)) {
            warn!("{complaint}");
        }
        *known = now;
    }

    fn read(&self, path: &Path) -> Result<ReadKeys, String> {
        let file = path.display().to_string();
        let told = |why: &dyn std::fmt::Display| format!("{file}: {why}");
        let text = Owner::current().read_believed(path, MAX_AUTHORIZED_KEYS);
        let text = text.map_err(|why| told(&why))?;
        let mut keys = AuthorizedKeys::default();
        let problems = keys.read(&file, &text).map_err(|why| told(&why))?;
        let open = match self.user {
            Some(_) => Vec::new(),
            None => keys.drop_authorities_without_principals(),
        };
        Ok(ReadKeys {
            keys,
            open,
            problems: problems.iter().map(ToString::to_string).collect(),
        })
    }

    /// Returns the authentication methods for clients.
    pub(super) fn methods(&self) -> ServerConfig {
        let mut methods = Vec::new();
        if self.keys.is_some() {
            methods.push(Method::PublicKey);
        }
        if self.passwords.required() {
            methods.push(Method::Password);
        }
        ServerConfig {
            methods,
            ..ServerConfig::default()
        }
    }
}

impl Gatekeeper {
    pub(super) fn new(rules: Arc<Rules>, from: IpAddr) -> Self {
        Self {
            rules,
            from,
            grant: Mutex::default(),
            refused: AtomicBool::new(false),
            computed: AtomicBool::new(false),
        }
    }

    /// Returns true if a key or a password was refused.
    pub(super) fn has_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns true if a key exchange was computed for the client.
    pub(super) fn has_computed(&self) -> bool {
        self.computed.load(Ordering::Relaxed)
    }

    /// Returns the permissions of the user that has logged in.
    pub(super) fn into_grant(self) -> Grant {
        let grant = self.grant.into_inner();
        let grant = grant.unwrap_or_else(PoisonError::into_inner);
        grant.unwrap_or_else(Grant::nothing)
    }

    fn allow(&self, grant: Grant) {
        let mut place = lock(&self.grant);
        *place = Some(grant);
    }

    fn refuse(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }

    async fn find(&self, user: &str, key: &AnyKey, proof: Proof) -> Option<Grant> {
        let path = self.rules.keys.clone()?;
        let rules = Arc::clone(&self.rules);
        let (name, key, from) = (user.to_owned(), key.clone(), self.from);
        let presence = match proof {
            Proof::None => None,
            Proof::Signature(presence) => presence,
        };
        let found = spawn_blocking(move || {
            let read = rules.read(&path);
            rules.complain(&read);
            let offer = Offer {
                user: &name,
                key: &key,
                presence,
                from,
                from_name: None,
                now: ambient::unix(),
            };
            Some(read.ok()?.keys.find(&offer))
        });
        let fits = self.rules.user.as_deref().is_none_or(|only| only == user);
        match found.await {
            Ok(Some(Ok(grant))) if fits => Some(grant),
            Ok(Some(Ok(_))) => {
                debug!(client = %self.from, "the key is not for user {user:?}");
                None
            }
            // Not logged: most clients try all keys that they have.
            Ok(Some(Err(Denied::Unknown))) | Ok(None) => None,
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AuthPolicy for Gatekeeper {
    fn source(&self) -> Option<IpAddr> {
        Some(self.from)
    }

    fn keys_computed(&self) {
        self.computed.store(true, Ordering::Relaxed);
    }

    fn public_key<'a>(
        &'a self,
        user: &'a str,
        key: &'a AnyKey,
        proof: Proof,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let found = self.find(user, key, proof).await;
            let fine = found.is_some();
            match (found, proof) {
                (Some(grant), Proof::Signature(_)) => self.allow(grant),
                (Some(_), Proof::None) => {}
                (None, _) => self.refuse(),
            }
            fine
        })
    }

    fn password<'a>(
        &'a self,
        user: &'a str,
        password: &'a Secret<String>,
    ) -> BoxFuture<'a, ServerAnswer> {
        let known = self
            .rules
            .passwords
            .known(user.as_bytes(), password.expose().as_bytes());
        let answer = if known {
            self.allow(Grant::all());
            ServerAnswer::Accept
        } else {
            self.refuse();
            ServerAnswer::Reject
        };
        Box::pin(std::future::ready(answer))
    }
}
