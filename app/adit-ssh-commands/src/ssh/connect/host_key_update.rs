//! `UpdateHostKeys`: after login, a known host announces all its keys. As in OpenSSH, new keys are added if the
//! host proves that it has them, and keys that it no longer has are removed.
//!
//! ```text
//! announced ─▶ Change::of the files ─▶ proof ─▶ Change::of the files, again ─▶ written
//! ```

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::ssh_config::{SshSettings, UpdateHostKeys};
use adit_ssh::client::{KnownHost, KnownHostsError, Session};
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::key::{AnyKey, HostKeyVerdict, PublicKey, RSA_MIN_BITS};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use tracing::debug;

use super::known_files;
use crate::ssh::terminal;

/// Time limit for the announcement, which arrives with the login or never.
const ANNOUNCEMENT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time that the exit waits for an update in progress.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);

/// An update of the known keys during the session.
pub(crate) struct HostKeyUpdate {
    task: JoinHandle<()>,
    busy: Arc<AtomicBool>,
}

impl HostKeyUpdate {
    /// Waits for an update in progress, and starts no new one.
    pub(crate) async fn finish_or_abort(mut self) {
        if self.busy.load(Ordering::Acquire) {
            // The wait is bounded in case the host does not answer.
            let _ = timeout(SETTLE_TIMEOUT, &mut self.task).await;
        }
        // The task holds the session.
        self.task.abort();
    }
}

/// Starts to handle the keys that the host announces, according to the settings. `offered` are the accepted
/// host key algorithms; if `forget` is true, keys that the host no longer has are removed. With
/// `UpdateHostKeys=ask`, the update happens before this function returns, because the terminal belongs to the
/// program from then on.
pub(super) async fn start_update(
    session: &Session,
    settings: &SshSettings,
    offered: Vec<KeyAlgorithm>,
    forget: bool,
) -> Option<HostKeyUpdate> {
    let ask = match settings.update_host_keys {
        UpdateHostKeys::No => return None,
        UpdateHostKeys::Yes => false,
        UpdateHostKeys::Ask => true,
    };
    if ask && settings.batch_mode {
        return None;
    }
    let mut told = session.host_key_announcements()?;
    let host = HostKeyUpdater {
        session: session.clone(),
        settings: settings.clone(),
        offered,
        forget,
    };
    if ask {
        // An announcement sent with the login has arrived before the answer to the ping.
        session.ping().await.ok()?;
        host.update_known_keys(&told.try_next_keys()?, ask).await;
        return None;
    }
    let busy = Arc::new(AtomicBool::new(false));
    let working = Arc::clone(&busy);
    let task = tokio::spawn(async move {
        if let Ok(Some(keys)) = timeout(ANNOUNCEMENT_TIMEOUT, told.next_keys()).await {
            working.store(true, Ordering::Release);
            host.update_known_keys(&keys, ask).await;
            working.store(false, Ordering::Release);
        }
    });
    Some(HostKeyUpdate { task, busy })
}

/// Context of an update.
struct HostKeyUpdater {
    session: Session,
    settings: SshSettings,
    offered: Vec<KeyAlgorithm>,
    forget: bool,
}

impl HostKeyUpdater {
    /// Updates the files, and reports an error.
    async fn update_known_keys(&self, told: &[PublicKey], ask: bool) {
        let name = &self.settings.host_name;
        match self.try_update(told, ask).await {
            Ok(()) => {}
            // Nothing is lost: the known keys are unchanged.
            Err(why) if ask => terminal::print_message(&format!(
                "warning: cannot update the known keys of {name}: {why:#}"
            )),
            Err(why) => debug!("cannot update the known keys of {name}: {why:#}"),
        }
    }

    /// Updates the files: verifies new keys, asks the user if required, and writes.
    async fn try_update(&self, told: &[PublicKey], ask: bool) -> anyhow::Result<()> {
        let Some(change) = self.compute_change(told).await? else {
            return Ok(());
        };
        if !change.new.is_empty() {
            self.session
                .request_host_key_proof(RSA_MIN_BITS, &change.new)
                .await?;
        }
        if ask && !confirm_change(&self.settings.host_name, &change).await {
            return Ok(());
        }
        // Other programs may have written the files meanwhile, and the answer of a user takes time.
        let Some(now) = self.compute_change(told).await? else {
            return Ok(());
        };
        anyhow::ensure!(
            now.new.iter().all(|key| change.new.contains(key)),
            "the known hosts files have changed meanwhile"
        );
        spawn_blocking(move || now.write()).await??;
        Ok(())
    }

