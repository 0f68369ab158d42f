//! Sessions in message mode, and successive login attempts before a session.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adit_crypto::Secret;
use adit_ssh::client::{
    Client, Exit, Login, LoginOutcome, PendingLogin, Program, Prompter, Session,
};
use adit_ssh::messages::{
    EventFeed, Message, MessageChannel, OutgoingMessage, QueueLimits, SessionEvent,
};
use adit_ssh::server::{AuthPolicy, Server};
use adit_ssh::{BoxFuture, Peer, SessionEnd};
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::auth::{AuthMethod, ServerAnswer, ServerAuthQuery};
use adit_ssh_proto::connection::{
    ChannelKind, ConnectionLimits, DataKind, GlobalAnswer, GlobalRequest, SshChannelRequest,
    TerminalSize, WantReply,
};
use adit_ssh_proto::{Disconnect, SshError};
use adit_stream::Buffered;
use tokio::io::{AsyncReadExt, DuplexStream, duplex};
use tokio::time::timeout;

use crate::ours::{config, pair};
use crate::server::settings;

const SOON: Duration = Duration::from_secs(20);
const BOUNDS: QueueLimits = QueueLimits::new();

/// A policy that requires a password, then a second one.
struct Twice;

impl AuthPolicy for Twice {
    fn banner(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async { Some("twice".to_owned()) })
    }

    fn answer_auth_request<'a>(
        &'a self,
        ask: &'a ServerAuthQuery,
        _: Option<KeyAlgorithm>,
    ) -> BoxFuture<'a, Result<ServerAnswer, SshError>> {
        let ServerAuthQuery::Password { password, .. } = ask else {
            return Box::pin(async { Err(SshError::Policy("only passwords")) });
        };
        let answer = match &**password.expose() {
            "first" => ServerAnswer::Continue {
                methods: vec![AuthMethod::Password],
                partial: true,
            },
            "second" => ServerAnswer::Accept,
            _ => ServerAnswer::Reject,
        };
        Box::pin(async { Ok(answer) })
    }
}

/// Returns a client before authentication, and the server.
async fn before() -> (PendingLogin, tokio::task::JoinHandle<(EventFeed, Peer)>) {
    let (mut settings, host) = settings();
    settings.auth.methods = vec![AuthMethod::Password];
    let (near, far): (DuplexStream, _) = duplex(50_000);
    let server = tokio::spawn(async move {
        let far = Box::new(Buffered::from_tokio(far));
        let entered = Server::accept_in_message_mode(far, &settings, &Twice, BOUNDS).await;
        entered.unwrap()
    });
    let config = config(host, Login::new(""));
    let entrance = Client::exchange_keys(Box::new(Buffered::from_tokio(near)), &config);
    (entrance.await.unwrap(), server)
}

/// A prompter that returns a password once, also as one of two methods.
struct Once(Mutex<Option<Secret<String>>>);

impl Prompter for Once {
    fn ask_password(&self, _: u32) -> BoxFuture<'_, Option<Secret<String>>> {
        let word = self.0.lock().unwrap().take();
        Box::pin(async { word })
    }

    fn show_banner(&self, text: &str) {
        assert_eq!(text, "twice");
    }
}

fn password(word: &str) -> Login {
    let mut login = Login::new("me");
    let word = Secret::new(word.to_owned());
    login.prompter = Some(Arc::new(Once(Mutex::new(Some(word)))));
    login.methods = vec![AuthMethod::Password];
    login
}

async fn entered() -> (PendingLogin, EventFeed, Peer) {
    let (mut entrance, server) = before().await;
    let algorithms = entrance.user_algorithms(SOON).await.unwrap().unwrap();
    assert!(algorithms.contains(&KeyAlgorithm::Ed25519));
    for (word, was_partial) in [("wrong", false), ("first", true)] {
        let tried = entrance.log_in(&password(word)).await.unwrap();
        assert!(
            matches!(&tried, LoginOutcome::Failed { methods, partial }
                if *methods == ["password"] && *partial == was_partial),
            "{tried:?}"
        );
    }
    let tried = entrance.log_in(&password("second")).await.unwrap();
    assert_eq!(tried, LoginOutcome::LoggedIn);
    let (feed, peer) = server.await.unwrap();
    (entrance, feed, peer)
}

async fn native() -> (Session, EventFeed, Peer) {
    let (entrance, feed, peer) = entered().await;
    (entrance.into_session(), feed, peer)
}

async fn next(feed: &mut EventFeed) -> SessionEvent {
    timeout(SOON, feed.next_event()).await.unwrap().unwrap()
}

