//! The running process's view: the process that succeeds it.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use adit_admin::api::{ApiListenerControl, Upgraded};
use adit_cli::{CommandResult, SignalRequest, Signals, notify_service_manager};
use adit_engine::{Engine, EngineCounters, HandoverSocket, ReplayClaim, ReplayPart, StoredUser};
use adit_net::child::detachable::{DetachableChild, spawn_detachable};
use adit_net::handover::{HandoverChannel, HandoverMessage};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, timeout};
use tracing::{debug, info, warn};

use super::message::{
    CountersMessage, ENVIRONMENT, Hello, PluginMessage, Ready, SOCKETS_PER_MESSAGE, SelectedMember,
    SocketOwner, UserMessage, VERSION, kind,
};
use super::{Exchange, PredecessorEnd, ProcessFiles, to_json};

/// Time for the first message of the new process; a program that is not adit sends none.
const HELLO_TIME: Duration = Duration::from_secs(10);
/// Time for the new process to read its configuration and to bind everything.
const READY_TIME: Duration = Duration::from_secs(30);
/// Time for the new process to accept after it was requested to; nothing is accepted meanwhile.
const START_TIME: Duration = Duration::from_secs(5);
/// Time for a process that has closed the channel to end.
const EXIT_TIME: Duration = Duration::from_secs(1);
/// Time for the successor to read a report.
const REPORT_TIME: Duration = Duration::from_secs(5);
/// Interval at which counters are sent to the successor.
const COUNTER_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which the replay states of datagrams are sent, if they have changed.
const REPLAY_INTERVAL: Duration = Duration::from_millis(100);

/// The process that continues the listeners of this one.
pub(crate) struct Successor {
    channel: HandoverChannel,
    pub(crate) about: Upgraded,
    /// The counters that it has.
    counted: EngineCounters,
    /// The decisions about replays that it has to confirm.
    claims: Claims,
    /// The count of the replay states of datagrams that it has.
    recorded: u64,
    /// A hash of the sessions of datagrams that it has.
    sessions_hash: u64,
    /// The end of the process that this one has succeeded, whose reports and datagrams it passes on.
    predecessor: Option<PredecessorEnd>,
}

/// Decisions about replays that the new process has to confirm.
struct Claims {
    new: mpsc::Receiver<ReplayClaim>,
    /// Those that were sent, in the order of their answers.
    sent: VecDeque<ReplayClaim>,
    /// True if the new process has ended: this one decides alone.
    has_ended: bool,
}

impl Successor {
    /// Starts `program` with the arguments of this process, and hands over. On return, the new process accepts
    /// connections and this one has closed its listeners.
    ///
    /// # Errors
    /// The reason why the new process could not take over. This one continues unchanged.
    pub(crate) async fn start(
        program: &Path,
        engine: &Engine,
        api: Option<&ApiListenerControl>,
        predecessor: Option<PredecessorEnd>,
        files: &ProcessFiles,
    ) -> Exchange<Self> {
        let started = Self::start_or_fail(program, engine, api, predecessor, files).await;
        if started.is_err() {
            engine.resume_plugins();
            engine.end_claims();
        }
        started
    }

