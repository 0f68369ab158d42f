//! Doors without a plan: what a client of another protocol opens for its own user.
//!
//! `adit ssh -D` serves SOCKS with the engine's acceptor and relay, over connections of its own.

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
    /// SOCKS5, SOCKS4 and SOCKS4a for anyone who reaches it, connections alone. A request that is
    /// not complete after `deadline` is given up.
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
    /// Serves connections that [`Worker::serve`] is given, by one way; as many as come, as long as
    /// they last.
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
