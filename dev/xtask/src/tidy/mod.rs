//! `tidy`: the rules that lints cannot check.
//!
//! * dependencies between rings point in one direction ([`ring_dependencies`]);
//! * every source file begins with its documentation, proto names no clock, socket or task,
//!   `unsafe` occurs only where it is allowed, queues are bounded, and no path of a machine occurs
//!   ([`text_rules`]);
//! * modules of a crate form no large cycle ([`module_cycles`]);
//! * ARCHITECTURE.md lists the places of `unsafe` ([`unsafe_list`]);
//! * the README of a library is its documentation ([`readme`]);
//! * the worst words of docs/lexicon.md stay out ([`words`]);
//! * the tests that the page of promises names as proof exist ([`promises`]);
//! * files stay small ([`file_sizes`]).

mod code_paths;
mod code_text;
mod file_sizes;
mod module_cycles;
mod promises;
mod readme;
mod ring_dependencies;
mod text_rules;
mod unsafe_list;
mod words;

use std::path::Path;

use anyhow::{Result, ensure};

use crate::command::root;
use crate::package_graph::PackageGraph;
use crate::source_files::{SourceFile, has_extension, is_below, read_files};

/// Applies all rules to the whole tree.
pub(crate) fn check_tree() -> Result<String> {
    let graph = PackageGraph::load()?;
    if std::env::var_os("ADIT_BLESS").is_some() {
        unsafe_list::write_list(&root(), &read_sources()?)?;
        readme::write_readmes(&root(), &read_sources()?)?;
    }
    let sources = read_sources()?;
    let mut faults = ring_dependencies::find_faults(&graph.rings, &graph.dependencies);
    faults.extend(sources.iter().flat_map(text_rules::find_faults));
    faults.extend(promises::find_faults(&sources));
    faults.extend(module_cycles::find_faults(&sources));
    faults.extend(unsafe_list::find_faults(&sources));
    faults.extend(readme::find_faults(&sources));
    faults.extend(words::faults(&sources));
    let sizes = file_sizes::FileSizes::measure(&sources);
    faults.extend(sizes.find_faults());
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(sizes.to_string())
}

/// Reads the sources and documents that the rules apply to.
fn read_sources() -> Result<Vec<SourceFile>> {
    read_files(&root(), |path| {
        is_source(path) && !is_below(path, "vectors")
    })
}

fn is_source(path: &Path) -> bool {
    has_extension(path, &["rs", "md", "toml", "sh", "service"]) || path.ends_with(".ci/run")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_found() {
        let sources = read_sources().unwrap();
        let has = |path| sources.iter().any(|source| source.path == path);
        assert!(has("Cargo.toml") && has("proto/adit-wire/src/lib.rs") && has(".ci/run"));
        assert!(
            !sources
                .iter()
                .any(|source| source.path.starts_with("target"))
        );
    }
}
