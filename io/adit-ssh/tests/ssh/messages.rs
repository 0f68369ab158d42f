//! Sessions in message mode, and successive login attempts before a session.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adit_crypto::Secret;
use adit_ssh::client::{Client, Entrance, Exit, Login, Program, Prompter, Session, Tried};
use adit_ssh::messages::{Bounds, Feed, Message, MessageChannel, Say, Told};
use adit_ssh::server::{AuthPolicy, Server};
use adit_ssh::{BoxFuture, End, Peer};
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::auth::{Method, ServerAnswer, ServerAsk};
use adit_ssh_proto::connection::{
    ChannelKind, GlobalAnswer, GlobalRequest, Kind, Limits, Request, Size, WantReply,
};
use adit_ssh_proto::{Disconnect, SshError};
use adit_stream::Buffered;
use tokio::io::{AsyncReadExt, DuplexStream, duplex};
use tokio::time::timeout;

use crate::ours::{config, pair};
use crate::server::settings;

const SOON: Duration = Duration::from_secs(20);
const BOUNDS: Bounds = Bounds {
    messages: 100,
    pieces: 8,
};

/// A policy that requires a password, then a second one.
struct Twice;

impl AuthPolicy for Twice {
    fn banner(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async { Some("twice".to_owned()) })
    }

    fn judge<'a>(
        &'a self,
        ask: &'a ServerAsk,
        _: Option<KeyAlgorithm>,
    ) -> BoxFuture<'a, Result<ServerAnswer, SshError>> {
        let ServerAsk::Password { password, .. } = ask else {
            return Box::pin(async { Err(SshError::Policy("only passwords")) });
        };
        let answer = match &**password.expose() {
            "first" => ServerAnswer::GoOn {
                methods: vec![Method::Password],
                partial: true,
            },
            "second" => ServerAnswer::Accept,
            _ => ServerAnswer::Reject,
        };
        Box::pin(async { Ok(answer) })
    }
}

/// Returns a client before authentication, and the server.
async fn before() -> (Entrance, tokio::task::JoinHandle<(Feed, Peer)>) {
    let (mut settings, host) = settings();
    settings.auth.methods = vec![Method::Password];
    let (near, far): (DuplexStream, _) = duplex(50_000);
    let server = tokio::spawn(async move {
        let far = Box::new(Buffered::over(far));
        let entered = Server::accept_by_messages(far, &settings, &Twice, BOUNDS).await;
        entered.unwrap()
    });
    let config = config(host, Login::new(""));
    let entrance = Client::exchange_keys(Box::new(Buffered::over(near)), &config);
    (entrance.await.unwrap(), server)
}

/// A prompter that returns a password once, also as one of two methods.
struct Once(Mutex<Option<Secret<String>>>);

impl Prompter for Once {
    fn password(&self, _: u32) -> BoxFuture<'_, Option<Secret<String>>> {
        let word = self.0.lock().unwrap().take();
        Box::pin(async { word })
    }

    fn banner(&self, text: &str) {
        assert_eq!(text, "twice");
    }
}

fn password(word: &str) -> Login {
    let mut login = Login::new("me");
    let word = Secret::new(word.to_owned());
    login.prompter = Some(Arc::new(Once(Mutex::new(Some(word)))));
    login.methods = vec![Method::Password];
    login
}

async fn entered() -> (Entrance, Feed, Peer) {
    let (mut entrance, server) = before().await;
    let algorithms = entrance.user_algorithms(SOON).await.unwrap().unwrap();
    assert!(algorithms.contains(&KeyAlgorithm::Ed25519));
    for (word, was_partial) in [("wrong", false), ("first", true)] {
        let tried = entrance.log_in(&password(word)).await.unwrap();
        assert!(
            matches!(&tried, Tried::Failed { methods, partial }
                if *methods == ["password"] && *partial == was_partial),
            "{tried:?}"
        );
    }
    let tried = entrance.log_in(&password("second")).await.unwrap();
    assert_eq!(tried, Tried::In);
    let (feed, peer) = server.await.unwrap();
    (entrance, feed, peer)
}

