//! A server, for users of Go's `x/crypto/ssh`: greets users and forwards connections.
//!
//! `ssh_server ADDRESS HOST_KEY AUTHORIZED_KEYS`. The guide shows the functions:
//! `docs/guides/ssh-library.md`.

#![allow(
    dead_code,
    reason = "the guide shows them one by one; the tests run those that the program does not"
)]
#![allow(clippy::print_stderr, reason = "a terminal program")]

use std::error::Error;
use std::fs;
use std::sync::Arc;

use adit_crypto::Secret;
use adit_ssh::BoxFuture;
use adit_ssh::server::{
    AuthPolicy, ForwardAddress, ForwardRequest, Incoming, KeyProof, Server, ServerConfig,
    ServerHandle, ServerSession,
};
use adit_ssh_proto::auth::{AuthMethod, InteractivePrompt, ServerAnswer, passwords_equal};
use adit_ssh_proto::connection::{OpenFailureReason, Originator, SshChannelRequest};
use adit_ssh_proto::key::{AnyKey, KeySet, PrivateKey, PublicKey};
use adit_stream::Tcp;
use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

pub(crate) type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Fallible<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, host_key, authorized_keys] = &*words else {
        return Err("usage: ssh_server ADDRESS HOST_KEY AUTHORIZED_KEYS".into());
    };
    let config = config(&fs::read_to_string(host_key)?)?;
    let users = Users {
        keys: authorized_keys_of(&fs::read_to_string(authorized_keys)?)?,
        password: None,
    };
    let listener = TcpListener::bind(address).await?;
    eprintln!("listening at {}", listener.local_addr()?);
    serve(listener, config, users).await
}

// region: config
/// `ssh.ServerConfig` with `AddHostKey`, `MaxAuthTries`, `BannerCallback` and the methods whose
/// callbacks are set.
pub(crate) fn config(host_key: &str) -> Fallible<ServerConfig> {
    let host_key = PrivateKey::from_text(host_key, None)?;
    let mut config = ServerConfig::new(Arc::new(KeySet::from(vec![host_key])));
    config.auth.methods = vec![
        AuthMethod::PublicKey,
        AuthMethod::KeyboardInteractive,
        AuthMethod::Password,
    ];
    config.auth.tries = 4;
    config.auth.banner = Some("Welcome.\n".to_owned());
    Ok(config)
}
// end

// region: policy
/// `PublicKeyCallback`, `PasswordCallback` and `KeyboardInteractiveCallback`.
pub(crate) struct Users {
    pub(crate) keys: Vec<PublicKey>,
    pub(crate) password: Option<String>,
}

impl AuthPolicy for Users {
    fn check_public_key<'a>(
        &'a self,
        _user: &'a str,
        key: &'a AnyKey,
        _proof: KeyProof, // Accepting a key that is only queried logs no one in.
    ) -> BoxFuture<'a, bool> {
        // A certificate would require a check of its authority.
        let known = matches!(key, AnyKey::Plain(key) if self.keys.contains(key));
        Box::pin(std::future::ready(known))
    }

    fn check_password<'a>(
        &'a self,
        _user: &'a str,
        password: &'a Secret<String>,
    ) -> BoxFuture<'a, ServerAnswer> {
        Box::pin(std::future::ready(self.judge(password)))
    }

    fn prompt_user<'a>(&'a self, user: &'a str) -> BoxFuture<'a, ServerAnswer> {
        let questions = ServerAnswer::Questions {
            name: String::new(),
            instruction: format!("Hello {user}."),
            prompts: vec![InteractivePrompt {
                text: "The word? ".to_owned(),
                echo: false,
            }],
        };
        Box::pin(std::future::ready(questions))
    }

    fn check_responses<'a>(
        &'a self,
        _user: &'a str,
        responses: &'a [Secret<String>],
    ) -> BoxFuture<'a, ServerAnswer> {
        let judged = match responses {
            [one] => self.judge(one),
            _ => ServerAnswer::Reject,
        };
        Box::pin(std::future::ready(judged))
    }
}

