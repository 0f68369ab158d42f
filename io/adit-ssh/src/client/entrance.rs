//! A connection before its user is in: one try to log in after the other.

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

/// A connection whose server has proved its key, and whose user is not in yet.
pub struct Entrance {
    line: Line,
    about: Arc<About>,
    auth: Option<ClientAuth>,
    limits: Limits,
    keepalive: Option<Keepalive>,
    inactivity: Option<Duration>,
    timeout: Duration,
}

/// What came of the tries to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Tried {
    /// The user is in.
    In,
    /// Nothing is left to try.
    Failed {
        /// The methods that the server would go on with.
        methods: Vec<String>,
        /// The last try was right, as one part of several.
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

    /// Tries all that `login` has. May be called again as long as the user is not in, with another
    /// user too.
    ///
    /// # Errors
    /// The stream failed, or the server broke the protocol, left, or took too long. A call that was
    /// given up in the middle cannot be followed by another.
    pub async fn log_in(&mut self, login: &Login) -> Result<Tried, ConnectError> {
        if login.methods.contains(&Method::PublicKey)
            && let Some(binding) = SessionBinding::of(&self.line.transport)
        {
            // Agents are told what they will sign for.
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
                return Err(SshError::Policy("there is no try").into());
            };
            step = match step {
                ClientStep::Wait => {
                    while let Some(message) = auth.poll_output() {
                        self.line.say(&message)?;
                    }
                    let wait = Wait::of(self.timeout, "the user was authenticated");
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

    /// Tells the tries what the server takes of keys.
    fn tell_extensions(&mut self, login: &Login) {
        let told = self.line.transport.extensions();
        let algorithms = login.algorithms.as_ref().or(told.user_algorithms.as_ref());
        if let Some(auth) = &mut self.auth {
            auth.server_extensions(algorithms.map(Vec::as_slice), told.hostbound);
        }
    }

    /// The algorithms that the server takes of users' keys, if it says so within `patience`: it
    /// does with its first packets.
    ///
    /// # Errors
    /// The stream failed, or the server broke the protocol or left.
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
        // It has said nothing.
        timeout(patience, told).await.unwrap_or(Ok(()))?;
        Ok(self.line.transport.extensions().user_algorithms.as_deref())
    }

    /// Takes in what comes while nothing is tried. Cancel-safe.
    ///
    /// # Errors
    /// The connection's end: it does not come to another.
    pub async fn idle(&mut self) -> Result<core::convert::Infallible, ConnectError> {
        loop {
            self.take_in().await?;
        }
    }

    async fn take_in(&mut self) -> Result<(), ConnectError> {
        let wait = Wait::of(self.timeout, "the user was authenticated");
        match self.line.next(wait).await? {
            Came::Event(_) => Ok(()),
            Came::Payload(payload) => {
                let number = payload.first().copied().unwrap_or_default();
                Err(SshError::Unexpected(number).into())
            }
        }
    }

    /// There will be no session: the server is told why.
    pub fn give_up(self, why: &ConnectError) {
        self.line.part(why);
    }

    /// The session of the user, who [is in](Tried::In).
    #[must_use]
    pub fn enter(self) -> Session {
        let (to, told) = mpsc::channel(super::host_keys::BACKLOG);
        let asked = Asked::HostKeys;
        let (backlog, mail) = (self.limits.pending_opens, Arc::new(Mail::new()));
        let peer = self.begin(mail, vec![Route { asked, to }], None);
        Session::new(peer, told, backlog)
    }

    /// The same [message by message](crate::messages). The session lasts as long as the second is
    /// held.
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
