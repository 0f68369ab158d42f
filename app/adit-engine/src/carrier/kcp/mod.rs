//! `+kcp` before a hop, and `kcptun://`: a few sessions, on which each connection opens a stream.
//! [`session_check`] checks that a session works; where it does not, [`session_trial`] opens sessions with
//! other settings to find out why.

mod session_check;
mod session_trial;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adit_config::KcpSettings as Plan;
use adit_kcp::{Counters, KcpStream, PeerContact, SessionProbe};
use adit_net::dial::Family;
use adit_net::system::ThreadRng;
use adit_smux::{EndReason, Mux, MuxWatch, SmuxStream};
use adit_stream::write_all;
use adit_wire::{Entropy, Host, Target};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::{debug, warn};

use self::session_check::{ANSWER_TIMEOUT, ServerKnowledge, SessionCheck};
use super::settings::{self, CarrierError, SessionSettings};
use crate::connector::{ConnectedStream, Connector};
use crate::dns::NameResolver;
use crate::error::DialStage;
use crate::udp::BoxDatagramPath;
use crate::{BoxFuture, DialError};

/// Time without an acknowledgement after which a session gets no new streams.
const MAX_SILENCE: Duration = Duration::from_secs(1);
/// Interval at which a new session is checked for received data.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Maximum number of new sessions for one stream, if each ends as soon as it starts: a server whose settings
/// differ ends them until the settings match.
const MAX_TRIES: u32 = 5;
/// Number of those without a pause: the end of the first one may have revealed the right settings.
const QUICK_TRIES: u32 = 3;
/// Pause between two attempts to resolve a name or reach a route.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Streams to one server over KCP. The requested target is ignored: all streams lead to that server.
pub struct KcpCarrier {
    remote: Arc<KcpServerState>,
    /// Age at which a session gets no new streams; `linger` is how long it may continue then.
    expire: Option<Duration>,
    linger: Duration,
    deadline: Duration,
    lines: Vec<Mutex<Option<SessionSlot>>>,
    next_line: AtomicUsize,
}

/// The server, and the state of the knowledge about it.
struct KcpServerState {
    server: Target,
    /// Looks its name up.
    names: NameResolver,
    /// The last port of its range.
    last_port: u16,
    name: String,
    terms: SessionSettings,
    known: ServerKnowledge,
}

/// A session with its state and its start time.
struct SessionSlot {
    mux: Mux,
    probe: SessionProbe,
    started: Instant,
    /// Receives true when it is known if the session works; `None` if it is not checked.
    checked: Option<watch::Receiver<bool>>,
}

impl SessionSlot {
    /// Returns true if the session may get another stream: it is open, and its server answers.
    fn is_usable(&self) -> bool {
        let waited = self.probe.unanswered_for();
        self.mux.end_reason().is_none() && waited.is_none_or(|waited| waited < MAX_SILENCE)
    }
}

impl Drop for KcpCarrier {
    fn drop(&mut self) {
        // Wakes the task of `begin`, which ends with the carrier.
        self.remote.known.settings_changed.notify_one();
    }
}

impl KcpCarrier {
    /// Creates a carrier to `server`, without sending anything. `name` is the name of the hop; `counters`
    /// count the traffic of its sessions, and `names` looks up its name.
    ///
    /// # Errors
    ///
    /// Returns a [`CarrierError`] if the plan's key or parameters are invalid.
    pub fn new(
        server: Target,
        name: String,
        deadline: Duration,
        plan: &Plan,
        counters: Arc<Counters>,
        names: NameResolver,
    ) -> Result<Self, CarrierError> {
        let terms = settings::session_settings(plan, counters)?;
        let known = ServerKnowledge::new(terms.streams.clone());
        let last_port = plan.last_port.max(server.port);
        Ok(Self {
            remote: Arc::new(KcpServerState {
                server,
                names,
                last_port,
                name,
                terms,
                known,
            }),
            expire: plan.expire,
            linger: plan.linger,
            deadline,
            lines: (0..plan.sessions.max(1))
                .map(|_| Mutex::default())
                .collect(),
            next_line: AtomicUsize::new(0),
        })
    }

