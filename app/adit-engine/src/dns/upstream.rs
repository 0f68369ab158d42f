//! The servers of a DNS table: queries through its chain, and the cache of their answers.

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adit_config::{DnsConfig, DnsServer, DnsTransport, RemoteDnsServer};
use adit_dns::{Answer, Cache, CacheLimits, CachedAnswer, RecordType, UpstreamQuery};
use adit_net::names::{LookupOrigin, RESOLVE_DEADLINE};
use adit_net::system::ThreadRng;
use adit_net::{PacketBuf, system};
use adit_stream::{fill_to, write_all};
use adit_wire::{Entropy, Target, narrow_int, subslice, usize_from};
use tokio::time::{timeout, timeout_at};
use tracing::debug;

use super::error::DnsStartError;
use super::system as system_resolver;
use crate::connector::Connector;

/// Time to wait for the answer of one server before the next one is asked.
const SERVER_TIMEOUT: Duration = Duration::from_secs(2);
/// Time after which a datagram is sent again.
const RESEND_AFTER: Duration = Duration::from_millis(700);
/// Maximum number of lookups of one client at a time.
const MAX_PER_ORIGIN: u32 = 64;
/// Maximum number of lookups of all clients at a time.
const MAX_RUNNING: u32 = 1024;
/// Average memory of a cached answer, in bytes, from which the limit of the cache follows.
const BYTES_PER_ANSWER: usize = 1024;

/// The counters of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsServerCounts {
    /// The server, without its path.
    pub server: String,
    /// The number of queries.
    pub queries: u64,
    /// The number of queries without an answer.
    pub failures: u64,
}

/// The servers of a table.
pub(super) struct Upstream {
    table: String,
    servers: Vec<ServerState>,
    chain: Arc<dyn Connector>,
    cache: Option<Mutex<Cache>>,
    running: Arc<Mutex<RunningLookups>>,
    lookups: AtomicU64,
    hits: AtomicU64,
}

struct ServerState {
    server: DnsServer,
    queries: AtomicU64,
    failures: AtomicU64,
}

#[derive(Debug, Default)]
struct RunningLookups {
    total: u32,
    origins: HashMap<LookupOrigin, u32>,
}

/// A running lookup, which counts until it is dropped.
struct LookupTicket {
    running: Arc<Mutex<RunningLookups>>,
    origin: LookupOrigin,
}

impl LookupTicket {
    fn reserve(running: &Arc<Mutex<RunningLookups>>, origin: LookupOrigin) -> io::Result<Self> {
        let mut state = running.lock().unwrap_or_else(PoisonError::into_inner);
        let of_origin = state.origins.get(&origin).copied().unwrap_or(0);
        if state.total >= MAX_RUNNING || of_origin >= MAX_PER_ORIGIN {
            let why = "too many lookups are running";
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, why));
        }
        state.total += 1;
        state.origins.insert(origin, of_origin + 1);
        Ok(Self {
            running: running.clone(),
            origin,
        })
    }
}

impl Drop for LookupTicket {
    fn drop(&mut self) {
        let mut state = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        state.total -= 1;
        if let Some(count) = state.origins.get_mut(&self.origin) {
            *count -= 1;
            if *count == 0 {
                state.origins.remove(&self.origin);
            }
        }
    }
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream")
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

impl Upstream {
    /// Creates the servers of a table, which are reached through `chain`.
    pub(super) fn new(
        config: &DnsConfig,
        chain: Arc<dyn Connector>,
    ) -> Result<Self, DnsStartError> {
        for server in &config.servers {
            if let DnsServer::Remote(remote) = server
                && matches!(remote.transport, DnsTransport::Tls | DnsTransport::Https)
            {
                return Err(DnsStartError::Server {
                    table: config.name.clone(),
                    server: server.to_string(),
                    why: "TLS and HTTPS are not supported yet".to_owned(),
                });
            }
        }
        let entries = usize_from(config.cache);
        let limits = CacheLimits {
            entries,
            bytes: entries.saturating_mul(BYTES_PER_ANSWER),
            ..CacheLimits::default()
        };
        let state = |server: &DnsServer| ServerState {
            server: server.clone(),
            queries: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        };
        Ok(Self {
            table: config.name.clone(),
            servers: config.servers.iter().map(state).collect(),
            chain,
            cache: (entries > 0).then(|| Mutex::new(Cache::new(limits))),
            running: Arc::default(),
            lookups: AtomicU64::new(0),
            hits: AtomicU64::new(0),
        })
    }

    /// Returns the counters of the servers, in their order.
    pub(super) fn counts(&self) -> Vec<DnsServerCounts> {
        let count = |state: &ServerState| DnsServerCounts {
            server: state.server.to_string(),
            queries: state.queries.load(Ordering::Relaxed),
            failures: state.failures.load(Ordering::Relaxed),
        };
        self.servers.iter().map(count).collect()
    }

    /// Returns the number of lookups, and of those that the cache has answered.
    pub(super) fn lookups(&self) -> (u64, u64) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (load(&self.lookups), load(&self.hits))
    }

