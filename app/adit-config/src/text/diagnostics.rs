//! Problems and warnings of all stages, collected so that they are reported together.

use std::path::Path;

use crate::text::{ConfigError, Problem, Sources, UrlSnippet, Warning, WarningKind};

/// The problems and warnings found so far.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    /// Problems, each once.
    pub(crate) problems: Vec<Problem>,
    /// Warnings, each once.
    pub(crate) warnings: Vec<Warning>,
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
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Adds a warning, unless it is there already.
    pub(crate) fn add_warning(&mut self, kind: WarningKind, about: Problem) {
        let warning = Warning { kind, about };
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Records that a secret is written out.
    pub(crate) const fn note_literal_secret(&mut self) {
        self.literal_secret = true;
    }

    /// Adds an error in a URL.
    pub(crate) fn add_url_error(&mut self, excerpt: &UrlSnippet<'_>, flaw: ConfigError) {
        self.add_problem(excerpt.locate_error(flaw));
    }
}
