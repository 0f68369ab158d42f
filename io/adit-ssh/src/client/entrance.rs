//! Connections before login, for one login attempt after the other.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::auth::{
    self, ClientAnswer, ClientAsk, ClientAuth, ClientStep, Method, visible,
};
use adit_ssh_proto::connection::Limits;
use adit_ssh_proto::transport::Event;
use adit_ssh_proto::{Role, SshError};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{ClientConfig, Login, Session, SessionBinding};
use crate::Keepalive;
use crate::about::{About, Peer};
use crate::driver::{Driver, Start};
use crate::error::ConnectError;
use crate::forwards::{Asked, Route};
use crate::line::{Came, Line, Wait};
use crate::mail::Mail;
use crate::messages::{Bounds, Feed, Teller};

/// A connection whose server has proved its host key, and whose user has not logged in yet.
pub struct Entrance {
    line: Line,
    about: Arc<About>,
    auth: Option<ClientAuth>,
    limits: Limits,
    keepalive: Option<Keepalive>,
    inactivity: Option<Duration>,
    timeout: Duration,
}

/// The result of login attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Tried {
    /// The user is logged in.
    In,
    /// No authentication method is left to try.
    Failed {
        /// The methods that the server would accept next.
        methods: Vec<String>,
        /// True if the last attempt succeeded as one of several required methods.
        partial: bool,
    },
}

impl Entrance {
    pub(super) fn new(line: Line, about: About, config: &ClientConfig) -> Self {
        Self {
            line,
            about: Arc::new(about),
            auth: None,
            limits: config.limits.clone(),
            keepalive: config.keepalive,
            inactivity: config.inactivity,
            timeout: config.timeout,
        }
    }

    /// Tries all methods and credentials of `login`. You may call it again until the user is logged in,
    /// also with another user.
    ///
    /// # Errors
    /// The stream failed, or the server violated the protocol, disconnected, or took too long.
    ///
    /// # Cancel safety
    /// Not cancel-safe: after a cancelled call, do not call it again.
    pub async fn log_in(&mut self, login: &Login) -> Result<Tried, ConnectError> {
        if login.methods.contains(&Method::PublicKey)
            && let Some(binding) = SessionBinding::of(&self.line.transport)
        {
            // Binds agents to the session before they sign anything.
            for identity in &login.identities {
                identity.bind(&binding).await;
            }
        }
        let config = config(login);
        let mut step = match &mut self.auth {
            Some(auth) => auth.again(config)?,
            none => {
                let transport = &self.line.transport;
                let (id, key) = (transport.session_id(), transport.host_key());
                let auth = ClientAuth::new(config, id.unwrap_or_default(), key.unwrap_or_default());
                *none = Some(auth);
                ClientStep::Wait
            }
        };
        self.tell_extensions(login);
        loop {
            let Some(auth) = &mut self.auth else {
                return Err(SshError::Policy("no login attempt is in progress").into());
            };
            step = match step {
                ClientStep::Wait => {
                    while let Some(message) = auth.poll_output() {
                        self.line.say(&message)?;
                    }
                    let wait = Wait::of(self.timeout, "authenticating the user");
                    match self.line.next(wait).await? {
                        Came::Event(Event::ExtInfo(_)) => {
                            self.tell_extensions(login);
                            ClientStep::Wait
                        }
                        Came::Event(_) => ClientStep::Wait,
                        Came::Payload(payload) => auth.handle_input(&payload)?,
                    }
                }
                ClientStep::Banner(text) => {
                    if let Some(prompter) = &login.prompter {
                        prompter.banner(&text);
                    }
                    ClientStep::Wait
                }
                ClientStep::Ask(ask) => auth.answer(answer(login, ask).await)?,
                ClientStep::Success => return Ok(Tried::In),
                ClientStep::Failed { methods } => {
                    let partial = auth.was_partial();
                    return Ok(Tried::Failed { methods, partial });
                }
            };
        }
    }

