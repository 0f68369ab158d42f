//! From a stream to a session: key exchange, host key, authentication.

use std::sync::Arc;

use adit_net::ambient::Chance;
use adit_net::dial::{self, Family};
use adit_ssh_proto::auth::{
    self, ClientAnswer, ClientAsk, ClientAuth, ClientStep, Method, visible,
};
use adit_ssh_proto::connection::Role;
use adit_ssh_proto::key::AnyKey;
use adit_ssh_proto::transport::{Event, Transport};
use adit_ssh_proto::{Disconnect, SshError};
use adit_stream::{BoxStream, Tcp};

use tokio::sync::mpsc;

use super::{ClientConfig, HostKey, Login, Session, SessionBinding};
use crate::about::{About, Peer};
use crate::driver::{Driver, Start};
use crate::error::ConnectError;
use crate::forwards::{Asked, Route};
use crate::line::{Came, Line, Wait};
use crate::mail::Mail;

/// Connects.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use adit_ssh::client::{Client, ClientConfig, KnownHostsOnly, Login};
/// use adit_ssh_proto::key::PrivateKey;
///
/// let known = KnownHostsOnly::read("host.example", 22, &["known_hosts"])?;
/// let key = PrivateKey::read(&std::fs::read_to_string("id_ed25519")?, None)?;
/// let config = ClientConfig::known(known, Login::new("me").with_key(key));
/// let session = Client::dial("host.example", 22, config).await?;
/// let output = session.open_session().await?.output("uname -a").await?;
/// println!("{:?}: {}", output.exit, String::from_utf8_lossy(&output.stdout));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Client;

impl Client {
    /// Connects to a host by TCP, at each of its addresses until one answers, and begins a session.
    /// [`ClientConfig::timeout`] bounds the connection, and each wait behind it.
    ///
    /// # Errors
    /// The name is not known, nobody answers, and what [`Client::connect`] fails for.
    pub async fn dial(
        host: &str,
        port: u16,
        config: ClientConfig,
    ) -> Result<Session, ConnectError> {
        let found = dial::resolve(host, port, Family::Any).await?;
        let socket = dial::race(&found, config.timeout).await?;
        Self::connect(Box::new(Tcp::new(socket)), config).await
    }

    /// Begins a session over a fresh connection and logs in.
    ///
    /// # Errors
    /// The stream failed, the peer broke the protocol or has no algorithm in common with us, its
    /// key was refused, or the user was. See [`ConnectError`].
    pub async fn connect(below: BoxStream, config: ClientConfig) -> Result<Session, ConnectError> {
        let transport = Transport::client(Arc::new(config.transport.clone()), Box::new(Chance))?;
        let mut line = Line::new(below, transport);
        let about = match enter(&mut line, &config).await {
            Ok(about) => Arc::new(about),
            Err(why) => {
                line.part(&why);
                return Err(why);
            }
        };
        let mail = Arc::new(Mail::new());
        let peer = Peer::new(Arc::clone(&mail), Arc::clone(&about));
        let (to, told) = mpsc::channel(super::host_keys::BACKLOG);
        let backlog = config.limits.pending_opens;
        Driver::spawn(Start {
            line,
            role: Role::Client,
            limits: config.limits,
            keepalive: config.keepalive,
            mail,
            about,
            routes: vec![Route {
                asked: Asked::HostKeys,
                to,
            }],
        });
        Ok(Session::new(peer, told, backlog))
    }
}

async fn enter(line: &mut Line, config: &ClientConfig) -> Result<About, ConnectError> {
    exchange_keys(line, config).await?;
    let about = About::of(&line.transport);
    let about = about.ok_or(SshError::Kex("it did not come to its end"))?;
    log_in(line, config).await?;
    Ok(about)
}

