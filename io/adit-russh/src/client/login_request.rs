//! Requests from the handle to the session's task before authentication.

use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};

use adit_crypto::Secret;
use adit_ssh::BoxFuture;
use adit_ssh::client::{Identity, Login, Prompter};
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::auth::{self, AuthMethod};
use adit_ssh_proto::key::{AnyKey, PrivateKey};
use tokio::sync::{mpsc, oneshot};

use crate::keys::HashAlg;
use crate::{Error, MethodSet};

/// A prompt of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The text, safe for a terminal.
    pub prompt: String,
    /// True if the answer may be visible while it is typed.
    pub echo: bool,
}

/// The state of keyboard-interactive authentication.
#[derive(Debug)]
#[must_use]
pub enum KeyboardInteractiveAuthResponse {
    /// The user is authenticated.
    Success,
    /// Authentication failed.
    Failure {
        /// The methods that the server would accept next.
        remaining_methods: MethodSet,
        /// True if the answers were right, as one of several required methods.
        partial_success: bool,
    },
    /// The server's prompts. There may be none, only text.
    InfoRequest {
        /// The title, which may be empty.
        name: String,
        /// The text before the prompts, which may be empty.
        instructions: String,
        /// The prompts.
        prompts: Vec<Prompt>,
    },
}

/// A request from the handle.
pub(super) enum LoginRequest {
    /// Attempt to log in.
    Attempt(LoginAttempt, LoginReply),
    /// Answers to the server's prompts.
    Answers(Vec<Secret<String>>, LoginReply),
    /// The best hash for RSA; the outer `None` means that the server does not say.
    RsaHash(oneshot::Sender<Option<Option<HashAlg>>>),
}

/// The channel for the result of an attempt.
pub(super) type LoginReply = oneshot::Sender<Result<KeyboardInteractiveAuthResponse, Error>>;

/// A login attempt: one method, once.
pub(super) struct LoginAttempt {
    login: Login,
    password: Option<Secret<String>>,
}

/// A message from the server during an attempt.
pub(super) enum ServerMessage {
    Banner(String),
    /// Prompts, their number, and the channel for the answers.
    Questions(
        KeyboardInteractiveAuthResponse,
        usize,
        oneshot::Sender<Vec<Secret<String>>>,
    ),
}

impl LoginAttempt {
    /// Creates an attempt with this method, or with `none`.
    pub(super) fn new(user: impl Into<String>, method: Option<AuthMethod>) -> Self {
        let mut login = Login::new(user);
        (login.prompts, login.methods) = (1, method.into_iter().collect());
        Self {
            login,
            password: None,
        }
    }

    pub(super) fn with_password(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self {
            password: Some(Secret::new(password.into())),
            ..Self::new(user, Some(AuthMethod::Password))
        }
    }

    /// Creates an attempt with a key. `algorithm` is the one to sign with; `None` means any that the
    /// server accepts.
    pub(super) fn with_key(
        user: impl Into<String>,
        key: AnyKey,
        signer: &Arc<PrivateKey>,
        algorithm: Option<KeyAlgorithm>,
    ) -> Self {
        Self::with_identity(user, SigningKey(key, Arc::clone(signer)), algorithm)
    }

    /// The same with a key that may be anywhere.
    pub(super) fn with_identity(
        user: impl Into<String>,
        identity: impl Identity + 'static,
        algorithm: Option<KeyAlgorithm>,
    ) -> Self {
        let mut new = Self::new(user, Some(AuthMethod::PublicKey));
        new.login = new.login.with_identity(identity);
        new.login.algorithms = algorithm.map(|algorithm| vec![algorithm]);
        new
    }

    /// Converts this into a login for the driver. The server's messages are sent to `tell`.
    pub(super) fn into_login(mut self, tell: mpsc::Sender<ServerMessage>) -> Login {
        let password = Mutex::new(self.password);
        self.login.prompter = Some(Arc::new(HandlePrompter {
            password,
            messages: tell,
        }));
        self.login
    }
}

struct SigningKey(AnyKey, Arc<PrivateKey>);

impl Identity for SigningKey {
    fn key(&self) -> AnyKey {
        self.0.clone()
    }

    fn sign_data<'a>(
        &'a self,
        algorithm: KeyAlgorithm,
        data: &'a [u8],
    ) -> BoxFuture<'a, Option<Vec<u8>>> {
        Box::pin(ready(self.1.sign(algorithm, data).ok()))
    }
}

/// A prompter that returns the password once, and passes everything else on.
struct HandlePrompter {
    password: Mutex<Option<Secret<String>>>,
    messages: mpsc::Sender<ServerMessage>,
}

impl Prompter for HandlePrompter {
    fn ask_password(&self, _: u32) -> BoxFuture<'_, Option<Secret<String>>> {
        let mut password = self.password.lock().unwrap_or_else(PoisonError::into_inner);
        Box::pin(ready(password.take()))
    }

    fn ask_questions<'a>(
        &'a self,
        name: &'a str,
        instruction: &'a str,
        prompts: &'a [auth::InteractivePrompt],
    ) -> BoxFuture<'a, Option<Vec<Secret<String>>>> {
        let (answer, answers) = oneshot::channel();
        let shown = prompts.iter().map(|prompt| Prompt {
            prompt: prompt.text.clone(),
            echo: prompt.echo,
        });
        let asked = KeyboardInteractiveAuthResponse::InfoRequest {
            name: name.to_owned(),
            instructions: instruction.to_owned(),
            prompts: shown.collect(),
        };
        // If no one listens, no one answers.
        let _ = self
            .messages
            .try_send(ServerMessage::Questions(asked, prompts.len(), answer));
        Box::pin(async { answers.await.ok() })
    }

    fn show_banner(&self, text: &str) {
        // As above.
        let _ = self
            .messages
            .try_send(ServerMessage::Banner(text.to_owned()));
    }
}
