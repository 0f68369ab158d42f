//! Profiles: URLs of servers under short names, in the user's state folder, readable by the user alone.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use adit_cli::{Failure, FailureCode};
use adit_config::MAX_URL_LEN;
use adit_net::persistent_file::{self, FileOwner};
use anyhow::Context;
use zeroize::Zeroizing;

/// Maximum length of a name, in bytes.
const MAX_NAME: usize = 64;
/// Maximum size of a file, in bytes: the URL and its line end.
const MAX_FILE: usize = MAX_URL_LEN + 2;
/// The end of the names of the files.
const SUFFIX: &str = ".url";

/// The folder of the profiles.
pub(crate) struct ProfileFolder(PathBuf);

impl ProfileFolder {
    /// Returns the folder in `state`, the state folder.
    pub(crate) fn new(state: &Path) -> Self {
        Self(state.join("profiles"))
    }

    /// Stores a URL. An earlier one under this name is replaced. Returns the path of the file.
    pub(crate) fn store(&self, name: &str, url: &str) -> Result<PathBuf, Failure> {
        let path = self.path_of(name)?;
        let text = Zeroizing::new(format!("{url}\n"));
        persistent_file::write_atomically(&path, text.as_bytes())
            .with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }

    /// Returns the URL that is stored under a name.
    pub(crate) fn load(&self, name: &str) -> Result<Zeroizing<String>, Failure> {
        let path = self.path_of(name)?;
        match FileOwner::current().read_secret(&path, MAX_FILE) {
            Ok(text) => Ok(Zeroizing::new(Zeroizing::new(text).trim().to_owned())),
            Err(why) if why.kind() == ErrorKind::NotFound => {
                let what = format!("no profile `{name}` is stored in {}", self.0.display());
                let hint = match self.names()?.as_slice() {
                    [] => format!(
                        "a URL has `://`; `adit client - --save {name}` asks for one and stores it"
                    ),
                    names => format!("the stored profiles are {}", names.join(", ")),
                };
                Err(Failure::new(FailureCode::Usage, what).with_hint(hint))
            }
            Err(why) => {
                let what = format!("reading {}: {why}", path.display());
                Err(Failure::new(FailureCode::Config, what))
            }
        }
    }

    /// Returns the names of the profiles, sorted.
    pub(crate) fn names(&self) -> Result<Vec<String>, Failure> {
        let entries = match std::fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(why) => {
                let what = format!("reading {}: {why}", self.0.display());
                return Err(Failure::new(FailureCode::Failure, what));
            }
        };
        let names = entries.flatten().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let name = name.strip_suffix(SUFFIX)?;
            is_profile_name(name).then(|| name.to_owned())
        });
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        Ok(names)
    }

    fn path_of(&self, name: &str) -> Result<PathBuf, Failure> {
        if !is_profile_name(name) {
            let what = format!("`{name}` is neither a URL nor a valid name for a profile");
            return Err(Failure::new(FailureCode::Usage, what).with_hint(
                "a URL has `://`; a name has 1 to 64 letters, digits, `-`, `_` and `.`, and begins with a letter \
                 or digit",
            ));
        }
        Ok(self.0.join(format!("{name}{SUFFIX}")))
    }
}

/// Returns true if the name of a file can contain it: no separators, and no name that begins with a dot or looks
/// like an option.
fn is_profile_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_the_folder() {
        for name in ["home", "a", "vps-1.example", "0_x"] {
            assert!(is_profile_name(name), "{name}");
        }
        let long = "x".repeat(65);
        for name in ["", ".", "..", "../x", "a/b", "-x", ".x", "a b", "ä", &long] {
            assert!(!is_profile_name(name), "{name}");
        }
    }
}
