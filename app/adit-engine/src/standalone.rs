//! Listeners without a plan, which a client of another protocol opens for its own user.
//!
//! `adit ssh -D` serves SOCKS with the engine's acceptor and relay over its own SSH connection.

use std::sync::Arc;
use std::time::Duration;

use adit_net::dial::Family;
use adit_stream::Limits;

use crate::Router;
use crate::acceptor::{Acceptor, Proxy, SocksRules};
use crate::connector::Connector;
use crate::credentials::Credentials;
use crate::serve::{Associate, Descriptors, Gate, Worker};
use crate::udp::{Associations, Ttl};

impl Proxy {
    /// Creates an acceptor of SOCKS5, SOCKS4 and SOCKS4a without authentication, for CONNECT only.
    /// Requests that are not complete within `deadline` are dropped.
    #[must_use]
    pub fn socks(deadline: Duration) -> Self {
        Self {
            socks: Some(SocksRules {
                credentials: Arc::new(Credentials::new(&[])),
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

impl Worker {
    /// Creates a worker that serves the connections passed to [`Worker::serve`] through one connector,
    /// without limits on their number and duration.
    #[must_use]
    pub fn alone(acceptor: Box<dyn Acceptor>, way: Arc<dyn Connector>) -> Arc<Self> {
        Arc::new(Self {
            acceptor,
            router: Arc::new(Router::new(Vec::new(), way, Family::Any)),
            limits: Limits {
                idle: Duration::ZERO,
                half_close_idle: Duration::ZERO,
            },
            meter: Arc::default(),
            ttl: Ttl {
                idle: Duration::from_mins(1),
                dns: Duration::from_secs(10),
            },
            associate: Associate::default(),
            guard: None,
            sources: false,
            proxied: None,
            first_wait: None,
            over_tcp: false,
            gate: Arc::new(Gate::new(usize::MAX, None)),
            share: Associations::new(Arc::new(Descriptors::new(usize::MAX))).of_listener(false),
            over: None,
        })
    }
}
