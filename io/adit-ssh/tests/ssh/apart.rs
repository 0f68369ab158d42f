//! Channels are independent, and the end of a session is detected.

use std::io::ErrorKind;
use std::time::Duration;

use adit_ssh::client::{Exit, Program, Session};
use adit_ssh::server::Incoming;
use adit_ssh::{Keepalive, OpenError, SessionEnd};
use adit_ssh_proto::connection::{OpenFailureReason, Originator};
use adit_stream::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use crate::ours::{both, pair};
use crate::server::attend;
use crate::world::pour;

const SOON: Duration = Duration::from_secs(20);

async fn start(session: &Session, command: &str) -> Program {
    let program = session.open_session().await.unwrap();
    program.exec(command).await.unwrap();
    program
}

/// Checks that the session still serves other channels immediately.
async fn serves(session: &Session, command: &str, answer: &[u8]) {
    let program = session.open_session().await.unwrap();
    let output = timeout(SOON, program.collect_output(command))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(output.stdout, answer);
}

#[tokio::test]
async fn a_slow_reader_holds_up_itself_alone() {
    let session = pair(|_| {}, |_| {}).await;
    let mut slow = start(&session, "give 33554432").await;
    // No one reads: the window fills and stays full.
    sleep(Duration::from_millis(200)).await;
    for _ in 0..5 {
        serves(&session, "both", b"out\n").await;
    }
    let mut first = [0; 8];
    slow.channel().read_exact(&mut first).await.unwrap();
    let mut rest = Vec::new();
    let read = slow.channel().read_to_end(&mut rest);
    assert_eq!(timeout(SOON, read).await.unwrap().unwrap(), (32 << 20) - 8);
    let sum = pour(&mut tokio::io::sink(), 32 << 20, 1).await;
    let all = [&first[..], &rest].concat();
    assert_eq!(adit_interop::Checksum::EMPTY.extend_with(&all), sum);
}

#[tokio::test]
async fn a_slow_reader_at_the_other_end_holds_up_itself_alone() {
    let session = pair(|_| {}, |_| {}).await;
    let slow = start(&session, "wait").await;
    let (_control, channel, _) = slow.into_parts();
    let (_, mut writer) = channel.into_split();
    let stuck = tokio::spawn(async move { pour(&mut writer, 32 << 20, 1).await });
    sleep(Duration::from_millis(200)).await;
    for _ in 0..5 {
        serves(&session, "both", b"out\n").await;
    }
    stuck.abort();
}

#[tokio::test]
async fn a_dead_target_freezes_nothing() {
    let (session, mut connection) = both(|_| {}).await;
    let other = session.clone();
    let dead = async move {
        other
            .open_direct_tcpip("dead.example", 80, Originator::default())
            .await
    };
    let dead = tokio::spawn(dead);
    let Some(Incoming::DirectTcpip { opening, .. }) = connection.accept().await else {
        panic!("no connection is wanted");
    };
    // This request is not answered, and everything else continues.
    let server = tokio::spawn(attend(connection));
    for _ in 0..3 {
        serves(&session, "both", b"out\n").await;
    }
    opening.refuse(OpenFailureReason::ConnectFailed, "it is\x07 dead");
    let why = timeout(SOON, dead).await.unwrap().unwrap().unwrap_err();
    assert_eq!(why.to_string(), "the peer could not connect: it is? dead");
    // A cancelled request leaves nothing behind.
    let never = session.open_direct_tcpip("127.0.0.1", 1, Originator::default());
    drop(timeout(Duration::from_micros(1), never).await);
    serves(&session, "both", b"out\n").await;
    drop(session);
    timeout(SOON, server).await.unwrap().unwrap();
}