    /// Starts all sessions immediately, so that mismatches are reported before the first stream, and restarts
    /// those that ended because of a mismatch.
    pub(crate) fn start_sessions(self: &Arc<Self>) {
        let (carrier, far) = (Arc::downgrade(self), self.remote.clone());
        tokio::spawn(async move {
            loop {
                let Some(me) = carrier.upgrade() else {
                    return;
                };
                let failed = me.open_all_sessions().await.err();
                drop(me);
                match failed {
                    None => far.known.settings_changed.notified().await,
                    Some(why) => {
                        warn!("{why}; retrying");
                        sleep(RETRY_PAUSE).await;
                    }
                }
            }
        });
    }

    async fn open_all_sessions(&self) -> Result<(), DialError> {
        for place in &self.lines {
            let mut line = place.lock().await;
            if line
                .as_ref()
                .is_none_or(|one| one.mux.end_reason().is_some())
            {
                *line = Some(self.remote.open_session().await?);
            }
        }
        Ok(())
    }

    /// Opens a stream, once it is known that the server understands the session.
    async fn open_stream(&self) -> Result<SmuxStream, DialError> {
        let far = &self.remote;
        let turn = self.next_line.fetch_add(1, Ordering::Relaxed);
        let Some(place) = self.lines.get(turn % self.lines.len().max(1)) else {
            return Err(far.dial_error(io::ErrorKind::NotConnected.into()));
        };
        let mut line = place.lock().await;
        self.expire_session(&mut line);
        if !line.as_ref().is_some_and(SessionSlot::is_usable) && line.take().is_some() {
            debug!(
                "{}: replacing a session that is silent or has ended",
                far.name
            );
        }
        let mut tried = 0;
        loop {
            let young = line.is_none();
            if young {
                *line = Some(far.open_session().await?);
            }
            // The session stays in its slot: a caller that gives up leaves it to others.
            let Some(one) = line.as_mut() else { continue };
            if far.known.is_uncertain()
                && let Some(checked) = &mut one.checked
            {
                let _ = timeout(ANSWER_TIMEOUT, checked.wait_for(|checked| *checked)).await;
            }
            match one.mux.open() {
                Ok(stream) => {
                    let (probe, watch, born) =
                        (one.probe.clone(), one.mux.new_watch(), one.started);
                    let checked = one.checked.is_some();
                    drop(line);
                    far.wait_for_answer(&probe, &watch, born).await?;
                    if young && !checked {
                        tokio::spawn(report_mismatch(far.name.clone(), watch));
                    }
                    return Ok(stream);
                }
                // The end of a session that has just started may have revealed the settings for the next one.
                Err(why) if young && (tried >= MAX_TRIES || !far.terms.streams.may_adapt()) => {
                    return Err(far.dial_error(io::Error::other(why)));
                }
                // The session is full or has no stream IDs left; its open streams continue.
                Err(why) => debug!("{}: a new session is needed: {why}", far.name),
            }
            *line = None;
            if tried >= QUICK_TRIES {
                sleep(RETRY_PAUSE).await;
            }
            tried += 1;
        }
    }

    fn expire_session(&self, line: &mut Option<SessionSlot>) {
        let old = |one: &SessionSlot| self.expire.is_some_and(|age| one.started.elapsed() >= age);
        if line.as_ref().is_some_and(old)
            && let Some(one) = line.take()
        {
            debug!("{}: a session has expired", self.remote.name);
            tokio::spawn(close_when_idle(one.mux, self.linger));
        }
    }
}

impl KcpServerState {
    async fn open_session(self: &Arc<Self>) -> Result<SessionSlot, DialError> {
        let server = Target {
            port: ThreadRng.in_range(self.server.port, self.last_port),
            ..self.server.clone()
        };
        let addr = resolve_server(&server, &self.names)
            .await
            .map_err(|why| self.dial_error(why))?;
        let session = KcpStream::connect(addr, self.terms.kcp.clone()).await;
        let session = session.map_err(|why| self.dial_error(why))?;
        let probe = session.session_probe();
        let smux = self.known.smux_settings();
        let mux = Mux::new(Box::new(session), smux.clone());
        let mux = mux.map_err(|why| self.dial_error(io::Error::other(why)))?;
        debug!("{}: a session with {addr} begins", self.name);
        let mut checked = None;
        if self.terms.packets.is_some() {
            let (done, receiver) = watch::channel(false);
            checked = Some(receiver);
            let (far, probe, session) = (self.clone(), probe.clone(), mux.new_watch());
            tokio::spawn(async move {
                let check = SessionCheck {
                    terms: &far.terms,
                    known: &far.known,
                    server: &server,
                    addr,
                    probe: &probe,
                    session: &session,
                    smux: &smux,
                };
                check.follow_session(done).await;
            });
        }
        Ok(SessionSlot {
            mux,
            probe,
            started: Instant::now(),
            checked,
        })
    }

