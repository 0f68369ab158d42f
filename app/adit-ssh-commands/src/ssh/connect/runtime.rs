//! The runtime of a client, and the signals that end it.

use std::future::Future;
use std::time::Duration;

use adit_cli::{CommandResult, Failure, FailureCode};
use anyhow::Context;

use crate::ssh::platform::wait_for_signal;
use crate::ssh::terminal;

/// Time that the threads have to end.
const SHUTDOWN_TIME: Duration = Duration::from_millis(40);

/// Runs a client to its end on `workers` threads, or until a signal. The modes of the terminal are restored.
pub(crate) fn block_on(workers: usize, work: impl Future<Output = CommandResult>) -> CommandResult {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let done = runtime.block_on(async {
        tokio::select! {
            done = work => done,
            name = wait_for_signal() => Err(signal_failure(name?)),
        }
    });
    terminal::restore_modes();
    // An unanswered prompt or a pending lookup must not delay the exit; all output has been written already.
    adit_stream::lane::close_lanes(SHUTDOWN_TIME);
    runtime.shutdown_timeout(SHUTDOWN_TIME);
    done
}

/// Returns the failure for a signal. An interrupt has the exit code of shells, other signals that of any failure.
fn signal_failure(name: &str) -> Failure {
    let failure = Failure::new(FailureCode::Failure, format!("terminated by {name}"));
    match name {
        "SIGINT" => failure.with_status(130),
        _ => failure,
    }
}
