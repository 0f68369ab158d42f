//! The new process's view: the process that it succeeds.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use adit_admin::api::{ApiListener, ApiListenerError};
use adit_cli::{Failure, FailureCode};
use adit_engine::connector::{MemberSelection, MemberSelections};
use adit_engine::plugin::HandedOverPlugin;
use adit_engine::{
    Engine, EngineCounters, HandoverSocket, Inheritance, InheritedSockets, PreparedEngine,
    ReplayPart, SharedSockets, SocketKind, StoredUser,
};
use adit_net::handover::{HandedOverUdp, HandoverChannel, HandoverMessage};
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use tracing::{debug, warn};

use super::message::{
    CountersMessage, ENVIRONMENT, Hello, PluginMessage, Ready, SelectedMember, SocketOwner,
    UserMessage, VERSION, kind,
};
use super::{Exchange, PredecessorEnd, to_json};

/// Time that the predecessor has for its next message while the successor starts.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// The process that this one succeeds.
pub(crate) struct Predecessor {
    channel: HandoverChannel,
    id: u32,
    /// The sockets of its listeners, and its replay states.
    pub(crate) inheritance: Inheritance,
    api: Option<InheritedApi>,
}

/// The socket of the predecessor's management API.
pub(crate) struct InheritedApi {
    address: String,
    fd: OwnedFd,
}

impl InheritedApi {
    /// Continues the socket, if it is the one for the address `at`. `token` is true if requests need a token.
    pub(crate) async fn continue_at(
        self,
        at: &str,
        token: bool,
    ) -> Result<Option<ApiListener>, ApiListenerError> {
        ApiListener::continue_from(at, token, &self.address, self.fd).await
    }
}

impl Predecessor {
    /// Receives the sockets, if this process was started by another one to succeed it.
    pub(crate) async fn from_environment() -> Result<Option<Self>, Failure> {
        let Ok(named) = std::env::var(ENVIRONMENT) else {
            return Ok(None);
        };
        // A process that has inherited the variable by accident has another standard input.
        let id = match HandoverChannel::creator_of(std::io::stdin().as_fd()) {
            Ok(id) if id.to_string() == named => id,
            _ => return Ok(None),
        };
        match Self::receive_from(id).await {
            Ok(predecessor) => Ok(Some(predecessor)),
            Err(why) => {
                let what = format!("cannot take over from process {id}: {why}");
                Err(Failure::new(FailureCode::Failure, what))
            }
        }
    }

