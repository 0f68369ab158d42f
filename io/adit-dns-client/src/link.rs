//! A server with its connections.

#[cfg(feature = "tls")]
mod secure;
#[cfg(not(feature = "tls"))]
#[path = "link/secure_left_out.rs"]
mod secure;

use std::sync::Arc;

use adit_dns::{Answer, Transport, UpstreamQuery};
use tokio::sync::Mutex;

use self::secure::SecureState;
use crate::error::ServerError;
use crate::path::{BoxDnsStream, DnsPath};
use crate::pipeline::Pipeline;
use crate::server::RemoteServer;
use crate::tls::TrustedRoots;
use crate::{MAX_ATTEMPTS, datagram};

/// A server of the network with its connections, which queries share.
pub(crate) struct ServerLink {
    remote: RemoteServer,
    path: Arc<dyn DnsPath>,
    roots: TrustedRoots,
    /// The connection of TCP or TLS.
    pipeline: Mutex<Option<Arc<Pipeline>>>,
    secure: SecureState,
}

impl ServerLink {
    pub(crate) fn new(remote: RemoteServer, path: Arc<dyn DnsPath>, roots: TrustedRoots) -> Self {
        Self {
            remote,
            path,
            roots,
            pipeline: Mutex::default(),
            secure: SecureState::default(),
        }
    }

    /// Sends a query, and returns the answer of the server, which may be a failure.
    pub(crate) async fn ask(&self, query: &UpstreamQuery) -> Result<Answer, ServerError> {
        match self.remote.transport {
            Transport::Udp => match datagram::ask(&*self.path, &self.remote.at, query).await? {
                Some(answer) => Ok(answer),
                None => self.ask_over_stream(query).await,
            },
            Transport::Tcp => self.ask_over_stream(query).await,
            Transport::Tls => self.ask_over_stream(&query.clone().with_padding()).await,
            Transport::Https => {
                self.ask_over_https(&query.clone().with_padding().with_id(0))
                    .await
            }
        }
    }

    /// Drops the connections, since one of them does not answer; queries on them keep theirs.
    pub(crate) fn reset(&self) {
        // If a connection is being opened, there is none to drop.
        if let Ok(mut pipeline) = self.pipeline.try_lock() {
            *pipeline = None;
        }
        self.secure.clear();
    }

    async fn ask_over_stream(&self, query: &UpstreamQuery) -> Result<Answer, ServerError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let (pipeline, is_new) = self.open_pipeline().await?;
            match pipeline.ask(query).await {
                Err(ServerError::Closed(_)) if !is_new && attempt < MAX_ATTEMPTS => {}
                outcome => return outcome,
            }
        }
    }

    /// Returns the connection, and true if it was opened now.
    async fn open_pipeline(&self) -> Result<(Arc<Pipeline>, bool), ServerError> {
        // Locked while it is opened, so that waiting queries share it.
        let mut current = self.pipeline.lock().await;
        if let Some(open) = current.as_ref().filter(|pipeline| pipeline.is_open()) {
            return Ok((open.clone(), false));
        }
        let stream: BoxDnsStream = match self.remote.transport {
            Transport::Tls => self.open_secure_stream().await?,
            _ => self.open_stream().await?,
        };
        let opened = Arc::new(Pipeline::new(stream));
        *current = Some(opened.clone());
        Ok((opened, true))
    }

    async fn open_stream(&self) -> Result<BoxDnsStream, ServerError> {
        let opened = self.path.open_stream(&self.remote.at).await;
        opened.map_err(ServerError::Path)
    }
}
