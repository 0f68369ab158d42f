//! What the handle wants of the task while the user is not in.

use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};

use adit_crypto::Secret;
use adit_ssh::BoxFuture;
use adit_ssh::client::{Identity, Login, Prompter};
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::auth::{self, Method};
use adit_ssh_proto::key::{AnyKey, PrivateKey};
use tokio::sync::{mpsc, oneshot};

use crate::keys::HashAlg;
use crate::{Error, MethodSet};

/// A question of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The words, fit for a terminal.
    pub prompt: String,
    /// Whether the answer may be seen while it is typed.
    pub echo: bool,
}

/// What came of questions and answers so far.
#[derive(Debug)]
#[must_use]
pub enum KeyboardInteractiveAuthResponse {
    /// The user is in.
    Success,
    /// He is not.
    Failure {
        /// The methods that the server would go on with.
        remaining_methods: MethodSet,
        /// The answers were right, as one part of several.
        partial_success: bool,
    },
    /// The server asks; there may be no question, and words alone.
    InfoRequest {
        /// A title, which may be empty.
        name: String,
        /// Words before the questions, which may be empty.
        instructions: String,
        /// The questions.
        prompts: Vec<Prompt>,
    },
}

/// Something that the handle wants.
pub(super) enum Wish {
    /// To log in.
    Try(Try, Reply),
    /// Answers to the server's questions.
    Answers(Vec<Secret<String>>, Reply),
    /// The best hash for RSA; the outer `None`: the server does not say.
    RsaHash(oneshot::Sender<Option<Option<HashAlg>>>),
}

/// Where what came of a try is told.
pub(super) type Reply = oneshot::Sender<Result<KeyboardInteractiveAuthResponse, Error>>;

/// One try to log in: one method, once.
pub(super) struct Try {
    login: Login,
    password: Option<Secret<String>>,
}

/// Something that the server says during a try.
pub(super) enum Said {
    Banner(String),
    /// Questions, and where the answers go.
    Questions(
        KeyboardInteractiveAuthResponse,
        usize,
        oneshot::Sender<Vec<Secret<String>>>,
    ),
}

impl Try {
    /// With this, or with nothing.
    pub(super) fn new(user: impl Into<String>, method: Option<Method>) -> Self {
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
            ..Self::new(user, Some(Method::Password))
        }
    }

    /// `algorithm`: the one to sign with; `None`: what the server takes.
    pub(super) fn with_key(
        user: impl Into<String>,
        key: AnyKey,
        signer: &Arc<PrivateKey>,
        algorithm: Option<KeyAlgorithm>,
    ) -> Self {
        let mut new = Self::new(user, Some(Method::PublicKey));
        new.login = new.login.with_identity(Key(key, Arc::clone(signer)));
        new.login.algorithms = algorithm.map(|algorithm| vec![algorithm]);
        new
    }

    /// As the driver wants it. What the server says goes to `tell`.
    pub(super) fn login(mut self, tell: mpsc::Sender<Said>) -> Login {
        let password = Mutex::new(self.password);
        self.login.prompter = Some(Arc::new(Prompts { password, tell }));
        self.login
    }
}

struct Key(AnyKey, Arc<PrivateKey>);

impl Identity for Key {
    fn key(&self) -> AnyKey {
        self.0.clone()
    }

    fn sign<'a>(
        &'a self,
        algorithm: KeyAlgorithm,
        data: &'a [u8],
    ) -> BoxFuture<'a, Option<Vec<u8>>> {
        Box::pin(ready(self.1.sign(algorithm, data).ok()))
    }
}

/// Gives the password once; hands everything else on.
struct Prompts {
    password: Mutex<Option<Secret<String>>>,
    tell: mpsc::Sender<Said>,
}

impl Prompter for Prompts {
    fn password(&self, _: u32) -> BoxFuture<'_, Option<Secret<String>>> {
        let mut password = self.password.lock().unwrap_or_else(PoisonError::into_inner);
        Box::pin(ready(password.take()))
    }

    fn questions<'a>(
        &'a self,
        name: &'a str,
        instruction: &'a str,
        prompts: &'a [auth::Prompt],
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
        // If nobody listens, nobody answers.
        let _ = self
            .tell
            .try_send(Said::Questions(asked, prompts.len(), answer));
        Box::pin(async { answers.await.ok() })
    }

    fn banner(&self, text: &str) {
        // The same.
        let _ = self.tell.try_send(Said::Banner(text.to_owned()));
    }
}
