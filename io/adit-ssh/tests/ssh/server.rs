//! A small adit server: a few built-in programs, connections, forwards.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use adit_net::system::ThreadRng;
use adit_ssh::BoxFuture;
use adit_ssh::server::{
    AuthPolicy, Connection, ForwardAddress, Incoming, KeyProof, Server, ServerConfig, ServerHandle,
    ServerSession,
};
use adit_ssh_proto::connection::{OpenFailureReason, Originator, SshChannelRequest};
use adit_ssh_proto::key::{AnyKey, KeySet, KeyType, PrivateKey, PublicKey};
use adit_stream::{BoxStream, Tcp};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::AbortHandle;

use crate::peers::own_types;
use crate::world::{drain, pour};

/// A policy that accepts one key for any user.
pub(crate) struct OneKey(pub(crate) PublicKey);

impl AuthPolicy for OneKey {
    fn check_public_key<'a>(
        &'a self,
        _: &'a str,
        key: &'a AnyKey,
        _: KeyProof,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async move { *key.key() == self.0 })
    }
}

/// Generates a key.
pub(crate) fn key() -> PrivateKey {
    PrivateKey::generate(KeyType::Ed25519, &mut ThreadRng).unwrap()
}

/// Returns a server configuration with a new host key.
pub(crate) fn settings() -> (ServerConfig, PublicKey) {
    let host = key();
    let public = host.public_key().clone();
    (
        ServerConfig::new(Arc::new(KeySet::from(vec![host]))),
        public,
    )
}

/// Listens and serves clients with the key; returns the port.
pub(crate) async fn serve(config: ServerConfig, user: PublicKey) -> u16 {
    serve_seen(config, user, |_| {}).await
}

/// The same, and reports the accepted connections.
pub(crate) async fn serve_seen(
    config: ServerConfig,
    user: PublicKey,
    seen: impl Fn(&Connection) + Clone + Send + 'static,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            socket.set_nodelay(true).unwrap();
            let (config, policy) = (config.clone(), OneKey(user.clone()));
            let seen = seen.clone();
            tokio::spawn(async move {
                let io: BoxStream = Box::new(Tcp::new(socket));
                match Server::accept(io, &config, &policy).await {
                    Ok(connection) => {
                        seen(&connection);
                        attend(connection).await;
                    }
                    Err(why) => eprintln!("server: {why}"),
                }
            });
        }
    });
    port
}

/// Handles a client's requests.
pub(crate) async fn attend(mut connection: Connection) {
    let mut forwards: HashMap<(String, u16), AbortHandle> = HashMap::new();
    while let Some(incoming) = connection.accept().await {
        match incoming {
            Incoming::Session(opening) => {
                tokio::spawn(run(opening.accept().unwrap()));
            }
            Incoming::DirectTcpip {
                host,
                port,
                opening,
                ..
            } => {
                tokio::spawn(async move {
                    match TcpStream::connect((&*host, port)).await {
                        Ok(mut socket) => {
                            let mut channel = opening.accept().unwrap();
                            let _ = copy_bidirectional(&mut channel, &mut socket).await;
                        }
                        Err(why) => {
                            opening.refuse(OpenFailureReason::ConnectFailed, why.to_string());
                        }
                    }
                });
            }
            Incoming::DirectStreamlocal { path, opening } => {
                tokio::spawn(async move {
                    let path = String::from_utf8(path).unwrap();
                    match UnixStream::connect(path).await {
                        Ok(mut socket) => {
                            let mut channel = opening.accept().unwrap();
                            let _ = copy_bidirectional(&mut channel, &mut socket).await;
                        }
                        Err(why) => {
                            opening.refuse(OpenFailureReason::ConnectFailed, why.to_string());
                        }
                    }
                });
            }
            Incoming::Forward(request) => {
                if let ForwardAddress::Streamlocal { path } = request.address().clone() {
                    let at = String::from_utf8(path.clone()).unwrap();
                    let listener = UnixListener::bind(at).unwrap();
                    let handle = connection.handle().clone();
                    tokio::spawn(hand_on_socket(listener, handle, path));
                    request.grant(0);
                    continue;
                }
                let ForwardAddress::Tcpip { address, port } = request.address().clone() else {
                    continue;
                };
                let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
                let bound = listener.local_addr().unwrap().port();
                let handle = connection.handle().clone();
                let task = tokio::spawn(hand_on(listener, handle, address.clone(), bound));
                forwards.insert((address, bound), task.abort_handle());
                request.grant(bound);
            }
            Incoming::CancelForward(request) => {
                if let ForwardAddress::Tcpip { address, port } = request.address().clone()
                    && let Some(task) = forwards.remove(&(address, port))
                {
                    task.abort();
                    request.grant(0);
                }
            }
            Incoming::OwnChannel(opening) => own_types::enter(opening),
            Incoming::OwnRequest(request) => {
                own_types::answer(connection.handle().peer(), request);
            }
            _ => {}
        }
    }
    forwards.into_values().for_each(|task| task.abort());
}

