//! A realm as a command acts on it: the membership, the store, and the writer of its records.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use adit_cli::{Failure, FailureCode};
use adit_config::text::sanitize_for_terminal;
use adit_fleet::{
    ChangeId, Membership, NodeEntry, NodeOp, NodeView, RealmKey, RealmWriter, RecordCipher, Role,
    Store, StoreError, StoreErrorKind, StoreLogin, WriteError, open_store,
};
use serde_json::{Value, json};
use tracing::warn;

use super::failure::{to_failure, to_record_failure};

/// A realm that a command acts on.
pub(in crate::command) struct Realm {
    pub(super) membership: Membership,
    pub(in crate::command) store: Arc<dyn Store>,
    pub(in crate::command) writer: RealmWriter,
}

/// Returns the path of the operator's membership: the typed one, or the default of this account.
pub(in crate::command) fn operator_file(typed: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = typed {
        return Ok(path.to_owned());
    }
    if is_root() {
        return Ok(PathBuf::from("/etc/adit/fleet.json"));
    }
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = var("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| {
            let home = var("HOME").or_else(|| var("USERPROFILE"))?;
            Some(PathBuf::from(home).join(".config"))
        })
        .ok_or_else(|| {
            Failure::new(FailureCode::Usage, "HOME is not set")
                .with_hint("--membership FILE names the operator's membership")
        })?;
    Ok(folder.join("adit").join("fleet.json"))
}