    /// Passes the server's extensions on to the authentication: its accepted key algorithms.
    fn tell_extensions(&mut self, login: &Login) {
        let told = self.line.transport.extensions();
        let algorithms = login.algorithms.as_ref().or(told.user_algorithms.as_ref());
        if let Some(auth) = &mut self.auth {
            auth.server_extensions(algorithms.map(Vec::as_slice), told.hostbound);
        }
    }

    /// Returns the algorithms that the server accepts for users' keys, if it announces them within
    /// `patience`. Servers do so with their first packets.
    ///
    /// # Errors
    /// The stream failed, or the server violated the protocol or disconnected.
    pub async fn user_algorithms(
        &mut self,
        patience: Duration,
    ) -> Result<Option<&[KeyAlgorithm]>, ConnectError> {
        let told = async {
            while self.line.transport.extensions().user_algorithms.is_none() {
                self.take_in().await?;
            }
            Ok::<_, ConnectError>(())
        };
        // The server announced nothing in time.
        timeout(patience, told).await.unwrap_or(Ok(()))?;
        Ok(self.line.transport.extensions().user_algorithms.as_deref())
    }

    /// Processes incoming packets between login attempts.
    ///
    /// # Errors
    /// Returns the reason when the connection ends, and does not return before.
    ///
    /// # Cancel safety
    /// This method is cancel-safe.
    pub async fn idle(&mut self) -> Result<core::convert::Infallible, ConnectError> {
        loop {
            self.take_in().await?;
        }
    }

    async fn take_in(&mut self) -> Result<(), ConnectError> {
        let wait = Wait::of(self.timeout, "authenticating the user");
        match self.line.next(wait).await? {
            Came::Event(_) => Ok(()),
            Came::Payload(payload) => {
                let number = payload.first().copied().unwrap_or_default();
                Err(SshError::Unexpected(number).into())
            }
        }
    }

    /// Ends the connection without a session and sends the reason to the server.
    pub fn give_up(self, why: &ConnectError) {
        self.line.part(why);
    }

    /// Returns the session of the user, who is [logged in](Tried::In).
    #[must_use]
    pub fn enter(self) -> Session {
        let (to, told) = mpsc::channel(super::host_keys::BACKLOG);
        let asked = Asked::HostKeys;
        let (backlog, mail) = (self.limits.pending_opens, Arc::new(Mail::new()));
        let peer = self.begin(mail, vec![Route { asked, to }], None);
        Session::new(peer, told, backlog)
    }

    /// Starts the session [message by message](crate::messages). It lasts as long as the returned
    /// [`Peer`] is held.
    #[must_use]
    pub fn enter_by_messages(self, bounds: Bounds) -> (Feed, Peer) {
        let mail = Arc::new(Mail::new());
        let (teller, feed) = Teller::new(&mail, bounds);
        (feed, self.begin(mail, Vec::new(), Some(teller)))
    }

    fn begin(self, mail: Arc<Mail>, routes: Vec<Route>, messages: Option<Teller>) -> Peer {
        let peer = Peer::new(Arc::clone(&mail), Arc::clone(&self.about));
        Driver::spawn(Start {
            line: self.line,
            role: Role::Client,
            limits: self.limits,
            keepalive: self.keepalive,
            inactivity: self.inactivity,
            mail,
            about: self.about,
            routes,
            messages,
        });
        peer
    }
}

impl fmt::Debug for Entrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entrance").field(&self.about).finish()
    }
}

fn config(login: &Login) -> auth::ClientConfig {
    let identities = login.identities.iter().map(|identity| auth::Identity {
        key: identity.key(),
        query: identity.query(),
    });
    auth::ClientConfig {
        user: login.user.clone(),
        methods: login.methods.clone(),
        identities: identities.collect(),
        prompts: login.prompts,
    }
}

/// Obtains an answer from the key, the agent or the prompter.
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
