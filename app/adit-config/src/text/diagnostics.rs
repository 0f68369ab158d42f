//! Where the stages leave what they found wrong, so that all of it can be reported at once.

use std::path::Path;

use crate::text::{Excerpt, Flaw, Problem, Sources, Warning, WarningKind};

/// Problems and warnings so far.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    pub(crate) problems: Vec<Problem>,
    pub(crate) warnings: Vec<Warning>,
    /// A secret was written out somewhere, not named by `@file` or `$NAME`.
    pub(crate) literal_secret: bool,
}

/// Where `@file` and `$NAME` are found. A relative path begins at `base`.
#[derive(Clone, Copy)]
pub(crate) struct Lookup<'a> {
    pub(crate) sources: &'a dyn Sources,
    pub(crate) base: &'a Path,
}

impl Diagnostics {
    /// Adds a problem, unless it is there already.
    pub(crate) fn problem(&mut self, problem: Problem) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Adds a warning, unless it is there already.
    pub(crate) fn warning(&mut self, kind: WarningKind, about: Problem) {
        let warning = Warning { kind, about };
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Notes a secret that is written out.
    pub(crate) const fn literal_secret(&mut self) {
        self.literal_secret = true;
    }

    /// Adds a problem of a URL.
    pub(crate) fn flaw(&mut self, excerpt: &Excerpt<'_>, flaw: Flaw) {
        self.problem(excerpt.problem(flaw));
    }
}
