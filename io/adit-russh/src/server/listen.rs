//! Many connections over TCP.

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

/// Errors of connections that wait to be told.
const ERRORS: usize = 64;

/// Makes a handler for each client.
pub trait Server {
    /// What a client is served with.
    type Handler: Handler + Send + 'static;

    /// A client has connected, from there.
    fn new_client(&mut self, peer_addr: Option<SocketAddr>) -> Self::Handler;

    /// A connection has failed.
    fn handle_session_error(&mut self, _error: <Self::Handler as Handler>::Error) {}

    /// Serves those who connect to this socket, until it fails or
    /// [`RunningServerHandle::shutdown`] is called.
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
            let (failed, mut failures) = mpsc::channel(ERRORS);
            loop {
                tokio::select! {
                    _ = asked.recv() => return Ok(()),
                    accepted = socket.accept() => {
                        let (stream, from) = match accepted {
                            Ok(accepted) => accepted,
                            // One that left, or too many: the next one may do.
                            Err(why) if is_passing(&why) => continue,
                            Err(why) => return Err(why),
                        };
                        let handler = self.new_client(Some(from));
                        let (config, failed) = (Arc::clone(&config), failed.clone());
                        let asked = all.subscribe();
                        tokio::spawn(async move {
                            let served = serve(config, stream, from, handler, asked);
                            if let Err(why) = served.await {
                                // Without a server nobody wants to know.
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

    /// Listens on an address and serves those who connect.
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

/// Whether another client may have more luck.
fn is_passing(why: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(
        why.kind(),
        ConnectionAborted | ConnectionReset | Interrupted
    )
}

async fn serve<H: Handler + Send + 'static>(
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
    let session = stream::serve(config, stream, handler, Some(from.ip()))?;
    let handle = session.handle();
    tokio::pin!(session);
    tokio::select! {
        words = asked.recv() => {
            let words = words.unwrap_or_default();
            let reason = Disconnect::ByApplication;
            // It may be over already.
            let _ = handle.disconnect(reason, words, String::new()).await;
        }
        done = &mut session => return done,
    }
    session.await
}

/// A server that runs: a future, until it is shut down.
pub struct RunningServer<F> {
    inner: F,
    shutdown: broadcast::Sender<String>,
}

impl<F> RunningServer<F> {
    /// What shuts it down.
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

/// What shuts a server down.
#[derive(Debug, Clone)]
pub struct RunningServerHandle {
    shutdown: broadcast::Sender<String>,
}

impl RunningServerHandle {
    /// Ends the server and its connections; the clients are told the reason.
    pub fn shutdown(&self, reason: String) {
        // A server that is gone is shut down.
        let _ = self.shutdown.send(reason);
    }
}
