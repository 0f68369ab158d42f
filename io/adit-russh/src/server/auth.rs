//! Who may come in: the handler is asked, the protocol's machine checks the rest.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::time::Duration;

use adit_crypto::Secret;
use adit_net::ambient;
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::auth::{self, ServerAnswer, ServerAsk, ServerAuth, ServerStep};
use adit_ssh_proto::key::AnyKey;
use adit_ssh_proto::{SshError, transport};
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until};

use super::{Config, Handler};
use crate::engine::{Came, Wire};
use crate::keys::{Algorithm, Certificate, PublicKey};
use crate::{Error, MethodSet};

/// What a handler says about a user.
#[derive(Debug, PartialEq, Eq)]
pub enum Auth {
    /// He does not come in.
    Reject {
        /// The methods that are offered from now on, if others than before.
        proceed_with_methods: Option<MethodSet>,
        /// The try was right, as one part of several. Another user has to begin anew, with a new
        /// connection.
        partial_success: bool,
    },
    /// He comes in.
    Accept,
    /// The method is not done: he does not come in.
    UnsupportedMethod,
    /// He is asked: to questions and answers alone.
    Partial {
        /// A title.
        name: Cow<'static, str>,
        /// Words before the questions.
        instructions: Cow<'static, str>,
        /// The questions, 32 at most, and whether their answers may be seen.
        prompts: Cow<'static, [(Cow<'static, str>, bool)]>,
    },
}

impl Auth {
    /// He does not come in, and may try again.
    #[must_use]
    pub const fn reject() -> Self {
        Self::Reject {
            proceed_with_methods: None,
            partial_success: false,
        }
    }
}

/// A key that a client asks about. It has not proved that it owns it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct PublicKeyOffer<'a> {
    /// The key; of a certificate the one inside.
    pub public_key: &'a PublicKey,
    /// What it would sign with.
    pub algorithm: &'a Algorithm,
}

/// A key that a client has proved to own.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct VerifiedPublicKey<'a> {
    /// The key.
    pub public_key: &'a PublicKey,
    /// What it has signed with.
    pub algorithm: &'a Algorithm,
}

/// The answers to the questions, in their order.
#[derive(Debug)]
pub struct Response<'a> {
    answers: std::vec::IntoIter<Secret<String>>,
    life: PhantomData<&'a ()>,
}

impl Response<'_> {
    fn of(answers: Vec<Secret<String>>) -> Self {
        Self {
            answers: answers.into_iter(),
            life: PhantomData,
        }
    }
}

impl Iterator for Response<'_> {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let answer = self.answers.next()?;
        Some(Bytes::copy_from_slice(answer.expose().as_bytes()))
    }
}

/// Lets one user in.
pub(super) async fn let_in<H: Handler, IO: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<IO>,
    config: &Config,
    handler: &mut H,
) -> Result<(), H::Error> {
    ready(wire).await?;
    let banner = handler.authentication_banner().await?;
    let transport = &wire.transport;
    let mut machine = ServerAuth::new(
        config.auth(banner),
        transport.session_id().unwrap_or_default(),
        transport.host_key().unwrap_or_default(),
    );
    let mut door = Door {
        config,
        handler,
        partly: None,
        submethods: String::new(),
        first: true,
    };
    loop {
        let payload = match wire.next().await? {
            Came::Event(_) => continue,
            Came::Payload(payload) => payload,
        };
        let handled = wire.computations.authenticate(machine, payload).await;
        let (back, step) = handled.map_err(Error::from)?;
        machine = back;
        let mut step = step.map_err(Error::from)?;
        let is_in = loop {
            step = match step {
                ServerStep::Wait => break false,
                ServerStep::Success(_) => break true,
                ServerStep::Ask(ask) => door.ask(&mut machine, ask).await?,
            };
        };
        while let Some(message) = machine.poll_output() {
            wire.say(&message)?;
        }
        if is_in {
            return Ok(());
        }
    }
}

async fn ready<IO: AsyncRead + AsyncWrite + Unpin>(wire: &mut Wire<IO>) -> Result<(), Error> {
    loop {
        match wire.next().await? {
            Came::Event(transport::Event::Ready(_)) => return Ok(()),
            Came::Event(_) => {}
            Came::Payload(payload) => {
                let number = payload.first().copied().unwrap_or_default();
                return Err(SshError::Unexpected(number).into());
            }
        }
    }
}

struct Door<'a, H> {
    config: &'a Config,
    handler: &'a mut H,
    /// The user of whom one part was right.
    partly: Option<String>,
    /// What the client would like to be asked for.
    submethods: String,
    /// Nothing has been asked yet.
    first: bool,
}

