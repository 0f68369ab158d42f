//! Hops to SSH servers, whose streams are channels of a few persistent connections.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adit_config::{ServerHop, SshHop as Plan};
use adit_shadowsocks::uot::{self, Version};
use adit_ssh::client::{Client, ClientConfig, Session};
use adit_ssh::{Channel, ConnectError, Keepalive, OpenError, SessionEnd};
use adit_ssh_proto::auth::sanitize_for_display;
use adit_ssh_proto::connection::{ConnectionLimits, Originator};
use adit_stream::write_all;
use adit_wire::{Host, Target};
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use super::SshPlanError;
use super::algorithms::client_algorithms;
use super::connection_slot::{ConnectFailure, ConnectionSlot, SlotContent};
use super::error_causes::{connect_error_cause, open_error_cause};
use super::host_key_check::HostTrustRule;
use super::login::LoginCredentials;
use crate::connector::{ConnectedStream, Connector};
use crate::health::ServerHealth;
use crate::udp::{BoxDatagramPath, UdpOverTcp};
use crate::{BoxFuture, DialError, DialStage, FailureCause};

/// Maximum number of channels of one connection.
const MAX_CHANNELS: usize = 16_384;
/// Number of unanswered keepalives after which a connection counts as dead.
const MAX_MISSED_KEEPALIVES: u32 = 3;
/// Time that a channel may take to open before the server is checked.
const CHECK_AFTER: Duration = Duration::from_secs(2);
/// Time limit for the answer to that check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);

/// Reaches targets through an SSH server, and the server through `via`.
pub struct SshHop {
    server: Arc<SshServerParams>,
    lines: Vec<Arc<ConnectionSlot>>,
    turn: AtomicUsize,
    udp: bool,
}

/// The parameters of a connection.
struct SshServerParams {
    target: Target,
    name: String,
    health: Arc<ServerHealth>,
    deadline: Duration,
    keepalive: Duration,
    offer: adit_ssh_proto::algorithm::AlgorithmPreferences,
    trust: HostTrustRule,
    means: LoginCredentials,
    via: Arc<dyn Connector>,
}

/// The reason why a connection has no channel for a target.
enum ChannelFailure {
    /// It has ended, or opens no more channels.
    Ended(SessionEnd),
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
        let server = SshServerParams {
            target: hop.server.clone(),
            name: hop.display_name(),
            health: Arc::new(ServerHealth::without_key(hop.display_name())),
            deadline: hop.dial,
            keepalive: plan.keepalive,
            offer: client_algorithms(&plan.algorithms),
            trust: HostTrustRule::new(&hop.server, &plan.trust)?,
            means: LoginCredentials::new(plan)?,
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
    async fn open_channel(&self, to: &Target) -> Result<Channel, DialError> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let Some(line) = self.lines.get(turn % self.lines.len().max(1)) else {
            return Err(self
                .server
                .dial_error(FailureCause::Closed, io::ErrorKind::NotConnected.into()));
        };
        let mut again = true;
        loop {
            let session = self.session_of(line).await?;
            let why = match open_checked_channel(&session, to).await {
                Ok(channel) => return Ok(channel),
                Err(why) => why,
            };
            match why {
                ChannelFailure::Open(why) => return Err(self.server.channel_error(why)),
                // A persistent connection can end unnoticed.
                ChannelFailure::Ended(why) if again => {
                    debug!("{}: a new connection is needed: {why}", self.server.name);
                }
                ChannelFailure::Silent if again => {
                    info!(
                        "{}: no answer, a new connection replaces it",
                        self.server.name
                    );
                }
                ChannelFailure::Ended(why) => return Err(self.server.channel_error(why.into())),
                ChannelFailure::Silent => {
                    return Err(DialError::hop_timed_out(&self.server.name));
                }
            }
            line.remove_silent(&session);
            again = false;
        }
    }

    /// Returns the connection of a slot, which is opened if there is none.
    async fn session_of(&self, line: &Arc<ConnectionSlot>) -> Result<Session, DialError> {
        let mut news = match line.current_or_attempt() {
            SlotContent::Up(session) => return Ok(session),
            SlotContent::Failed(why) => return Err(why.into_error()),
            SlotContent::Wait(news) => news,
            SlotContent::Connect(attempt) => {
                let (news, server) = (attempt.subscribe(), self.server.clone());
                // In a task of its own, because others wait for it too.
                tokio::spawn(async move {
                    attempt.finish(server.connect().await);
                });
                news
            }
        };
        let told = news.wait_for(Option::is_some).await;
        match told.ok().and_then(|outcome| outcome.clone()) {
            Some(outcome) => outcome.map_err(ConnectFailure::into_error),
            None => Err(self
                .server
                .dial_error(FailureCause::Closed, io::ErrorKind::NotConnected.into())),
        }
    }
}

