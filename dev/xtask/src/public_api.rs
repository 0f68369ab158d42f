//! The public API of each library, compared with its snapshot in `api`.
//!
//! rustdoc describes an API as JSON, in a format that changes with its version and that only
//! `RUSTC_BOOTSTRAP` unlocks in a stable release. The snapshots are therefore made by one version
//! of Rust, [`toolchain::API_VERSION`]. Blanket implementations and those of auto traits are
//! omitted.

pub(crate) mod semver;
mod snapshot;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::command::{root, target_dir};
use crate::package_graph::PackageGraph;
use crate::toolchain::{self, Toolchain};
use semver::ReleasePolicy;
use snapshot::{ApiDiff, Snapshot};

/// The version of rustdoc's format that the crate `public-api` reads.
const FORMAT: u32 = 57;

/// Compares the API of all libraries with their snapshots.
///
/// With `bless`, or `ADIT_BLESS` in the environment, it writes the snapshots instead, unless a
/// change would break the promise of the last release.
///
/// # Errors
///
/// An API differs from its snapshot, or the new snapshot is refused.
pub(crate) fn check_api(bless: bool) -> Result<String> {
    let graph = PackageGraph::load()?;
    let names: Vec<&str> = graph.libraries().collect();
    let mut changes = Vec::new();
    let (mut faults, mut items) = (Vec::new(), 0);
    let docs = document(&names)?;
    for name in &names {
        let new = Snapshot {
            name: (*name).to_owned(),
            version: graph.version(name)?.to_owned(),
            items: read_items(&docs, name).with_context(|| format!("the API of {name}"))?,
        };
        items += new.items.len();
        changes.extend(Change::between(Snapshot::load(&folder(), name)?, new));
    }
    for path in unknown_snapshots(&names)? {
        faults.push(format!(
            "{}: no library of this name; remove it",
            path.display()
        ));
    }
    let summary = format!("{} libraries, {items} items", names.len());
    if bless || std::env::var_os("ADIT_BLESS").is_some() {
        let policy = ReleasePolicy::load(&root())?;
        for change in &changes {
            faults.extend(policy.refusal(&change.new, &change.diff)?);
        }
        ensure!(faults.is_empty(), "{}", faults.join("\n"));
        fs::create_dir_all(folder())?;
        for change in &changes {
            change.new.save(&folder())?;
        }
        return Ok(format!("{summary}; {} snapshots written", changes.len()));
    }
    faults.extend(changes.iter().map(Change::to_string));
    ensure!(
        faults.is_empty(),
        "{}\n`cargo xtask api --bless` writes the snapshots",
        faults.join("\n")
    );
    Ok(summary)
}

/// A library that differs from its snapshot.
#[derive(Debug)]
struct Change {
    new: Snapshot,
    old_version: Option<String>,
    diff: ApiDiff,
}

impl Change {
    /// Returns `None` if the snapshot is up to date.
    fn between(old: Option<Snapshot>, new: Snapshot) -> Option<Self> {
        let diff = ApiDiff::between(old.as_ref().map_or(&[], |old| &old.items), &new.items);
        let old_version = old.map(|old| old.version);
        let current = old_version.as_deref() == Some(new.version.as_str()) && diff.is_empty();
        (!current).then_some(Self {
            new,
            old_version,
            diff,
        })
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Snapshot { name, version, .. } = &self.new;
        match self.old_version.as_deref() {
            None => return write!(f, "api/{name}.txt is missing"),
            Some(old) if old != version => write!(f, "api/{name}.txt: of {old}, not {version}")?,
            Some(_) => write!(f, "api/{name}.txt differs from the API")?,
        }
        write!(f, "{}", self.diff)
    }
}

/// Returns the folder of the snapshots.
fn folder() -> PathBuf {
    root().join("api")
}

/// Returns the snapshots that belong to none of these libraries.
fn unknown_snapshots(names: &[&str]) -> Result<Vec<PathBuf>> {
    let known: BTreeSet<String> = names.iter().map(|name| format!("{name}.txt")).collect();
    let Ok(entries) = fs::read_dir(folder()) else {
        return Ok(Vec::new());
    };
    let mut unknown = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(OsStr::to_str);
        if !name.is_some_and(|name| known.contains(name)) {
            unknown.push(path);
        }
    }
    unknown.sort();
    Ok(unknown)
}

/// Runs rustdoc for the libraries. Returns the folder of its JSON files.
fn document(names: &[&str]) -> Result<PathBuf> {
    let toolchain = Toolchain::active_or_private(toolchain::API_VERSION)?;
    // Only rustdoc is unlocked: build scripts notice the variable, and nearly everything would be
    // compiled once more.
    let rustdoc = target_dir().join("xtask/rustdoc-json");
    rustdoc.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(
        &rustdoc,
        "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n",
    )?;
    fs::set_permissions(&rustdoc, fs::Permissions::from_mode(0o755))?;
    toolchain
        .cargo(&["doc", "--lib", "--no-deps", "--all-features"])
        .args(names.iter().flat_map(|name| ["--package", name]))
        .env("RUSTDOC", &rustdoc)
        // A warning fails the step: no other one reads the documentation as the users of the libraries see it.
        .env(
            "RUSTDOCFLAGS",
            "-D warnings -Zunstable-options --output-format=json",
        )
        .with_limit(20)
        .run_captured("api")?;
    Ok(target_dir().join("doc"))
}

/// Reads a library's API from the JSON of its documentation.
fn read_items(docs: &Path, name: &str) -> Result<Vec<String>> {
    let json = docs.join(format!("{}.json", name.replace('-', "_")));
    let text = fs::read_to_string(&json).with_context(|| json.display().to_string())?;
    let format = format_version(&text);
    ensure!(
        format == Some(FORMAT),
        "rustdoc wrote format {format:?}, not {FORMAT}; public-api and its Rust belong together"
    );
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build()?;
    Ok(api.items().map(ToString::to_string).collect())
}

/// Returns the version of the format, which is the last field.
fn format_version(json: &str) -> Option<u32> {
    let (_, after) = json.rsplit_once("\"format_version\":")?;
    after.trim_end_matches(['}', '\n']).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(version: &str, items: &[&str]) -> Snapshot {
        Snapshot {
            name: "adit-x".to_owned(),
            version: version.to_owned(),
            items: items.iter().map(|item| (*item).to_owned()).collect(),
        }
    }

    #[test]
    fn the_format_is_read_from_the_end() {
        let json = r#"{"docs":"\"format_version\":1","format_version":57}"#;
        assert_eq!(format_version(json), Some(57));
        assert_eq!(format_version("{}"), None);
    }

    #[test]
    fn a_missing_old_or_different_snapshot_is_a_change() {
        let new = || snapshot("0.2.0", &["a", "b"]);
        assert!(Change::between(Some(new()), new()).is_none());
        let missing = Change::between(None, new()).unwrap();
        assert_eq!(missing.to_string(), "api/adit-x.txt is missing");
        let older = Change::between(Some(snapshot("0.1.0", &["a", "b"])), new()).unwrap();
        assert_eq!(older.to_string(), "api/adit-x.txt: of 0.1.0, not 0.2.0");
        let other = Change::between(Some(snapshot("0.2.0", &["a"])), new()).unwrap();
        assert_eq!(
            other.to_string(),
            "api/adit-x.txt differs from the API\n+ b"
        );
    }
}