/// Accepts the client's channel on the server.
async fn accept(feed: &mut EventFeed) -> MessageChannel {
    let SessionEvent::OpenRequested(opening, channel) = next(feed).await else {
        panic!("no channel");
    };
    assert_eq!(*opening.kind(), ChannelKind::Session);
    // Messages sent before the channel is open wait.
    channel
        .send_message(OutgoingMessage::Data(DataKind::Stdout, b"early "))
        .unwrap();
    opening.accept_in_message_mode().unwrap();
    channel
}

/// Starts a program on a client with streams, whose server reads only the request for it.
async fn program(session: &Session, feed: &mut EventFeed) -> (Program, MessageChannel) {
    let (program, channel) = tokio::join!(session.open_session(), accept(feed));
    let program = program.unwrap();
    let server = async {
        let SessionEvent::Received(id, Message::Request { request, .. }) = next(feed).await else {
            panic!("no request");
        };
        assert_eq!((id, &*request), (channel.id(), &SshChannelRequest::Shell));
        channel.reply_to_oldest(true);
    };
    tokio::join!(program.start_shell(), server).0.unwrap();
    (program, channel)
}

#[tokio::test]
async fn what_is_said_reaches_streams() {
    let (session, mut feed, _peer) = native().await;
    let (program, channel) = program(&session, &mut feed).await;
    channel
        .send_message(OutgoingMessage::Data(DataKind::Stderr, b"err"))
        .unwrap();
    channel
        .send_message(OutgoingMessage::Data(DataKind::Stdout, b"out"))
        .unwrap();
    channel
        .send_message(OutgoingMessage::QueuedRequest(
            SshChannelRequest::ExitStatus(3),
        ))
        .unwrap();
    channel.send_message(OutgoingMessage::Eof).unwrap();
    channel.send_message(OutgoingMessage::Close).unwrap();
    let (control, mut out, mut errors) = program.into_parts();
    let (mut all, mut err) = (String::new(), String::new());
    out.read_to_string(&mut all).await.unwrap();
    errors.read_to_string(&mut err).await.unwrap();
    assert_eq!((&*all, &*err), ("early out", "err"));
    assert_eq!(control.wait_exit().await, Some(Exit::Status(3)));
    drop((control, out, errors));
    // The feed and the channel both have it.
    let told = next(&mut feed).await;
    assert!(
        matches!(told, SessionEvent::Received(_, Message::Closed)),
        "{told:?}"
    );
    let mut came = Vec::new();
    while let Some(message) = poll_fn(|cx| channel.poll_message(cx)).await {
        came.push(message);
    }
    assert!(
        matches!(
            &*came,
            [
                Message::Request {
                    wants_reply: true,
                    ..
                },
                Message::Closed
            ]
        ),
        "{came:?}"
    );
    assert!(feed.session().find_channel(channel.id()).is_none());
    channel.send_message(OutgoingMessage::Eof).unwrap_err();
}