impl<H: Handler> Door<'_, H> {
    /// Asks the handler; a refusal takes its time.
    async fn ask(
        &mut self,
        machine: &mut ServerAuth,
        ask: ServerAsk,
    ) -> Result<ServerStep, H::Error> {
        let began = Instant::now();
        let first = std::mem::take(&mut self.first);
        let nothing = matches!(ask, ServerAsk::Nothing { .. });
        let query = matches!(ask, ServerAsk::KeyQuery { .. });
        let user = user_of(&ask).to_owned();
        let said = if self.partly.as_ref().is_some_and(|other| *other != user) {
            // What one user has shown does not count for another.
            Auth::reject()
        } else {
            let algorithm = machine.algorithm().unwrap_or(KeyAlgorithm::Ed25519);
            self.consult(&user, algorithm, ask).await?
        };
        let answer = self.answer(user, said, query);
        if matches!(answer, ServerAnswer::Reject | ServerAnswer::GoOn { .. }) {
            let initial = self
                .config
                .auth_rejection_time_initial
                .filter(|_| first && nothing);
            let time: Duration = initial.unwrap_or(self.config.auth_rejection_time);
            sleep_until(began + time).await;
        }
        Ok(machine.answer(answer).map_err(Error::from)?)
    }

    fn answer(&mut self, user: String, said: Auth, query: bool) -> ServerAnswer {
        match said {
            Auth::Accept => ServerAnswer::Accept,
            Auth::UnsupportedMethod => ServerAnswer::Reject,
            Auth::Reject {
                proceed_with_methods: None,
                partial_success: false,
            } => ServerAnswer::Reject,
            Auth::Reject {
                proceed_with_methods,
                partial_success,
            } => {
                let methods = proceed_with_methods.unwrap_or_else(|| self.config.methods.clone());
                let partial = partial_success && !query;
                if partial {
                    self.partly = Some(user);
                }
                ServerAnswer::GoOn {
                    methods: methods.below(),
                    partial,
                }
            }
            Auth::Partial {
                name,
                instructions,
                prompts,
            } => ServerAnswer::Questions {
                name: name.into_owned(),
                instruction: instructions.into_owned(),
                prompts: prompts
                    .iter()
                    .map(|(text, echo)| auth::Prompt {
                        text: text.to_string(),
                        echo: *echo,
                    })
                    .collect(),
            },
        }
    }

    async fn consult(
        &mut self,
        user: &str,
        algorithm: KeyAlgorithm,
        ask: ServerAsk,
    ) -> Result<Auth, H::Error> {
        let algorithm = &Algorithm::of(algorithm);
        match ask {
            ServerAsk::Nothing { .. } => self.handler.auth_none(user).await,
            ServerAsk::KeyQuery { key, .. } => {
                let offer = PublicKeyOffer {
                    public_key: &key.key().clone().into(),
                    algorithm,
                };
                self.handler.auth_publickey_offered(user, offer).await
            }
            ServerAsk::Key { key, .. } => match key {
                AnyKey::Plain(key) => {
                    let key = VerifiedPublicKey {
                        public_key: &key.into(),
                        algorithm,
                    };
                    self.handler.auth_publickey(user, key).await
                }
                AnyKey::Certificate(certificate) => {
                    let certificate = Certificate::from(*certificate);
                    if certificate.is_for_a_user(ambient::unix()).is_err() {
                        return Ok(Auth::reject());
                    }
                    let judged = self.handler.auth_openssh_certificate(user, &certificate);
                    judged.await
                }
            },
            ServerAsk::Password { password, .. } => {
                self.handler.auth_password(user, password.expose()).await
            }
            // Nobody here can change one.
            ServerAsk::NewPassword { .. } => Ok(Auth::reject()),
            ServerAsk::Interactive { submethods, .. } => {
                self.submethods = submethods;
                let asked = &mut *self.handler;
                asked
                    .auth_keyboard_interactive(user, &self.submethods, None)
                    .await
            }
            ServerAsk::Responses { responses, .. } => {
                let response = Some(Response::of(responses));
                let asked = &mut *self.handler;
                asked
                    .auth_keyboard_interactive(user, &self.submethods, response)
                    .await
            }
        }
    }
}

fn user_of(ask: &ServerAsk) -> &str {
    match ask {
        ServerAsk::Nothing { user }
        | ServerAsk::KeyQuery { user, .. }
        | ServerAsk::Key { user, .. }
        | ServerAsk::Password { user, .. }
        | ServerAsk::NewPassword { user, .. }
        | ServerAsk::Interactive { user, .. }
        | ServerAsk::Responses { user, .. } => user,
    }
}