async fn native() -> (Session, Feed, Peer) {
    let (entrance, feed, peer) = entered().await;
    (entrance.enter(), feed, peer)
}

async fn next(feed: &mut Feed) -> Told {
    timeout(SOON, feed.next()).await.unwrap().unwrap()
}

/// Accepts the client's channel on the server.
async fn accept(feed: &mut Feed) -> MessageChannel {
    let Told::Wanted(opening, channel) = next(feed).await else {
        panic!("no channel");
    };
    assert_eq!(*opening.kind(), ChannelKind::Session);
    // Messages sent before the channel is open wait.
    channel.say(Say::Data(Kind::Stdout, b"early ")).unwrap();
    opening.accept_messages().unwrap();
    channel
}

/// Starts a program on a client with streams, whose server reads only the request for it.
async fn program(session: &Session, feed: &mut Feed) -> (Program, MessageChannel) {
    let (program, channel) = tokio::join!(session.open_session(), accept(feed));
    let program = program.unwrap();
    let server = async {
        let Told::Came(id, Message::Request { request, .. }) = next(feed).await else {
            panic!("no request");
        };
        assert_eq!((id, &*request), (channel.id(), &Request::Shell));
        channel.answer(true);
    };
    tokio::join!(program.shell(), server).0.unwrap();
    (program, channel)
}