    /// Returns the cached answer.
    pub(super) fn cached(&self, name: &str, record_type: RecordType) -> Option<CachedAnswer> {
        let cache = self.cache.as_ref()?;
        let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
        let found = cache.get(name, record_type, system::monotonic_now())?;
        drop(cache);
        self.lookups.fetch_add(1, Ordering::Relaxed);
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(found)
    }

    /// Looks a name up: one server after the other, until one answers.
    pub(super) async fn look_up(
        &self,
        name: &str,
        record_type: RecordType,
        origin: LookupOrigin,
    ) -> io::Result<CachedAnswer> {
        if let Some(found) = self.cached(name, record_type) {
            return Ok(found);
        }
        self.lookups.fetch_add(1, Ordering::Relaxed);
        let _ticket = LookupTicket::reserve(&self.running, origin)?;
        let until = tokio::time::Instant::now() + RESOLVE_DEADLINE;
        let mut last = io::Error::from(io::ErrorKind::TimedOut);
        for state in &self.servers {
            state.queries.fetch_add(1, Ordering::Relaxed);
            let asked = self.ask(&state.server, name, record_type, origin);
            let answer = match timeout_at(until, timeout(SERVER_TIMEOUT, asked)).await {
                Ok(Ok(Ok(answer))) => answer,
                Ok(Ok(Err(why))) => {
                    state.failures.fetch_add(1, Ordering::Relaxed);
                    debug!(server = %state.server, name, "no answer: {why}");
                    last = why;
                    continue;
                }
                Ok(Err(_)) | Err(_) => {
                    state.failures.fetch_add(1, Ordering::Relaxed);
                    debug!(server = %state.server, name, "no answer in time");
                    let why = format!("no answer from {}", state.server);
                    last = io::Error::new(io::ErrorKind::TimedOut, why);
                    continue;
                }
            };
            let answer = Arc::new(answer);
            if let Some(cache) = &self.cache {
                let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
                cache.insert(name, record_type, answer.clone(), system::monotonic_now());
            }
            return Ok(CachedAnswer {
                answer,
                age: Duration::ZERO,
            });
        }
        Err(last)
    }

    async fn ask(
        &self,
        server: &DnsServer,
        name: &str,
        record_type: RecordType,
        origin: LookupOrigin,
    ) -> io::Result<Answer> {
        let remote = match server {
            DnsServer::System => return system_resolver::look_up(name, record_type, origin).await,
            DnsServer::Remote(remote) => remote,
        };
        let mut id = [0; 2];
        ThreadRng.fill(&mut id);
        let query = UpstreamQuery::new(name, record_type, u16::from_be_bytes(id))
            .map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        let answer = match remote.transport {
            DnsTransport::Udp => {
                let answer = self.ask_by_datagram(&remote.server, &query).await?;
                match answer.is_truncated() {
                    true => self.ask_by_stream(remote, &query).await?,
                    false => answer,
                }
            }
            _ => self.ask_by_stream(remote, &query).await?,
        };
        if !answer.is_about_the_name() {
            return Err(io::Error::other(format!(
                "{server} answers {}",
                answer.code()
            )));
        }
        Ok(answer)
    }

    /// Sends a query in a datagram, through a path of its own: its port is not predictable.
    async fn ask_by_datagram(&self, server: &Target, query: &UpstreamQuery) -> io::Result<Answer> {
        let path = self
            .chain
            .open_datagrams()
            .await
            .map_err(io::Error::other)?;
        let bytes = query.to_bytes();
        let mut scratch = PacketBuf::default();
        loop {
            path.send(&mut PacketBuf::from_payload(&bytes), server)?;
            path.flush()?;
            let mut found = None;
            let answer = async {
                while found.is_none() {
                    poll_fn(|cx| {
                        path.poll_recv(cx, &mut scratch, &mut |packet, _| {
                            // Others than the server do not know the number.
                            found = found
                                .take()
                                .or_else(|| query.check_answer(packet.payload()).ok());
                        })
                    })
                    .await?;
                }
                Ok::<_, io::Error>(())
            };
            match timeout(RESEND_AFTER, answer).await {
                Ok(done) => done?,
                Err(_) => continue,
            }
            if let Some(answer) = found {
                return Ok(answer);
            }
        }
    }

    /// Sends a query over a connection of its own (RFC 7766).
    async fn ask_by_stream(
        &self,
        server: &RemoteDnsServer,
        query: &UpstreamQuery,
    ) -> io::Result<Answer> {
        let bytes = query.to_bytes();
        let mut message = narrow_int::<u16>(bytes.len()).to_be_bytes().to_vec();
        message.extend(bytes);
        let stream = self.chain.connect(&server.server, &message).await;
        let mut io = stream.map_err(io::Error::other)?.io;
        write_all(&mut io, &[]).await?;
        adit_stream::flush_stream(&mut io).await?;
        let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let mut needed = 2;
        loop {
            if fill_to(&mut io, needed).await? < needed {
                return Err(short());
            }
            let filled = io.filled();
            let Some(length) = filled.first_chunk() else {
                return Err(short());
            };
            needed = 2 + usize::from(u16::from_be_bytes(*length));
            if filled.len() >= needed {
                let answer = query.check_answer(subslice(filled, 2..needed));
                return answer.map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why));
            }
        }
    }
}
