//! `+kcp` before a hop: a few sessions, and a stream on one of them for each connection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adit_config::Kcp as Plan;
use adit_kcp::{Contact, Counters, KcpStream, Probe, Settings};
use adit_net::dial::{self, Family};
use adit_smux::{End, Mux, SmuxStream, Watch};
use adit_stream::put;
use adit_wire::{Host, Target};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, warn};

use super::settings::{self, SealError};
use crate::connector::{Connected, Connector};
use crate::error::Stage;
use crate::udp::BoxDatagrams;
use crate::{BoxFuture, DialError};

/// Time in which a server that understands us has answered.
const ANSWER: Duration = Duration::from_secs(3);
/// Silence while something waits for an acknowledgement, after which a session gets no streams.
const DOUBT: Duration = Duration::from_secs(1);
/// How often a young session is asked whether something came.
const LOOK: Duration = Duration::from_millis(5);

/// Streams to one server over KCP. Whatever is asked for, they lead to that server.
pub struct KcpCarrier {
    server: Target,
    name: String,
    settings: Settings,
    smux: adit_smux::Settings,
    /// Age at which a session gets no new streams, and how long it may go on then.
    expire: Option<Duration>,
    linger: Duration,
    deadline: Duration,
    lines: Vec<Mutex<Option<Line>>>,
    turn: AtomicUsize,
}

/// A session, what is known of it, and since when there is one.
struct Line {
    mux: Mux,
    probe: Probe,
    born: Instant,
}

impl Line {
    /// Whether it may have another stream: it goes on, and its server answers.
    fn is_usable(&self) -> bool {
        let waited = self.probe.unanswered();
        self.mux.end().is_none() && waited.is_none_or(|waited| waited < DOUBT)
    }
}

impl KcpCarrier {
    /// A carrier to `server`; nothing is sent before it is needed. `name` is the hop's,
    /// `counters` count what its sessions do.
    ///
    /// # Errors
    /// The plan's key or numbers make no session.
    pub fn new(
        server: Target,
        name: String,
        deadline: Duration,
        plan: &Plan,
        counters: Arc<Counters>,
    ) -> Result<Self, SealError> {
        let (settings, smux) = settings::streams(plan, counters)?;
        Ok(Self {
            server,
            name,
            settings,
            smux,
            expire: plan.expire,
            linger: plan.linger,
            deadline,
            lines: (0..plan.sessions.max(1))
                .map(|_| Mutex::default())
                .collect(),
            turn: AtomicUsize::new(0),
        })
    }

    /// A stream, once it is known that the server understands us.
    async fn open(&self) -> Result<SmuxStream, DialError> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let Some(place) = self.lines.get(turn % self.lines.len().max(1)) else {
            return Err(self.failed(io::ErrorKind::NotConnected.into()));
        };
        let mut line = place.lock().await;
        self.let_expire(&mut line);
        if !line.as_ref().is_some_and(Line::is_usable) && line.take().is_some() {
            debug!(
                "{}: a new session in place of one that is silent or over",
                self.name
            );
        }
        let mut young = line.is_none();
        loop {
            if line.is_none() {
                *line = Some(self.line().await?);
            }
            let Some(one) = line.as_ref() else { continue };
            match one.mux.open() {
                Ok(stream) => {
                    let (probe, watch) = (one.probe.clone(), one.mux.watch());
                    drop(line);
                    self.answered(&probe, &watch).await?;
                    if young {
                        tokio::spawn(tell_mismatch(self.name.clone(), watch));
                    }
                    return Ok(stream);
                }
                Err(why) if young => return Err(self.failed(io::Error::other(why))),
                // Of one that is full, or out of numbers, the streams go on.
                Err(why) => debug!("{}: a new session is needed: {why}", self.name),
            }
            *line = None;
            young = true;
        }
    }

    fn let_expire(&self, line: &mut Option<Line>) {
        let old = |one: &Line| self.expire.is_some_and(|age| one.born.elapsed() >= age);
        if line.as_ref().is_some_and(old)
            && let Some(one) = line.take()
        {
            debug!("{}: a session has expired", self.name);
            tokio::spawn(scavenge(one.mux, self.linger));
        }
    }

    async fn line(&self) -> Result<Line, DialError> {
        let addr = address(&self.server)
            .await
            .map_err(|why| self.failed(why))?;
        let session = KcpStream::connect(addr, self.settings.clone());
        let session = session.map_err(|why| self.failed(why))?;
        let probe = session.probe();
        let mux = Mux::new(Box::new(session), self.smux.clone());
        let mux = mux.map_err(|why| self.failed(io::Error::other(why)))?;
        debug!("{}: a session with {addr} begins", self.name);
        Ok(Line {
            mux,
            probe,
            born: Instant::now(),
        })
    }

    /// Waits for a first sign of the server; says what may be wrong if none comes.
    async fn answered(&self, probe: &Probe, session: &Watch) -> Result<(), DialError> {
        let heard = async {
            while probe.contact() != Contact::Heard {
                sleep(LOOK).await;
            }
        };
        tokio::select! {
            biased;
            end = session.ended() => Err(self.failed(told(&end))),
            heard = timeout(ANSWER, heard) => heard.map_err(|_| {
                let secs = ANSWER.as_secs();
                let text = match probe.contact() {
                    Contact::Foreign(count) => format!(
                        "{count} datagrams came that do not fit: `key` or `crypt` is another there"
                    ),
                    _ => format!(
                        "nothing has come in {secs} s: it is down, or `key` or `crypt` is another \
                         there"
                    ),
                };
                self.failed(io::Error::new(io::ErrorKind::TimedOut, text))
            }),
        }
    }

    fn failed(&self, why: io::Error) -> DialError {
        let hop = self.name.clone();
        DialError::new(Stage::Dial { hop }, why)
    }
}

