//! Channels and global requests of application-defined types, between adit's client and server.

use std::future::Future;
use std::time::Duration;

use adit_ssh::custom::{
    CustomChannel, CustomMessage, CustomMessageError, CustomRequest, IncomingCustomChannel,
};
use adit_ssh::server::{Connection, Incoming};
use adit_ssh::{OpenError, Peer, RequestError};
use adit_ssh_proto::connection::{ChannelCallError, OpenFailureReason};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::ours::both;

const NAME: &str = "chat@example.com";
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits with a time limit.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(PATIENCE, what).await.unwrap()
}

async fn opening(connection: &mut Connection) -> IncomingCustomChannel {
    match soon(connection.accept()).await {
        Some(Incoming::OwnChannel(opening)) => opening,
        other => panic!("{other:?}"),
    }
}

async fn request(connection: &mut Connection) -> CustomRequest {
    match soon(connection.accept()).await {
        Some(Incoming::OwnRequest(request)) => request,
        other => panic!("{other:?}"),
    }
}

/// Returns the reason why a channel was refused.
fn refusal(opened: Result<CustomChannel, OpenError>) -> (OpenFailureReason, String) {
    match opened {
        Err(OpenError::Refused { reason, text }) => (reason, text),
        other => panic!("{other:?}"),
    }
}

/// Sends bytes and requests in both directions, ends each direction, and closes the channel with its
/// stream.
async fn talk(mut near: CustomChannel, far: CustomChannel) {
    let (far_channel, far_control, mut far_requests) = far.into_parts();
    let served = async {
        while let Some(next) = far_requests.next_request().await {
            let fine = (&*next.name, &*next.data) == ("exec", b"\0mine");
            let told = next.name == "told@example.com" && !next.reply.is_wanted();
            assert!(fine || told || next.name == "no@example.com", "{next:?}");
            match fine {
                true => next.reply.grant(),
                false => next.reply.refuse(),
            }
        }
    };
    let (mut reader, mut writer) = far_channel.into_split();
    let echo = async {
        tokio::io::copy(&mut reader, &mut writer).await.unwrap();
        writer.shutdown().await.unwrap();
        // The channel closes when both halves are dropped.
        drop((reader, writer));
        far_control.wait_closed().await;
        let late = far_control.send_request("late@example.com", []).await;
        assert!(matches!(late, Err(RequestError::Closed)), "{late:?}");
    };
    let near = async {
        let control = near.control().clone();
        control
            .send_notification("told@example.com", [])
            .await
            .unwrap();
        // The name of a session's request has no special meaning here.
        control.send_request("exec", b"\0mine").await.unwrap();
        let no = control.send_request("no@example.com", b"data").await;
        assert!(matches!(&no, Err(RequestError::Refused(name)) if name == "no@example.com"));
        let life = control.send_request("keepalive@openssh.com", []).await;
        assert!(matches!(
            life,
            Err(RequestError::Call(ChannelCallError::Reserved))
        ));
        let long = control
            .send_request(NAME, vec![0; CustomMessage::MAX_DATA + 1])
            .await;
        assert!(matches!(
            long,
            Err(RequestError::Own(CustomMessageError::Data(_)))
        ));
        near.channel().write_all(&[7; 300_000]).await.unwrap();
        near.channel().shutdown().await.unwrap();
        let mut got = Vec::new();
        near.channel().read_to_end(&mut got).await.unwrap();
        assert_eq!(got, [7; 300_000]);
        let (channel, _, mut requests) = near.into_parts();
        drop(channel);
        assert!(requests.next_request().await.is_none());
    };
    soon(async { tokio::join!(served, echo, near) }).await;
}

#[tokio::test]
async fn a_client_opens_a_channel() {
    let (session, mut connection) = both(|_| {}).await;
    let far = async {
        let opening = opening(&mut connection).await;
        assert_eq!((opening.name(), opening.data()), (NAME, &b"room 1"[..]));
        opening.accept().unwrap()
    };
    let (near, far) = tokio::join!(session.open_custom_channel(NAME, b"room 1"), far);
    talk(near.unwrap(), far).await;
}

#[tokio::test]
async fn a_server_opens_a_channel() {
    let (session, connection) = both(|_| {}).await;
    let mut others = session.custom_channels("other@example.com").unwrap();
    let mut wanted = session.custom_channels(NAME).unwrap();
    // The session's task has received them.
    session.ping().await.unwrap();
    let far = async {
        let opening = tokio::select! {
            opening = wanted.accept() => opening.unwrap(),
            other = others.accept() => panic!("{other:?}"),
        };
        assert_eq!((opening.name(), opening.data()), (NAME, &b""[..]));
        opening.accept().unwrap()
    };
    let near = connection.handle().open_custom_channel(NAME, []);
    let (near, far) = tokio::join!(near, far);
    talk(near.unwrap(), far).await;
    connection.disconnect("");
    assert!(soon(wanted.accept()).await.is_none());
}

