//! A temporary folder for one test, removed when it is dropped.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

use anyhow::{Context, Result};

/// A new, empty folder.
#[derive(Debug)]
pub struct TempFolder {
    path: PathBuf,
}

impl TempFolder {
    /// Creates the folder in the system's folder for temporary files.
    pub fn new(name: &str) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("adit-{name}-{}-{number}", process::id()));
        fs::create_dir(&path).with_context(|| path.display().to_string())?;
        Ok(Self { path })
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file into the folder and returns its path.
    pub fn write_file(&self, name: &str, content: impl AsRef<[u8]>) -> Result<PathBuf> {
        let file = self.path.join(name);
        fs::write(&file, content).with_context(|| file.display().to_string())?;
        Ok(file)
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
