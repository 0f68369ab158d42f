//! The user, and how he shows that he is: keys, agents, passwords, answers to questions.

use std::fmt;
use std::sync::Arc;

use adit_crypto::Secret;
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::auth::{Method, Prompt};
use adit_ssh_proto::key::{AnyKey, CertifiedKey, PrivateKey, Signer};

use super::SessionBinding;
use crate::BoxFuture;

/// Who logs in, and with what.
#[derive(Clone)]
pub struct Login {
    /// The user's name at the server.
    pub user: String,
    /// The methods that may be used, the first wanted one first.
    pub methods: Vec<Method>,
    /// The keys, in the order in which they are tried.
    pub identities: Vec<Arc<dyn Identity>>,
    /// The algorithms to sign with, whatever the server says; `None`: those that it takes.
    pub algorithms: Option<Vec<KeyAlgorithm>>,
    /// Who is asked for passwords and answers; `None`: these methods fail.
    pub prompter: Option<Arc<dyn Prompter>>,
    /// How often a password is asked for, and as often for other questions.
    pub prompts: u32,
}

impl Login {
    /// A user without anything yet; methods as OpenSSH has them: keys, questions, password.
    #[must_use]
    pub fn new(user: impl Into<String>) -> Self {
        let defaults = adit_ssh_proto::auth::ClientConfig::new(user);
        Self {
            user: defaults.user,
            methods: defaults.methods,
            identities: Vec::new(),
            algorithms: None,
            prompter: None,
            prompts: defaults.prompts,
        }
    }

    /// With a key that is in memory.
    #[must_use]
    pub fn with_key(self, key: PrivateKey) -> Self {
        self.with_identity(LocalKey::new(key))
    }

    /// With a key wherever its private half is: in an agent, with a certificate.
    #[must_use]
    pub fn with_identity(mut self, key: impl Identity + 'static) -> Self {
        self.identities.push(Arc::new(key));
        self
    }

    /// With a password, which also answers a single hidden question.
    #[must_use]
    pub fn with_password(mut self, password: impl Into<String>) -> Self {
        self.prompter = Some(Arc::new(Password(Secret::new(password.into()))));
        self
    }
}

/// A key that signs, wherever its private half is.
pub trait Identity: Send + Sync {
    /// The key, or its certificate.
    fn key(&self) -> AnyKey;

    /// Whether the server is asked if it takes the key before a signature is made: for keys in
    /// agents, tokens and encrypted files.
    fn query(&self) -> bool {
        false
    }

    /// Told what session it will sign for, once for each and before anything is signed: agents
    /// keep keys that are meant for some hosts alone.
    fn bind<'a>(&'a self, session: &'a SessionBinding) -> BoxFuture<'a, ()> {
        let _ = session;
        Box::pin(std::future::ready(()))
    }

    /// The signature of `data` with its name; `None` if there will be none.
    fn sign<'a>(
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
    /// The key alone.
    #[must_use]
    pub fn new(key: PrivateKey) -> Self {
        Self {
            key: AnyKey::Plain(key.public().clone()),
            signer: Box::new(key),
        }
    }

    /// The key as its certificate has it, if there is one.
    #[must_use]
    pub fn certified(key: CertifiedKey) -> Self {
        let shown = match key.certificate() {
            Some(certificate) => AnyKey::Certificate(Box::new(certificate.clone())),
            None => AnyKey::Plain(key.key().public().clone()),
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

    fn sign<'a>(
        &'a self,
        algorithm: KeyAlgorithm,
        data: &'a [u8],
    ) -> BoxFuture<'a, Option<Vec<u8>>> {
        let signature = self.signer.sign(algorithm, data).ok();
        Box::pin(std::future::ready(signature))
    }
}

/// A person, or what stands for one. All text is fit for a terminal.
pub trait Prompter: Send + Sync {
    /// The password; `failed` tells how often it was wrong. `None`: there is none.
    fn password(&self, failed: u32) -> BoxFuture<'_, Option<Secret<String>>>;

    /// The old password and a new one, which the server demands.
    fn new_password<'a>(
        &'a self,
        prompt: &'a str,
    ) -> BoxFuture<'a, Option<(Secret<String>, Secret<String>)>> {
        let _ = prompt;
        Box::pin(std::future::ready(None))
    }

    /// An answer to each question. There may be none, and words alone, which are shown.
    fn questions<'a>(
        &'a self,
        name: &'a str,
        instruction: &'a str,
        prompts: &'a [Prompt],
    ) -> BoxFuture<'a, Option<Vec<Secret<String>>>> {
        let _ = (name, instruction, prompts);
        Box::pin(std::future::ready(None))
    }

    /// The server's words, which need no answer.
    fn banner(&self, text: &str) {
        let _ = text;
    }
}

/// Gives one password, once; also to a single hidden question.
#[derive(Debug)]
pub struct Password(pub Secret<String>);

impl Prompter for Password {
    fn password(&self, failed: u32) -> BoxFuture<'_, Option<Secret<String>>> {
        let again = Secret::new(self.0.expose().clone());
        Box::pin(std::future::ready((failed == 0).then_some(again)))
    }

    fn questions<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        prompts: &'a [Prompt],
    ) -> BoxFuture<'a, Option<Vec<Secret<String>>>> {
        let answers = match prompts {
            [] => Some(Vec::new()),
            [Prompt { echo: false, .. }] => Some(vec![Secret::new(self.0.expose().clone())]),
            _ => None,
        };
        Box::pin(std::future::ready(answers))
    }
}
