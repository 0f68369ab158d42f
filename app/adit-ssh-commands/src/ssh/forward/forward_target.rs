//! Destinations of forwarded connections: a fixed one, or the one that a SOCKS client requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::ssh_config::SshDestination;
use adit_engine::acceptor::ProxyAcceptor;
use adit_engine::connector::{ConnectedStream, Connector};
use adit_engine::serve::ConnectionHandler;
use adit_engine::udp::BoxDatagramPath;
use adit_engine::{BoxFuture, ConnectionAddrs, DialError, DialStage};
use adit_ssh::client::Session;
use adit_stream::{BoxStream, write_all};
use adit_wire::Target;

use super::{ForwardContext, describe_destination, open_channel, relay_connection};
use crate::ssh::terminal;

/// Time limit for the request of a SOCKS client.
const SOCKS_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Destination of connections to a local listener.
pub(super) enum ForwardTarget {
    /// A fixed destination, as seen from the host.
    Fixed(SshDestination),
    /// The destination that each SOCKS client requests.
    Socks(Arc<ConnectionHandler>),
}

impl ForwardTarget {
    pub(super) fn new(to: &SshDestination, shared: &ForwardContext) -> Self {
        match to {
            SshDestination::Socks => Self::Socks(socks_handler(Arc::new(SessionConnector(
                shared.session.clone(),
            )))),
            to => Self::Fixed(to.clone()),
        }
    }

    /// Serves a connection until its end.
    pub(super) async fn serve_connection(
        &self,
        mut near: BoxStream,
        from: SocketAddr,
        shared: &ForwardContext,
    ) {
        match self {
            Self::Socks(worker) => {
                let peer = ConnectionAddrs {
                    remote: from,
                    local: from,
                };
                worker.serve_connection(near, peer).await;
            }
            Self::Fixed(to) => match open_channel(&shared.session, to).await {
                Ok(mut channel) => {
                    relay_connection(&mut *near, &mut channel, &describe_destination(to)).await;
                }
                Err(why) => {
                    near.abort();
                    shared.print_message(&format!(
                        "warning: cannot forward to {}: {why}",
                        describe_destination(to)
                    ));
                }
            },
        }
    }
}

impl ForwardContext {
    /// Prints a message, unless in quiet mode.
    pub(super) fn print_message(&self, text: &str) {
        if !self.quiet {
            terminal::print_message(text);
        }
    }
}

/// Returns a SOCKS server that opens connections with `way`.
pub(super) fn socks_handler(way: Arc<dyn Connector>) -> Arc<ConnectionHandler> {
    ConnectionHandler::standalone(
        Box::new(ProxyAcceptor::socks_only(SOCKS_REQUEST_TIMEOUT)),
        way,
    )
}

/// A connector that opens streams through the host.
struct SessionConnector(Session);

impl Connector for SessionConnector {
    fn connect<'a>(
        &'a self,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<ConnectedStream, DialError>> {
        Box::pin(async move {
            let place = SshDestination::Port {
                host: to.host.to_string(),
                port: to.port,
            };
            let failed = |why| DialError::new(DialStage::Connect, why);
            let opened = open_channel(&self.0, &place).await;
            let mut channel = opened.map_err(|why| failed(why.into_io()))?;
            write_all(&mut channel, first).await.map_err(failed)?;
            Ok(ConnectedStream::in_session(Box::new(channel)))
        })
    }

    fn open_datagrams(&self) -> BoxFuture<'_, Result<BoxDatagramPath, DialError>> {
        Box::pin(async { Err(DialError::unsupported("SSH cannot carry datagrams")) })
    }
}
