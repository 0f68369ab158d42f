//! The audit log: who has changed what through the API, one JSON object per line, without secrets.
//!
//! An entry is written and synced before the answer to its request is sent. The file is opened for each entry, so that
//! other programs can rename it at any time.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use adit_net::persistent_file::LineFile;
use adit_net::system;
use serde::Serialize;
use serde_json::Value;
use tracing::error;

/// Writes entries.
#[derive(Debug, Clone)]
pub struct AuditLog(Arc<AuditFile>);

#[derive(Debug)]
struct AuditFile {
    path: PathBuf,
    /// True if the last entry was not written, which was logged.
    has_failed: AtomicBool,
}

/// An entry.
#[derive(Debug, Serialize)]
pub(crate) struct AuditEntry {
    /// The time, in seconds since 1970.
    time: u64,
    /// The sender of the request.
    by: String,
    /// The method and the path.
    action: String,
    /// The details that the request names besides its path.
    #[serde(skip_serializing_if = "Value::is_null")]
    about: Value,
    /// The status of the answer.
    status: u16,
    /// The reason of a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl AuditEntry {
    /// Creates an entry about a request that was answered with `status`.
    pub(crate) fn new(
        by: String,
        action: String,
        about: Value,
        status: u16,
        error: Option<String>,
    ) -> Self {
        Self {
            time: system::unix_now().0,
            by,
            action,
            about,
            status,
            error,
        }
    }
}

impl AuditLog {
    /// Creates a log in a file, which is created for the user alone if it does not exist. This function blocks.
    ///
    /// # Errors
    /// The file cannot be opened for writing.
    pub fn open(path: &Path) -> io::Result<Self> {
        drop(LineFile::open(path)?);
        Ok(Self(Arc::new(AuditFile {
            path: path.to_owned(),
            has_failed: AtomicBool::new(false),
        })))
    }

    /// Writes an entry. That it cannot be written is an error in the log: what it is about has happened already.
    pub(crate) async fn write(&self, entry: &AuditEntry) {
        // Texts and numbers alone: nothing of it can fail.
        let line = serde_json::to_string(entry).unwrap_or_default();
        let file = self.0.clone();
        let write = move || {
            let written = LineFile::open(&file.path).and_then(|mut file| file.append_line(&line));
            let had_failed = file.has_failed.swap(written.is_err(), Ordering::Relaxed);
            if let Err(why) = written
                && !had_failed
            {
                let path = file.path.display();
                error!("{path}: {why}; changes are not recorded until it can be written");
            }
        };
        // The runtime may end.
        let _ = tokio::task::spawn_blocking(write).await;
    }
}
