//! SSH agents, which keep private keys and sign with them.

pub mod client;

use std::borrow::Cow;

use adit_ssh::client::SessionBinding;
use adit_ssh_proto::key::AnyKey;

use super::{Certificate, PublicKey};

/// A key of an agent, or a certificate.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "same type as in russh")]
pub enum AgentIdentity {
    /// A public key.
    PublicKey {
        /// The key.
        key: PublicKey,
        /// The comment, which may contain any characters.
        comment: String,
    },
    /// A certificate.
    Certificate {
        /// The certificate. Only its format was checked.
        certificate: Certificate,
        /// The comment, which may contain any characters.
        comment: String,
    },
}

impl AgentIdentity {
    /// Returns the key, or that in the certificate.
    #[must_use]
    pub fn public_key(&self) -> Cow<'_, PublicKey> {
        match self {
            Self::PublicKey { key, .. } => Cow::Borrowed(key),
            Self::Certificate { certificate, .. } => {
                Cow::Owned(certificate.public_key().clone().into())
            }
        }
    }

    /// Returns the comment, which may contain any characters.
    #[must_use]
    pub fn comment(&self) -> &str {
        match self {
            Self::PublicKey { comment, .. } | Self::Certificate { comment, .. } => comment,
        }
    }

    pub(super) fn from_key(key: AnyKey, comment: &str) -> Self {
        let comment = comment.to_owned();
        match key {
            AnyKey::Plain(key) => {
                let mut key = PublicKey::from(key);
                key.set_comment(comment.clone());
                Self::PublicKey { key, comment }
            }
            AnyKey::Certificate(certificate) => Self::Certificate {
                certificate: (*certificate).into(),
                comment,
            },
        }
    }

    pub(crate) fn to_key(&self) -> AnyKey {
        match self {
            Self::PublicKey { key, .. } => AnyKey::Plain(key.inner().clone()),
            Self::Certificate { certificate, .. } => {
                AnyKey::Certificate(Box::new(certificate.inner().clone()))
            }
        }
    }
}

impl From<PublicKey> for AgentIdentity {
    fn from(key: PublicKey) -> Self {
        Self::PublicKey {
            key,
            comment: String::new(),
        }
    }
}

impl From<Certificate> for AgentIdentity {
    fn from(certificate: Certificate) -> Self {
        Self::Certificate {
            certificate,
            comment: String::new(),
        }
    }
}

/// The session that an agent is used for: its host key, its identifier, and the host's signature of it.
/// OpenSSH's agent refuses keys that are restricted to other hosts.
#[derive(Debug, Clone)]
pub struct AgentSessionBinding(pub(crate) SessionBinding);
