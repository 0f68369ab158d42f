//! The files that contain the version, and their texts with another one.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::changelog::Changelog;
use super::checks::workspace_version;

/// New texts of files.
#[derive(Debug)]
pub(super) struct VersionChange {
    pub(super) old: String,
    /// Paths from the root, with the texts.
    pub(super) files: Vec<(String, String)>,
}

impl VersionChange {
    /// Returns the change of the files among `paths` to the version `new`, released on `date`.
    pub(super) fn plan<'a>(
        root: &Path,
        paths: impl Iterator<Item = &'a str>,
        new: &str,
        date: &str,
    ) -> Result<Self> {
        let read =
            |path: &str| fs::read_to_string(root.join(path)).with_context(|| path.to_owned());
        let manifest = read("Cargo.toml")?;
        let old = workspace_version(&manifest)?;
        let mut files = Vec::new();
        for path in paths {
            let is = |end: &str| path == end || path.ends_with(&format!("/{end}"));
            let is_snapshot = path.starts_with("api/") && path.ends_with(".txt");
            if !(is("Cargo.toml") || is("Cargo.lock") || is_snapshot || path == "CHANGELOG.md") {
                continue;
            }
            let before = read(path)?;
            let after = match path {
                "CHANGELOG.md" => Changelog::parse(&before)?.with_release(new, date)?,
                "Cargo.toml" => change_root(&change_dependencies(&before, &old, new), new)?,
                _ if is_snapshot => change_header(&before, new),
                _ if is("Cargo.lock") => change_lock(&before, &old, new),
                _ => change_dependencies(&before, &old, new),
            };
            if after != before {
                files.push((path.to_owned(), after));
            }
        }
        Ok(Self { old, files })
    }
}

/// Sets the versions of the workspace and of the last release.
fn change_root(manifest: &str, new: &str) -> Result<String> {
    let mut table = "";
    let mut changed = 0;
    let mut text = String::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            table = line;
        }
        let key = line.split('=').next().unwrap_or_default().trim();
        match (table, key) {
            ("[workspace.package]", "version") | ("[workspace.metadata.api]", "released") => {
                text.push_str(&format!("{key} = \"{new}\"\n"));
                changed += 1;
            }
            _ => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    ensure!(
        changed == 2,
        "Cargo.toml: `version` or `released` of the workspace is missing"
    );
    Ok(text)
}

/// Changes the required versions of crates of this repository.
fn change_dependencies(manifest: &str, old: &str, new: &str) -> String {
    let (from, to) = (
        format!("version = \"{old}\""),
        format!("version = \"{new}\""),
    );
    change_lines(manifest, |line| {
        (line.contains("path = \"")).then(|| line.replace(&from, &to))
    })
}

/// Changes the versions of crates without a source, which are those of this repository.
fn change_lock(lock: &str, old: &str, new: &str) -> String {
    let (from, to) = (
        format!("\nversion = \"{old}\"\n"),
        format!("\nversion = \"{new}\"\n"),
    );
    let blocks = lock.split("\n[[package]]\n").map(|block| {
        let is_own = block.starts_with("name = \"adit") || block.starts_with("name = \"xtask\"");
        match is_own && !block.contains("\nsource = ") {
            true => block.replacen(&from, &to, 1),
            false => block.to_owned(),
        }
    });
    blocks.collect::<Vec<_>>().join("\n[[package]]\n")
}

/// Changes the version in the first line of a snapshot: `# CRATE VERSION`.
fn change_header(snapshot: &str, new: &str) -> String {
    let Some((header, rest)) = snapshot.split_once('\n') else {
        return snapshot.to_owned();
    };
    let name = header.rsplit_once(' ').map_or(header, |(name, _)| name);
    format!("{name} {new}\n{rest}")
}

fn change_lines(text: &str, change: impl Fn(&str) -> Option<String>) -> String {
    let lines = text
        .lines()
        .map(|line| change(line).unwrap_or_else(|| line.to_owned()) + "\n");
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_crates_change() {
        let lock = "version = 4\n\n[[package]]\nname = \"adit-wire\"\nversion = \"0.1.0\"\n\n[[package]]\n\
                    name = \"serde\"\nversion = \"0.1.0\"\nsource = \"registry\"\n";
        let changed = change_lock(lock, "0.1.0", "0.2.0");
        assert_eq!(changed, lock.replacen("0.1.0", "0.2.0", 1));
        let manifest = "adit-wire = { path = \"a\", version = \"0.1.0\" }\nserde = \"0.1.0\"\n";
        let changed = change_dependencies(manifest, "0.1.0", "0.2.0");
        assert_eq!(changed, manifest.replacen("0.1.0", "0.2.0", 1));
        assert_eq!(
            change_header("# adit-x 0.1.0\npub mod x\n", "1.0.0"),
            "# adit-x 1.0.0\npub mod x\n"
        );
    }
}