impl Connector for KcpCarrier {
    fn connect<'a>(
        &'a self,
        _to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<Connected, DialError>> {
        Box::pin(async move {
            let open = async {
                let mut io = self.open().await?;
                put(&mut io, first).await.map_err(|why| self.failed(why))?;
                Ok(Connected {
                    io: Box::new(io),
                    direct: false,
                    first_wait: Duration::ZERO,
                    watch: None,
                    standing: None,
                })
            };
            let late = || self.failed(io::ErrorKind::TimedOut.into());
            timeout(self.deadline, open)
                .await
                .unwrap_or_else(|_| Err(late()))
        })
    }

    fn associate(&self) -> BoxFuture<'_, Result<BoxDatagrams, DialError>> {
        Box::pin(async { Err(DialError::unsupported("KCP carries streams alone")) })
    }
}

/// The address of a server.
pub(super) async fn address(server: &Target) -> io::Result<SocketAddr> {
    match &server.host {
        Host::Ip(ip) => Ok(SocketAddr::new(*ip, server.port)),
        Host::Name(name) => dial::resolve(name.as_str(), server.port, Family::Any)
            .await?
            .first()
            .copied()
            .ok_or_else(|| io::ErrorKind::HostUnreachable.into()),
    }
}

/// Why a session ended before it began, with what to change where that is known.
fn told(end: &End) -> io::Error {
    let hint = match end {
        End::Version { theirs, .. } => format!("; use `smux={theirs}` (kcptun: `smuxver`)"),
        End::Compression { theirs: true } => {
            "; use `comp=true` (kcptun: leave `nocomp` out)".into()
        }
        End::Compression { theirs: false } => "; use `comp=false` (kcptun: `nocomp=true`)".into(),
        End::Snappy(_) | End::Protocol(_) => "; `smux` or `comp` may be another there".into(),
        _ => String::new(),
    };
    io::Error::new(io::ErrorKind::InvalidData, format!("{end}{hint}"))
}

/// Says what to change when a session ends because its ends do not fit. A server acknowledges what
/// came before it finds that out, so its streams may have begun by then.
async fn tell_mismatch(name: String, session: Watch) {
    let end = session.ended().await;
    if let End::Version { .. } | End::Compression { .. } = end {
        warn!("{name}: {}", told(&end));
    }
}

/// Closes a session that has expired, if it does not end before.
async fn scavenge(mux: Mux, after: Duration) {
    let session = mux.watch();
    let idle = async {
        while mux.streams() > 0 {
            sleep(Duration::from_secs(5).min(after)).await;
        }
    };
    tokio::select! {
        _ = session.ended() => {}
        () = idle => {}
        () = sleep(after) => {}
    }
    mux.close();
}
