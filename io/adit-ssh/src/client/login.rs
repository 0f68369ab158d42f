//! Users and their credentials: keys, agents, passwords, answers to questions.

use std::fmt;
use std::sync::Arc;

use adit_crypto::Secret;
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::auth::{AuthMethod, InteractivePrompt};
use adit_ssh_proto::key::{AnyKey, CertifiedKey, PrivateKey, Signer};

use super::SessionBinding;
use crate::BoxFuture;

/// The user who logs in, and their credentials.
#[derive(Clone)]
#[non_exhaustive]
pub struct Login {
    /// The user's name on the server.
    pub user: String,
    /// The allowed methods, in order of preference.
    pub methods: Vec<AuthMethod>,
    /// The keys, in the order in which they are tried.
    pub identities: Vec<Arc<dyn Identity>>,
    /// The algorithms to sign with, regardless of the server; `None` means those that it accepts.
    pub algorithms: Option<Vec<KeyAlgorithm>>,
    /// The source of passwords and answers; if `None`, these methods fail.
    pub prompter: Option<Arc<dyn Prompter>>,
    /// Maximum number of password prompts, and of rounds of other questions.
    pub prompts: u32,
}

impl Login {
    /// Creates a login without credentials. Its methods are OpenSSH's: keys, questions, password.
    #[must_use]
    pub fn new(user: impl Into<String>) -> Self {
        let defaults = adit_ssh_proto::auth::ClientAuthConfig::new(user);
        Self {
            user: defaults.user,
            methods: defaults.methods,
            identities: Vec::new(),
            algorithms: None,
            prompter: None,
            prompts: defaults.prompts,
        }
    }

    /// Adds a private key in memory.
    #[must_use]
    pub fn with_key(self, key: PrivateKey) -> Self {
        self.with_identity(LocalKey::new(key))
    }

    /// Adds a key that may be anywhere: in an agent, or with a certificate.
    #[must_use]
    pub fn with_identity(mut self, key: impl Identity + 'static) -> Self {
        self.identities.push(Arc::new(key));
        self
    }

    /// Adds a password, which also answers a single hidden question.
    #[must_use]
    pub fn with_password(mut self, password: impl Into<String>) -> Self {
        self.prompter = Some(Arc::new(FixedPassword(Secret::new(password.into()))));
        self
    }
}

/// A key that signs, independently of where its private half is.
pub trait Identity: Send + Sync {
    /// Returns the key or its certificate.
    fn key(&self) -> AnyKey;

    /// Returns true if the server is asked whether it accepts the key before a signature is made: for
    /// keys in agents, tokens and encrypted files.
    fn needs_query(&self) -> bool {
        false
    }

    /// Receives the session that the key will sign for, once per session and before any signature.
    /// Agents restrict some keys to certain hosts.
    fn bind_session<'a>(&'a self, session: &'a SessionBinding) -> BoxFuture<'a, ()> {
        let _ = session;
        Box::pin(std::future::ready(()))
    }

    /// Signs `data`; returns the signature with its algorithm name, or `None` if there is none.
    fn sign_data<'a>(
        &'a self,
        algorithm: KeyAlgorithm,
        data: &'a [u8],
    ) -> BoxFuture<'a, Option<Vec<u8>>>;
}

/// A key in memory.
pub struct LocalKey {
    key: AnyKey,
    signer: Box<dyn Signer>,
}

impl LocalKey {
    /// Creates an identity from the key alone.
    #[must_use]
    pub fn new(key: PrivateKey) -> Self {
        Self {
            key: AnyKey::Plain(key.public_key().clone()),
            signer: Box::new(key),
        }
    }

    /// Creates an identity from a key that presents its certificate, if there is one.
    #[must_use]
    pub fn with_certificate(key: CertifiedKey) -> Self {
        let shown = match key.certificate() {
            Some(certificate) => AnyKey::Certificate(Box::new(certificate.clone())),
            None => AnyKey::Plain(key.key().public_key().clone()),
        };
        Self {
            key: shown,
            signer: Box::new(key),
        }
    }
}

impl fmt::Debug for LocalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalKey").field(&self.key).finish()
    }
}

impl Identity for LocalKey {
    fn key(&self) -> AnyKey {
        self.key.clone()
    }

    fn sign_data<'a>(
        &'a self,
        algorithm: KeyAlgorithm,
        data: &'a [u8],
    ) -> BoxFuture<'a, Option<Vec<u8>>> {
        let signature = self.signer.sign_data(algorithm, data).ok();
        Box::pin(std::future::ready(signature))
    }
}

/// A person, or a program that answers for one. All text is safe for a terminal.
pub trait Prompter: Send + Sync {
    /// Returns the password, or `None` if there is none; `failed` is the number of wrong ones before.
    fn ask_password(&self, failed: u32) -> BoxFuture<'_, Option<Secret<String>>>;

    /// Returns the old password and a new one, which the server demands.
    fn ask_new_password<'a>(
        &'a self,
        prompt: &'a str,
    ) -> BoxFuture<'a, Option<(Secret<String>, Secret<String>)>> {
        let _ = prompt;
        Box::pin(std::future::ready(None))
    }

    /// Returns an answer to each prompt. There may be no prompts: then the texts are only displayed.
    fn ask_questions<'a>(
        &'a self,
        name: &'a str,
        instruction: &'a str,
        prompts: &'a [InteractivePrompt],
    ) -> BoxFuture<'a, Option<Vec<Secret<String>>>> {
        let _ = (name, instruction, prompts);
        Box::pin(std::future::ready(None))
    }

    /// Displays a message of the server, which needs no answer.
    fn show_banner(&self, text: &str) {
        let _ = text;
    }
}

/// A prompter with one password, used once; it also answers a single hidden question.
#[derive(Debug)]
pub struct FixedPassword(pub Secret<String>);

impl Prompter for FixedPassword {
    fn ask_password(&self, failed: u32) -> BoxFuture<'_, Option<Secret<String>>> {
        let again = Secret::new(self.0.expose().clone());
        Box::pin(std::future::ready((failed == 0).then_some(again)))
    }

    fn ask_questions<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        prompts: &'a [InteractivePrompt],
    ) -> BoxFuture<'a, Option<Vec<Secret<String>>>> {
        let answers = match prompts {
            [] => Some(Vec::new()),
            [InteractivePrompt { echo: false, .. }] => {
                Some(vec![Secret::new(self.0.expose().clone())])
            }
            _ => None,
        };
        Box::pin(std::future::ready(answers))
    }
}
