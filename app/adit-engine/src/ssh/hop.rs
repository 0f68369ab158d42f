//! Hops to SSH servers, whose streams are channels of a few persistent connections.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adit_config::{ServerHop, SshHop as Plan};
use adit_shadowsocks::uot::{self, Version};
use adit_ssh::client::{Client, ClientConfig, Session};
use adit_ssh::{Channel, ConnectError, End, Keepalive, OpenError};
use adit_ssh_proto::auth::visible;
use adit_ssh_proto::connection::{Limits, Originator};
use adit_stream::put;
use adit_wire::{Host, Target};
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use super::SshPlanError;
use super::line::{Failure, Found, Line};
use super::login::Means;
use super::offer::offered;
use super::reasons::{no_channel, no_session};
use super::trust::Trust;
use crate::connector::{Connected, Connector};
use crate::health::Health;
use crate::udp::{BoxDatagrams, OverTcp};
use crate::{BoxFuture, Cause, DialError, Stage};

/// Maximum number of channels of one connection.
const CHANNELS: usize = 16_384;
/// Number of unanswered keepalives after which a connection counts as dead.
const MISSED: u32 = 3;
/// Time that a channel may take to open before the server is checked.
const DOUBT: Duration = Duration::from_secs(2);
/// Time limit for the answer to that check.
const ANSWER: Duration = Duration::from_secs(3);

/// Reaches targets through an SSH server, and the server through `via`.
pub struct SshHop {
    server: Arc<Server>,
    lines: Vec<Arc<Line>>,
    turn: AtomicUsize,
    udp: bool,
}

/// The parameters of a connection.
struct Server {
    target: Target,
    name: String,
    health: Health,
    deadline: Duration,
    keepalive: Duration,
    offer: adit_ssh_proto::algorithm::Preferred,
    trust: Trust,
    means: Means,
    via: Arc<dyn Connector>,
}

/// The reason why a connection has no channel for a target.
enum NoChannel {
    /// It has ended, or opens no more channels.
    Useless(End),
    /// It does not answer.
    Silent,
    Open(OpenError),
}

impl SshHop {
    /// Creates a hop, without connecting.
    ///
    /// # Errors
    ///
    /// Returns a [`SshPlanError`] if a key of the plan cannot be read.
    pub fn new(
        hop: &ServerHop,
        plan: &Plan,
        via: Arc<dyn Connector>,
    ) -> Result<Self, SshPlanError> {
        let server = Server {
            target: hop.server.clone(),
            name: hop.name(),
            health: Health::keyless(hop.name()),
            deadline: hop.dial,
            keepalive: plan.keepalive,
            offer: offered(&plan.offer),
            trust: Trust::new(&hop.server, &plan.trust)?,
            means: Means::new(plan)?,
            via,
        };
        Ok(Self {
            server: Arc::new(server),
            lines: (0..plan.sessions.max(1)).map(|_| Arc::default()).collect(),
            turn: AtomicUsize::new(0),
            udp: plan.udp,
        })
    }

    /// Opens a channel to `to`.
    async fn open(&self, to: &Target) -> Result<Channel, DialError> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let Some(line) = self.lines.get(turn % self.lines.len().max(1)) else {
            return Err(self
                .server
                .failed(Cause::Closed, io::ErrorKind::NotConnected.into()));
        };
        let mut again = true;
        loop {
            let session = self.session(line).await?;
            let why = match channel(&session, to).await {
                Ok(channel) => return Ok(channel),
                Err(why) => why,
            };
            match why {
                NoChannel::Open(why) => return Err(self.server.refused(why)),
                // A persistent connection can end unnoticed.
                NoChannel::Useless(why) if again => {
                    debug!("{}: a new connection is needed: {why}", self.server.name);
                }
                NoChannel::Silent if again => {
                    info!(
                        "{}: no answer, a new connection replaces it",
                        self.server.name
                    );
                }
                NoChannel::Useless(why) => return Err(self.server.refused(why.into())),
                NoChannel::Silent => {
                    return Err(DialError::late(&self.server.name));
                }
            }
            line.give_up(&session);
            again = false;
        }
    }

    /// Returns the connection of a slot, which is opened if there is none.
    async fn session(&self, line: &Arc<Line>) -> Result<Session, DialError> {
        let mut news = match line.find() {
            Found::Up(session) => return Ok(session),
            Found::Failed(why) => return Err(why.into_error()),
            Found::Wait(news) => news,
            Found::Make(attempt) => {
                let (news, server) = (attempt.news(), self.server.clone());
                // In a task of its own, because others wait for it too.
                tokio::spawn(async move {
                    attempt.end(server.connect().await);
                });
                news
            }
        };
        let told = news.wait_for(Option::is_some).await;
        match told.ok().and_then(|outcome| outcome.clone()) {
            Some(outcome) => outcome.map_err(Failure::into_error),
            None => Err(self
                .server
                .failed(Cause::Closed, io::ErrorKind::NotConnected.into())),
        }
    }
}

