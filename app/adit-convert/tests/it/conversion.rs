//! Short ways from a foreign text to what came of it.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use adit_config::{FileText, Plan, Problem, Sources};
use adit_convert::{Converted, Role, Wish};

/// Files and variables that a configuration names.
#[derive(Default)]
pub(crate) struct Folder {
    files: HashMap<PathBuf, String>,
    variables: HashMap<String, String>,
}

impl Folder {
    pub(crate) fn file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.into(), text.to_owned());
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }
}

impl Sources for Folder {
    fn file(&self, path: &Path) -> io::Result<FileText> {
        let text = self.files.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(FileText {
            text: text.clone().into(),
            readable_by_others: false,
        })
    }

    fn variable(&self, name: &str) -> Option<zeroize::Zeroizing<String>> {
        self.variables.get(name).cloned().map(Into::into)
    }
}

const NAME: &str = "etc/c.json";

pub(crate) fn convert(text: &str) -> Converted {
    convert_as(text, Role::Auto, &Folder::default())
        .unwrap_or_else(|problems| panic!("{text}\n{problems:?}"))
}

pub(crate) fn convert_as(
    text: &str,
    role: Role,
    folder: &Folder,
) -> Result<Converted, Vec<Problem>> {
    let wish = Wish {
        role,
        ..Wish::default()
    };
    adit_convert::convert(text, NAME, &wish, folder)
}

/// The TOML without its comments.
pub(crate) fn body(converted: &Converted) -> String {
    let head = format!("# From `{NAME}` ({}).", converted.format);
    let mut lines = converted.toml.lines();
    assert_eq!(lines.next(), Some(head.as_str()));
    let body = lines.skip_while(|line| line.starts_with("# note: "));
    let body: Vec<&str> = body.collect();
    assert_eq!(body[0], "", "{body:?}");
    body[1..].join("\n") + "\n"
}

pub(crate) fn notes(converted: &Converted) -> Vec<String> {
    converted.notes.iter().map(ToString::to_string).collect()
}

pub(crate) fn plan(converted: &Converted) -> Plan {
    plan_with(converted, &Folder::default())
}

pub(crate) fn plan_with(converted: &Converted, folder: &Folder) -> Plan {
    Plan::from_toml_with(&converted.toml, "c.toml", folder)
        .unwrap_or_else(|problems| panic!("{}\n{problems:?}", &*converted.toml))
}

pub(crate) fn problems(result: Result<Converted, Vec<Problem>>) -> String {
    let problems = result.expect_err("it was converted");
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    texts.join("\n")
}
