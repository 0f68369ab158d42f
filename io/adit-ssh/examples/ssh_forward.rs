//! Forwarded connections in both directions, for users of Go's `x/crypto/ssh`.
//!
//! `ssh_forward HOST PORT USER KEY KNOWN_HOSTS TARGET:PORT` listens on a loopback port, which it
//! prints, and forwards its connections through the host to the target. The guide shows the functions:
//! `docs/guides/ssh-library.md`.

#![allow(
    dead_code,
    reason = "the guide shows them one by one; the tests run those that the program does not"
)]
#![allow(clippy::print_stdout, reason = "a terminal program")]

use std::error::Error;
use std::path::{Path, PathBuf};

use adit_ssh::Channel;
use adit_ssh::client::{
    AgentPurpose, Client, ClientConfig, KnownHostsOnly, Login, Output, Session,
};
use adit_ssh_proto::connection::Originator;
use adit_ssh_proto::key::PrivateKey;
use tokio::io::{AsyncReadExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixStream};

pub(crate) type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Fallible<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [host, port, user, key, known_hosts, target] = &*words else {
        return Err("usage: ssh_forward HOST PORT USER KEY KNOWN_HOSTS TARGET:PORT".into());
    };
    let port = port.parse()?;
    let key = PrivateKey::from_text(&std::fs::read_to_string(Path::new(key))?, None)?;
    let known = KnownHostsOnly::read(host, port, &[known_hosts])?;
    let config = ClientConfig::for_known_host(known, Login::new(user).with_key(key));
    let session = Client::connect_tcp(host, port, config).await?;
    let (target, port) = target.rsplit_once(':').ok_or("TARGET:PORT")?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    local(session, listener, (target.to_owned(), port.parse()?)).await
}

// region: dial
/// `Client.Dial("tcp", …)`: the channel is `AsyncRead` and `AsyncWrite`, and half-closes.
pub(crate) async fn dial(session: &Session, host: &str, port: u16) -> Fallible<Channel> {
    let nobody = Originator::default(); // The originator, for the server's log.
    Ok(session.open_direct_tcpip(host, port, nobody).await?)
}
// end

// region: dial_unix
/// `Client.Dial("unix", …)`.
pub(crate) async fn dial_unix(session: &Session, path: &str) -> Fallible<Channel> {
    Ok(session.open_direct_streamlocal(path).await?)
}
// end

// region: local
/// `ssh -L`: forwards connections of a local listener through the server.
pub(crate) async fn local(
    session: Session,
    listener: TcpListener,
    target: (String, u16),
) -> Fallible<()> {
    loop {
        let (mut socket, _) = listener.accept().await?;
        let (session, (host, port)) = (session.clone(), target.clone());
        tokio::spawn(async move {
            // The target may not answer, so wait in a separate task.
            let nobody = Originator::default();
            let mut channel = session.open_direct_tcpip(host, port, nobody).await?;
            copy_bidirectional(&mut socket, &mut channel).await?;
            Fallible::Ok(())
        });
    }
}
// end

// region: listen
/// `Client.Listen("tcp", "localhost:0")` and `Listener.Accept`: the server listens and forwards its
/// connections to a local port.
pub(crate) async fn listen(session: &Session, to: u16) -> Fallible<u16> {
    let mut listener = session.forward_tcpip("localhost", 0).await?;
    let port = listener.port().ok_or("the server chose no port")?;
    tokio::spawn(async move {
        while let Some(opening) = listener.accept().await {
            tokio::spawn(async move {
                let mut target = TcpStream::connect(("127.0.0.1", to)).await?;
                let mut channel = opening.accept()?;
                copy_bidirectional(&mut channel, &mut target).await?;
                Fallible::Ok(()) // Dropping a channel without an answer refuses it.
            });
        }
    }); // Dropping the listener stops it on the server.
    Ok(port)
}
// end

// region: listen_unix
/// `Client.ListenUnix` and one `Accept`.
pub(crate) async fn listen_unix(session: &Session, path: &str) -> Fallible<String> {
    let mut listener = session.forward_streamlocal(path).await?;
    let opening = listener.accept().await.ok_or("the session is over")?;
    let mut channel = opening.accept()?;
    let mut text = String::new();
    channel.read_to_string(&mut text).await?;
    Ok(text)
}
// end

// region: agent
/// `agent.ForwardToAgent` and `agent.RequestAgentForwarding`: a remote program uses the local agent.
pub(crate) async fn with_agent(
    session: &Session,
    agent: PathBuf,
    command: &str,
) -> Fallible<Output> {
    let mut wanted = session.agent_channels()?;
    let binding = session.session_binding();
    let served = tokio::spawn(async move {
        while let Some(opening) = wanted.accept().await {
            let mut agent = UnixStream::connect(&agent).await?;
            // This enforces keys that are restricted to certain hosts (`ssh-add -h`). An agent
            // without support for it refuses, and is usable nevertheless.
            let _ = binding
                .send_to_agent(&mut agent, AgentPurpose::Forwarding)
                .await;
            let mut channel = opening.accept()?;
            tokio::spawn(async move { copy_bidirectional(&mut channel, &mut agent).await });
        }
        Fallible::Ok(())
    });
    let program = session.open_session().await?;
    program.control().forward_agent().await?;
    let output = program.collect_output(command).await;
    served.abort();
    Ok(output?)
}
// end
