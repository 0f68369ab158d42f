//! The mark of passed tests: the tree that `cargo xtask test` has passed for, in the target folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::run_git;
use crate::command::{root, target_dir};

/// Records that all tests have passed. A tree with changes that are not committed gets no mark.
pub(crate) fn record_passed_tests() -> Result<()> {
    record(&root(), &target_dir())
}

pub(super) fn record(root: &Path, target: &Path) -> Result<()> {
    if !run_git(root, &["status", "--porcelain"])?.is_empty() {
        return Ok(());
    }
    let tree = run_git(root, &["rev-parse", "HEAD^{tree}"])?;
    let path = path(target);
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    Ok(fs::write(path, tree)?)
}

/// Returns the tree of the mark, if there is one.
pub(super) fn passed_tree(target: &Path) -> Option<String> {
    let text = fs::read_to_string(path(target)).ok()?;
    Some(text.trim().to_owned())
}

fn path(target: &Path) -> PathBuf {
    target.join("xtask/passed-tree")
}
