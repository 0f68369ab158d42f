//! Sets, lists and readers as a whole.

mod cache;
mod clash;
mod decisions;
mod geo;
mod mmdb;
mod mmdb_writer;
mod sing_box;
mod sniff;
mod text_lists;

use adit_wire::Target;

use crate::read::{Loaded, Place};
use crate::{Request, RuleSet};

/// True if the set matches a target without any other facts.
fn matches(set: &RuleSet, target: &str) -> bool {
    let target: Target = target.parse().unwrap();
    set.matches(&Request::new(&target))
}

/// Returns the lines or entries with a note.
fn noted(loaded: &Loaded) -> Vec<usize> {
    let places = loaded.notes.iter().map(|note| match note.place {
        Place::Line(number) | Place::Entry(number) => number,
    });
    places.collect()
}

/// Checks names and addresses against a set, all with port 443.
fn assert_matches(set: &RuleSet, inside: &[&str], outside: &[&str]) {
    for host in inside {
        assert!(matches(set, &format!("{host}:443")), "{host} is outside");
    }
    for host in outside {
        assert!(!matches(set, &format!("{host}:443")), "{host} is inside");
    }
}
