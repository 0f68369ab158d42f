//! The state folder of adit.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// Returns the state folder: `asked`, or the default for the user from `STATE_DIRECTORY`, `XDG_STATE_HOME`,
/// `HOME` or `USERPROFILE`.
///
/// # Errors
/// None of these is set.
pub fn state_folder(asked: Option<&Path>) -> Result<PathBuf> {
    if let Some(dir) = asked {
        return Ok(dir.to_owned());
    }
    let var = |name| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    if let Some(dir) = var("STATE_DIRECTORY") {
        return Ok(dir);
    }
    if let Some(dir) = var("XDG_STATE_HOME") {
        return Ok(dir.join("adit"));
    }
    match var("HOME").or_else(|| var("USERPROFILE")) {
        Some(home) => Ok(home.join(".local/state/adit")),
        None => {
            bail!(
                "HOME is not set, so there is no state folder for the key; set one with --state DIR"
            )
        }
    }
}