impl Users {
    /// Compares in constant time.
    fn judge(&self, given: &Secret<String>) -> ServerAnswer {
        let right = self.password.as_ref();
        match right.is_some_and(|right| passwords_equal(given.expose(), right)) {
            true => ServerAnswer::Accept,
            false => ServerAnswer::Reject,
        }
    }
}

/// `ssh.ParseAuthorizedKey` for each line. For key options use `adit_ssh_proto::key::AuthorizedKeys`.
pub(crate) fn authorized_keys_of(text: &str) -> Fallible<Vec<PublicKey>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let keys = lines.map(|line| Ok(PublicKey::from_line(line)?.0));
    keys.collect()
}
// end

// region: serve
/// `net.Listener.Accept`, `ssh.NewServerConn`, and the loop over `NewChannel`s.
pub(crate) async fn serve(
    listener: TcpListener,
    config: ServerConfig,
    users: impl AuthPolicy + 'static,
) -> Fallible<()> {
    let users = Arc::new(users);
    loop {
        let (socket, from) = listener.accept().await?;
        let (config, users) = (config.clone(), Arc::clone(&users));
        // The handshake waits for the client, so run it in a separate task.
        tokio::spawn(async move {
            if let Err(why) = attend(socket, &config, &*users).await {
                eprintln!("{from}: {why}");
            }
        });
    }
}

async fn attend(socket: TcpStream, config: &ServerConfig, users: &dyn AuthPolicy) -> Fallible<()> {
    let mut connection = Server::accept(Box::new(Tcp::new(socket)), config, users).await?;
    let user = connection.login().user.clone();
    let mut forwards = JoinSet::new();
    while let Some(incoming) = connection.accept().await {
        match incoming {
            // `NewChannel.Accept`
            Incoming::Session(opening) => {
                tokio::spawn(greet(opening.accept()?, user.clone()));
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
                            let mut channel = opening.accept()?;
                            copy_bidirectional(&mut channel, &mut socket).await?;
                        }
                        // `NewChannel.Reject`
                        Err(why) => {
                            opening.refuse(OpenFailureReason::ConnectFailed, why.to_string());
                        }
                    }
                    Fallible::Ok(())
                });
            }
            Incoming::Forward(request) => {
                forwards.spawn(listen(request, connection.handle().clone()));
            }
            _ => {} // Dropping a request refuses it.
        }
    }
    Ok(()) // Dropping `forwards` stops the listeners.
}

/// A `tcpip-forward` request, and `ServerConn.OpenChannel("forwarded-tcpip", …)` for each
/// connection. Always listens on loopback.
async fn listen(request: ForwardRequest, handle: ServerHandle) -> Fallible<()> {
    let ForwardAddress::Tcpip { address, port } = request.address().clone() else {
        return Ok(());
    };
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let port = listener.local_addr()?.port();
    request.grant(port);
    loop {
        let (mut socket, from) = listener.accept().await?;
        let originator = Originator {
            address: from.ip().to_string(),
            port: from.port().into(),
        };
        let (handle, address) = (handle.clone(), address.clone());
        tokio::spawn(async move {
            let opened = handle.open_forwarded_tcpip(address, port, originator);
            copy_bidirectional(&mut opened.await?, &mut socket).await?;
            Fallible::Ok(())
        });
    }
}

/// The loop over `ssh.Request`s with `Request.Reply`, and `exit-status`.
async fn greet(session: ServerSession, user: String) -> Fallible<()> {
    while let Some(next) = session.next_request().await {
        match next.request {
            SshChannelRequest::Exec(command) => {
                next.reply.grant();
                let (control, mut channel, _stderr) = session.into_parts();
                let command = String::from_utf8_lossy(&command);
                let text = format!("hello {user}: {command}\n");
                channel.write_all(text.as_bytes()).await?;
                channel.shutdown().await?;
                control.send_exit_status(0);
                return Ok(());
            }
            SshChannelRequest::Env { .. } => next.reply.grant(),
            _ => next.reply.refuse(),
        }
    }
    Ok(())
}
// end