#[tokio::test]
async fn many_channels_at_a_time() {
    let session = pair(|_| {}, |_| {}).await;
    let tasks: Vec<_> = (0..200u64)
        .map(|seed| {
            let session = session.clone();
            tokio::spawn(async move {
                let program = start(&session, "echo").await;
                let (control, channel, _) = program.into_parts();
                let (mut reader, mut writer) = channel.into_split();
                let up = async {
                    let sum = pour(&mut writer, 100_000, seed).await;
                    writer.shutdown().await.unwrap();
                    sum
                };
                let (sum, got) = tokio::join!(up, crate::world::drain(&mut reader));
                assert_eq!(got, (100_000, sum));
                assert_eq!(control.wait_exit().await, Some(Exit::Status(0)));
            })
        })
        .collect();
    for task in tasks {
        timeout(SOON, task).await.unwrap().unwrap();
    }
    // Their slots are free again.
    serves(&session, "both", b"out\n").await;
}

#[tokio::test]
async fn there_are_so_many_channels_and_no_more() {
    let session = pair(|client| client.limits.channels = 3, |_| {}).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(start(&session, "wait").await);
    }
    let refused = session.open_session().await.unwrap_err();
    assert!(matches!(refused, OpenError::Call(_)), "{refused}");
    held.pop();
    let again = async {
        while session.open_session().await.is_err() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, again).await.unwrap();
}

#[tokio::test]
async fn a_connection_that_is_cut_ends_everything() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let front = listener.local_addr().unwrap().port();
    let (settings, host) = crate::server::settings();
    let id = crate::server::key();
    let port = crate::server::serve(settings, id.public_key().clone()).await;
    let between = tokio::spawn(async move {
        let (mut near, _) = listener.accept().await.unwrap();
        let mut far = tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .unwrap();
        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
    });
    let login = adit_ssh::client::Login::new("me").with_key(id);
    let config = crate::ours::config(host, login);
    let io = crate::world::dial(front).await;
    let session = adit_ssh::client::Client::connect(io, config).await.unwrap();
    let mut program = start(&session, "wait").await;
    let control = program.control().clone();
    between.abort();
    let mut end = Vec::new();
    let read = timeout(SOON, program.channel().read_to_end(&mut end))
        .await
        .unwrap();
    read.unwrap_err();
    assert!(matches!(
        timeout(SOON, session.wait_closed()).await.unwrap(),
        SessionEnd::PeerClosed | SessionEnd::Io(_)
    ));
    assert_eq!(control.wait_exit().await, None);
    let refused = session.open_session().await.unwrap_err();
    assert!(matches!(refused, OpenError::End(_)));
    let written = program.channel().write_all(b"x").await;
    written.unwrap_err();
}

#[tokio::test]
async fn a_peer_that_falls_silent_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let front = listener.local_addr().unwrap().port();
    let (settings, host) = crate::server::settings();
    let id = crate::server::key();
    let port = crate::server::serve(settings, id.public_key().clone()).await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    tokio::spawn(async move {
        let (mut near, _) = listener.accept().await.unwrap();
        let mut far = tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .unwrap();
        tokio::select! {
            _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
            _ = stopped => {}
        }
        // Holds both without passing anything on.
        std::future::pending::<()>().await;
    });
    let login = adit_ssh::client::Login::new("me").with_key(id);
    let mut config = crate::ours::config(host, login);
    let interval = Duration::from_millis(100);
    config.keepalive = Some(Keepalive {
        interval,
        max_missed: 3,
    });
    let io = crate::world::dial(front).await;
    let session = adit_ssh::client::Client::connect(io, config).await.unwrap();
    // Silence alone does not end the session: the peer answers keepalives.
    sleep(interval * 8).await;
    assert!(session.end_reason().is_none() && session.rtt().is_some());
    stop.send(()).unwrap();
    let end = timeout(SOON, session.wait_closed()).await.unwrap();
    assert!(matches!(end, SessionEnd::PeerSilent(_)), "{end}");
    let asked = session.ping().await.unwrap_err();
    assert!(matches!(asked, SessionEnd::PeerSilent(_)), "{asked}");
}

