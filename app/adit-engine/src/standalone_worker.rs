//! Listeners without a plan, which a client of another protocol opens for its own user.
//!
//! `adit ssh -D` serves SOCKS with the engine's acceptor and relay over its own SSH connection.

use std::sync::Arc;
use std::time::Duration;

use adit_net::dial::Family;
use adit_stream::RelayTimeouts;

use crate::Router;
use crate::acceptor::{ProxyAcceptor, RequestAcceptor, SocksRules};
use crate::connector::Connector;
use crate::credentials::ListenerCredentials;
use crate::serve::{ConnectionHandler, ConnectionLimiter, DescriptorPool, UdpAssociateOptions};
use crate::udp::{AssociationRegistry, AssociationTtl};

impl ProxyAcceptor {
    /// Creates an acceptor of SOCKS5, SOCKS4 and SOCKS4a without authentication, for CONNECT only.
    /// Requests that are not complete within `deadline` are dropped.
    #[must_use]
    pub fn socks_only(deadline: Duration) -> Self {
        Self {
            socks: Some(SocksRules {
                credentials: Arc::new(ListenerCredentials::new(&[])),
                socks4: true,
                udp: false,
                bind: false,
                hide_bind: true,
            }),
            http: None,
            deadline,
        }
    }
}

impl ConnectionHandler {
    /// Creates a worker that serves the connections passed to [`ConnectionHandler::serve_connection`] through one connector,
    /// without limits on their number and duration.
    #[must_use]
    pub fn standalone(acceptor: Box<dyn RequestAcceptor>, way: Arc<dyn Connector>) -> Arc<Self> {
        Arc::new(Self {
            acceptor,
            router: Arc::new(Router::new(Vec::new(), way, Family::Any)),
            limits: RelayTimeouts::NEVER,
            meter: Arc::default(),
            sessions: Arc::default(),
            stages: Arc::default(),
            ttl: AssociationTtl {
                idle: Duration::from_secs(60),
                dns: Duration::from_secs(10),
            },
            associate: UdpAssociateOptions::default(),
            guard: None,
            limits_sources: false,
            proxy_header_timeout: None,
            first_wait: None,
            over_tcp: false,
            sniffs_names: false,
            connection_limiter: Arc::new(ConnectionLimiter::new(usize::MAX, None)),
            udp_quota: AssociationRegistry::new(Arc::new(DescriptorPool::new(usize::MAX)))
                .register_listener(false),
            logins: Arc::default(),
            listener_ended: None,
        })
    }
}