impl Server {
    /// Connects and logs in.
    async fn connect(&self) -> Result<Session, Failure> {
        let late = || Failure::new(DialError::late(&self.name));
        let connected = timeout(self.deadline, self.log_in()).await;
        let outcome = connected.unwrap_or_else(|_| Err(late()));
        match &outcome {
            Ok(session) => {
                let (name, settled) = (&self.name, session.negotiated());
                let (kex, cipher) = (settled.kex, settled.client_to_server.cipher);
                let version = visible(session.version());
                debug!("{name}: connected to {version}, {kex}, {cipher}");
                self.health.proof(None);
            }
            // Only the user can fix this, so it is a warning.
            Err(why) if !why.cause.may_retry() => warn!("{}: {}", self.name, why.text),
            Err(why) => {
                debug!("{}: {}", self.name, why.text);
                let why = why.clone().into_error();
                if why.is_unreachable(&self.name) {
                    self.health.unreachable(&why.why);
                }
            }
        }
        outcome
    }

    async fn log_in(&self) -> Result<Session, Failure> {
        let below = self
            .via
            .connect(&self.target, &[])
            .await
            .map_err(|why| Failure::new(why.on_the_way_to(&self.name)))?;
        let offered = self.offer.host_key.clone();
        let (judge, offered) = self.trust.open(offered).await.map_err(|why| {
            Failure::new(self.failed(
                Cause::Untrusted,
                io::Error::other(ConnectError::from(why).to_string()),
            ))
        })?;
        let login = self.means.login().await;
        let mut config = ClientConfig::new(Arc::new(judge), login);
        let preferred = &mut config.transport.preferred;
        preferred.clone_from(&self.offer);
        preferred.host_key = offered;
        config.limits = Limits {
            channels: CHANNELS,
            ..Limits::default()
        };
        config.keepalive = Some(Keepalive {
            interval: self.keepalive,
            missed: MISSED,
        });
        config.timeout = self.deadline;
        let session = Client::connect(below.io, config).await;
        session.map_err(|why| {
            let cause = no_session(&why);
            Failure::new(self.failed(cause, io::Error::other(why.to_string())))
        })
    }

    fn failed(&self, cause: Cause, why: io::Error) -> DialError {
        let hop = self.name.clone();
        let stage = Stage::Dialect { hop };
        DialError { stage, cause, why }
    }

    /// Returns the error of a refused channel, with the cause that a direct connection would have had.
    fn refused(&self, why: OpenError) -> DialError {
        self.failed(no_channel(&why), io::Error::other(why.to_string()))
    }
}

/// Opens a channel, while the server answers.
async fn channel(session: &Session, to: &Target) -> Result<Channel, NoChannel> {
    let host = match &to.host {
        Host::Ip(ip) => ip.to_string(),
        Host::Name(name) => name.as_str().to_owned(),
    };
    // The address of the client is not disclosed to the server.
    let originator = Originator {
        address: "127.0.0.1".to_owned(),
        port: 0,
    };
    let opened = session.direct_tcpip(host, to.port, originator);
    tokio::pin!(opened);
    let done = tokio::select! {
        done = &mut opened => done,
        // The target may be slow to connect to, but the server must answer.
        () = sleep(DOUBT) => tokio::select! {
            done = &mut opened => done,
            alive = timeout(ANSWER, session.ping()) => match alive {
                Ok(Ok(_)) => opened.await,
                Ok(Err(end)) => Err(end.into()),
                Err(_) => return Err(NoChannel::Silent),
            },
        },
    };
    done.map_err(|why| match why {
        OpenError::End(end) => NoChannel::Useless(end),
        why => NoChannel::Open(why),
    })
}

impl Connector for SshHop {
    fn connect<'a>(
        &'a self,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<Connected, DialError>> {
        Box::pin(async move {
            let open = async {
                let mut io = self.open(to).await?;
                let sent = put(&mut io, first).await;
                sent.map_err(|why| self.server.failed(Cause::of(&why), why))?;
                Ok(Connected::within(Box::new(io)))
            };
            let opened = timeout(self.server.deadline, open).await;
            opened.unwrap_or_else(|_| Err(DialError::late(&self.server.name)))
        })
    }

    fn associate(&self) -> BoxFuture<'_, Result<BoxDatagrams, DialError>> {
        Box::pin(async move {
            if !self.udp {
                return Err(DialError::unsupported(
                    "SSH carries no UDP; use `udp=over-tcp` if the server is adit",
                ));
            }
            let stream =
                uot::name(Version::V2).ok_or_else(|| DialError::unsupported("UDP over TCP"))?;
            let opened = self.connect(&stream, &[]).await?;
            Ok(Box::new(OverTcp::client(opened.io)) as BoxDatagrams)
        })
    }
}
