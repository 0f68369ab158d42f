//! The store of limits and usage, which outlive the process.
//!
//! ```text
//! start: UserStore::open ── users ──▶ UserRegistry       every interval, and after each change of limits:
//!        UserStore::follow ◀── absolute values ────────  one transaction
//! ```
//!
//! Values are absolute, so that nothing is counted twice: after a crash, what was counted since the last transaction is
//! lost. One process has the file open; an upgrade hands it over.

mod database;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use adit_engine::{StoredUser, UserRegistry};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use tracing::{error, warn};

pub use database::UserStoreError;
use database::{OpenedDatabase, UserDatabase};

/// Time after a change of limits until it is written, together with those that follow.
const CHANGE_DELAY: Duration = Duration::from_millis(50);

/// An open store, and the users that were in it.
pub struct UserStore {
    path: PathBuf,
    database: UserDatabase,
    users: Vec<StoredUser>,
}

impl std::fmt::Debug for UserStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserStore")
            .field("path", &self.path)
            .field("users", &self.users.len())
            .finish_non_exhaustive()
    }
}

impl UserStore {
    /// Opens the store at `path`, or creates it. A damaged store is renamed and replaced by an empty one, with an error
    /// in the log. This function blocks.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, another process uses it, or it is not a store that this version reads.
    pub fn open(path: &Path) -> Result<Self, UserStoreError> {
        let OpenedDatabase {
            database,
            users,
            replaced,
        } = UserDatabase::open(path)?;
        if let Some((aside, why)) = replaced {
            error!(
                "{}: {why}; it is kept as `{}`, and all limits and usage start from nothing",
                path.display(),
                aside.display()
            );
        }
        Ok(Self {
            path: path.to_owned(),
            database,
            users,
        })
    }

    /// Checks that there can be a store at `path`, without opening it. This function blocks.
    ///
    /// # Errors
    ///
    /// The file is not a store, or cannot be read; or there is no such folder.
    pub fn check(path: &Path) -> Result<(), UserStoreError> {
        database::check_place(path)
    }

    /// Returns the users that were in the store when it was opened.
    #[must_use]
    pub fn users(&self) -> &[StoredUser] {
        &self.users
    }

    /// Moves these users into a registry.
    pub fn restore(&mut self, registry: &UserRegistry) {
        registry.restore(&std::mem::take(&mut self.users));
    }

    /// Writes `users`, in the order of their names; all others are removed. This function blocks.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or another process has opened it since.
    pub fn write(&self, users: impl IntoIterator<Item = StoredUser>) -> Result<(), UserStoreError> {
        self.database.write(users)
    }

    /// Starts a task that writes the users of `registry` in each `interval`, and soon after their limits change, until
    /// the returned control closes the store.
    #[must_use]
    pub fn follow(self, registry: Arc<UserRegistry>, interval: Duration) -> UserStoreControl {
        let (sender, receiver) = mpsc::channel(1);
        let task = StoreTask {
            path: self.path,
            database: Some(Arc::new(self.database)),
            registry,
            interval,
            failed: false,
        };
        tokio::spawn(task.run(receiver));
        UserStoreControl(sender)
    }
}

/// The control of a store that follows a registry.
#[derive(Debug, Clone)]
pub struct UserStoreControl(mpsc::Sender<StoreCommand>);

#[derive(Debug)]
enum StoreCommand {
    /// Write everything, and close the file.
    Close(oneshot::Sender<()>),
    /// Open the file again.
    Reopen,
}

impl UserStoreControl {
    /// Writes everything and closes the file, so that another process can open it.
    pub async fn close(&self) {
        let (reply, closed) = oneshot::channel();
        if self.0.send(StoreCommand::Close(reply)).await.is_ok() {
            // A task that has ended has closed the file.
            let _ = closed.await;
        }
    }

    /// Opens the file again after [`Self::close`]: there is no other process.
    pub async fn reopen(&self) {
        // Without the task, the process is about to end.
        let _ = self.0.send(StoreCommand::Reopen).await;
    }
}

struct StoreTask {
    path: PathBuf,
    /// `None` while it is closed.
    database: Option<Arc<UserDatabase>>,
    registry: Arc<UserRegistry>,
    interval: Duration,
    /// True if the last write failed, which was logged.
    failed: bool,
}

impl StoreTask {
    async fn run(mut self, mut commands: mpsc::Receiver<StoreCommand>) {
        let mut timer = interval_at(Instant::now() + self.interval, self.interval);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = timer.tick() => self.write_all().await,
                () = self.registry.changed() => {
                    sleep(CHANGE_DELAY).await;
                    self.write_all().await;
                }
                command = commands.recv() => match command {
                    Some(StoreCommand::Close(reply)) => {
                        self.write_all().await;
                        self.database = None;
                        // The process may not wait.
                        let _ = reply.send(());
                    }
                    Some(StoreCommand::Reopen) => self.reopen().await,
                    None => return,
                },
            }
        }
    }

    async fn write_all(&mut self) {
        let Some(database) = self.database.clone() else {
            return;
        };
        let registry = self.registry.clone();
        let written = spawn_blocking(move || database.write(registry.to_stored())).await;
        match written {
            Ok(Ok(())) => self.failed = false,
            Ok(Err(UserStoreError::TakenOver)) => {
                self.database = None;
                error!(
                    "{}: {}; nothing more is stored",
                    self.path.display(),
                    UserStoreError::TakenOver
                );
            }
            Ok(Err(why)) if !self.failed => {
                self.failed = true;
                let path = self.path.display();
                error!("{path}: {why}; limits and usage are not stored until it can be written");
            }
            // Logged already; or the runtime ends.
            Ok(Err(_)) | Err(_) => {}
        }
    }

    async fn reopen(&mut self) {
        let path = self.path.clone();
        let opened = spawn_blocking(move || UserDatabase::open(&path)).await;
        match opened {
            // This process knows the content, and all that was counted since.
            Ok(Ok(opened)) => self.database = Some(Arc::new(opened.database)),
            Ok(Err(why)) => warn!(
                "{}: {why}; limits and usage are not stored any more",
                self.path.display()
            ),
            Err(_) => {}
        }
    }
}