#[tokio::test]
async fn both_ends_go_message_by_message() {
    let (entrance, mut feed, _peer) = entered().await;
    let (mut heard, _session) = entrance.into_message_session(BOUNDS);
    let (near, told) = (heard.session(), feed.session());
    let server = tokio::spawn(async move {
        let channel = accept(&mut feed).await;
        loop {
            match feed.next_event().await {
                Ok(SessionEvent::Received(id, Message::Data(kind, bytes))) => {
                    assert_eq!(id, channel.id());
                    channel
                        .send_message(OutgoingMessage::Data(kind, &bytes))
                        .unwrap();
                }
                Ok(SessionEvent::Received(_, Message::Request { wants_reply, .. })) => {
                    assert!(wants_reply);
                    channel.reply_to_oldest(false);
                }
                Ok(SessionEvent::Received(_, Message::Eof)) => {
                    channel.send_message(OutgoingMessage::Close).unwrap();
                }
                Ok(SessionEvent::GlobalRequest(_, reply)) => {
                    reply.send_answer(GlobalAnswer::Bound { port: 7 });
                }
                Ok(_) => {}
                Err(end) => return end,
            }
        }
    });
    let channel = near.open_channel(ChannelKind::Session).await.unwrap();
    channel
        .send_message(OutgoingMessage::Data(DataKind::Stdout, b"one"))
        .unwrap();
    channel
        .send_message(OutgoingMessage::UrgentRequest(
            SshChannelRequest::Shell,
            WantReply::Yes,
        ))
        .unwrap();
    channel.send_message(OutgoingMessage::Eof).unwrap();
    let mut came = Vec::new();
    while let Some(message) = poll_fn(|cx| channel.poll_message(cx)).await {
        came.push(match message {
            Message::Data(_, bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(came, ["early ", "Answer(false)", "one", "Closed"]);
    let asked = GlobalRequest::TcpipForward {
        address: String::new(),
        port: 0,
    };
    let bound = near.send_global_request(asked).await.unwrap();
    assert_eq!(bound, GlobalAnswer::Bound { port: 7 });
    told.disconnect_after_flush(Disconnect::TooManyConnections, "enough")
        .unwrap();
    let end = async {
        loop {
            if let Err(end) = heard.next_event().await {
                return end;
            }
        }
    };
    let end = timeout(SOON, end).await.unwrap();
    assert!(
        matches!(&end, SessionEnd::Ssh(SshError::Disconnected { reason: 12, text }) if text == "enough"),
        "{end:?}"
    );
    assert!(matches!(server.await.unwrap(), SessionEnd::Closed));
    near.open_channel(ChannelKind::Session).await.unwrap_err();
}

/// A closed channel frees its slot, read or not.
#[tokio::test]
async fn what_nobody_reads_is_no_burden() {
    let (entrance, mut feed, _peer) = entered().await;
    let (mut heard, _session) = entrance.into_message_session(BOUNDS);
    tokio::spawn(async move {
        while let Ok(told) = feed.next_event().await {
            if let SessionEvent::OpenRequested(opening, channel) = told {
                channel
                    .send_message(OutgoingMessage::Data(DataKind::Stdout, b"unread"))
                    .unwrap();
                channel.send_message(OutgoingMessage::Close).unwrap();
                opening.accept_in_message_mode().unwrap();
            }
        }
    });
    let mut last: Option<MessageChannel> = None;
    // More than the limit at a time.
    for _ in 0..ConnectionLimits::default().channels + 8 {
        let opened = heard
            .session()
            .open_channel(ChannelKind::Session)
            .await
            .unwrap();
        while !matches!(
            next(&mut heard).await,
            SessionEvent::Received(_, Message::Closed)
        ) {}
        if let Some(last) = last.replace(opened) {
            last.stop_reading();
        }
    }
}

/// A peer that floods a server which does not read is not read any more.
#[tokio::test]
async fn nothing_is_read_before_what_was_told_is_heard() {
    let (session, mut feed, _peer) = native().await;
    let (program, _channel) = program(&session, &mut feed).await;
    let flood = async {
        for columns in 0..20_000 {
            let size = TerminalSize {
                columns,
                ..TerminalSize::default()
            };
            program.control().send_window_change(size).await.unwrap();
        }
    };
    let mut flood = std::pin::pin!(flood);
    let early = timeout(Duration::from_millis(1500), &mut flood).await;
    early.unwrap_err();
    let hears = async {
        for expected in 0..20_000 {
            let told = next(&mut feed).await;
            let SessionEvent::Received(_, Message::Request { request, .. }) = told else {
                panic!("{told:?}");
            };
            assert!(
                matches!(*request, SshChannelRequest::WindowChange(size) if size.columns == expected)
            );
        }
    };
    tokio::join!(flood, hears);
}

#[tokio::test]
async fn a_feed_that_is_dropped_ends_the_session() {
    let (session, feed, _peer) = native().await;
    drop(feed);
    let end = timeout(SOON, session.wait_closed()).await.unwrap();
    assert!(
        matches!(end, SessionEnd::Ssh(SshError::Disconnected { .. })),
        "{end:?}"
    );
}

#[tokio::test]
async fn a_policy_that_fails_ends_the_connection() {
    let (mut settings, host) = settings();
    settings.auth.ask_none = true;
    let (near, far) = duplex(50_000);
    let far = Box::new(Buffered::from_tokio(far));
    let server = Server::accept(far, &settings, &Twice);
    let client = async {
        let config = config(host, Login::new(""));
        let near = Box::new(Buffered::from_tokio(near));
        let mut entrance = Client::exchange_keys(near, &config).await.unwrap();
        // Nothing happens between login attempts.
        let idle = timeout(Duration::from_millis(100), entrance.wait_closed()).await;
        assert!(idle.is_err());
        entrance.log_in(&Login::new("me")).await
    };
    let (server, client) = tokio::join!(server, client);
    let why = server.unwrap_err().to_string();
    assert!(why.contains("only passwords"), "{why}");
    client.unwrap_err();
}

#[tokio::test]
async fn a_session_that_is_quiet_ends() {
    let quiet = Duration::from_millis(300);
    let session = pair(
        |client| {
            client.inactivity = Some(quiet);
            client.keepalive = Some(adit_ssh::Keepalive {
                interval: quiet / 10,
                max_missed: 3,
            });
        },
        |_| {},
    );
    let session = Arc::new(session.await);
    // Keepalives do not count as activity, programs do.
    for _ in 0..3 {
        tokio::time::sleep(quiet / 2).await;
        let program = session.open_session().await.unwrap();
        program.collect_output("both 0").await.unwrap();
    }
    let end = timeout(SOON, session.wait_closed()).await.unwrap();
    assert!(
        matches!(end, SessionEnd::Idle(limit) if limit == quiet),
        "{end:?}"
    );
}
