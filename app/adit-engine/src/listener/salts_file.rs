//! The persistent salt filter of the AEAD edition (SEC-R4).

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use adit_net::persistent_file;
use adit_shadowsocks::SaltPool;
use tokio::time::sleep;
use tracing::{info, warn};

/// Interval at which the filter is written. A crash loses at most this much.
const WRITE_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum size of a salts file, in bytes. Larger files were not written by adit.
const MAX_FILE_BYTES: u64 = 32 << 20;

/// A salt filter and the file that keeps it.
#[derive(Debug)]
pub(crate) struct SaltsFile {
    path: PathBuf,
    salts: Arc<SaltPool>,
    /// True once another process writes the file.
    has_successor: AtomicBool,
}

impl SaltsFile {
    /// Restores the filter from its file. A damaged file is moved aside and the filter starts empty,
    /// because a server that does not start would be worse.
    pub(super) fn open(path: PathBuf, mut salts: SaltPool) -> Self {
        match read_salts_file(&path) {
            Ok(None) => {}
            Ok(Some(bytes)) => match salts.restore_digests(&bytes) {
                Ok(count) => info!("{}: {count} salts of earlier connections", path.display()),
                Err(why) => {
                    let mut aside = path.clone().into_os_string();
                    aside.push(".broken");
                    // If this fails, the file stays where it is and the next write replaces it.
                    let _ = std::fs::rename(&path, &aside);
                    warn!("{}: {why}; moved aside", path.display());
                }
            },
            Err(e) => warn!("{}: {e}; the salt filter starts empty", path.display()),
        }
        Self {
            path,
            salts: Arc::new(salts),
            has_successor: AtomicBool::new(false),
        }
    }

    /// Creates the file of salts that are newer than its content.
    pub(super) const fn with_salts(path: PathBuf, salts: Arc<SaltPool>) -> Self {
        Self {
            path,
            salts,
            has_successor: AtomicBool::new(false),
        }
    }

    pub(super) fn salts(&self) -> Arc<SaltPool> {
        self.salts.clone()
    }

    /// Writes the filter every [`WRITE_INTERVAL`] if it has changed.
    pub(super) async fn write_periodically(self: Arc<Self>) {
        let mut written = 0;
        loop {
            sleep(WRITE_INTERVAL).await;
            let now = self.salts.accepted_count();
            if now != written {
                written = now;
                let file = self.clone();
                // A panic while writing must not end the listener.
                let _ = tokio::task::spawn_blocking(move || file.write()).await;
            }
        }
    }

    /// Leaves the file to another process.
    pub(crate) fn stop_writing(&self) {
        self.has_successor.store(true, Ordering::Relaxed);
    }

    /// Writes the filter to its file.
    pub(crate) fn write(&self) {
        if self.has_successor.load(Ordering::Relaxed) {
            return;
        }
        if let Err(e) =
            persistent_file::write_atomically(&self.path, self.salts.export_digests().expose())
        {
            warn!("{}: cannot write the salt filter: {e}", self.path.display());
        }
    }
}

fn read_salts_file(path: &std::path::Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.len() > MAX_FILE_BYTES => Err(io::ErrorKind::FileTooLarge.into()),
        Ok(_) => std::fs::read(path).map(Some),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}
