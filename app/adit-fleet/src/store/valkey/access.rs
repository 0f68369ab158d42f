//! The administration of access at a store server: an operator creates and deletes the users of members.

use std::fmt;
use std::sync::Arc;

use redis::{Cmd, cmd};

use super::acl::{AclRole, acl_rule};
use super::config::{Topology, ValkeyConfig};
use super::link::Connector;
use super::value::number;
use crate::store::{StoreError, StoreErrorKind, StoreLogin};

/// Where a store server keeps its users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// In its ACL file.
    InAclFile,
    /// In its configuration file.
    InConfigFile,
    /// Until it restarts.
    InMemory,
}

/// The administration of access at a store server.
pub struct AccessAdmin {
    connector: Arc<Connector>,
    realm: String,
}

impl fmt::Debug for AccessAdmin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccessAdmin({:?})", self.realm)
    }
}

impl AccessAdmin {
    /// Creates it with the access of an operator, or of the server's administrator. The first call connects.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Configuration`] if the address is wrong, or that of a store whose access is not administered
    /// here: a file has no users, and servers behind Sentinel do not copy theirs to each other.
    pub fn new(login: &StoreLogin) -> Result<Self, StoreError> {
        let unfit = |why: &str| Err(StoreError::new(StoreErrorKind::Configuration, why));
        if login.url.starts_with("file://") {
            return unfit("a file has no users");
        }
        let config = ValkeyConfig::new(login)?;
        if matches!(config.topology, Topology::Sentinel { .. }) {
            return unfit("servers behind Sentinel do not copy their users to each other");
        }
        Ok(Self {
            connector: Connector::new(config),
            realm: login.realm.clone(),
        })
    }

    /// Creates a user with this password and the commands of its role, or replaces it.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Denied`] if this access may not do that, and those of all calls.
    pub async fn set(&self, user: &str, password: &str, role: AclRole) -> Result<Kept, StoreError> {
        let rule = acl_rule(&self.realm, user, password, role);
        self.connector.call(acl("SETUSER").arg(rule)).await?;
        Ok(self.keep().await)
    }

    /// Deletes users, and returns how many there were. Their connections end.
    ///
    /// # Errors
    ///
    /// As [`Self::set`].
    pub async fn delete(&self, users: &[String]) -> Result<u64, StoreError> {
        let deleted = number(self.connector.call(acl("DELUSER").arg(users)).await?)?;
        self.keep().await;
        Ok(deleted)
    }

    /// Has the server write its users to a file, if it has one for them.
    async fn keep(&self) -> Kept {
        if self.connector.call(&acl("SAVE")).await.is_ok() {
            return Kept::InAclFile;
        }
        match self.connector.call(cmd("CONFIG").arg("REWRITE")).await {
            Ok(_) => Kept::InConfigFile,
            Err(_) => Kept::InMemory,
        }
    }
}

fn acl(command: &str) -> Cmd {
    let mut acl = cmd("ACL");
    acl.arg(command);
    acl
}