impl SshServerParams {
    /// Connects and logs in.
    async fn connect(&self) -> Result<Session, ConnectFailure> {
        let late = || ConnectFailure::new(DialError::hop_timed_out(&self.name));
        let connected = timeout(self.deadline, self.log_in()).await;
        let outcome = connected.unwrap_or_else(|_| Err(late()));
        match &outcome {
            Ok(session) => {
                let (name, settled) = (&self.name, session.negotiated());
                let (kex, cipher) = (settled.kex, settled.client_to_server.cipher);
                let version = sanitize_for_display(session.version());
                debug!("{name}: connected to {version}, {kex}, {cipher}");
                self.health.record_proof(None);
            }
            // Only the user can fix this, so it is a warning.
            Err(why) if !why.cause.is_retryable() => warn!("{}: {}", self.name, why.text),
            Err(why) => {
                debug!("{}: {}", self.name, why.text);
                let why = why.clone().into_error();
                if why.is_hop_unreachable(&self.name) {
                    self.health.report_unreachable(&why.source_error);
                }
            }
        }
        outcome
    }

    async fn log_in(&self) -> Result<Session, ConnectFailure> {
        let below = self
            .via
            .connect(&self.target, &[])
            .await
            .map_err(|why| ConnectFailure::new(why.attribute_to_hop(&self.name)))?;
        let offered = self.offer.host_key.clone();
        let (judge, offered) = self
            .trust
            .load_for_connection(offered)
            .await
            .map_err(|why| {
                ConnectFailure::new(self.dial_error(
                    FailureCause::Untrusted,
                    io::Error::other(ConnectError::from(why).to_string()),
                ))
            })?;
        let login = self.means.current_login().await;
        let mut config = ClientConfig::new(Arc::new(judge), login);
        let preferred = &mut config.transport.preferred;
        preferred.clone_from(&self.offer);
        preferred.host_key = offered;
        config.limits = ConnectionLimits::default();
        config.limits.channels = MAX_CHANNELS;
        config.keepalive = Some(Keepalive {
            interval: self.keepalive,
            max_missed: MAX_MISSED_KEEPALIVES,
        });
        config.timeout = self.deadline;
        let session = Client::connect(below.io, config).await;
        session.map_err(|why| {
            let cause = connect_error_cause(&why);
            ConnectFailure::new(self.dial_error(cause, io::Error::other(why.to_string())))
        })
    }

    fn dial_error(&self, cause: FailureCause, why: io::Error) -> DialError {
        let hop = self.name.clone();
        let stage = DialStage::Dialect { hop };
        DialError {
            stage,
            cause,
            source_error: why,
        }
    }

    /// Returns the error of a refused channel, with the cause that a direct connection would have had.
    fn channel_error(&self, why: OpenError) -> DialError {
        self.dial_error(open_error_cause(&why), io::Error::other(why.to_string()))
    }
}

/// Opens a channel, while the server answers.
async fn open_checked_channel(session: &Session, to: &Target) -> Result<Channel, ChannelFailure> {
    let host = match &to.host {
        Host::Ip(ip) => ip.to_string(),
        Host::Name(name) => name.as_str().to_owned(),
    };
    // The address of the client is not disclosed to the server.
    let originator = Originator {
        address: "127.0.0.1".to_owned(),
        port: 0,
    };
    let opened = session.open_direct_tcpip(host, to.port, originator);
    tokio::pin!(opened);
    let done = tokio::select! {
        done = &mut opened => done,
        // The target may be slow to connect to, but the server must answer.
        () = sleep(CHECK_AFTER) => tokio::select! {
            done = &mut opened => done,
            alive = timeout(CHECK_TIMEOUT, session.ping()) => match alive {
                Ok(Ok(_)) => opened.await,
                Ok(Err(end)) => Err(end.into()),
                Err(_) => return Err(ChannelFailure::Silent),
            },
        },
    };
    done.map_err(|why| match why {
        OpenError::End(end) => ChannelFailure::Ended(end),
        why => ChannelFailure::Open(why),
    })
}

impl Connector for SshHop {
    fn server_health(&self) -> Option<Arc<ServerHealth>> {
        Some(self.server.health.clone())
    }

    fn connect<'a>(
        &'a self,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<ConnectedStream, DialError>> {
        Box::pin(async move {
            let open = async {
                let mut io = self.open_channel(to).await?;
                let sent = write_all(&mut io, first).await;
                sent.map_err(|why| {
                    self.server
                        .dial_error(FailureCause::from_io_error(&why), why)
                })?;
                Ok(ConnectedStream::in_session(Box::new(io)))
            };
            let opened = timeout(self.server.deadline, open).await;
            opened.unwrap_or_else(|_| Err(DialError::hop_timed_out(&self.server.name)))
        })
    }

    fn open_datagrams(&self) -> BoxFuture<'_, Result<BoxDatagramPath, DialError>> {
        Box::pin(async move {
            if !self.udp {
                return Err(DialError::unsupported(
                    "SSH carries no UDP; use `udp=over-tcp` if the server is adit",
                ));
            }
            let stream = uot::reserved_target(Version::V2)
                .ok_or_else(|| DialError::unsupported("UDP over TCP"))?;
            let opened = self.connect(&stream, &[]).await?;
            Ok(Box::new(UdpOverTcp::new_client(opened.io)) as BoxDatagramPath)
        })
    }
}
