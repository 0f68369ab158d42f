//! The users file of a listener, which is read again when it changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use adit_config::{Secret, SsRole, SsServer, SystemSources};
use adit_shadowsocks::{Key, Method, Users};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::UserTable;

/// Interval at which the file is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The users file of a listener.
pub(super) struct UsersFile {
    pub(super) method: Method,
    pub(super) identity: Option<Secret>,
    pub(super) path: PathBuf,
    /// The version that was read last.
    version: FileVersion,
}

/// A version of a file: modification time and size in bytes.
pub(super) type FileVersion = Option<(SystemTime, u64)>;

impl UsersFile {
    /// Returns the users file of a server that has one.
    pub(super) fn from_server(server: &SsServer) -> Option<Self> {
        let SsRole::Users { identity, file, .. } = &server.role else {
            return None;
        };
        let path = file.clone()?;
        Some(Self {
            method: server.method,
            identity: identity.as_ref().map(|i| Secret::from(i.expose())),
            // Taken now and not when watching starts: starting a plugin may take a while.
            version: file_version(&path),
            path,
        })
    }

    /// Watches the file forever.
    pub(super) async fn watch_for_changes(self, user_table: Arc<UserTable>) {
        let file = Arc::new(self);
        let table = user_table.clone();
        let reader = file.clone();
        let reread = move || {
            table.with_file(|| {
                let users = reader.read_users()?;
                let count = users.len();
                table.replace_users(users);
                Ok(count)
            })
        };
        let requested = || user_table.reread_requested();
        watch_users(&file.path, file.version, requested, reread).await;
    }

    fn read_users(&self) -> Result<Arc<Users>, String> {
        let users = adit_config::read_users(
            self.method,
            self.identity.as_ref(),
            &self.path,
            &SystemSources,
        );
        let users = users.map_err(|problems| {
            // One line in the log for each read, whatever the number of problems.
            let all = problems.iter().map(ToString::to_string);
            let all = all.collect::<Vec<_>>().join("\n");
            let lines = all.lines().map(str::trim).filter(|line| !line.is_empty());
            lines.collect::<Vec<_>>().join(" ")
        })?;
        let each = users
            .iter()
            .map(|user| (user.name.as_str(), user.secret.expose()));
        let made = match &self.identity {
            Some(identity) => {
                let key = Key::parse(self.method, identity.expose()).map_err(|e| e.to_string())?;
                Users::with_identity_key(&key, each)
            }
            None => Users::with_trial_keys(self.method, each),
        };
        made.map_err(|e| e.to_string())
    }
}

/// Calls `reread` forever, whenever the file at `path` is another version than `seen`, or `requested` completes. It returns the
/// number of users. A file with errors changes nothing and is reported once.
pub(super) async fn watch_users<R: Future<Output = ()> + Send>(
    path: &Path,
    mut seen: FileVersion,
    requested: impl Fn() -> R + Send,
    reread: impl Fn() -> Result<usize, String> + Clone + Send + 'static,
) {
    loop {
        tokio::select! {
            () = sleep(CHECK_INTERVAL) => {
                let now = current_version(path).await;
                if now == seen {
                    continue;
                }
                seen = now;
            }
            () = requested() => seen = current_version(path).await,
        }
        let read = tokio::task::spawn_blocking(reread.clone()).await;
        let path = path.display();
        match read {
            Ok(Ok(count)) => info!("{path}: {count} users"),
            Ok(Err(why)) => {
                warn!("{path} was not reloaded, the current users stay in use: {why}");
            }
            Err(_) => {}
        }
    }
}

/// Returns the version of a file; `None` if it does not exist.
pub(super) fn file_version(path: &Path) -> FileVersion {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

/// Returns the version of a file without blocking.
async fn current_version(path: &Path) -> FileVersion {
    let path = path.to_owned();
    let look = tokio::task::spawn_blocking(move || file_version(&path));
    look.await.ok()?
}
