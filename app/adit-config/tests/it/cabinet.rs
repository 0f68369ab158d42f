//! Files and variables that a test lays out, and short ways to a plan.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use adit_config::ssh_config::SshSources;
use adit_config::{FileText, Plan, Problem, Sources};

#[derive(Default)]
pub(crate) struct Cabinet {
    files: HashMap<PathBuf, (String, bool)>,
    variables: HashMap<String, String>,
}

impl Cabinet {
    pub(crate) fn file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.into(), (text.to_owned(), false));
        self
    }

    pub(crate) fn open_file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.into(), (text.to_owned(), true));
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }
}

impl SshSources for Cabinet {
    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let here = self
            .files
            .keys()
            .filter(|path| path.parent() == Some(folder));
        let names = here.filter_map(|path| path.file_name()?.to_str());
        Ok(names.map(str::to_owned).collect())
    }
}

impl Sources for Cabinet {
    fn file(&self, path: &Path) -> io::Result<FileText> {
        match self.files.get(path) {
            Some((text, readable_by_others)) => Ok(FileText {
                text: text.clone().into(),
                readable_by_others: *readable_by_others,
            }),
            None => Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
        }
    }

    fn variable(&self, name: &str) -> Option<zeroize::Zeroizing<String>> {
        self.variables.get(name).cloned().map(Into::into)
    }
}

pub(crate) fn words(words: &[&str]) -> Result<Plan, Vec<Problem>> {
    words_with(words, &Cabinet::default())
}

pub(crate) fn words_with(words: &[&str], cabinet: &Cabinet) -> Result<Plan, Vec<Problem>> {
    let words: Vec<String> = words.iter().map(ToString::to_string).collect();
    Plan::from_words_with(&words, cabinet)
}

pub(crate) fn toml(text: &str) -> Result<Plan, Vec<Problem>> {
    Plan::from_toml_with(text, "adit.toml", &Cabinet::default())
}

/// All problems as a user sees them.
pub(crate) fn shown(result: Result<Plan, Vec<Problem>>) -> String {
    let problems = result.expect_err("a plan was made");
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    texts.join("\n")
}
