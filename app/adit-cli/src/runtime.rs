//! Runtime of commands that serve.

use std::pin::Pin;
use std::time::Duration;

use anyhow::Context;

use crate::CommandResult;
use crate::signals::Signals;

/// Time that the threads have to end.
const SHUTDOWN_TIME: Duration = Duration::from_millis(40);

/// Runs `work` on all cores, with the maximum number of file descriptors.
pub fn block_on<W: Future<Output = CommandResult>>(
    work: impl FnOnce(Signals) -> W,
) -> CommandResult {
    block_on_with_nofile(None, work)
}

/// Like [`block_on`], with a limit of `nofile` file descriptors.
///
/// # Errors
/// The error of `work`; the runtime or the signal handlers cannot be set up.
pub fn block_on_with_nofile<W: Future<Output = CommandResult>>(
    nofile: Option<u64>,
    work: impl FnOnce(Signals) -> W,
) -> CommandResult {
    run_boxed(
        nofile,
        Box::pin(async {
            let signals = Signals::install().context("cannot install signal handlers")?;
            work(signals).await
        }),
    )
}

/// Boxed, so that the loop of the runtime is compiled once and not for each command.
fn run_boxed(
    nofile: Option<u64>,
    work: Pin<Box<dyn Future<Output = CommandResult> + '_>>,
) -> CommandResult {
    match nofile {
        Some(count) => adit_net::limits::set_nofile(count),
        None => adit_net::limits::raise_nofile(),
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(64)
        .build()
        .context("cannot start the runtime")?;
    let done = runtime.block_on(work);
    // A stalled name lookup must not delay the exit: an interrupted command ends within 200 ms.
    adit_stream::lane::close_lanes(SHUTDOWN_TIME);
    runtime.shutdown_timeout(SHUTDOWN_TIME);
    done
}
