//! `tidy`: the rules that lints cannot check.
//!
//! * dependencies between rings point in one direction ([`arrows`]);
//! * every source file begins with its documentation, proto names no clock, socket or task,
//!   `unsafe` occurs only where it is allowed, queues are bounded, and no path of a machine occurs
//!   ([`text`]);
//! * modules of a crate form no large cycle ([`circles`]);
//! * ARCHITECTURE.md lists the places of `unsafe` ([`unsafe_list`]);
//! * the README of a library is its documentation ([`readme`]);
//! * the worst words of docs/lexicon.md stay out ([`words`]);
//! * the tests that the page of promises names as proof exist ([`promises`]);
//! * files stay small ([`sizes`]).

mod arrows;
mod circles;
mod code;
mod paths;
mod promises;
mod readme;
mod sizes;
mod source;
mod text;
mod unsafe_list;
mod words;

use anyhow::{Result, ensure};

use crate::graph::Graph;
use crate::run::root;
use source::sources;

/// Applies all rules to the whole tree.
pub(crate) fn check() -> Result<String> {
    let graph = Graph::load()?;
    if std::env::var_os("ADIT_BLESS").is_some() {
        unsafe_list::write(&root(), &sources(&root())?)?;
        readme::write(&root(), &sources(&root())?)?;
    }
    let sources = sources(&root())?;
    let mut faults = arrows::faults(&graph.rings, &graph.arrows);
    faults.extend(sources.iter().flat_map(text::faults));
    faults.extend(promises::faults(&sources));
    faults.extend(circles::faults(&sources));
    faults.extend(unsafe_list::faults(&sources));
    faults.extend(readme::faults(&sources));
    faults.extend(words::faults(&sources));
    let sizes = sizes::Sizes::of(&sources);
    faults.extend(sizes.faults());
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(sizes.to_string())
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