    async fn receive_from(id: u32) -> Exchange<Self> {
        let stdin = std::io::stdin();
        let fd = stdin.as_fd().try_clone_to_owned();
        let fd = fd.map_err(|why| why.to_string())?;
        let mut channel = HandoverChannel::from_fd(fd).map_err(|why| why.to_string())?;
        // Nothing else may read the channel, and the end of this process has to close it.
        let null = std::fs::File::open("/dev/null").map_err(|why| why.to_string())?;
        rustix::stdio::dup2_stdin(&null).map_err(|why| why.to_string())?;
        let hello = Hello {
            handover: VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        super::send(&mut channel, kind::HELLO, &to_json(&hello)?, &[]).await?;
        let (mut sockets, mut api, mut replays) = (Vec::new(), None, Vec::new());
        let mut plugins = Vec::new();
        loop {
            let message = next_message(&mut channel).await?;
            match message.kind {
                kind::SOCKETS => sort_sockets(message, &mut sockets, &mut api)?,
                kind::PLUGINS => plugins.push(parse_plugin(message)?),
                kind::REPLAYS => replays.push(ReplayPart::from_bytes(message.body)),
                kind::PREPARE => break,
                other => return Err(unexpected(other)),
            }
        }
        debug!("{} sockets of process {id}", sockets.len());
        Ok(Self {
            channel,
            id,
            inheritance: Inheritance {
                sockets: InheritedSockets::new(sockets).with_plugins(plugins),
                replays,
                ..Inheritance::default()
            },
            api,
        })
    }

    /// Takes the socket of its management API, if it has one.
    pub(crate) fn take_api(&mut self) -> Option<InheritedApi> {
        self.api.take()
    }

    /// Reports that this process cannot succeed it, and returns the failure to exit with: the predecessor reports the
    /// reason.
    pub(crate) async fn refuse(mut self, why: Failure) -> Failure {
        let text = why.to_log_line();
        let sent = super::send(&mut self.channel, kind::FAILED, text.as_bytes(), &[]).await;
        if let Err(e) = sent {
            warn!("cannot report to process {}: {e}", self.id);
        }
        Failure::Exit {
            status: why.code() as u8,
            why: None,
        }
    }

    /// Reports that everything is bound, and waits until the predecessor has stopped to accept. Returns its counters.
    /// `api` is true if its socket of the API is continued.
    pub(crate) async fn wait_for_start(&mut self, api: bool) -> Result<Handover, Failure> {
        self.exchange_start(api).await.map_err(|why| {
            let what = format!("process {} does not hand over: {why}", self.id);
            Failure::new(FailureCode::Failure, what)
        })
    }

    async fn exchange_start(&mut self, api: bool) -> Exchange<Handover> {
        let ready = to_json(&Ready { api })?;
        super::send(&mut self.channel, kind::READY, &ready, &[]).await?;
        let mut handover = Handover::default();
        loop {
            let message = next_message(&mut self.channel).await?;
            match message.kind {
                kind::COUNTERS => handover.counters.push_back(parse_counters(&message)?),
                kind::USERS => handover.users.extend(parse_users(&message)?),
                kind::REPLAYS => handover.replays.push(ReplayPart::from_bytes(message.body)),
                kind::SELECTED_MEMBERS => handover.selections = parse_selections(&message.body)?,
                kind::SHARED_SOCKET => {
                    let socket = HandedOverUdp::from_parts(&message.body, message.fds);
                    handover.shared.push(socket.map_err(|why| why.to_string())?);
                }
                kind::GO => return Ok(handover),
                other => return Err(unexpected(other)),
            }
        }
    }

    /// Starts a task that reports that this process accepts connections, and adds what the predecessor counts, and the
    /// requests that it accepts, until it ends. Returns its end.
    pub(crate) fn follow(self, engine: Arc<Engine>) -> PredecessorEnd {
        let (running, end) = PredecessorEnd::new();
        tokio::spawn(async move {
            self.follow_until_end(&engine).await;
            drop(running);
        });
        end
    }

    async fn follow_until_end(mut self, engine: &Engine) {
        if let Err(why) = super::send(&mut self.channel, kind::STARTED, &[], &[]).await {
            // It has ended, and this process is alone.
            warn!("cannot report to process {}: {why}", self.id);
        } else if let Err(why) = self.receive_until_end(engine).await {
            warn!("process {}: {why}", self.id);
        }
        debug!("process {} has ended", self.id);
        engine.end_predecessor();
    }

    async fn receive_until_end(&mut self, engine: &Engine) -> Exchange<()> {
        let mut round = Vec::new();
        while let Some(message) = self
            .channel
            .receive()
            .await
            .map_err(|why| why.to_string())?
        {
            match message.kind {
                kind::COUNTERS => engine.add_counters(&parse_counters(&message)?),
                kind::CLAIM => {
                    let answer = [u8::from(engine.decide_claim(&message.body).await)];
                    let sent = super::send(&mut self.channel, kind::CLAIM_ANSWER, &answer, &[]);
                    sent.await?;
                }
                kind::REPLAYS => round.push(ReplayPart::from_bytes(message.body)),
                kind::REPLAYS_END => {
                    let merged = engine.merge_replays(&std::mem::take(&mut round));
                    merged.map_err(|why| why.to_string())?;
                }
                // Of a newer version, which has reasons to expect that it can be ignored.
                other => debug!("{}", unexpected(other)),
            }
        }
        Ok(())
    }
}

/// The state of the predecessor when it stopped to accept.
#[derive(Default)]
pub(crate) struct Handover {
    counters: VecDeque<EngineCounters>,
    users: Vec<StoredUser>,
    replays: Vec<ReplayPart>,
    shared: SharedSockets,
    /// The selections in manual groups.
    selections: MemberSelections,
}

impl Handover {
    /// Starts an engine with this state.
    pub(crate) fn start(self, prepared: PreparedEngine) -> Engine {
        // Before the first request.
        if let Err(why) = prepared.engine().merge_replays(&self.replays) {
            warn!(
                "the last requests of the former process are not protected against replays: {why}"
            );
        }
        prepared.engine().user_registry().restore(&self.users);
        prepared.engine().restore_selections(self.selections);
        prepared.engine().read_fake_ips_again();
        let engine = prepared.start(self.shared);
        for counters in self.counters {
            engine.add_counters(&counters);
        }
        engine
    }
}

async fn next_message(channel: &mut HandoverChannel) -> Exchange<HandoverMessage> {
    match timeout(ANSWER_TIME, channel.receive()).await {
        Ok(Ok(Some(message))) => Ok(message),
        Ok(Ok(None)) => Err("it has closed the channel".to_owned()),
        Ok(Err(why)) => Err(why.to_string()),
        Err(_) => Err(format!("no message within {} s", ANSWER_TIME.as_secs())),
    }
}

/// Assigns the descriptors of a message to their owners.
fn sort_sockets(
    message: HandoverMessage,
    sockets: &mut Vec<HandoverSocket>,
    api: &mut Option<InheritedApi>,
) -> Exchange<()> {
    let owners: Vec<SocketOwner> = parse(&message.body)?;
    if owners.len() != message.fds.len() {
        let (names, fds) = (owners.len(), message.fds.len());
        return Err(format!("{names} sockets have {fds} descriptors"));
    }
    for (owner, fd) in owners.into_iter().zip(message.fds) {
        match owner {
            SocketOwner::Listener {
                route,
                listener,
                kind,
                addr,
            } => sockets.push(HandoverSocket {
                route,
                listener,
                // The kind of a newer version: this one does not need the socket.
                kind: match SocketKind::from_name(&kind) {
                    Some(kind) => kind,
                    None => continue,
                },
                addr,
                fd,
            }),
            SocketOwner::Api(address) => *api = Some(InheritedApi { address, fd }),
        }
    }
    Ok(())
}

fn parse_plugin(message: HandoverMessage) -> Exchange<HandedOverPlugin> {
    parse::<PluginMessage>(&message.body)?.into_plugin(message.fds)
}

fn parse_counters(message: &HandoverMessage) -> Exchange<EngineCounters> {
    parse::<CountersMessage>(&message.body).map(Into::into)
}

fn parse_users(message: &HandoverMessage) -> Exchange<Vec<StoredUser>> {
    let users: Vec<UserMessage> = parse(&message.body)?;
    users.into_iter().map(StoredUser::try_from).collect()
}

fn parse_selections(body: &[u8]) -> Exchange<MemberSelections> {
    let mut selections = MemberSelections::default();
    for (group, member, configured) in parse::<Vec<SelectedMember>>(body)? {
        if !selections.record(group, MemberSelection { member, configured }) {
            return Err("a message has the selections of too many groups".to_owned());
        }
    }
    Ok(selections)
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Exchange<T> {
    serde_json::from_slice(body).map_err(|why| format!("a message is malformed: {why}"))
}

fn unexpected(kind: u16) -> String {
    format!("unexpected message {kind}, of another version of adit")
}