#[tokio::test]
async fn a_transfer_that_is_cut_does_not_look_complete() {
    let (session, mut connection) = both(|_| {}).await;
    for cut in [false, true] {
        let near = session.open_direct_tcpip("somewhere", 1, Originator::default());
        let far = async {
            match connection.accept().await {
                Some(Incoming::DirectTcpip { opening, .. }) => opening.accept().unwrap(),
                other => panic!("{other:?}"),
            }
        };
        let (near, mut far) = tokio::join!(near, far);
        let mut near = near.unwrap();
        near.write_all(b"half").await.unwrap();
        near.flush().await.unwrap();
        let mut half = [0; 4];
        far.read_exact(&mut half).await.unwrap();
        if cut {
            near.abort();
        }
        drop(near);
        let end = timeout(SOON, far.read_to_end(&mut Vec::new()))
            .await
            .unwrap();
        match cut {
            false => assert_eq!(end.unwrap(), 0),
            true => assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset),
        }
        // The peer is not there to write to.
        let gone = async {
            while far.write_all(b"x").await.is_ok() {
                far.flush().await.unwrap_or_default();
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(SOON, gone).await.unwrap();
    }
}

#[tokio::test]
async fn what_is_not_answered_is_refused() {
    let (session, mut connection) = both(|_| {}).await;
    let wanted = async {
        let refused = session.open_session().await.unwrap_err();
        assert!(matches!(refused, OpenError::Refused { .. }), "{refused}");
        session.forward_tcpip("", 0).await.unwrap_err();
        session.forward_streamlocal("/nowhere").await.unwrap_err();
    };
    let dropped = async {
        for _ in 0..3 {
            drop(connection.accept().await.unwrap());
        }
    };
    tokio::join!(wanted, dropped);
    // A client accepts only what it asked for.
    let handle = connection.handle();
    let unasked = handle.open_forwarded_tcpip("", 22, Originator::default());
    assert!(matches!(unasked.await, Err(OpenError::Refused { .. })));
    assert!(matches!(
        handle.open_agent().await,
        Err(OpenError::Refused { .. })
    ));
}

#[tokio::test]
async fn what_waits_for_a_program_is_bounded() {
    let (session, mut connection) = both(|_| {}).await;
    let wanted = session.open_session();
    let given = async {
        match connection.accept().await {
            Some(Incoming::Session(opening)) => opening.accept().unwrap(),
            other => panic!("{other:?}"),
        }
    };
    let (program, serving) = tokio::join!(wanted, given);
    let (program, serving) = (program.unwrap(), serving);
    // No one reads the requests: four fit, the others are refused.
    let control = program.control();
    let mut asked: tokio::task::JoinSet<bool> = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let control = control.clone();
        asked.spawn(async move { control.set_env("NAME", vec![b'x'; 64_000]).await.is_ok() });
    }
    sleep(Duration::from_millis(100)).await;
    // The answer to a later request shows that all of them have arrived.
    session.ping().await.unwrap();
    let mut kept = 0;
    while let Ok(Some(next)) = timeout(Duration::from_millis(300), serving.next_request()).await {
        next.reply.grant();
        kept += 1;
    }
    let mut granted = 0;
    while let Some(done) = timeout(SOON, asked.join_next()).await.unwrap() {
        granted += usize::from(done.unwrap());
    }
    assert_eq!((kept, granted), (4, 4));
}

#[tokio::test]
async fn the_last_handle_ends_the_session() {
    let (session, connection) = both(|_| {}).await;
    let server = tokio::spawn(attend(connection));
    let program = start(&session, "wait").await;
    let (control, channel, errors) = program.into_parts();
    drop((session, errors));
    let keeps = timeout(Duration::from_millis(100), control.wait_closed()).await;
    keeps.unwrap_err();
    drop(channel);
    // Its input has ended, and so has the program.
    assert_eq!(control.wait_exit().await, Some(Exit::Status(0)));
    assert!(!server.is_finished());
    drop(control);
    timeout(SOON, server).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_session_that_is_ended_says_so() {
    let session = pair(|_| {}, |_| {}).await;
    let mut program = start(&session, "wait").await;
    session.disconnect("good bye");
    assert!(matches!(session.wait_closed().await, SessionEnd::Closed));
    let mut end = Vec::new();
    let why = program.channel().read_to_end(&mut end).await.unwrap_err();
    assert_eq!(why.kind(), ErrorKind::ConnectionReset);
}
