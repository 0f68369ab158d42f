//! The files that the rules apply to.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// A file of the tree, with its path from the root.
#[derive(Debug)]
pub(super) struct SourceFile {
    pub(super) path: String,
    pub(super) text: String,
}

/// Returns our sources and docs: the files that are written by hand and committed.
pub(super) fn read_sources(root: &Path) -> Result<Vec<SourceFile>> {
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
                found.push(SourceFile { path: inside, text });
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
    ]
    .contains(&path)
        || path.ends_with("/vectors")
}

fn is_source(path: &Path) -> bool {
    let named = |names: &[&str]| {
        path.extension()
            .is_some_and(|e| names.iter().any(|name| e == *name))
    };
    named(&["rs", "md", "toml", "sh", "service"]) || path.ends_with(".ci/run")
}
