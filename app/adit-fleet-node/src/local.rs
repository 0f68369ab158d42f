//! The file of this node: the users, and usage that the store has not acknowledged.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use adit_fleet::{
    LocalContent, LocalState, LocalStateError, Snapshot, UsageBatch, UsageLedger, UsedQuota,
    UserUsage,
};
use adit_net::system::{self, ThreadRng};
use tokio::task::spawn_blocking;
use tracing::error;

use crate::state::{Shared, lock};
use crate::used_up::UsedUpQuotas;

/// The name of the file in the folder of the state.
const FILE: &str = "node.state";

/// The open file of a node.
pub(crate) struct LocalFile {
    path: PathBuf,
    realm: String,
    node: u32,
    /// `None` while another process has it.
    state: Mutex<Option<LocalState>>,
    /// True if the last write failed, which was logged.
    failed: AtomicBool,
}

impl LocalFile {
    pub(crate) fn new(folder: &std::path::Path, realm: &str, node: u32) -> Arc<Self> {
        Arc::new(Self {
            path: folder.join(FILE),
            realm: realm.to_owned(),
            node,
            state: Mutex::default(),
            failed: AtomicBool::new(false),
        })
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Opens the file, or creates it with its folder. This function blocks.
    pub(crate) fn open(&self) -> Result<LocalContent, LocalStateError> {
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let (state, content) = LocalState::open(&self.path, &self.realm, self.node)?;
        *lock(&self.state) = Some(state);
        Ok(content)
    }

    /// Closes the file, so that another process can open it.
    pub(crate) async fn close(self: &Arc<Self>) {
        let file = self.clone();
        // Dropping it may wait for a write.
        let _ = spawn_blocking(move || *lock(&file.state) = None).await;
    }

    /// Writes the users of a snapshot. This function blocks.
    pub(crate) fn save_snapshot(&self, snapshot: &Snapshot) {
        self.write_now(|state| state.save_table(snapshot, system::unix_now().0));
    }

    /// Writes all users, sealed anew.
    pub(crate) async fn save_table(self: &Arc<Self>, node: &Arc<Shared>) {
        let node = node.clone();
        self.write(move |state| {
            let table = lock(&node.feed).to_table(&mut ThreadRng);
            state.save_table(&table, system::unix_now().0)
        })
        .await;
    }

    /// Writes the users that have changed.
    pub(crate) async fn save_changes(
        self: &Arc<Self>,
        node: &Arc<Shared>,
        put: Vec<u32>,
        deleted: Vec<u32>,
    ) {
        let node = node.clone();
        self.write(move |state| {
            let (version, records) = {
                let feed = lock(&node.feed);
                let sealed = |id: &u32| Some((*id, feed.sealed(*id, &mut ThreadRng)?));
                (feed.position(), put.iter().filter_map(sealed).collect())
            };
            state.save_changes(version, records, deleted, system::unix_now().0)
        })
        .await;
    }

    /// Records that the users are those of the store now.
    pub(crate) async fn save_contact(self: &Arc<Self>) {
        self.write(|state| state.save_contact(system::unix_now().0))
            .await;
    }

    /// Records a batch before it is sent.
    pub(crate) async fn save_batch(self: &Arc<Self>, batch: UsageBatch, pending: Vec<UserUsage>) {
        self.write(move |state| state.save_batch(&batch, pending))
            .await;
    }

    /// Records the usage that no batch contains, while the store does not answer.
    pub(crate) async fn save_pending(self: &Arc<Self>, pending: Vec<UserUsage>) {
        self.write(move |state| state.save_pending(pending)).await;
    }

    /// Records that the store has a batch.
    pub(crate) async fn save_acknowledged(self: &Arc<Self>, number: u64) {
        self.write(move |state| state.save_acknowledged(number))
            .await;
    }

    /// Records that quotas were used up, or are not any more.
    pub(crate) async fn save_used_up(self: &Arc<Self>, changed: Vec<UsedQuota>) {
        self.write(move |state| state.save_used_up(changed)).await;
    }

    /// Rewrites the file if it has become long.
    pub(crate) async fn shorten_with(
        self: &Arc<Self>,
        node: &Arc<Shared>,
        ledger: &UsageLedger,
        used_up: &UsedUpQuotas,
    ) {
        if !lock(&self.state).as_ref().is_some_and(LocalState::is_long) {
            return;
        }
        let node = node.clone();
        let (last_batch, unacknowledged) = (ledger.last(), ledger.unacknowledged().cloned());
        let (pending, used_up) = (ledger.pending(), used_up.to_vec());
        self.write(move |state| {
            let table = lock(&node.feed).to_table(&mut ThreadRng);
            state.rewrite(&LocalContent {
                table: Some(table).filter(|table| table.version.0 > 0),
                contact_unix: system::unix_now().0,
                last_batch,
                unacknowledged,
                pending,
                used_up,
            })
        })
        .await;
    }

    /// Writes on a thread that may wait. An error is logged once until a write succeeds.
    async fn write(
        self: &Arc<Self>,
        write: impl FnOnce(&mut LocalState) -> Result<(), LocalStateError> + Send + 'static,
    ) {
        let file = self.clone();
        // It fails if the runtime ends.
        let _ = spawn_blocking(move || file.write_now(write)).await;
    }

    /// Writes on this thread.
    fn write_now(&self, write: impl FnOnce(&mut LocalState) -> Result<(), LocalStateError>) {
        let written = lock(&self.state).as_mut().map_or(Ok(()), write);
        match written {
            Ok(()) => self.failed.store(false, Ordering::Relaxed),
            Err(why) => {
                if !self.failed.swap(true, Ordering::Relaxed) {
                    let path = self.path.display();
                    error!(
                        "{path}: {why}; this node could not start without the store, and a crash could lose usage"
                    );
                }
            }
        }
    }
}
