//! A server with its connections.

use std::sync::Arc;

use adit_dns::{Answer, Transport, UpstreamQuery};
use adit_wire::Host;
use tokio::sync::{Mutex, OnceCell};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::error::ServerError;
use crate::https::{self, HttpConnections, Resource};
use crate::path::{BoxDnsStream, DnsPath};
use crate::pipeline::Pipeline;
use crate::server::RemoteServer;
use crate::tls::{self, TlsError, TrustedRoots};
use crate::{MAX_ATTEMPTS, datagram};

/// A server of the network with its connections, which queries share.
pub(crate) struct ServerLink {
    remote: RemoteServer,
    path: Arc<dyn DnsPath>,
    roots: TrustedRoots,
    /// The settings of TLS, which resume sessions.
    tls: OnceCell<TlsConnector>,
    /// The connection of TCP or TLS.
    pipeline: Mutex<Option<Arc<Pipeline>>>,
    http: Mutex<HttpConnections>,
}

impl ServerLink {
    pub(crate) fn new(remote: RemoteServer, path: Arc<dyn DnsPath>, roots: TrustedRoots) -> Self {
        Self {
            remote,
            path,
            roots,
            tls: OnceCell::new(),
            pipeline: Mutex::default(),
            http: Mutex::default(),
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
                let query = query.clone().with_padding().with_id(0);
                let resource = Resource {
                    host: &self.remote.host,
                    port: self.remote.at.port,
                    path: &self.remote.path,
                };
                https::ask(&self.http, resource, &query, || self.open_tls()).await
            }
        }
    }

    /// Drops the connections, since one of them does not answer; queries on them keep theirs.
    pub(crate) fn reset(&self) {
        // If a connection is being opened, there is none to drop.
        if let Ok(mut pipeline) = self.pipeline.try_lock() {
            *pipeline = None;
        }
        if let Ok(mut http) = self.http.try_lock() {
            http.clear();
        }
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
            Transport::Tls => Box::new(self.open_tls().await?),
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

    async fn open_tls(&self) -> Result<TlsStream<BoxDnsStream>, ServerError> {
        let connector = self.tls.get_or_try_init(async || {
            let protocols = match self.remote.transport {
                Transport::Https => &https::PROTOCOLS[..],
                _ => &[],
            };
            let config = tls::client_config(&self.roots, protocols).await?;
            Ok::<_, TlsError>(TlsConnector::from(Arc::new(config)))
        });
        let connector = connector.await?;
        let host = match &self.remote.server_name {
            Some(name) => &Host::parse(name).map_err(|_| TlsError::Name(name.clone()))?,
            None => &self.remote.host,
        };
        let name = tls::server_name(host)?;
        let stream = self.open_stream().await?;
        connector
            .connect(name, stream)
            .await
            .map_err(ServerError::Tls)
    }
}
