//! Snapshots of an API: one line for each item below a header with the crate's version.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};

/// Number of lines of a difference that are shown.
const SHOWN: usize = 60;

/// The public items of a library at one version.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    pub(super) name: String,
    pub(super) version: String,
    /// One line each, in the order of modules.
    pub(super) items: Vec<String>,
}

impl Snapshot {
    /// Reads the snapshot of a library. Returns `None` if there is none.
    pub(super) fn load(folder: &Path, name: &str) -> Result<Option<Self>> {
        let path = folder.join(format!("{name}.txt"));
        match fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text)
                .map(Some)
                .with_context(|| path.display().to_string()),
            Err(why) if why.kind() == ErrorKind::NotFound => Ok(None),
            Err(why) => Err(why).with_context(|| path.display().to_string()),
        }
    }

    /// Writes the snapshot.
    pub(super) fn save(&self, folder: &Path) -> Result<()> {
        let path = folder.join(format!("{}.txt", self.name));
        fs::write(&path, self.render()).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let header = lines.next().and_then(|line| line.strip_prefix("# "));
        let (name, version) = header
            .and_then(|header| header.split_once(' '))
            .context("the first line is not `# CRATE VERSION`")?;
        Ok(Self {
            name: name.to_owned(),
            version: version.to_owned(),
            items: lines.map(str::to_owned).collect(),
        })
    }

    fn render(&self) -> String {
        let mut text = format!("# {} {}\n", self.name, self.version);
        for item in &self.items {
            text.push_str(item);
            text.push('\n');
        }
        text
    }
}

/// The lines by which two APIs differ, each with its number of copies.
///
/// The order of items has no meaning. A changed item is one that was removed and one that was
/// added.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ApiDiff {
    /// Copies in the new API less those in the old one; never zero.
    lines: BTreeMap<String, i32>,
}

impl ApiDiff {
    pub(super) fn between(old: &[String], new: &[String]) -> Self {
        let mut lines = BTreeMap::new();
        for (items, sign) in [(old, -1), (new, 1)] {
            for item in items {
                *lines.entry(item.clone()).or_insert(0) += sign;
            }
        }
        lines.retain(|_, copies| *copies != 0);
        Self { lines }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns the lines that the new API lacks, sorted.
    pub(super) fn removed(&self) -> impl Iterator<Item = &str> {
        let removed = self.lines.iter().filter(|(_, copies)| **copies < 0);
        removed.map(|(line, _)| line.as_str())
    }
}

/// Each line after a line break.
impl fmt::Display for ApiDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (line, copies) in self.lines.iter().take(SHOWN) {
            let sign = if *copies < 0 { '-' } else { '+' };
            write!(f, "\n{sign} {line}")?;
        }
        match self.lines.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\nand {more} lines more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let snapshot = Snapshot {
            name: "adit-x".to_owned(),
            version: "0.1.0".to_owned(),
            items: items(&["pub mod x", "pub fn x::f()"]),
        };
        let text = snapshot.render();
        assert_eq!(text, "# adit-x 0.1.0\npub mod x\npub fn x::f()\n");
        assert_eq!(Snapshot::parse(&text).unwrap(), snapshot);
        assert!(Snapshot::parse("pub mod x\n").is_err());
        assert!(Snapshot::parse("").is_err());
    }

    #[test]
    fn a_changed_item_is_removed_and_added() {
        let old = items(&["pub mod x", "pub fn x::f(u8)", "pub fn x::g()"]);
        let new = items(&["pub mod x", "pub fn x::g()", "pub fn x::f(u16)"]);
        let diff = ApiDiff::between(&old, &new);
        assert_eq!(diff.to_string(), "\n+ pub fn x::f(u16)\n- pub fn x::f(u8)");
        assert_eq!(diff.removed().collect::<Vec<_>>(), ["pub fn x::f(u8)"]);
        assert!(ApiDiff::between(&old, &old).is_empty());
    }

    #[test]
    fn copies_of_a_line_are_counted() {
        let (one, two) = (items(&["impl X"]), items(&["impl X", "impl X"]));
        assert_eq!(ApiDiff::between(&one, &two).to_string(), "\n+ impl X");
        assert_eq!(ApiDiff::between(&two, &one).removed().count(), 1);
    }

    #[test]
    fn a_long_difference_is_cut() {
        let many: Vec<String> = (0..SHOWN + 3).map(|n| format!("pub fn f{n}()")).collect();
        let diff = ApiDiff::between(&[], &many);
        assert_eq!(diff.removed().count(), 0);
        assert!(diff.to_string().ends_with("\nand 3 lines more"));
    }
}