async fn hand_on(listener: TcpListener, handle: ServerHandle, address: String, port: u16) {
    loop {
        let (mut socket, from) = listener.accept().await.unwrap();
        let originator = Originator {
            address: from.ip().to_string(),
            port: from.port().into(),
        };
        let (handle, address) = (handle.clone(), address.clone());
        tokio::spawn(async move {
            let channel = handle.open_forwarded_tcpip(address, port, originator).await;
            let mut channel = channel.unwrap();
            let _ = copy_bidirectional(&mut channel, &mut socket).await;
        });
    }
}

async fn hand_on_socket(listener: UnixListener, handle: ServerHandle, path: Vec<u8>) {
    let (mut socket, _) = listener.accept().await.unwrap();
    let channel = handle.open_forwarded_streamlocal(path).await;
    let _ = copy_bidirectional(&mut channel.unwrap(), &mut socket).await;
}

/// `echo`, `give N`, `take`, `both`, `terminal N`, `exit N`, `kill`, `wait`.
async fn run(session: ServerSession) {
    let (mut terminal, mut variables) = (String::new(), String::new());
    let command = loop {
        let Some(next) = session.next_request().await else {
            return;
        };
        match next.request {
            SshChannelRequest::Exec(command) => {
                next.reply.grant();
                break String::from_utf8(command).unwrap();
            }
            SshChannelRequest::Env { name, value } => {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                let _ = write!(variables, " {}={}", text(&name), text(&value));
                next.reply.grant();
            }
            SshChannelRequest::Pty(pty) => {
                terminal = format!("{} {}x{}", pty.term, pty.size.columns, pty.size.rows);
                next.reply.grant();
            }
            SshChannelRequest::Agent => next.reply.grant(),
            _ => next.reply.refuse(),
        }
    };
    let (control, channel, mut stderr) = session.into_parts();
    let (mut reader, mut writer) = channel.into_split();
    let (word, number) = command.split_once(' ').unwrap_or((&command, "0"));
    let number: usize = number.parse().unwrap();
    match word {
        "echo" => drop(tokio::io::copy(&mut reader, &mut writer).await),
        "give" => drop(pour(&mut writer, number, 1).await),
        "take" => {
            let (len, sum) = drain(&mut reader).await;
            let told = format!("{len} {:x}\n", sum.0);
            writer.write_all(told.as_bytes()).await.unwrap();
        }
        "both" => {
            writer.write_all(b"out\n").await.unwrap();
            stderr.write_all(b"err\n").await.unwrap();
        }
        "terminal" => {
            let told = format!("{terminal}{variables}\n");
            writer.write_all(told.as_bytes()).await.unwrap();
            stderr.write_all(b"err\n").await.unwrap();
        }
        "exit" => {}
        "kill" => control.send_exit_signal("TERM", false, "it was time"),
        "wait" => {
            let mut byte = [0];
            let _ = reader.read(&mut byte).await;
        }
        _ => control.send_exit_status(127),
    }
    let _ = writer.shutdown().await;
    let _ = stderr.shutdown().await;
    control.send_exit_status(u32::try_from(number % 256).unwrap());
}
