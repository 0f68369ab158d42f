//! Files and variables in memory.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::source::{FileText, Sources};

/// [`Sources`] in memory, filled by a program or a test.
#[derive(Default)]
pub struct MemorySources {
    /// Texts, each with a flag that is true if other users may read the file.
    files: HashMap<PathBuf, (Zeroizing<String>, bool)>,
    /// Variables of the environment.
    variables: HashMap<String, Zeroizing<String>>,
}

impl MemorySources {
    /// Adds a file that only its owner may read.
    #[must_use]
    pub fn with_file(mut self, path: impl Into<PathBuf>, text: &str) -> Self {
        self.files
            .insert(path.into(), (text.to_owned().into(), false));
        self
    }

    /// Adds a file that other users may read too.
    #[must_use]
    pub fn with_open_file(mut self, path: impl Into<PathBuf>, text: &str) -> Self {
        self.files
            .insert(path.into(), (text.to_owned().into(), true));
        self
    }

    /// Adds a variable of the environment.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables
            .insert(name.to_owned(), value.to_owned().into());
        self
    }

    /// Returns the names of the files in a folder, in any order.
    pub fn file_names_in(&self, folder: &Path) -> impl Iterator<Item = &str> {
        let here = self
            .files
            .keys()
            .filter(move |path| path.parent() == Some(folder));
        here.filter_map(|path| path.file_name()?.to_str())
    }
}

impl Sources for MemorySources {
    fn read_file(&self, path: &Path) -> io::Result<FileText> {
        match self.files.get(path) {
            Some((text, readable_by_others)) => Ok(FileText {
                text: text.clone(),
                readable_by_others: *readable_by_others,
            }),
            None => Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
        }
    }

    fn read_variable(&self, name: &str) -> Option<Zeroizing<String>> {
        self.variables.get(name).cloned()
    }

    fn list_names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let names: Vec<String> = self.file_names_in(folder).map(str::to_owned).collect();
        if names.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(names)
    }
}
