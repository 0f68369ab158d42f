//! Authentication: asks the handler; the protocol implementation checks the rest.

use std::borrow::Cow;
use std::net::IpAddr;
use std::slice;
use std::time::Duration;

use adit_crypto::Secret;
use adit_net::system;
use adit_ssh::BoxFuture;
use adit_ssh::server::AuthPolicy;
use adit_ssh_proto::SshError;
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::auth::{self, ServerAnswer, ServerAuthQuery};
use adit_ssh_proto::key::AnyKey;
use bytes::Bytes;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use super::{Config, Handler};
use crate::MethodSet;
use crate::keys::{Algorithm, Certificate, PublicKey};

/// A handler's decision about a user.
#[derive(Debug, PartialEq, Eq)]
pub enum Auth {
    /// The attempt failed.
    Reject {
        /// The methods offered from now on, if they change.
        proceed_with_methods: Option<MethodSet>,
        /// True if the attempt succeeded as one of several required methods. Another user then needs a
        /// new connection.
        partial_success: bool,
    },
    /// The user is authenticated.
    Accept,
    /// The method is not supported: the attempt failed.
    UnsupportedMethod,
    /// The user is prompted. Only for keyboard-interactive.
    Partial {
        /// The title.
        name: Cow<'static, str>,
        /// The text before the prompts.
        instructions: Cow<'static, str>,
        /// The prompts, at most 32, and whether their answers may be visible.
        prompts: Cow<'static, [(Cow<'static, str>, bool)]>,
    },
}

impl Auth {
    /// Rejects the attempt; the user may try again.
    #[must_use]
    pub const fn reject() -> Self {
        Self::Reject {
            proceed_with_methods: None,
            partial_success: false,
        }
    }
}

/// A key that a client asks about. The client has not proved that it owns the key.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct PublicKeyOffer<'a> {
    /// The key, or that in the certificate.
    pub public_key: &'a PublicKey,
    /// The algorithm that the client would sign with.
    pub algorithm: &'a Algorithm,
}

/// A key that a client has proved to own.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct VerifiedPublicKey<'a> {
    /// The key.
    pub public_key: &'a PublicKey,
    /// The algorithm that the client signed with.
    pub algorithm: &'a Algorithm,
}

/// The answers to the prompts, in order.
#[derive(Debug)]
pub struct Response<'a>(slice::Iter<'a, Secret<String>>);

impl Iterator for Response<'_> {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let answer = self.0.next()?;
        Some(Bytes::copy_from_slice(answer.expose().as_bytes()))
    }
}

/// An authentication policy that asks the handler about one user.
pub(super) struct HandlerPolicy<'a, H: Handler> {
    config: &'a Config,
    source: Option<IpAddr>,
    state: Mutex<PolicyState<H>>,
}

struct PolicyState<H: Handler> {
    handler: H,
    /// The handler's error.
    failed: Option<H::Error>,
    /// The user for whom one of several methods succeeded.
    partial_user: Option<String>,
    /// The submethods that the client requested.
    submethods: String,
    /// True once an attempt was made.
    attempted: bool,
}

impl<'a, H: Handler> HandlerPolicy<'a, H> {
    pub(super) fn new(config: &'a Config, source: Option<IpAddr>, handler: H) -> Self {
        let inside = PolicyState {
            handler,
            failed: None,
            partial_user: None,
            submethods: String::new(),
            attempted: false,
        };
        Self {
            config,
            source,
            state: Mutex::new(inside),
        }
    }

    /// Returns the handler and its error.
    pub(super) fn into_inner(self) -> (H, Option<H::Error>) {
        let inside = self.state.into_inner();
        (inside.handler, inside.failed)
    }
}

impl<H: Handler + Send> AuthPolicy for HandlerPolicy<'_, H> {
    fn client_address(&self) -> Option<IpAddr> {
        self.source
    }

    fn banner(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async move {
            let mut inside = self.state.lock().await;
            let banner = inside.handler.authentication_banner().await;
            banner.unwrap_or_else(|why| {
                inside.failed = Some(why);
                None
            })
        })
    }

    fn answer_auth_request<'a>(
        &'a self,
        ask: &'a ServerAuthQuery,
        algorithm: Option<KeyAlgorithm>,
    ) -> BoxFuture<'a, Result<ServerAnswer, SshError>> {
        Box::pin(async move {
            let mut inside = self.state.lock().await;
            if inside.failed.is_none() {
                match inside.ask_handler(self.config, ask, algorithm).await {
                    Ok(answer) => return Ok(answer),
                    Err(why) => inside.failed = Some(why),
                }
            }
            Err(SshError::Policy(
                "the server failed to authenticate the user",
            ))
        })
    }
}

