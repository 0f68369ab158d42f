//! The operator of a realm, in this process.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use adit_fleet::{
    FleetUser, Membership, NodeEntry, NodeOp, NodeRecord, PeriodLabel, RealmInfo, RealmKey,
    RealmWriter, RecordCipher, Role, Snapshot, Store, StoreError, StoreFuture, StoreLogin,
    UserTotal, open_store,
};
use anyhow::{Context, Result};
use tokio::runtime::Runtime;

/// Name of the realm.
const REALM: &str = "test";

/// The operator: the writer of the realm, and everything that new nodes need.
#[derive(Debug)]
pub struct Operator {
    runtime: Runtime,
    writer: RealmWriter,
    info: RealmInfo,
    key: RealmKey,
    url: String,
}

impl Operator {
    /// Creates a realm in the store at `url`.
    pub fn create_realm(url: &str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let key = RealmKey::new(*RealmWriter::new_secret());
        let login = StoreLogin {
            realm: REALM.to_owned(),
            url: url.to_owned(),
            user: None,
            password: None,
            ca_pem: None,
        };
        let store = runtime.block_on(async { open_store(&login) })?;
        let cipher = RecordCipher::new(REALM, &key);
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let info = RealmInfo::new(&cipher, now);
        runtime.block_on(store.create_realm(&info))?;
        Ok(Self {
            runtime,
            writer: RealmWriter::new(store, cipher),
            info,
            key,
            url: url.to_owned(),
        })
    }

    /// Returns the key of the realm.
    #[must_use]
    pub const fn key(&self) -> &RealmKey {
        &self.key
    }

    /// Returns the cipher of the realm.
    #[must_use]
    pub fn cipher(&self) -> &RecordCipher {
        self.writer.cipher()
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        self.writer.store()
    }

    /// Runs a call of the store.
    pub fn call<'a, T>(
        &'a self,
        call: impl FnOnce(&'a dyn Store) -> StoreFuture<'a, T>,
    ) -> Result<T, StoreError> {
        self.runtime.block_on(call(&**self.store()))
    }

    /// Adds a node, which reaches the store at `url`, and returns its membership.
    pub fn add_node(&self, name: &str, url: Option<&str>) -> Result<Membership> {
        let record = NodeRecord {
            name: name.to_owned(),
            weight: 100,
            ..NodeRecord::default()
        };
        let id = self.call(|store| store.add_node(&record))?;
        Ok(Membership {
            version: Membership::VERSION,
            realm: REALM.to_owned(),
            realm_key: self.key.clone(),
            role: Role::Node,
            node_id: Some(id),
            name: name.to_owned(),
            store: url.unwrap_or(&self.url).to_owned(),
            store_user: None,
            store_password: None,
            ca_pem: None,
        })
    }

    /// Adds users with these names, after `set` has changed each.
    pub fn add_users(
        &self,
        names: impl IntoIterator<Item = String>,
        set: impl Fn(&mut FleetUser),
    ) -> Result<Vec<FleetUser>> {
        let user = |name: String| {
            let mut user = FleetUser::new(0, name, *RealmWriter::new_secret());
            set(&mut user);
            user
        };
        let mut users: Vec<FleetUser> = names.into_iter().map(user).collect();
        self.runtime.block_on(self.writer.add(&mut users))?;
        Ok(users)
    }

    /// Adds one user without limits.
    pub fn add_user(&self, name: &str) -> Result<FleetUser> {
        let mut users = self.add_users([name.to_owned()], |_| {})?;
        users.pop().context("a user was added")
    }

    /// Replaces users.
    pub fn put_users(&self, users: &[FleetUser]) -> Result<()> {
        Ok(self.runtime.block_on(self.writer.put(users))?)
    }

    /// Sends an operation to a node.
    pub fn send_node_op(&self, node: u32, op: &NodeOp) -> Result<()> {
        self.runtime.block_on(self.writer.send_node_op(node, op))?;
        Ok(())
    }

    /// Deletes a user.
    pub fn delete_user(&self, user: &FleetUser) -> Result<()> {
        Ok(self.runtime.block_on(self.writer.delete(&[user.id]))?)
    }

    /// Returns what all users have used in a period, over all nodes.
    pub fn usage(&self, period: &PeriodLabel) -> Result<Vec<UserTotal>> {
        Ok(self.call(|store| store.usage(period, None))?)
    }

    /// Returns all nodes.
    pub fn nodes(&self) -> Result<Vec<NodeEntry>> {
        Ok(self.call(|store| store.nodes())?)
    }

    /// Returns the users of the store, by name. All records must be whole.
    pub fn user_names(&self) -> Result<Vec<String>> {
        let snapshot = self.call(|store| store.snapshot())?;
        let open = |(id, sealed)| Ok(self.writer.cipher().open(id, &sealed)?.name);
        let mut names = snapshot
            .users
            .into_iter()
            .map(open)
            .collect::<Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok(names)
    }

    /// Returns all users of the store, sealed.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Ok(self.call(|store| store.snapshot())?)
    }

    /// Writes all users into a store that has lost them, as `adit fleet restore` does.
    pub fn restore(&self, users: &Snapshot) -> Result<()> {
        self.call(|store| store.restore(&self.info, users))?;
        Ok(())
    }
}
