//! The promise of a release: a compatible version removes and changes nothing.

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::snapshot::{ApiDiff, Snapshot};

/// The last release, from `workspace.metadata.api.released` of the root's `Cargo.toml`.
#[derive(Debug)]
pub(super) struct ReleasePolicy {
    /// `None` before the first release: nothing is promised.
    released: Option<Version>,
}

impl ReleasePolicy {
    pub(super) fn load(root: &Path) -> Result<Self> {
        let text = fs::read_to_string(root.join("Cargo.toml")).context("Cargo.toml")?;
        Self::parse(&text)
    }

    fn parse(manifest: &str) -> Result<Self> {
        let released = released_version(manifest)?;
        Ok(Self { released })
    }

    /// Returns the reason why a snapshot must not be written, if there is one.
    pub(super) fn refusal(&self, new: &Snapshot, diff: &ApiDiff) -> Result<Option<String>> {
        let removed: Vec<&str> = diff.removed().collect();
        let Some(released) = self.released else {
            return Ok(None);
        };
        if removed.is_empty() || !released.is_compatible_with(Version::parse(&new.version)?) {
            return Ok(None);
        }
        Ok(Some(format!(
            "{name} {version} is semver-compatible with the last release, and lacks of its API:\n\
             - {lines}\nraise the version in Cargo.toml; if these lines are newer than the release, \
             restore its api/{name}.txt from git first",
            name = new.name,
            version = new.version,
            lines = removed.join("\n- ")
        )))
    }
}

/// Returns the version of the last release in the root's manifest; `None` before the first one.
pub(crate) fn released_version(manifest: &str) -> Result<Option<Version>> {
    let table: toml::Table = toml::from_str(manifest)?;
    let mut keys = ["metadata", "api", "released"].iter();
    let released = table
        .get("workspace")
        .and_then(|workspace| keys.try_fold(workspace, |value, key| value.get(*key)))
        .and_then(toml::Value::as_str)
        .context("Cargo.toml: `workspace.metadata.api.released` is missing")?;
    match released {
        "" => Ok(None),
        version => Version::parse(version).map(Some),
    }
}

/// A version of a crate, without its pre-release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version([u64; 3]);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

impl Version {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let numbers = text.split(['-', '+']).next().unwrap_or_default();
        let mut parts = numbers.split('.').map(str::parse);
        let mut next = || parts.next().and_then(std::result::Result::ok);
        let version = (next(), next(), next());
        match version {
            (Some(major), Some(minor), Some(patch)) => Ok(Self([major, minor, patch])),
            _ => anyhow::bail!("`{text}` is not a version MAJOR.MINOR.PATCH"),
        }
    }

    /// Returns true if cargo would put one in the place of the other: if they are equal up to
    /// their first number that is not zero.
    pub(crate) fn is_compatible_with(self, other: Self) -> bool {
        let significant = self.0.iter().position(|number| *number != 0).unwrap_or(2);
        self.0
            .iter()
            .take(significant + 1)
            .eq(other.0.iter().take(significant + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compatible(old: &str, new: &str) -> bool {
        let parse = |text| Version::parse(text).unwrap();
        parse(old).is_compatible_with(parse(new))
    }

    fn refusal(released: &str, version: &str, old: &[&str], new: &[&str]) -> Option<String> {
        let own = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect();
        let (old, items): (Vec<_>, Vec<_>) = (own(old), own(new));
        let diff = ApiDiff::between(&old, &items);
        let manifest = format!("[workspace.metadata.api]\nreleased = \"{released}\"");
        let new = Snapshot {
            name: "adit-x".to_owned(),
            version: version.to_owned(),
            items,
        };
        ReleasePolicy::parse(&manifest)
            .unwrap()
            .refusal(&new, &diff)
            .unwrap()
    }

    #[test]
    fn compatibility_is_cargos() {
        assert!(compatible("1.2.3", "1.9.0"));
        assert!(!compatible("1.2.3", "2.0.0"));
        assert!(compatible("0.1.0", "0.1.7"));
        assert!(!compatible("0.1.0", "0.2.0"));
        assert!(!compatible("0.1.0", "1.1.0"));
        assert!(!compatible("0.0.1", "0.0.2"));
        assert!(compatible("0.0.1", "0.0.1"));
        assert!(compatible("0.1.0", "0.1.1-rc.1"));
        assert!(Version::parse("1.0").is_err());
        assert!(Version::parse("a.b.c").is_err());
    }

    #[test]
    fn a_compatible_version_removes_and_changes_nothing() {
        let why = refusal("0.1.0", "0.1.1", &["f(u8)"], &["f(u16)"]).unwrap();
        assert!(why.contains("\n- f(u8)\n"), "{why}");
        assert!(refusal("0.1.0", "0.1.1", &["f"], &[]).is_some());
        assert_eq!(refusal("0.1.0", "0.1.1", &["f"], &["f", "g"]), None);
    }

    #[test]
    fn an_incompatible_or_unreleased_version_may_change_all() {
        assert_eq!(refusal("0.1.0", "0.2.0", &["f"], &[]), None);
        assert_eq!(refusal("", "0.1.0", &["f"], &[]), None);
    }

    #[test]
    fn the_manifest_names_the_release() {
        assert!(ReleasePolicy::parse("[workspace]").is_err());
        let here = ReleasePolicy::load(&crate::command::root());
        assert!(here.is_ok(), "{here:?}");
    }
}
