//! The commands of the documentation that no test runs, each with the reason.

/// A command that is not run.
#[derive(Debug)]
pub(super) struct NotRun {
    /// The page.
    pub(super) page: &'static str,
    /// The beginning of the command.
    pub(super) begins: &'static str,
    /// The reason.
    pub(super) reason: &'static str,
}

/// All of them.
pub(super) const NOT_RUN: &[NotRun] = &[NotRun {
    page: "RELEASING.md",
    begins: "gh attestation verify",
    reason: "asks GitHub about a release, and there is none yet",
}];

impl NotRun {
    /// Returns true if this row is about a command of this page.
    pub(super) fn covers(&self, page: &str, command: &str) -> bool {
        page == self.page && command.starts_with(self.begins)
    }
}
