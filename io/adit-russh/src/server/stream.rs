//! Serving one connection over any stream.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use adit_stream::{BoxStream, Buffered};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;

use super::task::ServerTask;
use super::{Config, Handle, Handler};
use crate::Error;
use crate::session_core::SessionCore;

/// A running connection. As a future, it waits for the end of the connection. Dropping it does not end
/// the connection.
pub struct RunningSession<H: Handler> {
    handle: Handle,
    task: JoinHandle<Result<(), H::Error>>,
}

impl<H: Handler> RunningSession<H> {
    /// Returns a handle for other tasks.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl<H: Handler> Future for RunningSession<H> {
    type Output = Result<(), H::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let done = Pin::new(&mut self.task).poll(cx);
        done.map(|done| done.unwrap_or_else(|why| Err(Error::from(why).into())))
    }
}

impl<H: Handler> fmt::Debug for RunningSession<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunningSession")
    }
}

/// Serves one client over any stream, in a separate task.
///
/// # Errors
/// The configuration is invalid. Errors of the connection are returned by the [`RunningSession`].
#[allow(clippy::unused_async, reason = "same signature as in russh")]
pub async fn run_stream<H, R>(
    config: Arc<Config>,
    stream: R,
    handler: H,
) -> Result<RunningSession<H>, H::Error>
where
    H: Handler + Send + 'static,
    R: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    spawn_session(
        config,
        Box::new(Buffered::from_tokio(stream)),
        handler,
        None,
    )
}

/// Serves a client at `source`, if its address is known.
pub(super) fn spawn_session<H: Handler + Send + 'static>(
    config: Arc<Config>,
    below: BoxStream,
    handler: H,
    source: Option<IpAddr>,
) -> Result<RunningSession<H>, H::Error> {
    let (settings, core) = (config.to_server_config()?, Arc::<SessionCore>::default());
    let handle = Handle::new(Arc::clone(&core));
    let task = ServerTask {
        config,
        settings,
        core,
        source,
    };
    let task = tokio::spawn(task.run_task(below, handler));
    Ok(RunningSession { handle, task })
}
