//! Connections to the server: two, because a blocking read holds one up. While the server does not answer, calls fail
//! at once, and one task tries to connect, at intervals that grow.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use adit_net::system::ThreadRng;
use adit_wire::Entropy;
use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::sentinel::{SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo,
    RedisResult, TlsCertificates, TlsMode, Value,
};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{debug, info, warn};

use super::config::{Topology, ValkeyConfig};
use super::error::{breaks_connection, to_store_error};
use crate::store::{StoreError, StoreErrorKind, StoreHealth};

/// Maximum time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Minimum time between two attempts to connect.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
/// Maximum time between two attempts to connect, whatever is configured.
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);
/// Calls without an answer, one after the other, until the connection is given up.
const MAX_TIMEOUTS: u32 = 3;

/// A connection.
#[derive(Clone)]
enum Link {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Link {
    async fn send(&mut self, command: &Cmd) -> RedisResult<Value> {
        match self {
            Self::Single(connection) => command.query_async(connection).await,
            Self::Cluster(connection) => command.query_async(connection).await,
        }
    }
}

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Calls that are answered at once.
    Calls,
    /// Reads that wait for changes.
    Feed,
}

/// The connections to a server.
pub(super) struct Connector {
    config: ValkeyConfig,
    calls: tokio::sync::Mutex<Option<(u64, Link)>>,
    feed: tokio::sync::Mutex<Option<(u64, Link)>>,
    status: Mutex<Status>,
}

#[derive(Default)]
struct Status {
    /// The number of the last connection.
    last_link: u64,
    failures: u64,
    timeouts: u32,
    /// The time of the next attempt to connect, while the reconnection task runs.
    retry_at: Option<Instant>,
    backoff: Duration,
    last_error: Option<String>,
    is_up: bool,
}