impl<H: Handler> PolicyState<H> {
    /// Asks the handler; delays a refusal to its configured time.
    async fn ask_handler(
        &mut self,
        config: &Config,
        ask: &ServerAuthQuery,
        algorithm: Option<KeyAlgorithm>,
    ) -> Result<ServerAnswer, H::Error> {
        let began = Instant::now();
        let first = !std::mem::replace(&mut self.attempted, true);
        let nothing = matches!(ask, ServerAuthQuery::NoAuthentication { .. });
        let query = matches!(ask, ServerAuthQuery::KeyQuery { .. });
        let user = user_name(ask);
        let said = if self
            .partial_user
            .as_ref()
            .is_some_and(|other| other != user)
        {
            // A method that succeeded for one user does not count for another.
            Auth::reject()
        } else {
            let algorithm = algorithm.unwrap_or(KeyAlgorithm::Ed25519);
            self.call_handler(user, algorithm, ask).await?
        };
        let answer = self.server_answer_for(config, user, said, query);
        if matches!(answer, ServerAnswer::Reject | ServerAnswer::Continue { .. }) {
            let initial = config
                .auth_rejection_time_initial
                .filter(|_| first && nothing);
            let time: Duration = initial.unwrap_or(config.auth_rejection_time);
            sleep_until(began + time).await;
        }
        Ok(answer)
    }

    fn server_answer_for(
        &mut self,
        config: &Config,
        user: &str,
        said: Auth,
        query: bool,
    ) -> ServerAnswer {
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
                let methods = proceed_with_methods.unwrap_or_else(|| config.methods.clone());
                let partial = partial_success && !query;
                if partial {
                    self.partial_user = Some(user.to_owned());
                }
                ServerAnswer::Continue {
                    methods: methods.to_methods(),
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
                    .map(|(text, echo)| auth::InteractivePrompt {
                        text: text.to_string(),
                        echo: *echo,
                    })
                    .collect(),
            },
        }
    }

    async fn call_handler(
        &mut self,
        user: &str,
        algorithm: KeyAlgorithm,
        ask: &ServerAuthQuery,
    ) -> Result<Auth, H::Error> {
        let algorithm = &Algorithm::from_key_algorithm(algorithm);
        match ask {
            ServerAuthQuery::NoAuthentication { .. } => self.handler.auth_none(user).await,
            ServerAuthQuery::KeyQuery { key, .. } => {
                let offer = PublicKeyOffer {
                    public_key: &key.key().clone().into(),
                    algorithm,
                };
                self.handler.auth_publickey_offered(user, offer).await
            }
            ServerAuthQuery::Key { key, .. } => match key {
                AnyKey::Plain(key) => {
                    let key = VerifiedPublicKey {
                        public_key: &key.clone().into(),
                        algorithm,
                    };
                    self.handler.auth_publickey(user, key).await
                }
                AnyKey::Certificate(certificate) => {
                    let certificate = Certificate::from((**certificate).clone());
                    if certificate
                        .check_user_certificate(system::unix_now())
                        .is_err()
                    {
                        return Ok(Auth::reject());
                    }
                    let judged = self.handler.auth_openssh_certificate(user, &certificate);
                    judged.await
                }
            },
            ServerAuthQuery::Password { password, .. } => {
                self.handler.auth_password(user, password.expose()).await
            }
            // Passwords cannot be changed here.
            ServerAuthQuery::NewPassword { .. } => Ok(Auth::reject()),
            ServerAuthQuery::Interactive { submethods, .. } => {
                self.submethods.clone_from(submethods);
                let asked = &mut self.handler;
                asked
                    .auth_keyboard_interactive(user, &self.submethods, None)
                    .await
            }
            ServerAuthQuery::Responses { responses, .. } => {
                let response = Some(Response(responses.iter()));
                let asked = &mut self.handler;
                asked
                    .auth_keyboard_interactive(user, &self.submethods, response)
                    .await
            }
        }
    }
}

fn user_name(ask: &ServerAuthQuery) -> &str {
    match ask {
        ServerAuthQuery::NoAuthentication { user }
        | ServerAuthQuery::KeyQuery { user, .. }
        | ServerAuthQuery::Key { user, .. }
        | ServerAuthQuery::Password { user, .. }
        | ServerAuthQuery::NewPassword { user, .. }
        | ServerAuthQuery::Interactive { user, .. }
        | ServerAuthQuery::Responses { user, .. } => user,
    }
}
