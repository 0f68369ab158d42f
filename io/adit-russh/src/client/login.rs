//! What the handle wants of the task while the user is not in.

use std::sync::Arc;

use adit_crypto::Secret;
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::auth::{ClientConfig, Identity, Method};
use adit_ssh_proto::key::{AnyKey, PrivateKey};
use tokio::sync::oneshot;

use crate::keys::HashAlg;
use crate::{AuthResult, Error, MethodSet};

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
    Try(Try, oneshot::Sender<Result<Outcome, Error>>),
    /// Answers to the server's questions.
    Answers(Vec<Secret<String>>, oneshot::Sender<Result<Outcome, Error>>),
    /// The best hash for RSA; the outer `None`: the server does not say.
    RsaHash(oneshot::Sender<Option<Option<HashAlg>>>),
}

/// One try to log in.
pub(super) struct Try {
    pub(super) user: String,
    pub(super) with: With,
}

/// With what.
pub(super) enum With {
    Nothing,
    Password(Secret<String>),
    Key {
        key: AnyKey,
        signer: Arc<PrivateKey>,
        /// The one to sign with; `None`: what the server takes.
        algorithm: Option<KeyAlgorithm>,
    },
    Questions,
}

/// What came of it.
pub(super) enum Outcome {
    Done(AuthResult),
    Asked {
        name: String,
        instructions: String,
        prompts: Vec<Prompt>,
    },
}

impl Try {
    /// As the protocol's machine wants it: one method, once.
    pub(super) fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new(&self.user);
        config.prompts = 1;
        config.methods = match &self.with {
            With::Nothing => Vec::new(),
            With::Password(_) => vec![Method::Password],
            With::Key { .. } => vec![Method::PublicKey],
            With::Questions => vec![Method::KeyboardInteractive],
        };
        if let With::Key { key, .. } = &self.with {
            config.identities = vec![Identity {
                key: key.clone(),
                query: false,
            }];
        }
        config
    }
}

impl From<Outcome> for KeyboardInteractiveAuthResponse {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done(AuthResult::Success) => Self::Success,
            Outcome::Done(AuthResult::Failure {
                remaining_methods,
                partial_success,
            }) => Self::Failure {
                remaining_methods,
                partial_success,
            },
            Outcome::Asked {
                name,
                instructions,
                prompts,
            } => Self::InfoRequest {
                name,
                instructions,
                prompts,
            },
        }
    }
}
