//! SSH.

use std::net::SocketAddr;
use std::sync::Arc;

use adit_net::system::SystemRng;
use adit_ssh::BoxFuture;
use adit_ssh::server::{AuthPolicy, Incoming, KeyProof, Server, ServerConfig};
use adit_ssh_proto::key::{AnyKey, KeySet, KeyType, PrivateKey, PublicKey};
use adit_stream::BoxStream;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{echo_server, run_with, serve, write_file};

/// The files of a user and of a host.
struct Keys {
    host: String,
    user: String,
    user_public: String,
    host_public: PublicKey,
    user_key: PublicKey,
}

impl Keys {
    /// Writes files whose names begin with that of the test.
    fn new(test: &str) -> Self {
        let key = || PrivateKey::generate(KeyType::Ed25519, &mut SystemRng).unwrap();
        let write = |name: &str, key: &PrivateKey| {
            let text = key.to_openssh(None, &mut SystemRng).unwrap();
            write_file(&format!("{test}-{name}"), text.expose().as_bytes())
        };
        let (host, user) = (key(), key());
        let line = user.public_key().to_line("me");
        Self {
            host: write("host", &host),
            user: write("user", &user),
            user_public: write_file(&format!("{test}-user.pub"), line.as_bytes()),
            host_public: host.public_key().clone(),
            user_key: user.public_key().clone(),
        }
    }

    /// Writes a file with the key of the server at `addr`.
    fn known_hosts(&self, test: &str, addr: SocketAddr, key: &PublicKey) -> String {
        let line = format!("[{}]:{} {}\n", addr.ip(), addr.port(), key.to_line(""));
        write_file(&format!("{test}-known-hosts"), line.as_bytes())
    }
}

#[tokio::test]
async fn ssh_exec_runs_commands_on_ssh_server() {
    let keys = Keys::new("exec");
    let args = ["127.0.0.1:0", &keys.host, &keys.user_public];
    let server = serve("ssh-server", &args).await;
    let known = keys.known_hosts("exec", server.addr, &keys.host_public);
    let port = server.addr.port().to_string();
    let exec = async |key: &str, known: &str, command: &str| {
        let args = ["127.0.0.1", &port, "me", key, known, command];
        run_with("ssh-exec", &args, "").await
    };
    let outcome = exec(&keys.user, &known, "echo out; echo err >&2; exit 7").await;
    assert_eq!(
        (outcome.status, &*outcome.stdout, &*outcome.stderr),
        (7, "out\n", "err\n")
    );
    // More than a window.
    let outcome = exec(&keys.user, &known, "head -c 5000000 /dev/zero").await;
    assert_eq!((outcome.status, outcome.stdout.len()), (0, 5_000_000));
    let outcome = exec(&keys.host, &known, "echo out").await;
    assert_eq!((outcome.status, &*outcome.stdout), (1, ""), "another user");
    let other = keys.known_hosts("exec-other", server.addr, &keys.user_key);
    let outcome = exec(&keys.user, &other, "echo out").await;
    assert_eq!((outcome.status, &*outcome.stdout), (1, ""), "another host");
}

struct OneKey(PublicKey);

impl AuthPolicy for OneKey {
    fn check_public_key<'a>(
        &'a self,
        _user: &'a str,
        key: &'a AnyKey,
        _proof: KeyProof,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async move { matches!(key, AnyKey::Plain(key) if *key == self.0) })
    }
}

/// Starts a server that forwards connections.
async fn forwarding_server(keys: &Keys) -> SocketAddr {
    let host_key = std::fs::read_to_string(&keys.host).unwrap();
    let host_key = PrivateKey::from_text(&host_key, None).unwrap();
    let config = ServerConfig::new(Arc::new(KeySet::from(vec![host_key])));
    let setup = Arc::new((config, OneKey(keys.user_key.clone())));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let setup = Arc::clone(&setup);
            tokio::spawn(async move {
                let stream = BoxStream::from(socket);
                let mut connection = Server::accept(stream, &setup.0, &setup.1).await.unwrap();
                while let Some(incoming) = connection.accept().await {
                    let Incoming::DirectTcpip {
                        host,
                        port,
                        opening,
                        ..
                    } = incoming
                    else {
                        continue;
                    };
                    tokio::spawn(async move {
                        // Dropping the request refuses it.
                        let mut target = TcpStream::connect((&*host, port)).await?;
                        let mut channel = opening.accept().map_err(std::io::Error::other)?;
                        copy_bidirectional(&mut channel, &mut target).await
                    });
                }
            });
        }
    });
    addr
}

#[tokio::test]
async fn ssh_forward_carries_connections_to_the_target() {
    let keys = Keys::new("forward");
    let server = forwarding_server(&keys).await;
    let known = keys.known_hosts("forward", server, &keys.host_public);
    let (target, port) = (echo_server().await, server.port().to_string());
    let args = [
        "127.0.0.1:0",
        &target,
        "127.0.0.1",
        &port,
        "me",
        &keys.user,
        &known,
    ];
    let forward = serve("ssh-forward", &args).await;
    for round in 0..3 {
        let mut socket = TcpStream::connect(forward.addr).await.unwrap();
        let text = format!("connection {round}");
        socket.write_all(text.as_bytes()).await.unwrap();
        socket.shutdown().await.unwrap();
        let mut got = String::new();
        socket.read_to_string(&mut got).await.unwrap();
        assert_eq!(got, text);
    }
}
