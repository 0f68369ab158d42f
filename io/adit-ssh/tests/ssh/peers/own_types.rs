//! Channels and global requests of application-defined types, the same at both ends. An end that is
//! asked to `call` does what the other end has done before, and reports when it is done.

use adit_interop::ssh_peer::SshPeer;
use adit_ssh::custom::{CustomRequest, IncomingCustomChannel};
use adit_ssh::{OpenError, Peer, RequestError};
use adit_ssh_proto::connection::OpenFailureReason;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::their_client::Host;
use super::their_server::Far;

const ROOM: &str = "echo@example.com";
const UPPER: &str = "upper@example.com";
const CALL: &str = "call@example.com";
const DONE: &str = "done@example.com";
const JOIN: &str = "join@example.com";
const OTHER: &str = "other@example.com";

/// Another client with adit's server: each end starts in turn.
pub(super) async fn with_their_client(peer: SshPeer) {
    let host = Host::start(peer, |_| {}).await;
    host.does(vec!["own".to_owned()]).await;
}

/// adit's client with another server, which may lack application-defined requests in channels.
pub(super) async fn with_their_server(peer: SshPeer, joins: bool) {
    let far = Far::start(peer, None);
    let session = far.enter(far.config()).await;
    let mut rooms = session.custom_channels(ROOM).unwrap();
    let mut requests = session.custom_requests().unwrap();
    tokio::spawn(async move {
        while let Some(opening) = rooms.accept().await {
            enter(opening);
        }
    });
    begin(&session, joins).await;
    session.send_request(CALL, []).await.unwrap();
    let done = async {
        loop {
            let request = requests.next_request().await.unwrap();
            if request.name() == DONE {
                return;
            }
            answer(&session, request);
        }
    };
    timeout(adit_interop::TEST_TIMEOUT, done).await.unwrap();
}

/// Answers a global request.
pub(crate) fn answer(peer: &Peer, request: CustomRequest) {
    match request.name() {
        UPPER => {
            let data = request.data().to_ascii_uppercase();
            request.grant(data).unwrap();
        }
        CALL => {
            request.grant([]).unwrap();
            let peer = peer.clone();
            tokio::spawn(async move { begin(&peer, true).await });
        }
        _ => request.refuse(),
    }
}

/// Echoes bytes, and accepts one name.
pub(crate) fn enter(opening: IncomingCustomChannel) {
    // paramiko sends no data.
    if opening.name() != ROOM || !matches!(opening.data(), b"room 1" | b"") {
        return;
    }
    let (channel, _, mut requests) = opening.accept().unwrap().into_parts();
    tokio::spawn(async move {
        while let Some(next) = requests.next_request().await {
            match (&*next.name, &*next.data) {
                (JOIN, b"me") => next.reply.grant(),
                _ => next.reply.refuse(),
            }
        }
    });
    tokio::spawn(async move {
        let (mut reader, mut writer) = channel.into_split();
        tokio::io::copy(&mut reader, &mut writer).await.unwrap();
        writer.shutdown().await.unwrap();
    });
}

async fn begin(peer: &Peer, joins: bool) {
    // An SSH string: some peers send nothing else.
    let said = peer.send_request(UPPER, b"\0\0\0\x04adit").await;
    assert_eq!(said.unwrap(), b"\0\0\0\x04ADIT");
    let refused = peer.send_request(OTHER, []).await;
    assert!(matches!(refused, Err(RequestError::Refused(_))));
    let unknown = peer.open_custom_channel(OTHER, []).await;
    let Err(OpenError::Refused { reason, .. }) = unknown else {
        panic!("{unknown:?}");
    };
    assert_eq!(reason, OpenFailureReason::UnknownType);
    let mut room = peer.open_custom_channel(ROOM, b"room 1").await.unwrap();
    let joined = room.control().send_request(JOIN, b"me").await;
    assert_eq!(joined.is_ok(), joins, "{joined:?}");
    let refused = room.control().send_request(OTHER, b"me").await;
    assert!(matches!(refused, Err(RequestError::Refused(_))));
    let channel = room.channel();
    channel.write_all(b"ping").await.unwrap();
    channel.shutdown().await.unwrap();
    let mut got = Vec::new();
    channel.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"ping");
    peer.send_notification(DONE, []).await.unwrap();
}