    async fn start_or_fail(
        program: &Path,
        engine: &Engine,
        api: Option<&ApiListenerControl>,
        predecessor: Option<PredecessorEnd>,
        files: &ProcessFiles,
    ) -> Exchange<Self> {
        check_service_manager()?;
        let sockets = engine.export_sockets().map_err(|why| why.to_string())?;
        let api_socket = match api {
            Some(api) => api.export().map_err(|why| why.to_string())?,
            None => None,
        };
        let (mut channel, stdin) = HandoverChannel::pair().map_err(|why| why.to_string())?;
        let mut command = Command::new(program);
        command
            .args(std::env::args_os().skip(1))
            .env(ENVIRONMENT, std::process::id().to_string())
            .stdin(Stdio::from(stdin));
        let child = spawn_detachable(command).await;
        let mut child =
            child.map_err(|why| format!("cannot start `{}`: {why}", program.display()))?;
        let hello = next_message(&mut channel, &child, HELLO_TIME).await?;
        let hello: Hello = expect(&hello, kind::HELLO)?;
        if hello.handover != VERSION {
            return Err(format!(
                "adit {} implements another version of the handover; restart adit instead",
                hello.version
            ));
        }
        send_sockets(&mut channel, sockets, api.zip(api_socket)).await?;
        let plugins = engine.hand_over_plugins().await;
        for plugin in plugins.map_err(|why| why.to_string())? {
            let (about, fds) = PluginMessage::new(plugin);
            let fds = fds.each_ref().map(AsFd::as_fd);
            super::send(&mut channel, kind::PLUGINS, &to_json(&about)?, &fds).await?;
        }
        send_replays(&mut channel, &engine.replay_snapshot()).await?;
        super::send(&mut channel, kind::PREPARE, &[], &[]).await?;
        let ready = next_message(&mut channel, &child, READY_TIME).await?;
        let ready: Ready = expect(&ready, kind::READY)?;

        engine.pause_accepting().await;
        files.close().await;
        let mut counted = engine.counters();
        // The users are handed over with their limits; only what is added later is counted.
        let users: Vec<StoredUser> = engine.user_registry().to_stored().collect();
        counted.users.clear();
        let started = Self::request_start(&mut channel, &child, engine, &counted, &users);
        let started = started.await;
        counted.users = users.into_iter().map(Into::into).collect();
        let (claims, recorded) = match started {
            Ok(started) => started,
            Err(why) => {
                files.reopen(engine).await;
                // The sockets were not closed: nothing was refused.
                engine.resume_accepting();
                return Err(why);
            }
        };
        child.detach();
        engine.leave_to_successor().await;
        if let Some(api) = api.filter(|_| ready.api) {
            api.leave_to_successor();
        }
        notify_successor(child.id());
        let mut successor = Self {
            channel,
            about: Upgraded {
                pid: child.id(),
                version: hello.version,
            },
            counted,
            claims: Claims {
                new: claims,
                sent: VecDeque::new(),
                has_ended: false,
            },
            recorded,
            sessions_hash: 0,
            predecessor,
        };
        // The sessions of intercepted datagrams have ended.
        successor.report_replays(engine).await;
        Ok(successor)
    }

    async fn request_start(
        channel: &mut HandoverChannel,
        child: &DetachableChild,
        engine: &Engine,
        counted: &EngineCounters,
        users: &[StoredUser],
    ) -> Exchange<(mpsc::Receiver<ReplayClaim>, u64)> {
        send_counters(channel, counted).await?;
        for message in UserMessage::divide(users) {
            super::send(channel, kind::USERS, &to_json(&message)?, &[]).await?;
        }
        let shared = engine.hand_over_udp().await;
        for socket in shared.map_err(|why| why.to_string())?.into_vec() {
            let (peers, fds) = socket.into_parts();
            let fds = fds.each_ref().map(AsFd::as_fd);
            super::send(channel, kind::SHARED_SOCKET, &peers, &fds).await?;
        }
        // Nothing is received from here on, and the new process decides about handshakes: the snapshot is complete.
        let recorded = engine.packet_count();
        let (claims, replays) = engine.start_claims();
        send_replays(channel, &replays).await?;
        let selections = engine.member_selections();
        let selected: Vec<SelectedMember> = selections
            .iter()
            .map(|(group, made)| {
                (
                    group.to_owned(),
                    made.member.clone(),
                    made.configured.clone(),
                )
            })
            .collect();
        let selected = to_json(&selected)?;
        super::send(channel, kind::SELECTED_MEMBERS, &selected, &[]).await?;
        super::send(channel, kind::GO, &[], &[]).await?;
        let started = next_message(channel, child, START_TIME).await?;
        match started.kind {
            kind::STARTED => Ok((claims, recorded)),
            other => Err(format!("unexpected message {other}")),
        }
    }