/// Returns the path of a node's membership: the typed one, or the default of this account.
pub(super) fn node_file(typed: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = typed {
        return Ok(path.to_owned());
    }
    let folder = match is_root() && std::env::var_os("STATE_DIRECTORY").is_none() {
        true => PathBuf::from("/var/lib/adit"),
        false => adit_cli::state_folder(None)?,
    };
    Ok(folder.join("fleet").join("membership.json"))
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

impl Realm {
    /// Opens the realm of the operator's membership.
    pub(in crate::command) async fn open(typed: Option<&Path>) -> Result<Self, Failure> {
        let realm = Self::open_operator(typed)?;
        realm.check().await?;
        Ok(realm)
    }

    /// Opens the realm of this node's membership, and returns the node's number.
    pub(super) async fn open_own(typed: Option<&Path>) -> Result<(Self, u32), Failure> {
        let path = node_file(typed)?;
        let membership = read_membership(&path)?;
        let Some(node) = membership.node_id else {
            let what = format!("{}: this is the membership of an operator", path.display());
            return Err(Failure::new(FailureCode::Config, what)
                .with_hint("name the node, or its membership with --membership FILE"));
        };
        let realm = Self::of_membership(membership)?;
        realm.check().await?;
        Ok((realm, node))
    }

    /// Opens the realm of an operator's membership. The store has not been asked yet.
    pub(super) fn open_operator(typed: Option<&Path>) -> Result<Self, Failure> {
        let path = operator_file(typed)?;
        let membership = read_membership(&path)?;
        if membership.role != Role::Operator {
            let what = format!("{}: this is the membership of a node", path.display());
            return Err(Failure::new(FailureCode::Config, what).with_hint(
                "--membership FILE names the operator's, which `adit fleet init` wrote",
            ));
        }
        Self::of_membership(membership)
    }

    /// Opens the store of a membership. It has not been asked yet.
    pub(super) fn of_membership(membership: Membership) -> Result<Self, Failure> {
        let store = open_store(&StoreLogin::from(&membership))
            .map_err(|why| to_failure(&why, &membership.store))?;
        let writer = RealmWriter::new(store.clone(), membership.cipher());
        Ok(Self {
            membership,
            store,
            writer,
        })
    }

    /// Checks that the store has this realm, and its key.
    pub(super) async fn check(&self) -> Result<(), Failure> {
        let info = self.ask(self.store.realm_info()).await?;
        info.check(self.writer.cipher())
            .map_err(|why| to_failure(&why, self.at()))
    }

    /// Returns the key of the realm.
    pub(in crate::command) const fn key(&self) -> &RealmKey {
        &self.membership.realm_key
    }

    /// Returns the address of the store server.
    pub(super) fn at(&self) -> &str {
        &self.membership.store
    }

    /// Returns the name of the realm and the address of the store server.
    pub(in crate::command) fn shown(&self) -> String {
        sanitize_for_terminal(&format!("{} at {}", self.membership.realm, self.at()))
    }

    /// Waits for the answer of the store.
    pub(in crate::command) async fn ask<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, Failure> {
        call.await.map_err(|why| to_failure(&why, self.at()))
    }

    /// Returns the cipher of the realm.
    pub(in crate::command) fn cipher(&self) -> &RecordCipher {
        self.writer.cipher()
    }

    /// Sends an operation to a node. Returns its number among the changes.
    pub(super) async fn send(&self, node: u32, op: &NodeOp) -> Result<ChangeId, Failure> {
        let sent = self.writer.send_node_op(node, op).await;
        sent.map_err(|why| self.to_failure(&why, "the operation"))
    }

    /// Returns the failure of a change of `what`.
    pub(in crate::command) fn to_failure(&self, why: &WriteError, what: &str) -> Failure {
        match why {
            WriteError::Store(why) => to_failure(why, self.at()),
            WriteError::Record(why) => to_record_failure(why, what),
            other => Failure::new(FailureCode::Failure, format!("{what}: {other}")),
        }
    }

    /// Records what the operator has done. A store that cannot record it has done it all the same.
    pub(in crate::command) async fn audit(&self, action: &str, about: Value) {
        let who = std::env::var("SUDO_USER").or_else(|_| std::env::var("USER"));
        let text = json!({
            "action": action,
            "about": about,
            "by": who.ok(),
            "program": concat!("adit ", env!("CARGO_PKG_VERSION")),
        });
        if let Err(why) = self.store.audit(&text.to_string()).await {
            warn!("the audit log has no entry about this: {why}");
        }
    }

    /// Returns all nodes as they are shown.
    pub(in crate::command) async fn nodes(&self) -> Result<Vec<NodeView>, Failure> {
        let entries = self.ask(self.store.nodes()).await?;
        let now = self.ask(self.store.time()).await? / 1000;
        Ok(entries
            .iter()
            .map(|entry| NodeView::new(entry, now))
            .collect())
    }

    /// Returns the node with this name or number.
    pub(super) async fn find_node(&self, word: &str) -> Result<NodeEntry, Failure> {
        let nodes = self.ask(self.store.nodes()).await?;
        let by_name = nodes.iter().find(|node| node.record.name == word);
        let by_id = || nodes.iter().find(|node| node.id.to_string() == word);
        if let Some(found) = by_name.or_else(by_id) {
            return Ok(found.clone());
        }
        let names = nodes.iter().map(|node| node.record.name.as_str());
        let near = adit_config::nearest_word(word, names);
        let what = format!(
            "no node `{}` in {}",
            sanitize_for_terminal(word),
            self.shown()
        );
        Err(
            Failure::new(FailureCode::Failure, what).with_hint(match near {
                Some(near) => format!("did you mean `{}`?", sanitize_for_terminal(near)),
                None => "`adit fleet status` lists the nodes".to_owned(),
            }),
        )
    }
}

/// Returns the kind of a store's error.
pub(in crate::command) const fn kind_of(why: &WriteError) -> Option<&StoreErrorKind> {
    match why {
        WriteError::Store(why) => Some(&why.kind),
        _ => None,
    }
}

/// Reads a membership.
pub(super) fn read_membership(path: &Path) -> Result<Membership, Failure> {
    Membership::read(path).map_err(|why| {
        let what = format!("{}: {why}", path.display());
        Failure::new(FailureCode::Config, what).with_hint(
            "`adit fleet init` creates an operator's membership, `adit fleet join` that of a node; \
             `--membership FILE` names another one",
        )
    })
}
