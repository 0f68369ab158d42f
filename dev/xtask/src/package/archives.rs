//! The files of a release in `target/dist`: for each target a folder, its archive, and the sums.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// Name of the file with the SHA-256 of each archive.
pub(super) const SUMS: &str = "SHA256SUMS";

/// The contents of one archive, unpacked.
#[derive(Debug, Clone)]
pub(super) struct UnpackedTarget {
    /// Target triple of Rust.
    pub(super) target: String,
    pub(super) folder: PathBuf,
}

impl UnpackedTarget {
    /// Returns the processor family, as Rust names it.
    pub(super) fn processor(&self) -> &str {
        self.target.split('-').next().unwrap_or_default()
    }

    /// Returns the program.
    pub(super) fn program(&self) -> PathBuf {
        self.folder.join("adit")
    }
}

/// The files of a release.
#[derive(Debug)]
pub(super) struct ReleaseArchives {
    /// The folders of targets that are Linux.
    pub(super) linux: Vec<UnpackedTarget>,
    folder: PathBuf,
    version: String,
    /// SHA-256 of each archive, in hexadecimal, by file name.
    sums: BTreeMap<String, String>,
}

impl ReleaseArchives {
    /// Reads the folder that `cargo xtask dist` has written.
    pub(super) fn read(folder: &Path, version: &str) -> Result<Self> {
        let hint = || {
            format!(
                "{}: no release; `cargo xtask dist` writes it",
                folder.display()
            )
        };
        let mut linux = Vec::new();
        let prefix = folder_name(version, "");
        for entry in fs::read_dir(folder).with_context(hint)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let Some(target) = name.strip_prefix(&prefix) else {
                continue;
            };
            if path.join("adit").is_file() && target.contains("-linux-") {
                linux.push(UnpackedTarget {
                    target: target.to_owned(),
                    folder: path.clone(),
                });
            }
        }
        linux.sort_by(|one, other| one.target.cmp(&other.target));
        let sums = folder.join(SUMS);
        let sums = fs::read_to_string(&sums).with_context(|| sums.display().to_string())?;
        Ok(Self {
            linux,
            folder: folder.to_owned(),
            version: version.to_owned(),
            sums: parse_sums(&sums)?,
        })
    }

    /// Returns the SHA-256 of a target's archive.
    ///
    /// # Errors
    /// The release has no archive for this target.
    pub(super) fn sum(&self, target: &str) -> Result<&str> {
        let file = archive_name(&self.version, target);
        let sum = self.sums.get(&file).map(String::as_str);
        sum.with_context(|| {
            format!(
                "{}: no `{file}`, which this package downloads: `cargo xtask dist {target}`, or a build on that system, \
                 makes it",
                self.folder.join(SUMS).display()
            )
        })
    }

    /// Returns the Linux targets.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn require_linux(&self) -> Result<&[UnpackedTarget]> {
        ensure!(
            !self.linux.is_empty(),
            "{}: no folder `{}` with a program for Linux; `cargo xtask dist` makes one",
            self.folder.display(),
            folder_name(&self.version, "TARGET")
        );
        Ok(&self.linux)
    }
}

/// Returns the name of the folder that is in a target's archive.
pub(super) fn folder_name(version: &str, target: &str) -> String {
    format!("adit-{version}-{target}")
}

/// Returns the name of a target's archive.
pub(super) fn archive_name(version: &str, target: &str) -> String {
    let kind = match target.contains("-windows-") {
        true => "zip",
        false => "tar.gz",
    };
    format!("{}.{kind}", folder_name(version, target))
}

/// Parses the output of `sha256sum`.
fn parse_sums(text: &str) -> Result<BTreeMap<String, String>> {
    let parse_line = |line: &str| {
        let (sum, name) = line.split_once("  ")?;
        let is_sum = sum.len() == 64 && sum.bytes().all(|b| b.is_ascii_hexdigit());
        is_sum.then(|| (name.to_owned(), sum.to_owned()))
    };
    let lines = text.lines().enumerate();
    lines
        .map(|(at, line)| {
            parse_line(line).with_context(|| format!("{SUMS}:{}: not `SUM  FILE`", at + 1))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_parsed() {
        let sum = "ab".repeat(32);
        let sums = parse_sums(&format!("{sum}  a.zip\n{sum}  b.tar.gz\n")).unwrap();
        assert_eq!(sums.get("a.zip"), Some(&sum));
        let why = parse_sums(&format!("{sum}  a\nxy  b\n")).unwrap_err();
        assert_eq!(why.to_string(), "SHA256SUMS:2: not `SUM  FILE`");
    }

    #[test]
    fn archives_are_named_by_target() {
        assert_eq!(
            archive_name("1.0.0", "x86_64-pc-windows-gnu"),
            "adit-1.0.0-x86_64-pc-windows-gnu.zip"
        );
        assert_eq!(
            archive_name("1.0.0", "x86_64-unknown-linux-musl"),
            "adit-1.0.0-x86_64-unknown-linux-musl.tar.gz"
        );
    }
}