    /// Waits until all connections have ended, for at most `drain`, or until a second signal, and sends what they
    /// count to the new process.
    pub(crate) async fn drain(
        mut self,
        engine: &Engine,
        drain: Duration,
        mut signals: Signals,
    ) -> CommandResult {
        let open = engine.open_connections();
        if open > 0 {
            info!("{open} open connections of this process have {drain:?} to end");
        }
        let until = Instant::now() + drain;
        let mut is_ending = false;
        let mut replay_timer = interval(REPLAY_INTERVAL);
        let mut counter_timer = interval(COUNTER_INTERVAL);
        let mut predecessor = self.predecessor.take();
        loop {
            if is_ending && self.claims.has_ended {
                // The new process has failed, and the service manager waits for this one to start the service again.
                break;
            }
            let left = until.saturating_duration_since(Instant::now());
            let end = async {
                if let Some(predecessor) = &mut predecessor {
                    // It has started to end earlier. A process that stalls is not waited for.
                    let _ = timeout(left, predecessor.wait()).await;
                }
                let left = until.saturating_duration_since(Instant::now());
                engine.wait_until_idle(left).await;
            };
            tokio::select! {
                () = end => break,
                _ = replay_timer.tick() => self.report_replays(engine).await,
                _ = counter_timer.tick() => self.report_counters(engine, false).await,
                Some(claim) = self.claims.new.recv() => self.send_claim(claim).await,
                answer = self.channel.receive(), if !self.claims.has_ended => match answer {
                    Ok(Some(answer)) => self.handle_answer(&answer),
                    Ok(None) | Err(_) => self.end_claims(engine),
                },
                request = signals.next_request() => match request {
                    // The service manager ends both processes, and the new one waits for this one.
                    SignalRequest::Drain if !is_ending => is_ending = true,
                    SignalRequest::Drain | SignalRequest::Stop => break,
                    SignalRequest::Reload | SignalRequest::Upgrade => {
                        info!("the signal is for process {}, which continues", self.about.pid);
                    }
                },
            }
        }
        engine.end_associations().await;
        self.report_replays(engine).await;
        self.report_counters(engine, true).await;
        Ok(())
    }

    /// Asks the new process for a decision.
    async fn send_claim(&mut self, claim: ReplayClaim) {
        let sent = super::send(&mut self.channel, kind::CLAIM, claim.as_bytes(), &[]);
        match within_report_time(sent).await {
            Ok(()) => self.claims.sent.push_back(claim),
            // If it has ended, the channel says so, and this process decides alone. Until then nothing is accepted
            // that it might have seen.
            Err(why) => {
                debug!("cannot ask process {}: {why}", self.about.pid);
                claim.answer(false);
            }
        }
    }

    /// Handles a message of the new process: an answer to the oldest claim.
    fn handle_answer(&mut self, message: &HandoverMessage) {
        if message.kind != kind::CLAIM_ANSWER {
            // Of a newer version, which has reasons to expect that it can be ignored.
            return;
        }
        if let Some(claim) = self.claims.sent.pop_front() {
            claim.answer(message.body == [1]);
        }
    }

    /// Decides alone, as the new process has ended.
    fn end_claims(&mut self, engine: &Engine) {
        engine.end_claims();
        self.claims.has_ended = true;
        self.claims.sent.clear();
    }

    /// Sends snapshots of the replay states of datagrams that have changed since the last ones.
    async fn report_replays(&mut self, engine: &Engine) {
        let recorded = engine.packet_count();
        let sessions = engine.session_snapshot();
        let mut hasher = DefaultHasher::new();
        sessions.iter().for_each(|part| hasher.write(part.expose()));
        let sessions_hash = hasher.finish();
        let parts = match (
            recorded == self.recorded,
            sessions_hash == self.sessions_hash,
        ) {
            (true, true) => return,
            (true, false) => sessions,
            (false, _) => engine.packet_snapshot(),
        };
        let sent = send_replay_round(&mut self.channel, &parts);
        match within_report_time(sent).await {
            Ok(()) => (self.recorded, self.sessions_hash) = (recorded, sessions_hash),
            Err(why) => debug!("cannot report to process {}: {why}", self.about.pid),
        }
    }

    /// Sends what was counted since the last report. `is_last` is true if all sessions end now.
    async fn report_counters(&mut self, engine: &Engine, is_last: bool) {
        let mut now = engine.counters();
        if is_last {
            now.end_sessions();
        }
        let added = now.since(&self.counted);
        if added.is_zero() {
            return;
        }
        let sent = send_counters(&mut self.channel, &added);
        match within_report_time(sent).await {
            Ok(()) => self.counted = now,
            Err(why) => debug!("cannot report to process {}: {why}", self.about.pid),
        }
    }
}

/// Bounds the time of a report: a new process that stalls must not keep this one.
async fn within_report_time(sent: impl Future<Output = Exchange<()>>) -> Exchange<()> {
    let sent = timeout(REPORT_TIME, sent).await;
    sent.unwrap_or_else(|_| Err("it does not read".to_owned()))
}

