//! Serving connections from TCP listeners.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use adit_stream::Tcp;
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::sync::{broadcast, mpsc};

use super::{Config, Handler, stream};
use crate::{Disconnect, Error};

/// Capacity of the queue of connection errors that wait to be reported.
const MAX_WAITING_ERRORS: usize = 64;

/// A server, which creates a handler for each client.
pub trait Server {
    /// The type of the handlers.
    type Handler: Handler + Send + 'static;

    /// Creates the handler for a client that has connected from `peer_addr`.
    fn new_client(&mut self, peer_addr: Option<SocketAddr>) -> Self::Handler;

    /// Called when a connection has failed.
    fn handle_session_error(&mut self, _error: <Self::Handler as Handler>::Error) {}

    /// Serves the connections to this socket until it fails or [`RunningServerHandle::shutdown`] is
    /// called.
    fn run_on_socket(
        &mut self,
        config: Arc<Config>,
        socket: &TcpListener,
    ) -> RunningServer<impl Future<Output = io::Result<()>> + Unpin + Send>
    where
        Self: Send,
    {
        let (shutdown, mut asked) = broadcast::channel(1);
        let all = shutdown.clone();
        let inner = async move {
            let (failed, mut failures) = mpsc::channel(MAX_WAITING_ERRORS);
            loop {
                tokio::select! {
                    _ = asked.recv() => return Ok(()),
                    accepted = socket.accept() => {
                        let (stream, from) = match accepted {
                            Ok(accepted) => accepted,
                            // The client has left already; continue with the next one.
                            Err(why) if is_client_error(&why) => continue,
                            Err(why) => return Err(why),
                        };
                        let handler = self.new_client(Some(from));
                        let (config, failed) = (Arc::clone(&config), failed.clone());
                        let asked = all.subscribe();
                        tokio::spawn(async move {
                            let served = serve_connection(config, stream, from, handler, asked);
                            if let Err(why) = served.await {
                                // Once the server has stopped, errors are not reported.
                                let _ = failed.send(why).await;
                            }
                        });
                    }
                    Some(why) = failures.recv() => self.handle_session_error(why),
                }
            }
        };
        RunningServer {
            inner: Box::pin(inner),
            shutdown,
        }
    }

    /// Listens on an address and serves its connections.
    fn run_on_address<A: ToSocketAddrs + Send>(
        &mut self,
        config: Arc<Config>,
        addrs: A,
    ) -> impl Future<Output = io::Result<()>> + Send
    where
        Self: Send,
    {
        async {
            let socket = TcpListener::bind(addrs).await?;
            self.run_on_socket(config, &socket).await
        }
    }
}

/// Returns true if the error concerns one client only.
fn is_client_error(why: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(
        why.kind(),
        ConnectionAborted | ConnectionReset | Interrupted
    )
}

async fn serve_connection<H: Handler + Send + 'static>(
    config: Arc<Config>,
    stream: TcpStream,
    from: SocketAddr,
    handler: H,
    mut asked: broadcast::Receiver<String>,
) -> Result<(), H::Error> {
    if config.nodelay {
        stream.set_nodelay(true).map_err(Error::from)?;
    }
    let stream = Box::new(Tcp::new(stream));
    let session = stream::spawn_session(config, stream, handler, Some(from.ip()))?;
    let handle = session.handle();
    tokio::pin!(session);
    tokio::select! {
        words = asked.recv() => {
            let words = words.unwrap_or_default();
            let reason = Disconnect::ByApplication;
            // The connection may be over already.
            let _ = handle.disconnect(reason, words, String::new()).await;
        }
        done = &mut session => return done,
    }
    session.await
}

/// A running server. As a future, it completes when the server is shut down or fails.
pub struct RunningServer<F> {
    inner: F,
    shutdown: broadcast::Sender<String>,
}

impl<F> RunningServer<F> {
    /// Returns a handle that shuts the server down.
    #[must_use]
    pub fn handle(&self) -> RunningServerHandle {
        RunningServerHandle {
            shutdown: self.shutdown.clone(),
        }
    }
}

impl<F: Future<Output = io::Result<()>> + Unpin + Send> Future for RunningServer<F> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.inner).poll(cx)
    }
}

impl<F> fmt::Debug for RunningServer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunningServer")
    }
}

/// A handle that shuts a server down.
#[derive(Debug, Clone)]
pub struct RunningServerHandle {
    shutdown: broadcast::Sender<String>,
}

impl RunningServerHandle {
    /// Ends the server and its connections, and sends the reason to the clients.
    pub fn shutdown(&self, reason: String) {
        // Nothing to do if the server has stopped already.
        let _ = self.shutdown.send(reason);
    }
}