    /// Computes the change on a blocking thread.
    async fn compute_change(&self, told: &[PublicKey]) -> anyhow::Result<Option<KnownHostsChange>> {
        let AnyKey::Plain(own) = AnyKey::parse(self.session.host_key())? else {
            // With a certificate, the authority authenticates any key.
            return Ok(None);
        };
        let (settings, offered) = (self.settings.clone(), self.offered.clone());
        let (told, forget) = (told.to_vec(), self.forget);
        let found = spawn_blocking(move || {
            KnownHostsChange::from_announcement(&settings, &own, &told, &offered, forget)
        });
        found.await?
    }
}

/// Asks the user to confirm a change.
async fn confirm_change(host: &str, change: &KnownHostsChange) -> bool {
    let mut text = format!("{host} has changed its host keys.\n");
    for (what, keys) in [("new", &change.new), ("removed", &change.gone)] {
        for key in keys {
            text += &format!("\n  {what}: {} {}", key.type_name(), key.fingerprint());
        }
    }
    text += "\n\nAccept the updated host keys? (yes, no) ";
    let answer = terminal::ask_visible(text).await;
    answer.is_some_and(|answer| answer.trim() == "yes")
}

/// A change of the known hosts files.
struct KnownHostsChange {
    known: KnownHost,
    /// Keys to add.
    new: Vec<PublicKey>,
    /// Keys to remove.
    gone: Vec<PublicKey>,
    /// Files that contain a key of `gone`.
    files: BTreeSet<PathBuf>,
    /// File that contains the key of this session.
    file: PathBuf,
}

impl KnownHostsChange {
    /// Compares the announced keys with the user's files. Returns `None` if there is nothing to change, or if
    /// the host is known in a way that must not be changed: by the system's files, by an authority, or by lines
    /// with patterns or several names.
    fn from_announcement(
        settings: &SshSettings,
        own: &PublicKey,
        told: &[PublicKey],
        offered: &[KeyAlgorithm],
        forget: bool,
    ) -> anyhow::Result<Option<Self>> {
        let unread = |why| anyhow::anyhow!("{why:?}");
        let everywhere = known_files::read_all_known_hosts(settings).map_err(unread)?;
        let known = known_files::read_user_known_hosts(settings).map_err(unread)?;
        let keys: Vec<_> = known.lines().keys_of(known.name()).collect();
        let Some(here) = keys.iter().find(|key| key.key == own) else {
            return Ok(None);
        };
        if !told.contains(own) || keys.iter().any(|key| !key.alone) {
            return Ok(None);
        }
        let file = PathBuf::from(&*here.place.file);
        let taken = |key: &&PublicKey| {
            let algorithms = key.algorithms();
            let plain = AnyKey::Plain((*key).clone());
            let verdict = everywhere.check_key(&plain);
            algorithms.iter().any(|one| offered.contains(one))
                && !matches!(verdict, HostKeyVerdict::Revoked(_))
                && !keys.iter().any(|known| known.key == *key)
        };
        let new: Vec<_> = told.iter().filter(taken).cloned().collect();
        let mut files = BTreeSet::new();
        let mut gone = Vec::new();
        for key in keys.iter().filter(|key| forget && !told.contains(key.key)) {
            files.insert(PathBuf::from(&*key.place.file));
            gone.push(key.key.clone());
        }
        if new.is_empty() && gone.is_empty() {
            return Ok(None);
        }
        drop(keys);
        Ok(Some(Self {
            known,
            new,
            gone,
            files,
            file,
        }))
    }

    /// Writes the change to the files.
    fn write(mut self) -> Result<(), KnownHostsError> {
        self.files.insert(self.file.clone());
        for file in &self.files {
            let learned: &[PublicKey] = if *file == self.file { &self.new } else { &[] };
            self.known.rewrite_file(file, learned, &self.gone)?;
        }
        for (what, keys) in [("learned", &self.new), ("removed", &self.gone)] {
            for key in keys {
                let (kind, print) = (key.type_name(), key.fingerprint());
                debug!("{}: {what}: {kind} {print}", self.known.name());
            }
        }
        Ok(())
    }
}
