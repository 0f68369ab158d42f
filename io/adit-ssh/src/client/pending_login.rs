//! Connections before login, for one login attempt after the other.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::auth::{
    self, AuthMethod, ClientAnswer, ClientAuth, ClientAuthQuery, ClientStep, sanitize_for_display,
};
use adit_ssh_proto::connection::ConnectionLimits;
use adit_ssh_proto::transport::Event;
use adit_ssh_proto::{Role, SshError};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{ClientConfig, Login, Session, SessionBinding};
use crate::Keepalive;
use crate::driver::{Driver, SessionParts};
use crate::error::ConnectError;
use crate::messages::{EventFeed, EventSender, QueueLimits};
use crate::peer::{KeyExchangeInfo, Peer};
use crate::routes::{Route, RouteKind};
use crate::shared_session::SharedSession;
use crate::transport_stream::{Deadline, Received, TransportStream};

/// A connection whose server has proved its host key, and whose user has not logged in yet.
pub struct PendingLogin {
    line: TransportStream,
    about: Arc<KeyExchangeInfo>,
    auth: Option<ClientAuth>,
    limits: ConnectionLimits,
    keepalive: Option<Keepalive>,
    inactivity: Option<Duration>,
    timeout: Duration,
}

/// The result of login attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum LoginOutcome {
    /// The user is logged in.
    LoggedIn,
    /// No authentication method is left to try.
    Failed {
        /// The methods that the server would accept next.
        methods: Vec<String>,
        /// True if the last attempt succeeded as one of several required methods.
        partial: bool,
    },
}