#[tokio::test]
async fn what_is_said_reaches_streams() {
    let (session, mut feed, _peer) = native().await;
    let (program, channel) = program(&session, &mut feed).await;
    channel.say(Say::Data(Kind::Stderr, b"err")).unwrap();
    channel.say(Say::Data(Kind::Stdout, b"out")).unwrap();
    channel.say(Say::Behind(Request::ExitStatus(3))).unwrap();
    channel.say(Say::Eof).unwrap();
    channel.say(Say::Close).unwrap();
    let (control, mut out, mut errors) = program.into_parts();
    let (mut all, mut err) = (String::new(), String::new());
    out.read_to_string(&mut all).await.unwrap();
    errors.read_to_string(&mut err).await.unwrap();
    assert_eq!((&*all, &*err), ("early out", "err"));
    assert_eq!(control.wait().await, Some(Exit::Status(3)));
    drop((control, out, errors));
    // The feed and the channel both have it.
    let told = next(&mut feed).await;
    assert!(matches!(told, Told::Came(_, Message::Closed)), "{told:?}");
    let mut came = Vec::new();
    while let Some(message) = poll_fn(|cx| channel.poll_next(cx)).await {
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
    assert!(feed.speaker().channel(channel.id()).is_none());
    channel.say(Say::Eof).unwrap_err();
}

#[tokio::test]
async fn both_ends_go_message_by_message() {
    let (entrance, mut feed, _peer) = entered().await;
    let (mut heard, _session) = entrance.enter_by_messages(BOUNDS);
    let (near, told) = (heard.speaker(), feed.speaker());
    let server = tokio::spawn(async move {
        let channel = accept(&mut feed).await;
        loop {
            match feed.next().await {
                Ok(Told::Came(id, Message::Data(kind, bytes))) => {
                    assert_eq!(id, channel.id());
                    channel.say(Say::Data(kind, &bytes)).unwrap();
                }
                Ok(Told::Came(_, Message::Request { wants_reply, .. })) => {
                    assert!(wants_reply);
                    channel.answer(false);
                }
                Ok(Told::Came(_, Message::Eof)) => channel.say(Say::Close).unwrap(),
                Ok(Told::Global(_, reply)) => reply.give(GlobalAnswer::Bound { port: 7 }),
                Ok(_) => {}
                Err(end) => return end,
            }
        }
    });
    let channel = near.open(ChannelKind::Session).await.unwrap();
    channel.say(Say::Data(Kind::Stdout, b"one")).unwrap();
    channel
        .say(Say::Ahead(Request::Shell, WantReply::Yes))
        .unwrap();
    channel.say(Say::Eof).unwrap();
    let mut came = Vec::new();
    while let Some(message) = poll_fn(|cx| channel.poll_next(cx)).await {
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
    let bound = near.global(asked).await.unwrap();
    assert_eq!(bound, GlobalAnswer::Bound { port: 7 });
    told.leave(Disconnect::TooManyConnections, "enough")
        .unwrap();
    let end = async {
        loop {
            if let Err(end) = heard.next().await {
                return end;
            }
        }
    };
    let end = timeout(SOON, end).await.unwrap();
    assert!(
        matches!(&end, End::Ssh(SshError::Disconnected { reason: 12, text }) if text == "enough"),
        "{end:?}"
    );
    assert!(matches!(server.await.unwrap(), End::Closed));
    near.open(ChannelKind::Session).await.unwrap_err();
}

/// A closed channel frees its slot, read or not.
#[tokio::test]
async fn what_nobody_reads_is_no_burden() {
    let (entrance, mut feed, _peer) = entered().await;
    let (mut heard, _session) = entrance.enter_by_messages(BOUNDS);
    tokio::spawn(async move {
        while let Ok(told) = feed.next().await {
            if let Told::Wanted(opening, channel) = told {
                channel.say(Say::Data(Kind::Stdout, b"unread")).unwrap();
                channel.say(Say::Close).unwrap();
                opening.accept_messages().unwrap();
            }
        }
    });
    let mut last: Option<MessageChannel> = None;
    // More than the limit at a time.
    for _ in 0..Limits::default().channels + 8 {
        let opened = heard.speaker().open(ChannelKind::Session).await.unwrap();
        while !matches!(next(&mut heard).await, Told::Came(_, Message::Closed)) {}
        if let Some(last) = last.replace(opened) {
            last.deafen();
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
            let size = Size {
                columns,
                ..Size::default()
            };
            program.control().window_change(size).await.unwrap();
        }
    };
    let mut flood = std::pin::pin!(flood);
    let early = timeout(Duration::from_millis(1500), &mut flood).await;
    early.unwrap_err();
    let hears = async {
        for expected in 0..20_000 {
            let told = next(&mut feed).await;
            let Told::Came(_, Message::Request { request, .. }) = told else {
                panic!("{told:?}");
            };
            assert!(matches!(*request, Request::WindowChange(size) if size.columns == expected));
        }
    };
    tokio::join!(flood, hears);
}

#[tokio::test]
async fn a_feed_that_is_dropped_ends_the_session() {
    let (session, feed, _peer) = native().await;
    drop(feed);
    let end = timeout(SOON, session.closed()).await.unwrap();
    assert!(
        matches!(end, End::Ssh(SshError::Disconnected { .. })),
        "{end:?}"
    );
}

#[tokio::test]
async fn a_policy_that_fails_ends_the_connection() {
    let (mut settings, host) = settings();
    settings.auth.ask_none = true;
    let (near, far) = duplex(50_000);
    let far = Box::new(Buffered::over(far));
    let server = Server::accept(far, &settings, &Twice);
    let client = async {
        let config = config(host, Login::new(""));
        let near = Box::new(Buffered::over(near));
        let mut entrance = Client::exchange_keys(near, &config).await.unwrap();
        // Nothing happens between login attempts.
        let idle = timeout(Duration::from_millis(100), entrance.idle()).await;
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
                missed: 3,
            });
        },
        |_| {},
    );
    let session = Arc::new(session.await);
    // Keepalives do not count as activity, programs do.
    for _ in 0..3 {
        tokio::time::sleep(quiet / 2).await;
        let program = session.open_session().await.unwrap();
        program.output("both 0").await.unwrap();
    }
    let end = timeout(SOON, session.closed()).await.unwrap();
    assert!(matches!(end, End::Idle(limit) if limit == quiet), "{end:?}");
}
