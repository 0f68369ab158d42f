//! Tokens by which a node joins the realm, once and soon: the membership itself is in the store, sealed under a
//! secret that only the token has, until a node takes it or the time is over. A token alone is useless afterwards.
//!
//! ```text
//! adit-join:base64url(1 || JSON)          store  …:join:<id> = nonce (12) || AES-256-GCM(membership) || tag (16)
//! ```

use std::fmt;
use std::time::Duration;

use adit_crypto::{AeadKey, AeadKind, KdfContext};
use adit_wire::Entropy;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::key_text::{decode_token, encode_token, optional_secret_text, secret_text, to_hex};
use crate::membership::{Membership, MembershipError};

/// Time for which a token is valid.
pub const JOIN_TIME: Duration = Duration::from_secs(15 * 60);
/// The start of each token.
const PREFIX: &str = "adit-join:";
/// The version of the format.
const VERSION: u8 = 1;
/// Maximum length of a token, in bytes.
const MAX_TOKEN: usize = 64 << 10;
const NONCE: usize = 12;
const TAG: usize = 16;

/// A token by which a node joins.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinToken {
    /// The name of the realm.
    pub realm: String,
    /// The address of the store, without user and password.
    pub store: String,
    /// The user at the store server that may take the membership.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_user: Option<String>,
    /// This user's password.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_secret_text"
    )]
    pub store_password: Option<Zeroizing<String>>,
    /// The certificate, in PEM, that must have signed the store server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_pem: Option<String>,
    /// The secret that the membership is sealed with, in base64url.
    #[serde(with = "secret_text")]
    secret: Zeroizing<String>,
}

impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinToken")
            .field("realm", &self.realm)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// The error of a token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinTokenError {
    /// The text is no token, or a part of one.
    #[error("this is no join token, or a part of one; it begins with `adit-join:`")]
    Text,
    /// A newer adit has made it.
    #[error("a newer adit has made this join token, in format {0}")]
    NewerFormat(u8),
    /// The store has something under the token's name that was not sealed with the token.
    #[error("the store has another membership for this token")]
    Forged,
    /// The membership cannot be used.
    #[error(transparent)]
    Membership(#[from] MembershipError),
}

impl JoinToken {
    /// Creates a token for the store of `membership`. The store's user in the token is one that may only take the
    /// membership, if there is one.
    #[must_use]
    pub fn new(
        membership: &Membership,
        login: Option<(String, Zeroizing<String>)>,
        rng: &mut dyn Entropy,
    ) -> Self {
        let mut secret = Zeroizing::new([0; 32]);
        rng.fill(&mut *secret);
        let (store_user, store_password) = login.unzip();
        Self {
            realm: membership.realm.clone(),
            store: membership.store.clone(),
            store_user,
            store_password,
            ca_pem: membership.ca_pem.clone(),
            secret: encode_token(&*secret),
        }
    }

    /// Returns the name under which the store has the membership.
    #[must_use]
    pub fn id(&self) -> String {
        let mut id = [0; 16];
        KdfContext::new("adit fleet join id v1").derive_key(&[self.secret.as_bytes()], &mut id);
        to_hex(&id)
    }

    /// Returns the text of the token. It is a secret until a node has joined.
    ///
    /// # Errors
    ///
    /// None that occurs.
    pub fn to_text(&self) -> Result<Zeroizing<String>, JoinTokenError> {
        let json = Zeroizing::new(serde_json::to_vec(self).map_err(|_| JoinTokenError::Text)?);
        let mut bytes = Zeroizing::new(Vec::with_capacity(1 + json.len()));
        bytes.push(VERSION);
        bytes.extend_from_slice(&json);
        let mut text = Zeroizing::new(String::with_capacity(PREFIX.len() + 2 * bytes.len()));
        text.push_str(PREFIX);
        text.push_str(&encode_token(&bytes));
        Ok(text)
    }

