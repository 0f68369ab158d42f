//! `UpdateHostKeys`: a host that is known tells all its keys once one is in. New ones are learned if
//! it proves that it has them, those that it has no more are forgotten, as in OpenSSH.
//!
//! ```text
//! told ─▶ Change::of the files ─▶ proof ─▶ Change::of the files, again ─▶ written
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

/// How long word of a host's keys is waited for: it comes with the login, or never.
const WORD: Duration = Duration::from_secs(10);
/// How long the end of a program waits for keys that are just being proved.
const END: Duration = Duration::from_secs(2);

/// Keys that may be learned while the session goes on.
pub(crate) struct Update {
    task: JoinHandle<()>,
    busy: Arc<AtomicBool>,
}

impl Update {
    /// Lets what has begun come to its end; nothing begins any more.
    pub(crate) async fn settle(mut self) {
        if self.busy.load(Ordering::Acquire) {
            // A host that does not answer is not waited for.
            let _ = timeout(END, &mut self.task).await;
        }
        // It holds the session.
        self.task.abort();
    }
}

/// Looks at the keys that the host tells, as the settings say; `offered` are the algorithms of host
/// keys that are taken, and keys that the host has no more are forgotten if `forget`. To ask comes before the program, whose terminal it is from then on.
pub(super) async fn begin(
    session: &Session,
    settings: &SshSettings,
    offered: Vec<KeyAlgorithm>,
    forget: bool,
) -> Option<Update> {
    let ask = match settings.update_host_keys {
        UpdateHostKeys::No => return None,
        UpdateHostKeys::Yes => false,
        UpdateHostKeys::Ask => true,
    };
    if ask && settings.batch_mode {
        return None;
    }
    let mut told = session.host_key_announcements()?;
    let host = Host {
        session: session.clone(),
        settings: settings.clone(),
        offered,
        forget,
    };
    if ask {
        // What was told with the login is here when the answer is.
        session.ping().await.ok()?;
        host.update(&told.try_next_keys()?, ask).await;
        return None;
    }
    let busy = Arc::new(AtomicBool::new(false));
    let working = Arc::clone(&busy);
    let task = tokio::spawn(async move {
        if let Ok(Some(keys)) = timeout(WORD, told.next_keys()).await {
            working.store(true, Ordering::Release);
            host.update(&keys, ask).await;
            working.store(false, Ordering::Release);
        }
    });
    Some(Update { task, busy })
}

struct Host {
    session: Session,
    settings: SshSettings,
    offered: Vec<KeyAlgorithm>,
    forget: bool,
}

impl Host {
    async fn update(&self, told: &[PublicKey], ask: bool) {
        let name = &self.settings.host_name;
        match self.try_update(told, ask).await {
            Ok(()) => {}
            // Nothing is lost: the host is known as before.
            Err(why) if ask => terminal::say(&format!(
                "warning: cannot update the known keys of {name}: {why:#}"
            )),
            Err(why) => debug!("cannot update the known keys of {name}: {why:#}"),
        }
    }

    async fn try_update(&self, told: &[PublicKey], ask: bool) -> anyhow::Result<()> {
        let Some(change) = self.change(told).await? else {
            return Ok(());
        };
        if !change.new.is_empty() {
            self.session
                .request_host_key_proof(RSA_MIN_BITS, &change.new)
                .await?;
        }
        if ask && !agreed(&self.settings.host_name, &change).await {
            return Ok(());
        }
        // Others may have written meanwhile, and a person takes his time.
        let Some(now) = self.change(told).await? else {
            return Ok(());
        };
        anyhow::ensure!(
            now.new.iter().all(|key| change.new.contains(key)),
            "the known hosts files have changed meanwhile"
        );
        spawn_blocking(move || now.write()).await??;
        Ok(())
    }

    async fn change(&self, told: &[PublicKey]) -> anyhow::Result<Option<Change>> {
        let AnyKey::Plain(own) = AnyKey::parse(self.session.host_key())? else {
            // Its authority vouches for whatever key it has.
            return Ok(None);
        };
        let (settings, offered) = (self.settings.clone(), self.offered.clone());
        let (told, forget) = (told.to_vec(), self.forget);
        let found = spawn_blocking(move || Change::of(&settings, &own, &told, &offered, forget));
        found.await?
    }
}

async fn agreed(host: &str, change: &Change) -> bool {
    let mut text = format!("{host} has changed its host keys.\n");
    for (what, keys) in [("new", &change.new), ("removed", &change.gone)] {
        for key in keys {
            text += &format!("\n  {what}: {} {}", key.type_name(), key.fingerprint());
        }
    }
    text += "\n\nAccept the updated host keys? (yes, no) ";
    let answer = terminal::ask(text).await;
    answer.is_some_and(|answer| answer.trim() == "yes")
}

/// What the files have to learn and to forget.
struct Change {
    known: KnownHost,
    /// Keys that are not known.
    new: Vec<PublicKey>,
    /// Keys that the host has no more.
    gone: Vec<PublicKey>,
    /// The files that have lines of `gone`.
    files: BTreeSet<PathBuf>,
    /// The file that knows the key of this session.
    file: PathBuf,
}

impl Change {
    /// Compares what was told with the user's files. `None`: there is nothing to do, or the host is
    /// known in a way that is not to be touched: by the system's files, by an authority, by lines
    /// with patterns or with more than one name.
    fn of(
        settings: &SshSettings,
        own: &PublicKey,
        told: &[PublicKey],
        offered: &[KeyAlgorithm],
        forget: bool,
    ) -> anyhow::Result<Option<Self>> {
        let unread = |why| anyhow::anyhow!("{why:?}");
        let everywhere = known_files::read(settings).map_err(unread)?;
        let known = known_files::read_own(settings).map_err(unread)?;
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