    /// Waits for a first answer of the server; returns an error with likely causes if there is none.
    async fn wait_for_answer(
        &self,
        probe: &SessionProbe,
        session: &MuxWatch,
        born: Instant,
    ) -> Result<(), DialError> {
        let heard = async {
            while probe.peer_contact() != PeerContact::Heard {
                sleep(POLL_INTERVAL).await;
            }
        };
        tokio::select! {
            biased;
            end = session.wait_end() => Err(self.dial_error(end_error(&end))),
            heard = timeout_at(born + ANSWER_TIMEOUT, heard) => heard.map_err(|_| {
                let secs = ANSWER_TIMEOUT.as_secs();
                let text = match probe.peer_contact() {
                    PeerContact::Foreign(count) => format!(
                        "{count} datagrams cannot be opened: `key` or `crypt` differs there"
                    ),
                    _ => format!(
                        "no answer in {secs} s: it is down, or `key` or `crypt` differs \
                         there"
                    ),
                };
                self.dial_error(io::Error::new(io::ErrorKind::TimedOut, text))
            }),
        }
    }

    fn dial_error(&self, why: io::Error) -> DialError {
        let hop = self.name.clone();
        DialError::new(DialStage::Dial { hop }, why)
    }
}

impl Connector for KcpCarrier {
    fn connect<'a>(
        &'a self,
        _to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<ConnectedStream, DialError>> {
        Box::pin(async move {
            let open = async {
                let mut io = self.open_stream().await?;
                write_all(&mut io, first)
                    .await
                    .map_err(|why| self.remote.dial_error(why))?;
                Ok(ConnectedStream::in_session(Box::new(io)))
            };
            let late = || self.remote.dial_error(io::ErrorKind::TimedOut.into());
            timeout(self.deadline, open)
                .await
                .unwrap_or_else(|_| Err(late()))
        })
    }

    fn open_datagrams(&self) -> BoxFuture<'_, Result<BoxDatagramPath, DialError>> {
        Box::pin(async { Err(DialError::unsupported("KCP carries only streams")) })
    }
}

/// Resolves the address of a server.
pub(super) async fn resolve_server(
    server: &Target,
    names: &NameResolver,
) -> io::Result<SocketAddr> {
    match &server.host {
        Host::Ip(ip) => Ok(SocketAddr::new(*ip, server.port)),
        Host::Name(name) => names
            .resolve(name.as_str(), server.port, Family::Any)
            .await?
            .first()
            .copied()
            .ok_or_else(|| io::ErrorKind::HostUnreachable.into()),
    }
}

/// Returns the error of a session that ended at its start, with the change that helps if it is known.
fn end_error(end: &EndReason) -> io::Error {
    let hint = match end {
        EndReason::Version { theirs, .. } => format!("; use `smux={theirs}` (kcptun: `smuxver`)"),
        EndReason::Compression { theirs: true } => {
            "; use `comp=true` (kcptun: remove `nocomp`)".into()
        }
        EndReason::Compression { theirs: false } => {
            "; use `comp=false` (kcptun: `nocomp=true`)".into()
        }
        EndReason::Snappy(_) | EndReason::Protocol(_) => {
            "; `smux` or `comp` may differ there".into()
        }
        _ => String::new(),
    };
    io::Error::new(io::ErrorKind::InvalidData, format!("{end}{hint}"))
}

/// Reports a mismatch that ends a session. A server acknowledges data before it detects the mismatch, so
/// that streams may have started by then.
async fn report_mismatch(name: String, session: MuxWatch) {
    let end = session.wait_end().await;
    if let EndReason::Version { .. } | EndReason::Compression { .. } = end {
        warn!("{name}: {}", end_error(&end));
    }
}

/// Closes an expired session, if it does not end earlier.
async fn close_when_idle(mux: Mux, after: Duration) {
    let session = mux.new_watch();
    let idle = async {
        while mux.stream_count() > 0 {
            sleep(Duration::from_secs(5).min(after)).await;
        }
    };
    tokio::select! {
        _ = session.wait_end() => {}
        () = idle => {}
        () = sleep(after) => {}
    }
    mux.close();
}