    /// Reads a token. White space around it is ignored.
    ///
    /// # Errors
    ///
    /// The text is no token.
    pub fn from_text(text: &str) -> Result<Self, JoinTokenError> {
        let token = text
            .trim()
            .strip_prefix(PREFIX)
            .ok_or(JoinTokenError::Text)?;
        if token.len() > MAX_TOKEN {
            return Err(JoinTokenError::Text);
        }
        let bytes = decode_token(token).ok_or(JoinTokenError::Text)?;
        match bytes.split_first() {
            Some((&VERSION, json)) => {
                serde_json::from_slice(json).map_err(|_| JoinTokenError::Text)
            }
            Some((newer, _)) => Err(JoinTokenError::NewerFormat(*newer)),
            None => Err(JoinTokenError::Text),
        }
    }

    fn key(&self) -> Result<AeadKey, JoinTokenError> {
        let mut key = Zeroizing::new([0; 32]);
        KdfContext::new("adit fleet join key v1").derive_key(
            &[self.secret.as_bytes(), b"/", self.realm.as_bytes()],
            &mut *key,
        );
        AeadKey::new(AeadKind::Aes256Gcm, &*key).map_err(|_| JoinTokenError::Forged)
    }

    /// Seals the membership that the node of this token will have.
    ///
    /// # Errors
    ///
    /// None that occurs.
    pub fn seal(
        &self,
        membership: &Membership,
        rng: &mut dyn Entropy,
    ) -> Result<Vec<u8>, JoinTokenError> {
        let mut nonce = [0; NONCE];
        rng.fill(&mut nonce);
        let mut content = membership.to_json()?;
        let tag = self.key()?.seal_in_place(&nonce, &mut content);
        let tag = tag.map_err(|_| JoinTokenError::Forged)?;
        Ok([&nonce, content.as_slice(), &tag].concat())
    }

    /// Opens what [`Store::take_join`](crate::Store::take_join) returned.
    ///
    /// # Errors
    ///
    /// The bytes were not sealed with this token, or contain a membership of another realm.
    pub fn open(&self, sealed: &[u8]) -> Result<Membership, JoinTokenError> {
        let parts = sealed.split_first_chunk::<NONCE>();
        let parts = parts.and_then(|(nonce, rest)| Some((nonce, rest.split_last_chunk::<TAG>()?)));
        let (nonce, (content, tag)) = parts.ok_or(JoinTokenError::Forged)?;
        let mut content = Zeroizing::new(content.to_vec());
        let opened = self.key()?.open_in_place(nonce, &mut content, tag);
        opened.map_err(|_| JoinTokenError::Forged)?;
        let membership = Membership::from_json(&content)?;
        match membership.realm == self.realm {
            true => Ok(membership),
            false => Err(JoinTokenError::Forged),
        }
    }
}

#[cfg(test)]
mod tests {
    use adit_net::system::SystemRng;

    use super::*;
    use crate::membership::tests::membership;

    #[test]
    fn a_token_opens_its_membership_alone() {
        let token = JoinToken::new(&membership(), None, &mut SystemRng);
        let sealed = token.seal(&membership(), &mut SystemRng).unwrap();
        let text = token.to_text().unwrap();
        let read = JoinToken::from_text(&format!(" {}\n", text.as_str())).unwrap();
        assert_eq!(read, token);
        assert_eq!(read.id(), token.id());
        assert_eq!(read.open(&sealed).unwrap(), membership());
        let other = JoinToken::new(&membership(), None, &mut SystemRng);
        assert!(matches!(other.open(&sealed), Err(JoinTokenError::Forged)));
        for index in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[index] ^= 1;
            token.open(&changed).unwrap_err();
            token.open(&sealed[..index]).unwrap_err();
        }
    }

    #[test]
    fn the_realms_key_is_not_in_the_token() {
        let token = JoinToken::new(&membership(), None, &mut SystemRng);
        let text = token.to_text().unwrap();
        let bytes = decode_token(text.strip_prefix(PREFIX).unwrap()).unwrap();
        let content = String::from_utf8_lossy(&bytes);
        assert!(!content.contains(membership().realm_key.to_base64().as_str()));
        assert!(!format!("{token:?}").contains(token.secret.as_str()));
    }

    #[test]
    fn a_part_of_a_token_is_none() {
        let text = JoinToken::new(&membership(), None, &mut SystemRng)
            .to_text()
            .unwrap();
        for len in 0..text.len() {
            JoinToken::from_text(&text[..len]).unwrap_err();
        }
        JoinToken::from_text("adit-join:AgAA").unwrap_err();
    }
}
