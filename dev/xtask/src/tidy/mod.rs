//! `tidy`: the rules that lints cannot see.
//!
//! * the arrows between rings point one way ([`arrows`]);
//! * every source file says what it is, proto names no clock, socket or task, `unsafe` stands only
//!   where it may, nothing is unbounded, no machine's paths ([`text`]);
//! * modules of a crate lead in no large circle ([`circles`]);
//! * what the page of promises names as proof is there ([`promises`]);
//! * files stay small ([`sizes`]).

mod arrows;
mod circles;
mod code;
mod paths;
mod promises;
mod sizes;
mod text;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::graph::Graph;
use crate::run::root;

/// A file of the tree, with its path from the root.
#[derive(Debug)]
struct Source {
    path: String,
    text: String,
}

/// All rules over the whole tree.
pub(crate) fn check() -> Result<String> {
    let graph = Graph::load()?;
    let sources = sources(&root())?;
    let mut faults = arrows::faults(&graph.rings, &graph.arrows);
    faults.extend(sources.iter().flat_map(text::faults));
    faults.extend(promises::faults(&sources));
    faults.extend(circles::faults(&sources));
    let sizes = sizes::Sizes::of(&sources);
    faults.extend(sizes.faults());
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(sizes.to_string())
}

/// Our sources and docs: what is written by hand and committed.
fn sources(root: &Path) -> Result<Vec<Source>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let inside = path.strip_prefix(root)?.to_string_lossy().into_owned();
            if path.is_symlink() || is_foreign(&inside) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if is_source(&path) {
                let text = fs::read_to_string(&path).with_context(|| inside.clone())?;
                found.push(Source { path: inside, text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    ensure!(!found.is_empty(), "no sources in {}", root.display());
    Ok(found)
}

fn is_foreign(path: &str) -> bool {
    [
        "target",
        ".git",
        "fuzz/corpus",
        "fuzz/artifacts",
        "fuzz/target",
        "vectors",
    ]
    .contains(&path)
}

fn is_source(path: &Path) -> bool {
    let named = |names: &[&str]| {
        path.extension()
            .is_some_and(|e| names.iter().any(|name| e == *name))
    };
    named(&["rs", "md", "toml", "sh", "service"]) || path.ends_with(".ci/run")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_found() {
        let sources = sources(&root()).unwrap();
        let has = |path| sources.iter().any(|source| source.path == path);
        assert!(has("Cargo.toml") && has("proto/adit-wire/src/lib.rs") && has(".ci/run"));
        assert!(
            !sources
                .iter()
                .any(|source| source.path.starts_with("target"))
        );
    }
}
