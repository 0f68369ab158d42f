//! The file of the selections in manual groups, which outlive the process.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use adit_engine::connector::{MemberSelection, MemberSelections};
use adit_net::persistent_file;
use serde::{Deserialize, Serialize};
use tracing::warn;

/// The folder of the files in the state folder.
const FOLDER: &str = "selections";
/// Maximum size of a file, in bytes.
const MAX_FILE: usize = 4 << 20;

/// The file of the selections in the groups of one configuration file.
#[derive(Debug, Clone)]
pub struct SelectionFile {
    path: PathBuf,
    /// The configuration file, as readers of this file know it.
    config: String,
}

/// An error of [`SelectionFile::read`].
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error("not a file of selections")]
    Json(#[from] serde_json::Error),
    #[error("not a file of selections: too many groups")]
    TooManyGroups,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileContent {
    /// The configuration file; for people.
    config: String,
    /// The selections, by the name of the group.
    groups: BTreeMap<String, GroupSelection>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupSelection {
    selected: String,
    configured: String,
}

impl SelectionFile {
    /// Returns the file for the configuration file `config` in the state folder `state`, which need not exist yet.
    /// Processes with other configuration files use other files, so that none overwrites the selections of another.
    #[must_use]
    pub fn in_state_folder(state: &Path, config: &Path) -> Self {
        // A file that is removed meanwhile has the same name again later.
        let config = std::path::absolute(config).unwrap_or_else(|_| config.to_owned());
        let hash = adit_crypto::sha256(config.as_os_str().as_encoded_bytes());
        let name: String = hash
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Self {
            path: state.join(FOLDER).join(format!("{name}.json")),
            config: config.display().to_string(),
        }
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the selections. A file that cannot be read is a warning in the log, and there are no selections then;
    /// the next [`write`](Self::write) replaces it. This function blocks.
    #[must_use]
    pub fn read(&self) -> MemberSelections {
        match self.try_read() {
            Ok(selections) => selections,
            Err(ReadError::File(why)) if why.kind() == io::ErrorKind::NotFound => {
                MemberSelections::default()
            }
            Err(why) => {
                let path = self.path.display();
                warn!(
                    "{path}: {why}; manual groups use the members that {} selects",
                    self.config
                );
                MemberSelections::default()
            }
        }
    }

    fn try_read(&self) -> Result<MemberSelections, ReadError> {
        let bytes = persistent_file::read_bounded(&self.path, MAX_FILE)?;
        let content: FileContent = serde_json::from_slice(&bytes)?;
        let mut selections = MemberSelections::default();
        for (group, made) in content.groups {
            let selection = MemberSelection {
                member: made.selected,
                configured: made.configured,
            };
            if !selections.record(group, selection) {
                return Err(ReadError::TooManyGroups);
            }
        }
        Ok(selections)
    }

    /// Writes the selections; only the user can read the file. This function blocks.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or would be longer than 4 MiB; the former file is unchanged then.
    pub fn write(&self, selections: &MemberSelections) -> io::Result<()> {
        let group = |(group, made): (&str, &MemberSelection)| {
            let selection = GroupSelection {
                selected: made.member.clone(),
                configured: made.configured.clone(),
            };
            (group.to_owned(), selection)
        };
        let content = FileContent {
            config: self.config.clone(),
            groups: selections.iter().map(group).collect(),
        };
        let mut text = serde_json::to_vec_pretty(&content)?;
        text.push(b'\n');
        if text.len() > MAX_FILE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        persistent_file::write_atomically(&self.path, &text)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn selections() -> MemberSelections {
        let mut selections = MemberSelections::default();
        let selection = MemberSelection {
            member: "two \"2\"".to_owned(),
            configured: "one".to_owned(),
        };
        assert!(selections.record("abroad".to_owned(), selection));
        selections
    }

    #[test]
    fn selections_are_read_as_they_were_written() {
        let state = std::env::temp_dir().join(format!("adit-selections-{}", std::process::id()));
        let file = SelectionFile::in_state_folder(&state, Path::new("/etc/adit.toml"));
        let other = SelectionFile::in_state_folder(&state, Path::new("/etc/other.toml"));
        assert_eq!(file.read(), MemberSelections::default());
        file.write(&selections()).unwrap();
        assert_eq!(file.read(), selections());
        assert_eq!(other.read(), MemberSelections::default());
        let text = fs::read_to_string(file.path()).unwrap();
        assert!(text.contains("/etc/adit.toml"), "{text}");
        for broken in [
            "",
            "{",
            "[]",
            "{\"config\": \"\", \"groups\": {}, \"x\": 1}",
        ] {
            fs::write(file.path(), broken).unwrap();
            assert_eq!(file.read(), MemberSelections::default(), "{broken}");
        }
        fs::write(file.path(), vec![b' '; MAX_FILE + 1]).unwrap();
        assert_eq!(file.read(), MemberSelections::default());
        file.write(&selections()).unwrap();
        assert_eq!(file.read(), selections());
        fs::remove_dir_all(&state).unwrap();
    }
}