/// The first key exchange, with the host key judged in it.
async fn exchange_keys(line: &mut Line, config: &ClientConfig) -> Result<(), ConnectError> {
    let mut wait = Wait::of(config.timeout, "keys were exchanged");
    loop {
        match line.next(wait).await? {
            Came::Event(Event::HostKey { algorithm, blob }) => {
                let key = AnyKey::parse_for(algorithm, &blob).map_err(SshError::from)?;
                let judged = config.host_key.verify(&HostKey { key, algorithm }).await;
                // A person may have taken his time.
                wait = Wait::of(config.timeout, wait.doing);
                if let Err(why) = judged {
                    line.transport.reject_host_key();
                    return Err(why.into());
                }
                line.transport.accept_host_key()?;
            }
            Came::Event(Event::Ready(_)) => return Ok(()),
            Came::Event(_) => {}
            Came::Payload(payload) => {
                let number = payload.first().copied().unwrap_or_default();
                return Err(SshError::Unexpected(number).into());
            }
        }
    }
}

async fn log_in(line: &mut Line, config: &ClientConfig) -> Result<(), ConnectError> {
    let login = &config.login;
    if login.methods.contains(&Method::PublicKey)
        && let Some(binding) = SessionBinding::of(&line.transport)
    {
        // Agents are told what they will sign for.
        for identity in &login.identities {
            identity.bind(&binding).await;
        }
    }
    let mut auth = machine(line, login);
    loop {
        let wait = Wait::of(config.timeout, "the user was authenticated");
        while let Some(message) = auth.poll_output() {
            line.say(&message)?;
        }
        let payload = match line.next(wait).await? {
            Came::Event(Event::ExtInfo(told)) => {
                auth.server_extensions(told.user_algorithms.as_deref(), told.hostbound);
                continue;
            }
            Came::Event(_) => continue,
            Came::Payload(payload) => payload,
        };
        let mut step = auth.handle(&payload)?;
        loop {
            match step {
                ClientStep::Wait => break,
                ClientStep::Banner(text) => {
                    if let Some(prompter) = &login.prompter {
                        prompter.banner(&text);
                    }
                    break;
                }
                ClientStep::Ask(ask) => step = auth.answer(answer(login, ask).await)?,
                ClientStep::Success => return Ok(()),
                ClientStep::Failed { methods } => {
                    let reason = Disconnect::NoMoreAuthMethods;
                    line.transport.disconnect(reason, "nothing is left to try");
                    return Err(ConnectError::Auth { methods });
                }
            }
        }
    }
}

fn machine(line: &Line, login: &Login) -> ClientAuth {
    let identities = login.identities.iter().map(|identity| auth::Identity {
        key: identity.key(),
        query: identity.query(),
    });
    let mut config = auth::ClientConfig::new(&login.user);
    config.methods.clone_from(&login.methods);
    config.identities = identities.collect();
    config.prompts = login.prompts;
    let transport = &line.transport;
    let mut auth = ClientAuth::new(
        config,
        transport.session_id().unwrap_or_default(),
        transport.host_key().unwrap_or_default(),
    );
    let told = transport.extensions();
    if told.user_algorithms.is_some() {
        auth.server_extensions(told.user_algorithms.as_deref(), told.hostbound);
    }
    auth
}

/// Asks the key, the agent or the person.
async fn answer(login: &Login, ask: ClientAsk) -> ClientAnswer {
    let answer = match (ask, &login.prompter) {
        (
            ClientAsk::Signature {
                identity,
                algorithm,
                data,
            },
            _,
        ) => match login.identities.get(identity) {
            Some(identity) => identity.sign(algorithm, &data).await,
            None => None,
        }
        .map(ClientAnswer::Signature),
        (ClientAsk::Password { failed }, Some(prompter)) => {
            prompter.password(failed).await.map(ClientAnswer::Password)
        }
        (ClientAsk::NewPassword { prompt }, Some(prompter)) => {
            let both = prompter.new_password(&visible(&prompt)).await;
            both.map(|(old, new)| ClientAnswer::NewPassword { old, new })
        }
        (
            ClientAsk::Questions {
                name,
                instruction,
                prompts,
            },
            Some(prompter),
        ) => {
            let answers = prompter.questions(&name, &instruction, &prompts).await;
            answers
                .filter(|answers| answers.len() == prompts.len())
                .map(ClientAnswer::Responses)
        }
        (_, None) => None,
    };
    answer.unwrap_or(ClientAnswer::Decline)
}