/// Sends requests from `near` that `far`, read by `next`, answers.
async fn ask(near: &Peer, mut next: impl AsyncFnMut() -> CustomRequest) {
    let far = async {
        let mut first = Vec::new();
        for n in 0..3 {
            let request = next().await;
            assert_eq!(request.name(), NAME);
            if !request.wants_reply() {
                assert_eq!(request.data(), b"told");
                continue;
            }
            assert_eq!(request.data(), [n]);
            first.push(request);
        }
        // The answers are ready in another order than they must be sent.
        for request in first.into_iter().rev() {
            let data = [request.data(), b"!"].concat();
            request.grant(data).unwrap();
        }
        next().await.refuse();
        drop(next().await);
        next()
            .await
            .grant(vec![0; CustomMessage::MAX_DATA + 1])
            .unwrap_err();
        next().await.grant([]).unwrap();
    };
    let near = async {
        let (a, b, told) = tokio::join!(
            near.send_request(NAME, [0]),
            near.send_request(NAME, [1]),
            near.send_notification(NAME, b"told"),
        );
        assert_eq!(
            (a.unwrap(), b.unwrap()),
            (b"\0!".to_vec(), b"\x01!".to_vec())
        );
        told.unwrap();
        for _ in 0..3 {
            let refused = near.send_request(NAME, []).await;
            assert!(matches!(refused, Err(RequestError::Refused(name)) if name == NAME));
        }
        assert_eq!(near.send_request(NAME, []).await.unwrap(), b"");
    };
    soon(async { tokio::join!(far, near) }).await;
}

#[tokio::test]
async fn global_requests_go_both_ways() {
    let (session, mut connection) = both(|_| {}).await;
    ask(&session, async || request(&mut connection).await).await;
    let mut requests = session.custom_requests().unwrap();
    session.ping().await.unwrap();
    ask(&connection, async || requests.next_request().await.unwrap()).await;
}

#[tokio::test]
async fn what_nobody_takes_is_refused() {
    let (session, mut connection) = both(|_| {}).await;
    let unknown = (OpenFailureReason::UnknownType, String::new());
    let handle = connection.handle().clone();
    assert_eq!(refusal(handle.open_custom_channel(NAME, []).await), unknown);
    let refused = handle.send_request(NAME, []).await;
    assert!(matches!(refused, Err(RequestError::Refused(_))));

    let mut wanted = session.custom_channels(NAME).unwrap();
    session.ping().await.unwrap();
    let other = handle.open_custom_channel("other@example.com", []).await;
    assert_eq!(refusal(other), unknown);
    let (opened, ()) = tokio::join!(handle.open_custom_channel(NAME, []), async {
        drop(wanted.accept().await.unwrap());
    });
    assert_eq!(refusal(opened), unknown);
    let (opened, ()) = tokio::join!(handle.open_custom_channel(NAME, []), async {
        let opening = wanted.accept().await.unwrap();
        opening.refuse(OpenFailureReason::Other(4_000_000_000), "not now");
    });
    let said = (
        OpenFailureReason::Other(4_000_000_000),
        "not now".to_owned(),
    );
    assert_eq!(refusal(opened), said);
    // The last queue receives the channels, and dropping it stops them.
    let mut again = session.custom_channels(NAME).unwrap();
    assert!(soon(wanted.accept()).await.is_none());
    let (opened, _held) = tokio::join!(handle.open_custom_channel(NAME, []), async {
        again.accept().await.unwrap().accept().unwrap()
    });
    opened.unwrap();
    drop(again);
    assert_eq!(refusal(handle.open_custom_channel(NAME, []).await), unknown);

    // A server application that does not support them.
    let (opened, _) = tokio::join!(session.open_custom_channel(NAME, []), async {
        drop(connection.accept().await.unwrap());
    });
    assert_eq!(refusal(opened), unknown);
    drop(connection);
    assert_eq!(
        refusal(session.open_custom_channel(NAME, []).await),
        unknown
    );
    let refused = session.send_request(NAME, []).await;
    assert!(matches!(refused, Err(RequestError::Refused(_))));
}

/// Requests in a channel that no one reads are answered: those that wait, and later ones.
#[tokio::test]
async fn requests_that_nobody_reads_are_refused() {
    let (session, mut connection) = both(|_| {}).await;
    let far = async { opening(&mut connection).await.accept().unwrap() };
    let (near, far) = tokio::join!(session.open_custom_channel(NAME, []), far);
    let near = near.unwrap();
    let asked = async {
        for _ in 0..2 {
            let refused = near.control().send_request(NAME, []).await;
            assert!(matches!(refused, Err(RequestError::Refused(_))));
        }
    };
    let dropped = async {
        session.ping().await.unwrap();
        far.into_channel()
    };
    let ((), _far) = soon(async { tokio::join!(asked, dropped) }).await;
}

