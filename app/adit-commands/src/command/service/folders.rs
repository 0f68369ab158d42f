//! The folders of the user.

use std::path::PathBuf;

use adit_cli::{Failure, FailureCode};

/// Returns the folder of the user's settings.
pub(super) fn config_home() -> Result<PathBuf, Failure> {
    match std::env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty()) {
        Some(folder) => Ok(folder.into()),
        None => Ok(home()?.join(".config")),
    }
}

pub(super) fn home() -> Result<PathBuf, Failure> {
    let home = std::env::var_os("HOME").filter(|folder| !folder.is_empty());
    home.map(PathBuf::from)
        .ok_or_else(|| Failure::new(FailureCode::Failure, "HOME is not set"))
}
