//! Problems and warnings of all stages, collected so that they are reported together.

use core::hash::{BuildHasher, Hash};
use std::collections::HashSet;
use std::hash::RandomState;
use std::path::Path;

use crate::text::{ConfigError, Document, Problem, Sources, UrlSnippet, Warning, WarningKind};

/// Maximum number of problems that are reported one by one.
const MAX_PROBLEMS: usize = 100;

/// The problems and warnings found so far.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    /// The first problems, each once.
    problems: Vec<Problem>,
    /// Hashes of further problems, which are only counted.
    further: HashSet<u64>,
    /// Warnings, each once.
    pub(crate) warnings: Vec<Warning>,
    /// Hashes of the warnings.
    known_warnings: HashSet<u64>,
    hasher: RandomState,
    /// True if a secret is written out, not referenced by `@file` or `$NAME`.
    pub(crate) literal_secret: bool,
}

/// The sources of `@file` and `$NAME`.
#[derive(Clone, Copy)]
pub(crate) struct SecretLookup<'a> {
    /// The files and the environment.
    pub(crate) sources: &'a dyn Sources,
    /// The directory to which relative paths refer.
    pub(crate) base: &'a Path,
}

impl Diagnostics {
    /// Adds a problem, unless it is there already.
    pub(crate) fn add_problem(&mut self, problem: Problem) {
        if self.problems.contains(&problem) {
            return;
        }
        match self.problems.len() < MAX_PROBLEMS {
            true => self.problems.push(problem),
            false => self.count_further(&problem),
        }
    }

    /// Adds an error in a document, which is located only if it is one of those that are reported.
    pub(crate) fn add_error(&mut self, document: Document<'_>, flaw: ConfigError) {
        if self.problems.len() < MAX_PROBLEMS {
            let place = document.place_of(flaw.span);
            self.add_problem(flaw.into_problem(place));
        } else {
            self.count_further((document.origin, flaw.span, &flaw.title));
        }
    }

    fn count_further(&mut self, problem: impl Hash) {
        self.further.insert(self.hasher.hash_one(problem));
    }

    /// True if there is a problem.
    pub(crate) const fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Returns the warnings, or the problems if there are any: the first 100, and the number of the others.
    pub(crate) fn into_result(self) -> Result<Vec<Warning>, Vec<Problem>> {
        let mut problems = self.problems;
        if problems.is_empty() {
            return Ok(self.warnings);
        }
        if !self.further.is_empty() {
            let s = if self.further.len() == 1 { "" } else { "s" };
            let title = format!("… and {} further problem{s}", self.further.len());
            let help = "correct those above, then run `adit check` again";
            problems.push(Problem::without_place(title, help));
        }
        Err(problems)
    }

    /// Adds a warning, unless it is there already.
    pub(crate) fn add_warning(&mut self, kind: WarningKind, about: Problem) {
        let warning = Warning { kind, about };
        if self.known_warnings.insert(self.hasher.hash_one(&warning)) {
            self.warnings.push(warning);
        }
    }

    /// Records that a secret is written out.
    pub(crate) const fn note_literal_secret(&mut self) {
        self.literal_secret = true;
    }

    /// Adds an error in a URL.
    pub(crate) fn add_url_error(&mut self, excerpt: &UrlSnippet<'_>, flaw: ConfigError) {
        let span = excerpt.span_in_document(flaw.span);
        self.add_error(excerpt.document(), ConfigError { span, ..flaw });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(number: usize) -> Problem {
        Problem::without_place(format!("problem {number}"), "help")
    }

    #[test]
    fn further_problems_are_counted_once_each() {
        let mut all = Diagnostics::default();
        for number in (0..MAX_PROBLEMS + 5).chain(0..MAX_PROBLEMS + 7) {
            all.add_problem(problem(number));
        }
        let reported = all.into_result().unwrap_err();
        assert_eq!(reported.len(), MAX_PROBLEMS + 1);
        assert_eq!(reported[MAX_PROBLEMS - 1], problem(MAX_PROBLEMS - 1));
        assert_eq!(reported[MAX_PROBLEMS].title, "… and 7 further problems");
        let mut few = Diagnostics::default();
        (0..2 * MAX_PROBLEMS).for_each(|number| few.add_problem(problem(number / 2)));
        assert_eq!(few.into_result().unwrap_err().len(), MAX_PROBLEMS);
        let mut warned = Diagnostics::default();
        for number in [1, 2, 1] {
            warned.add_warning(WarningKind::NeverReached, problem(number));
        }
        assert_eq!(warned.into_result().unwrap().len(), 2);
    }
}
