//! Channels and global requests of application-defined types, at both ends, for users of Go's
//! `x/crypto/ssh`.
//!
//! `ssh_own` runs a server on loopback and connects to it. The guide shows the functions:
//! `docs/guides/ssh-library.md`.

#![allow(
    dead_code,
    reason = "the guide shows them one by one; the tests run those that the program does not"
)]
#![allow(clippy::print_stdout, reason = "a terminal program")]

use std::error::Error;
use std::sync::Arc;

use adit_net::system::ThreadRng;
use adit_ssh::BoxFuture;
use adit_ssh::client::{Client, ClientConfig, Login, PinnedKeys, Session};
use adit_ssh::custom::IncomingCustomChannel;
use adit_ssh::server::{AuthPolicy, Connection, Incoming, KeyProof, Server, ServerConfig};
use adit_ssh_proto::connection::OpenFailureReason;
use adit_ssh_proto::key::{AnyKey, KeySet, KeyType, PrivateKey};
use adit_stream::Tcp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Fallible<()> {
    let (session, connection) = both_ends().await?;
    let served = tokio::spawn(serve(connection));
    println!("the server's time: {}", time(&session).await?);
    let shouted = shout(&session, "in a channel").await?;
    println!("{}", String::from_utf8_lossy(&shouted));
    session.disconnect("");
    served.await?
}

/// A client and a server, connected over loopback.
pub(crate) async fn both_ends() -> Fallible<(Session, Connection)> {
    let host = PrivateKey::generate(KeyType::Ed25519, &mut ThreadRng)?;
    let user = PrivateKey::generate(KeyType::Ed25519, &mut ThreadRng)?;
    let known = PinnedKeys(vec![AnyKey::Plain(host.public_key().clone())]);
    let policy = One(AnyKey::Plain(user.public_key().clone()));
    let login = Login::new("me").with_key(user);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let near = TcpStream::connect(listener.local_addr()?).await?;
    let (far, _) = listener.accept().await?;
    let config = ServerConfig::new(Arc::new(KeySet::from(vec![host])));
    let (session, connection) = tokio::join!(
        Client::connect(
            Box::new(Tcp::new(near)),
            ClientConfig::new(Arc::new(known), login)
        ),
        Server::accept(Box::new(Tcp::new(far)), &config, &policy),
    );
    Ok((session?, connection?))
}

/// A policy that accepts one key.
struct One(AnyKey);

impl AuthPolicy for One {
    fn check_public_key<'a>(
        &'a self,
        _: &'a str,
        key: &'a AnyKey,
        _: KeyProof,
    ) -> BoxFuture<'a, bool> {
        Box::pin(std::future::ready(*key == self.0))
    }
}

// region: channel
/// `Client.OpenChannel` and `Channel.SendRequest`. Returns the bytes from the channel.
pub(crate) async fn shout(session: &Session, text: &str) -> Fallible<Vec<u8>> {
    let mut shouting = session
        .open_custom_channel("shout@example.com", "loud")
        .await?;
    let control = shouting.control();
    control.send_request("language@example.com", "en").await?; // Waits for the answer.
    control.send_notification("hint@example.com", []).await?; // Wants no answer.
    shouting.channel().write_all(text.as_bytes()).await?;
    shouting.channel().shutdown().await?;
    let mut back = Vec::new();
    shouting.channel().read_to_end(&mut back).await?;
    Ok(back)
}
// end

// region: request
/// `Client.SendRequest`: a global request, whose answer may have data.
pub(crate) async fn time(session: &Session) -> Fallible<String> {
    let answer = session.send_request("time@example.com", []).await?;
    Ok(String::from_utf8(answer)?)
}
// end

// region: handle
/// `Client.HandleChannelOpen`, and the `<-chan *ssh.Request` of `ssh.NewClientConn`.
pub(crate) async fn handle(session: &Session) -> Fallible<()> {
    let mut channels = session.custom_channels("news@example.com")?;
    let mut requests = session.custom_requests()?;
    loop {
        tokio::select! {
            Some(opening) = channels.accept() => {
                // `NewChannel.ExtraData` is `opening.data()`.
                let mut channel = opening.accept()?.into_channel();
                channel.write_all(b"read").await?;
                channel.shutdown().await?;
            }
            // Replying to a request that wants no reply does nothing.
            Some(request) = requests.next_request() => match request.name() {
                "name@example.com" => request.grant("a client")?,
                _ => request.refuse(),
            },
            else => return Ok(()),
        }
    }
}
// end

// region: serve
/// `ssh.NewServerConn`: the loop over `NewChannel`s and global requests.
pub(crate) async fn serve(mut connection: Connection) -> Fallible<()> {
    while let Some(incoming) = connection.accept().await {
        match incoming {
            // `NewChannel.ChannelType`, `ExtraData`, `Accept` and `Reject`
            Incoming::OwnChannel(opening) => match opening.name() {
                "shout@example.com" => drop(tokio::spawn(loudly(opening))),
                _ => opening.refuse(OpenFailureReason::UnknownType, "no such type"),
            },
            Incoming::OwnRequest(request) => match request.name() {
                "time@example.com" => request.grant("noon")?,
                _ => request.refuse(),
            },
            _ => {} // Dropping a request refuses it.
        }
    }
    Ok(())
}

async fn loudly(opening: IncomingCustomChannel) -> Fallible<()> {
    let (mut channel, _control, mut requests) = opening.accept()?.into_parts();
    tokio::spawn(async move {
        while let Some(request) = requests.next_request().await {
            match &*request.name {
                "language@example.com" => request.reply.grant(),
                _ => request.reply.refuse(),
            }
        }
    });
    let mut text = Vec::new();
    channel.read_to_end(&mut text).await?;
    channel.write_all(&text.to_ascii_uppercase()).await?;
    channel.shutdown().await?;
    Ok(())
}
// end
