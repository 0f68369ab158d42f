//! A tree of files, served on a thread that may block.

use adit_stream::Stream;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use super::FileTree;
use super::drive::serve_until;
use super::options::{FileTreeOptions, ServeError};

/// Serves files of the local file system to one client until it closes its side of the stream.
///
/// The session runs on a thread of tokio's blocking pool, as the system's calls for files block: the
/// pool's size (512 by default) limits the number of clients at the same time. The calls have the rights
/// of this process: use a process for each user, or a [root](FileTreeOptions::root), to separate clients.
///
/// # Errors
/// [`ServeError::Directory`] if a directory of the options cannot be opened; otherwise as [`serve`](super::serve).
///
/// # Panics
/// If it is polled outside of a tokio runtime.
///
/// # Cancel safety
/// Dropping the future ends the session, after the requests that have arrived by then at most.
pub async fn serve_files<S>(stream: S, options: FileTreeOptions) -> Result<(), ServeError>
where
    S: Stream + 'static,
{
    let runtime = Handle::current();
    // Its drop, with this future, is the signal.
    let (_alive, dropped) = oneshot::channel::<()>();
    let session = spawn_blocking(move || {
        let tree = FileTree::new(&options)?;
        runtime.block_on(serve_until(stream, tree, async {
            let _ = dropped.await;
        }))
    });
    match session.await {
        Ok(served) => served,
        Err(why) => match why.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(why) => Err(ServeError::Stream(std::io::Error::other(why))),
        },
    }
}
