//! Opens the store of a membership.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::valkey::{ValkeyConfig, ValkeyStore};
use super::{EmbeddedStore, Store, StoreError, StoreErrorKind};
use crate::join_token::JoinToken;
use crate::membership::{Membership, check_name};

/// The access to a store.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreLogin {
    /// The name of the realm.
    pub realm: String,
    /// The address of the store: `valkey://HOST:PORT`, `valkeys://HOST:PORT` (TLS), `unix:///PATH`,
    /// `valkey+sentinel://HOST,HOST,HOST/SERVICE`, `valkey+cluster://HOST,HOST,HOST`, both also with `valkeys+`, or
    /// `file:///PATH`. `redis` is accepted for `valkey`.
    pub url: String,
    /// The user at the store server.
    pub user: Option<String>,
    /// The password.
    pub password: Option<Zeroizing<String>>,
    /// The certificate, in PEM, that must have signed the store server's.
    pub ca_pem: Option<String>,
}

impl fmt::Debug for StoreLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreLogin")
            .field("realm", &self.realm)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl From<&Membership> for StoreLogin {
    fn from(membership: &Membership) -> Self {
        Self {
            realm: membership.realm.clone(),
            url: membership.store.clone(),
            user: membership.store_user.clone(),
            password: membership.store_password.clone(),
            ca_pem: membership.ca_pem.clone(),
        }
    }
}

impl From<&JoinToken> for StoreLogin {
    fn from(token: &JoinToken) -> Self {
        Self {
            realm: token.realm.clone(),
            url: token.store.clone(),
            user: token.store_user.clone(),
            password: token.store_password.clone(),
            ca_pem: token.ca_pem.clone(),
        }
    }
}

/// Opens a store. A store server is contacted by the first call.
///
/// # Errors
///
/// The address or a setting is wrong, or the file of an embedded store cannot be used.
pub fn open_store(login: &StoreLogin) -> Result<Arc<dyn Store>, StoreError> {
    let configuration = |why: String| StoreError::new(StoreErrorKind::Configuration, why);
    check_name(&login.realm).map_err(configuration)?;
    if let Some(path) = login.url.strip_prefix("file://") {
        let store = EmbeddedStore::open(Path::new(path), &login.realm)?;
        return Ok(Arc::new(store));
    }
    Ok(Arc::new(ValkeyStore::open(ValkeyConfig::new(login)?)))
}