impl Connector {
    pub(super) fn new(config: ValkeyConfig) -> Arc<Self> {
        Arc::new(Self {
            config,
            calls: tokio::sync::Mutex::new(None),
            feed: tokio::sync::Mutex::new(None),
            status: Mutex::default(),
        })
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        // No invariant spans a panic.
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    const fn lane(&self, lane: Lane) -> &tokio::sync::Mutex<Option<(u64, Link)>> {
        match lane {
            Lane::Calls => &self.calls,
            Lane::Feed => &self.feed,
        }
    }

    pub(super) fn health(&self) -> StoreHealth {
        let status = self.status();
        StoreHealth {
            is_up: status.is_up,
            failures: status.failures,
            retry_in: status
                .retry_at
                .map(|at| at.saturating_duration_since(Instant::now())),
            last_error: status.last_error.clone(),
        }
    }

    /// Sends a command that is answered at once.
    pub(super) async fn call(self: &Arc<Self>, command: &Cmd) -> Result<Value, StoreError> {
        self.try_call(command)
            .await?
            .map_err(|why| to_store_error(&why))
    }

    /// Like [`Self::call`], with the words of the server: the outer error is that there is no answer.
    pub(super) async fn try_call(
        self: &Arc<Self>,
        command: &Cmd,
    ) -> Result<RedisResult<Value>, StoreError> {
        let (id, mut link) = self.link(Lane::Calls).await?;
        let answer = timeout(self.config.deadline, link.send(command)).await;
        self.note_answer(Lane::Calls, id, answer.ok()).await
    }

    /// Sends a command that the server may answer after `wait`. If this future is dropped, so is the connection: the
    /// server would not read from it before the end of the wait.
    pub(super) async fn wait(
        self: &Arc<Self>,
        command: &Cmd,
        wait: Duration,
    ) -> Result<Value, StoreError> {
        let (id, mut link) = self.link(Lane::Feed).await?;
        let mut held = self.feed.lock().await;
        if held.as_ref().is_some_and(|(other, _)| *other == id) {
            *held = None;
        }
        drop(held);
        let answer = timeout(wait + self.config.deadline, link.send(command)).await;
        let is_usable = matches!(&answer, Ok(Ok(_)));
        if is_usable {
            self.feed.lock().await.get_or_insert((id, link));
        }
        let answer = self.note_answer(Lane::Feed, id, answer.ok()).await?;
        answer.map_err(|why| to_store_error(&why))
    }

    /// Returns the connection of a lane, or makes one.
    async fn link(self: &Arc<Self>, lane: Lane) -> Result<(u64, Link), StoreError> {
        self.check_breaker()?;
        let mut held = self.lane(lane).lock().await;
        if let Some((id, link)) = &*held {
            return Ok((*id, link.clone()));
        }
        // It may have failed for another call meanwhile.
        self.check_breaker()?;
        match connect(&self.config).await {
            Ok(link) => {
                let id = self.note_connected();
                *held = Some((id, link.clone()));
                Ok((id, link))
            }
            Err(why) => {
                drop(held);
                if why.is_outage() {
                    self.note_failure(&why);
                }
                Err(why)
            }
        }
    }

    /// Returns an error while the server is known not to answer.
    fn check_breaker(&self) -> Result<(), StoreError> {
        let status = self.status();
        match status.retry_at {
            None => Ok(()),
            Some(_) => {
                let detail = status.last_error.clone().unwrap_or_default();
                Err(StoreError::new(StoreErrorKind::Unreachable, detail))
            }
        }
    }

    fn note_connected(&self) -> u64 {
        let mut status = self.status();
        status.last_link = status.last_link.wrapping_add(1);
        let last_link = status.last_link;
        *status = Status {
            last_link,
            is_up: true,
            ..Status::default()
        };
        last_link
    }

    /// Draws the conclusions from an answer, or from none.
    async fn note_answer(
        self: &Arc<Self>,
        lane: Lane,
        id: u64,
        answer: Option<RedisResult<Value>>,
    ) -> Result<RedisResult<Value>, StoreError> {
        let broken = match &answer {
            Some(Err(why)) => breaks_connection(why),
            Some(Ok(_)) => false,
            None => {
                let mut status = self.status();
                status.timeouts = status.timeouts.saturating_add(1);
                lane == Lane::Feed || status.timeouts >= MAX_TIMEOUTS
            }
        };
        if broken {
            let mut held = self.lane(lane).lock().await;
            if held.as_ref().is_some_and(|(other, _)| *other == id) {
                *held = None;
            }
        }
        let Some(answer) = answer else {
            let why = format!("no answer within {} ms", self.config.deadline.as_millis());
            let why = StoreError::new(StoreErrorKind::Unreachable, why);
            if broken {
                self.note_failure(&why);
            } else {
                self.note_error(&why);
            }
            return Err(why);
        };
        match &answer {
            Err(why) if broken => self.note_error(&to_store_error(why)),
            _ => self.note_success(),
        }
        Ok(answer)
    }

    fn note_success(&self) {
        let mut status = self.status();
        status.failures = 0;
        status.timeouts = 0;
        status.is_up = true;
    }

    fn note_error(&self, why: &StoreError) {
        let mut status = self.status();
        status.failures = status.failures.saturating_add(1);
        status.is_up = false;
        status.last_error = Some(why.detail.clone());
    }

    /// Records that the server cannot be reached, and starts the task that connects again, unless it runs.
    fn note_failure(self: &Arc<Self>, why: &StoreError) {
        self.note_error(why);
        let mut status = self.status();
        let is_running = status.retry_at.is_some();
        let longest = self.config.max_backoff.clamp(MIN_BACKOFF, LONGEST_BACKOFF);
        status.backoff = (status.backoff * 2).clamp(MIN_BACKOFF, longest);
        let percent = ThreadRng.in_range(80, 120);
        status.retry_at = Some(Instant::now() + status.backoff * u32::from(percent) / 100);
        drop(status);
        if !is_running {
            warn!("the store does not answer: {}", why.detail);
            tokio::spawn(reconnect(Arc::downgrade(self)));
        }
    }

    /// Waits for the next attempt, and makes it. Returns true when the server answers again.
    async fn try_again(self: &Arc<Self>) -> bool {
        match connect(&self.config).await {
            Ok(link) => {
                let mut held = self.calls.lock().await;
                let id = self.note_connected();
                *held = Some((id, link));
                true
            }
            // What a new attempt does not mend is for the next call.
            Err(why) if !why.is_outage() => {
                self.note_connected();
                self.note_error(&why);
                true
            }
            Err(why) => {
                debug!("the store does not answer: {}", why.detail);
                self.note_failure(&why);
                false
            }
        }
    }
}

/// Connects again, at growing intervals.
async fn reconnect(connector: Weak<Connector>) {
    loop {
        let Some(retry_at) = connector
            .upgrade()
            .and_then(|strong| strong.status().retry_at)
        else {
            return;
        };
        sleep_until(retry_at).await;
        // The store may have been dropped meanwhile.
        let Some(strong) = connector.upgrade() else {
            return;
        };
        if strong.try_again().await {
            info!("the store answers again");
            return;
        }
    }
}

/// Connects to the server that is to be talked to.
async fn connect(config: &ValkeyConfig) -> Result<Link, StoreError> {
    let connected = timeout(CONNECT_TIMEOUT, try_connect(config)).await;
    let connected = connected.map_err(|_| {
        let why = format!("no connection within {} s", CONNECT_TIMEOUT.as_secs());
        StoreError::new(StoreErrorKind::Unreachable, why)
    })?;
    connected.map_err(|why| to_store_error(&why))
}

async fn try_connect(config: &ValkeyConfig) -> RedisResult<Link> {
    // The deadlines of calls are those of `Connector`.
    let settings = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None);
    match &config.topology {
        Topology::Single(address) => {
            let mut login = RedisConnectionInfo::default().set_skip_set_lib_name();
            if let Some(user) = &config.user {
                login = login.set_username(user);
            }
            if let Some(password) = &config.password {
                login = login.set_password(password.as_str());
            }
            let info = address
                .clone()
                .into_connection_info()?
                .set_redis_settings(login);
            let client = match address {
                ConnectionAddr::TcpTls { .. } => {
                    install_provider();
                    Client::build_with_tls(info, certificates(config))?
                }
                _ => Client::open(info)?,
            };
            let connection = client.get_multiplexed_async_connection_with_config(&settings);
            Ok(Link::Single(connection.await?))
        }
        Topology::Sentinel {
            sentinels,
            service,
            is_tls,
        } => {
            let master = SentinelServerType::Master;
            let mut builder = SentinelClientBuilder::new(sentinels.clone(), service, master)?;
            if *is_tls {
                install_provider();
                builder = builder
                    .set_client_to_redis_tls_mode(TlsMode::Secure)
                    .set_client_to_redis_certificates(certificates(config))
                    .set_client_to_sentinel_certificates(certificates(config));
            }
            if let Some(user) = &config.user {
                builder = builder.set_client_to_redis_username(user);
            }
            if let Some(password) = &config.password {
                builder = builder.set_client_to_redis_password(password.as_str());
            }
            let mut client = builder.build()?;
            let connection = client.get_async_connection_with_config(&settings);
            Ok(Link::Single(connection.await?))
        }
        Topology::Cluster { nodes, is_tls } => {
            let mut builder = ClusterClientBuilder::new(nodes.clone())
                .connection_timeout(CONNECT_TIMEOUT)
                // The deadlines of calls are those of `Connector`; this one is longer than each wait.
                .response_timeout(Duration::from_secs(60))
                .retries(3);
            if *is_tls {
                install_provider();
                builder = builder.tls(TlsMode::Secure).certs(certificates(config));
            }
            if let Some(user) = &config.user {
                builder = builder.username(user);
            }
            if let Some(password) = &config.password {
                builder = builder.password(password.as_str());
            }
            let client = builder.build()?;
            Ok(Link::Cluster(client.get_async_connection().await?))
        }
    }
}

fn certificates(config: &ValkeyConfig) -> TlsCertificates {
    TlsCertificates {
        client_tls: None,
        root_cert: config.ca_pem.as_ref().map(|pem| pem.as_bytes().to_vec()),
    }
}

/// Sets the cryptography of TLS, which the client crate takes from the process.
fn install_provider() {
    // An error means that the process has set it.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}
