//! The files of the tree: those that are written by hand and committed.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Folders whose files are built, generated, broken on purpose, or not part of this project.
const FOREIGN: &[&str] = &[
    "target",
    ".git",
    "fuzz/corpus",
    "fuzz/artifacts",
    "fuzz/target",
    "app/adit/tests/broken",
];

/// Returns the names of the files of a folder with this extension, without it, in their order.
pub(crate) fn file_stems(folder: &Path, extension: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if has_extension(&path, &[extension]) {
            let stem = path.file_stem();
            names.extend(stem.map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// A file of the tree, with its path from the root.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Reads the files of the tree whose path from the root is `wanted`, in the order of their paths.
pub(crate) fn read_files(root: &Path, wanted: impl Fn(&Path) -> bool) -> Result<Vec<SourceFile>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let inside = path.strip_prefix(root)?;
            if path.is_symlink() || FOREIGN.iter().any(|foreign| inside == Path::new(foreign)) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if wanted(inside) {
                let inside = inside.to_string_lossy().into_owned();
                let text = fs::read_to_string(&path).with_context(|| inside.clone())?;
                found.push(SourceFile { path: inside, text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    ensure!(!found.is_empty(), "no such files in {}", root.display());
    Ok(found)
}

/// Returns true if the path has one of these extensions.
pub(crate) fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension()
        .is_some_and(|end| extensions.iter().any(|name| end == *name))
}

/// Returns true if a folder of the path, apart from its first one, has this name.
pub(crate) fn is_below(path: &Path, folder: &str) -> bool {
    path.parent().is_some_and(|above| {
        above
            .components()
            .skip(1)
            .any(|part| part.as_os_str() == folder)
    })
}