async fn send_replay_round(channel: &mut HandoverChannel, parts: &[ReplayPart]) -> Exchange<()> {
    send_replays(channel, parts).await?;
    super::send(channel, kind::REPLAYS_END, &[], &[]).await
}

async fn send_replays(channel: &mut HandoverChannel, parts: &[ReplayPart]) -> Exchange<()> {
    for part in parts {
        super::send(channel, kind::REPLAYS, part.expose(), &[]).await?;
    }
    Ok(())
}

/// Checks that the end of this process does not end the new one.
fn check_service_manager() -> Exchange<()> {
    let own = std::process::id();
    if own == 1 {
        return Err(
            "adit is process 1 of a container, which ends with it; start a new container instead"
                .to_owned(),
        );
    }
    if std::env::var_os("RC_SVCNAME").is_some() {
        return Err(
            "OpenRC watches the process that it has started and would start another one; restart the service instead"
                .to_owned(),
        );
    }
    let is_main = std::env::var("SYSTEMD_EXEC_PID").is_ok_and(|id| id == own.to_string());
    if is_main && std::env::var_os("NOTIFY_SOCKET").is_none() {
        return Err(
            "systemd would end the new process together with this one; add `Type=notify` to the unit and restart it"
                .to_owned(),
        );
    }
    Ok(())
}

/// Reports the new process to the service manager.
fn notify_successor(id: u32) {
    if let Err(why) = notify_service_manager(&format!("MAINPID={id}\nREADY=1")) {
        warn!("cannot report process {id} to the service manager: {why}");
    }
}

async fn send_sockets(
    channel: &mut HandoverChannel,
    sockets: Vec<HandoverSocket>,
    api: Option<(&ApiListenerControl, OwnedFd)>,
) -> Exchange<()> {
    let listeners = sockets.into_iter().map(|socket| {
        let owner = SocketOwner::Listener {
            route: socket.route,
            listener: socket.listener,
            kind: socket.kind.name().to_owned(),
            addr: socket.addr,
        };
        (owner, socket.fd)
    });
    let api = api.map(|(api, fd)| (SocketOwner::Api(api.address().to_owned()), fd));
    let all: Vec<(SocketOwner, OwnedFd)> = listeners.chain(api).collect();
    for part in all.chunks(SOCKETS_PER_MESSAGE) {
        let owners: Vec<&SocketOwner> = part.iter().map(|(owner, _)| owner).collect();
        let fds: Vec<BorrowedFd<'_>> = part.iter().map(|(_, fd)| fd.as_fd()).collect();
        super::send(channel, kind::SOCKETS, &to_json(&owners)?, &fds).await?;
    }
    Ok(())
}

async fn send_counters(channel: &mut HandoverChannel, counters: &EngineCounters) -> Exchange<()> {
    for message in CountersMessage::divide(counters) {
        super::send(channel, kind::COUNTERS, &to_json(&message)?, &[]).await?;
    }
    Ok(())
}

/// Receives the next message of the new process within `limit`.
async fn next_message(
    channel: &mut HandoverChannel,
    child: &DetachableChild,
    limit: Duration,
) -> Exchange<HandoverMessage> {
    let received = match timeout(limit, channel.receive()).await {
        Ok(Ok(Some(message))) if message.kind == kind::FAILED => {
            return Err(String::from_utf8_lossy(&message.body).into_owned());
        }
        Ok(Ok(Some(message))) => return Ok(message),
        Ok(Ok(None)) => "it has closed the channel".to_owned(),
        Ok(Err(why)) => why.to_string(),
        Err(_) => {
            let seconds = limit.as_secs();
            return Err(format!(
                "the new process was not ready within {seconds} s; is it adit, with this version or a newer one?"
            ));
        }
    };
    Err(match timeout(EXIT_TIME, child.wait_for_exit()).await {
        Ok(Ok(())) => "the new process ended before it was ready; is it adit?".to_owned(),
        _ => format!("the new process: {received}"),
    })
}

fn expect<T: serde::de::DeserializeOwned>(message: &HandoverMessage, kind: u16) -> Exchange<T> {
    if message.kind != kind {
        return Err(format!(
            "unexpected message {} of the new process",
            message.kind
        ));
    }
    let parsed = serde_json::from_slice(&message.body);
    parsed.map_err(|why| format!("a message of the new process is malformed: {why}"))
}
