//! Work that a signal ends.

use adit_cli::{Failure, FailureCode};

/// Performs the work of a command until a signal ends it, and returns its result.
pub(in crate::command) fn run<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let mut done = None;
    let result = &mut done;
    adit_cli::block_on(|mut signals| async move {
        *result = Some(signals.run_until_ended(work).await?);
        Ok(())
    })?;
    done.ok_or_else(|| Failure::new(FailureCode::Failure, "interrupted"))
}