impl PendingLogin {
    pub(super) fn new(
        line: TransportStream,
        about: KeyExchangeInfo,
        config: &ClientConfig,
    ) -> Self {
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
    pub async fn log_in(&mut self, login: &Login) -> Result<LoginOutcome, ConnectError> {
        if login.methods.contains(&AuthMethod::PublicKey)
            && let Some(binding) = SessionBinding::from_transport(&self.line.transport)
        {
            // Binds agents to the session before they sign anything.
            for identity in &login.identities {
                identity.bind_session(&binding).await;
            }
        }
        let config = auth_config(login);
        let mut step = match &mut self.auth {
            Some(auth) => auth.retry_with(config)?,
            none => {
                let transport = &self.line.transport;
                let (id, key) = (transport.session_id(), transport.host_key());
                let auth = ClientAuth::new(config, id.unwrap_or_default(), key.unwrap_or_default());
                *none = Some(auth);
                ClientStep::Wait
            }
        };
        self.apply_extensions(login);
        loop {
            let Some(auth) = &mut self.auth else {
                return Err(SshError::Policy("no login attempt is in progress").into());
            };
            step = match step {
                ClientStep::Wait => {
                    while let Some(message) = auth.poll_output() {
                        self.line.send_auth_message(&message)?;
                    }
                    let wait = Deadline::starting_now(self.timeout, "authenticating the user");
                    match self.line.next_input(wait).await? {
                        Received::Event(Event::ExtInfo(_)) => {
                            self.apply_extensions(login);
                            ClientStep::Wait
                        }
                        Received::Event(_) => ClientStep::Wait,
                        Received::Payload(payload) => auth.handle_input(&payload)?,
                    }
                }
                ClientStep::Banner(text) => {
                    if let Some(prompter) = &login.prompter {
                        prompter.show_banner(&text);
                    }
                    ClientStep::Wait
                }
                ClientStep::Query(ask) => {
                    auth.answer_query(answer_auth_request(login, ask).await)?
                }
                ClientStep::Success => return Ok(LoginOutcome::LoggedIn),
                ClientStep::Failed { methods } => {
                    let partial = auth.was_partial();
                    return Ok(LoginOutcome::Failed { methods, partial });
                }
            };
        }
    }

    /// Passes the server's extensions on to the authentication: its accepted key algorithms.
    fn apply_extensions(&mut self, login: &Login) {
        let told = self.line.transport.extensions();
        let algorithms = login.algorithms.as_ref().or(told.user_algorithms.as_ref());
        if let Some(auth) = &mut self.auth {
            auth.set_server_extensions(algorithms.map(Vec::as_slice), told.hostbound);
        }
    }

    /// Returns the algorithms that the server accepts for users' keys, if it announces them within
    /// `patience`. Servers do so with their first packets.
    ///
    /// # Errors
    /// The stream failed, or the server violated the protocol or disconnected.
    ///
    /// # Cancel safety
    /// This method is cancel-safe.
    pub async fn user_algorithms(
        &mut self,
        patience: Duration,
    ) -> Result<Option<&[KeyAlgorithm]>, ConnectError> {
        let told = async {
            while self.line.transport.extensions().user_algorithms.is_none() {
                self.handle_next_packet().await?;
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
    pub async fn wait_closed(&mut self) -> Result<core::convert::Infallible, ConnectError> {
        loop {
            self.handle_next_packet().await?;
        }
    }

    async fn handle_next_packet(&mut self) -> Result<(), ConnectError> {
        let wait = Deadline::starting_now(self.timeout, "authenticating the user");
        match self.line.next_input(wait).await? {
            Received::Event(_) => Ok(()),
            Received::Payload(payload) => {
                let number = payload.first().copied().unwrap_or_default();
                Err(SshError::Unexpected(number).into())
            }
        }
    }

    /// Returns the binding of this connection for an agent.
    #[must_use]
    pub fn session_binding(&self) -> Option<SessionBinding> {
        SessionBinding::from_transport(&self.line.transport)
    }

    /// Ends the connection without a session and sends the reason to the server.
    pub fn disconnect_with(self, why: &ConnectError) {
        self.line.send_disconnect(why);
    }

    /// Returns the session of the user, who is [logged in](LoginOutcome::LoggedIn).
    #[must_use]
    pub fn into_session(self) -> Session {
        let (sender, told) = mpsc::channel(super::host_key_announcements::BACKLOG);
        let kind = RouteKind::HostKeys;
        let (backlog, mail) = (self.limits.pending_opens, Arc::new(SharedSession::new()));
        let peer = self.spawn_driver(mail, vec![Route { kind, sender }], None);
        Session::new(peer, told, backlog)
    }

    /// Starts the session [message by message](crate::messages). It lasts as long as the returned
    /// [`Peer`] is held.
    #[must_use]
    pub fn into_message_session(self, bounds: QueueLimits) -> (EventFeed, Peer) {
        let mail = Arc::new(SharedSession::new());
        let (teller, feed) = EventSender::new(&mail, bounds);
        (feed, self.spawn_driver(mail, Vec::new(), Some(teller)))
    }

    fn spawn_driver(
        self,
        mail: Arc<SharedSession>,
        routes: Vec<Route>,
        messages: Option<EventSender>,
    ) -> Peer {
        let peer = Peer::new(Arc::clone(&mail), Arc::clone(&self.about));
        Driver::spawn(SessionParts {
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

impl fmt::Debug for PendingLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entrance").field(&self.about).finish()
    }
}

fn auth_config(login: &Login) -> auth::ClientAuthConfig {
    let identities = login.identities.iter().map(|identity| {
        auth::ClientIdentity::new(identity.key()).with_query(identity.needs_query())
    });
    let mut config = auth::ClientAuthConfig::new(login.user.clone());
    config.methods.clone_from(&login.methods);
    config.identities = identities.collect();
    config.prompts = login.prompts;
    config
}

/// Obtains an answer from the key, the agent or the prompter.
async fn answer_auth_request(login: &Login, ask: ClientAuthQuery) -> ClientAnswer {
    let answer = match (ask, &login.prompter) {
        (
            ClientAuthQuery::Signature {
                identity,
                algorithm,
                data,
            },
            _,
        ) => match login.identities.get(identity) {
            Some(identity) => identity.sign_data(algorithm, &data).await,
            None => None,
        }
        .map(ClientAnswer::Signature),
        (ClientAuthQuery::Password { failed }, Some(prompter)) => prompter
            .ask_password(failed)
            .await
            .map(ClientAnswer::Password),
        (ClientAuthQuery::NewPassword { prompt }, Some(prompter)) => {
            let both = prompter
                .ask_new_password(&sanitize_for_display(&prompt))
                .await;
            both.map(|(old, new)| ClientAnswer::NewPassword { old, new })
        }
        (
            ClientAuthQuery::Questions {
                name,
                instruction,
                prompts,
            },
            Some(prompter),
        ) => {
            let answers = prompter.ask_questions(&name, &instruction, &prompts).await;
            answers
                .filter(|answers| answers.len() == prompts.len())
                .map(ClientAnswer::Responses)
        }
        (_, None) => None,
    };
    answer.unwrap_or(ClientAnswer::Decline)
}
