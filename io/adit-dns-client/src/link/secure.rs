//! TLS and HTTPS to a server.

use std::sync::Arc;

use adit_dns::{Answer, Transport, UpstreamQuery};
use adit_wire::Host;
use tokio::sync::{Mutex, OnceCell};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::ServerLink;
use crate::error::ServerError;
use crate::https::{self, HttpConnections, Resource};
use crate::path::BoxDnsStream;
use crate::tls::{self, TlsError};

/// The state of a server over TLS or HTTPS.
#[derive(Default)]
pub(super) struct SecureState {
    /// The settings of TLS, which resume sessions.
    tls: OnceCell<TlsConnector>,
    http: Mutex<HttpConnections>,
}

impl SecureState {
    /// Drops the connections of HTTPS. If one is being opened, there is none to drop.
    pub(super) fn clear(&self) {
        if let Ok(mut http) = self.http.try_lock() {
            http.clear();
        }
    }
}

impl ServerLink {
    /// Sends a query over HTTPS.
    pub(super) async fn ask_over_https(
        &self,
        query: &UpstreamQuery,
    ) -> Result<Answer, ServerError> {
        let resource = Resource {
            host: &self.remote.host,
            port: self.remote.at.port,
            path: &self.remote.path,
        };
        https::ask(&self.secure.http, resource, query, || self.open_tls()).await
    }

    /// Opens a connection with TLS.
    pub(super) async fn open_secure_stream(&self) -> Result<BoxDnsStream, ServerError> {
        Ok(Box::new(self.open_tls().await?))
    }

    async fn open_tls(&self) -> Result<TlsStream<BoxDnsStream>, ServerError> {
        let connector = self.secure.tls.get_or_try_init(async || {
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