#[tokio::test]
async fn names_of_the_library_and_others_that_are_none() {
    let (session, connection) = both(|_| {}).await;
    for name in ["session", "direct-tcpip", "auth-agent@openssh.com"] {
        let opened = session.open_custom_channel(name, []).await;
        assert!(matches!(
            opened,
            Err(OpenError::Call(ChannelCallError::Reserved))
        ));
        let wanted = session.custom_channels(name);
        assert!(matches!(
            wanted,
            Err(OpenError::Call(ChannelCallError::Reserved))
        ));
    }
    for name in [
        "tcpip-forward",
        "keepalive@openssh.com",
        "hostkeys-00@openssh.com",
    ] {
        let asked = connection.send_request(name, []).await;
        assert!(matches!(
            asked,
            Err(RequestError::Call(ChannelCallError::Reserved))
        ));
        let told = connection.send_notification(name, []).await;
        assert!(matches!(
            told,
            Err(RequestError::Call(ChannelCallError::Reserved))
        ));
    }
    for name in ["", "two words", "a,b", "\u{fc}@example.com"] {
        let wanted = session.custom_channels(name);
        assert!(matches!(
            wanted,
            Err(OpenError::Own(CustomMessageError::Name))
        ));
        let asked = session.send_request(name, []).await;
        assert!(matches!(
            asked,
            Err(RequestError::Own(CustomMessageError::Name))
        ));
    }
    let long = session
        .open_custom_channel(NAME, vec![0; CustomMessage::MAX_DATA + 1])
        .await;
    assert!(matches!(
        long,
        Err(OpenError::Own(CustomMessageError::Data(_)))
    ));
}

/// The number and size of requests without an answer are limited; the rest is refused immediately.
#[tokio::test]
async fn a_flood_of_openings_is_bounded() {
    for (data, waiting) in [(0, 8), (30_000, 3)] {
        let (session, connection) = both(|client| {
            client.limits.pending_opens = 8;
            client.limits.queue = 100_000;
        })
        .await;
        let mut wanted = session.custom_channels(NAME).unwrap();
        session.ping().await.unwrap();
        let mut opened = JoinSet::new();
        for _ in 0..200 {
            let handle = connection.handle().clone();
            opened.spawn(async move { handle.open_custom_channel(NAME, vec![0; data]).await });
        }
        for _ in waiting..200 {
            let refused = refusal(soon(opened.join_next()).await.unwrap().unwrap());
            assert_eq!(refused.0, OpenFailureReason::Shortage);
        }
        for _ in 0..waiting {
            drop(soon(wanted.accept()).await.unwrap());
            let refused = refusal(soon(opened.join_next()).await.unwrap().unwrap());
            assert_eq!(refused.0, OpenFailureReason::UnknownType);
        }
        assert!(opened.is_empty());
    }
}

/// The same limit applies to global requests; notifications beyond it are lost.
#[tokio::test]
async fn a_flood_of_requests_is_bounded() {
    for (data, waiting) in [(0, 128), (CustomMessage::MAX_DATA, 8)] {
        let (session, connection) = both(|_| {}).await;
        let mut requests = session.custom_requests().unwrap();
        session.ping().await.unwrap();
        for _ in 0..300 {
            connection
                .send_notification(NAME, vec![0; data])
                .await
                .unwrap();
        }
        // After all of them.
        let refused = soon(connection.send_request(NAME, vec![0; data])).await;
        assert!(matches!(refused, Err(RequestError::Refused(_))));
        for _ in 0..waiting {
            soon(requests.next_request()).await.unwrap();
        }
        // There is space for the next one again.
        let (answer, ()) = tokio::join!(connection.send_request(NAME, b"next"), async {
            let next = soon(requests.next_request()).await.unwrap();
            assert_eq!(next.data(), b"next", "more have waited than may");
            next.grant([]).unwrap();
        });
        answer.unwrap();
    }
}

/// The same limit applies to the requests of a channel; those beyond it are refused.
#[tokio::test]
async fn a_flood_in_a_channel_is_bounded() {
    for (data, waiting) in [(0, 128), (CustomMessage::MAX_DATA, 8)] {
        let (session, mut connection) = both(|_| {}).await;
        let far = async { opening(&mut connection).await.accept().unwrap() };
        let (near, mut far) = tokio::join!(session.open_custom_channel(NAME, []), far);
        let near = near.unwrap();
        for _ in 0..300 {
            let told = near.control().send_notification(NAME, vec![0; data]).await;
            told.unwrap();
        }
        let refused = soon(near.control().send_request(NAME, vec![0; data])).await;
        assert!(matches!(refused, Err(RequestError::Refused(_))));
        for _ in 0..waiting {
            assert_eq!(far.requests().next_request().await.unwrap().name, NAME);
        }
        let (answer, ()) =
            tokio::join!(near.control().send_request("next@example.com", []), async {
                let next = soon(far.requests().next_request()).await.unwrap();
                assert_eq!(next.name, "next@example.com", "more have waited than may");
                next.reply.grant();
            });
        answer.unwrap();
    }
}
