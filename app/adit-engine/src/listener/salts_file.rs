//! The salt filter of the AEAD edition over restarts (SEC-R4).

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use adit_net::keep;
use adit_shadowsocks::SaltPool;
use tokio::time::sleep;
use tracing::{info, warn};

/// How often the filter is written: what a crash loses.
const EVERY: Duration = Duration::from_secs(10);
/// A file of more bytes is none of ours.
const MAX_FILE: u64 = 32 << 20;

/// A filter and the file it is kept in.
#[derive(Debug)]
pub(crate) struct SaltsFile {
    path: PathBuf,
    salts: Arc<SaltPool>,
}

impl SaltsFile {
    /// Takes over what the file holds. A file that is damaged is moved aside, and the filter begins
    /// empty: a server that does not start would be worse.
    pub(super) fn open(path: PathBuf, mut salts: SaltPool) -> Self {
        match read(&path) {
            Ok(None) => {}
            Ok(Some(bytes)) => match salts.restore(&bytes) {
                Ok(count) => info!("{}: {count} salts of earlier connections", path.display()),
                Err(why) => {
                    let mut aside = path.clone().into_os_string();
                    aside.push(".broken");
                    // It is in the way no more than it was.
                    let _ = std::fs::rename(&path, &aside);
                    warn!("{}: {why}; moved aside", path.display());
                }
            },
            Err(e) => warn!("{}: {e}; the salt filter begins empty", path.display()),
        }
        Self {
            path,
            salts: Arc::new(salts),
        }
    }

    pub(super) fn salts(&self) -> Arc<SaltPool> {
        self.salts.clone()
    }

    /// Writes the filter now and then, while something has changed.
    pub(super) async fn keep(self: Arc<Self>) {
        let mut written = 0;
        loop {
            sleep(EVERY).await;
            let now = self.salts.taken();
            if now != written {
                written = now;
                let file = self.clone();
                // It ends by itself; a panic in it would be no reason to end the listener.
                let _ = tokio::task::spawn_blocking(move || file.write()).await;
            }
        }
    }

    /// Writes the filter.
    pub(crate) fn write(&self) {
        if let Err(e) = keep::write(&self.path, self.salts.export().expose()) {
            warn!(
                "{}: the salt filter was not written: {e}",
                self.path.display()
            );
        }
    }
}

fn read(path: &std::path::Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.len() > MAX_FILE => Err(io::ErrorKind::FileTooLarge.into()),
        Ok(_) => std::fs::read(path).map(Some),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}
