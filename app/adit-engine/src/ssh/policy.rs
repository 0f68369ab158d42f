//! Who gets into a listener, and how far.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use adit_config::SshServer;
use adit_crypto::Secret;
use adit_net::ambient;
use adit_net::keep::Owner;
use adit_session::ssh::BoxFuture;
use adit_session::ssh::server::{AuthPolicy, Proof};
use adit_ssh::auth::{Method, ServerAnswer, ServerConfig};
use adit_ssh::key::{AnyKey, AuthorizedKeys, Denied, Grant, MAX_AUTHORIZED_KEYS, Offer, Place};
use tokio::task::spawn_blocking;
use tracing::{debug, warn};

use super::SshPlanError;
use crate::credentials::Credentials;

/// The rules of a listener.
pub(super) struct Rules {
    /// The one name that keys let in.
    user: Option<String>,
    keys: Option<PathBuf>,
    passwords: Credentials,
}

/// The rules for one connection, and what they have allowed.
pub(super) struct Gatekeeper {
    rules: Arc<Rules>,
    from: IpAddr,
    grant: Mutex<Option<Grant>>,
    refused: AtomicBool,
    /// Keys were computed for this client.
    computed: AtomicBool,
}

impl Rules {
    pub(super) fn new(server: &SshServer) -> Self {
        Self {
            user: server.user.clone(),
            keys: server.authorized_keys.clone(),
            passwords: Credentials::new(&server.users),
        }
    }

    /// Whether the keys that are there now can be used; later ones are judged when they are.
    pub(super) fn check(&self) -> Result<(), SshPlanError> {
        let read = self.keys.as_deref().map(|path| self.read(path));
        match read {
            Some(Ok((_, open))) => match open.into_iter().next() {
                Some(place) => Err(SshPlanError::Authority(place)),
                None => Ok(()),
            },
            // It may come later, or be made safe.
            Some(Err(why)) => {
                warn!("no key lets in: {why}");
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The keys of a file that nobody else can change, and the authorities that were left out, since without a user of the
    /// listener's any name in a certificate would do.
    fn read(&self, path: &Path) -> Result<(AuthorizedKeys, Vec<Place>), String> {
        let file = path.display().to_string();
        let told = |why: &dyn std::fmt::Display| format!("{file}: {why}");
        let text = Owner::current().read_believed(path, MAX_AUTHORIZED_KEYS);
        let text = text.map_err(|why| told(&why))?;
        let mut keys = AuthorizedKeys::default();
        for problem in keys.read(&file, &text).map_err(|why| told(&why))? {
            warn!("{problem}");
        }
        let open = match self.user {
            Some(_) => Vec::new(),
            None => keys.drop_authorities_without_principals(),
        };
        Ok((keys, open))
    }

    /// What is offered to clients.
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

    /// Whether a key or a password was refused.
    pub(super) fn has_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// Whether the client had keys computed.
    pub(super) fn has_computed(&self) -> bool {
        self.computed.load(Ordering::Relaxed)
    }

    /// What the one who got in may do.
    pub(super) fn into_grant(self) -> Grant {
        let grant = self.grant.into_inner();
        let grant = grant.unwrap_or_else(PoisonError::into_inner);
        grant.unwrap_or_else(Grant::nothing)
    }

    fn allow(&self, grant: Grant) {
        let mut place = self.grant.lock().unwrap_or_else(PoisonError::into_inner);
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
            let (keys, open) = rules.read(&path)?;
            for place in open {
                warn!("{}", SshPlanError::Authority(place));
            }
            let offer = Offer {
                user: &name,
                key: &key,
                presence,
                from,
                from_name: None,
                now: ambient::unix(),
            };
            Ok::<_, String>(keys.find(&offer))
        });
        let fits = self.rules.user.as_deref().is_none_or(|only| only == user);
        match found.await {
            Ok(Ok(Ok(grant))) if fits => Some(grant),
            Ok(Ok(Ok(_))) => {
                debug!(client = %self.from, "the key is not for user {user:?}");
                None
            }
            // Most clients try all keys that they have.
            Ok(Ok(Err(Denied::Unknown))) => None,
            Ok(Ok(Err(why))) => {
                debug!(client = %self.from, "{why}");
                None
            }
            Ok(Err(why)) => {
                warn!("no key lets in: {why}");
                None
            }
            Err(why) => {
                warn!("no key lets in: {why}");
                None
            }
        }
    }
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
