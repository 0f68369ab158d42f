//! The keys of a client: identity keys for the servers on the path, then the user's own key.

use core::fmt;
use std::sync::Arc;

use adit_wire::ProtocolError;

use crate::identity::{IdentityHash, MAX_IDENTITIES};
use crate::{Key, KeyError, Method};

/// Zero or more identity keys (SIP023), then the user's key. Cheap to clone.
///
/// Each relay and each multi-user server on the path has one of the identity keys and strips one
/// header; the last key seals the data and opens the answers.
///
/// # Examples
///
/// ```
/// use adit_shadowsocks::{KeyChain, Method};
///
/// // The identity key of a server, and the key of its user.
/// let method: Method = "2022-blake3-aes-128-gcm".parse().unwrap();
/// let chain = KeyChain::parse(method, "AAAAAAAAAAAAAAAAAAAAAA==:AQEBAQEBAQEBAQEBAQEBAQ==")?;
/// assert_eq!(chain.identity_keys().len(), 1);
///
/// // Older editions have passwords.
/// let chain = KeyChain::parse(Method::Aes256Gcm, "a password")?;
/// assert_eq!(chain.identity_keys().len(), 0);
/// # Ok::<(), adit_shadowsocks::KeyError>(())
/// ```
#[derive(Clone)]
pub struct KeyChain {
    key: Key,
    links: Arc<[IdentityLink]>,
}

/// An identity key with the content of its header: the hash of the key after it.
pub(crate) struct IdentityLink {
    pub(crate) identity: Key,
    pub(crate) next: IdentityHash,
}

impl KeyChain {
    /// Parses `key`, or `identity:…:key` for methods with identity headers
    /// ([`Method::has_identities`]); [`Key::parse`] describes the notation of each key. Passwords
    /// may contain colons.
    ///
    /// # Errors
    ///
    /// Fails with the errors of [`Key::parse`] for each key, and with [`KeyError::TooMany`] for
    /// more than [`MAX_IDENTITIES`] identity keys.
    pub fn parse(method: Method, secret: &str) -> Result<Self, KeyError> {
        if !method.has_identities() {
            return Key::parse(method, secret).map(Self::from);
        }
        let (front, last) = secret.rsplit_once(':').unzip();
        let key = Key::parse(method, last.unwrap_or(secret))?;
        let identities = front
            .iter()
            .flat_map(|front| front.split(':'))
            // One more than allowed is enough to detect an excess.
            .take(MAX_IDENTITIES + 1)
            .map(|text| Key::parse(method, text))
            .collect::<Result<Vec<_>, _>>()?;
        Self::new(identities, key)
    }

    /// Creates a chain of keys, which must all be of one method.
    ///
    /// # Errors
    ///
    /// Returns [`KeyError::Several`] if identity keys are passed for a method without identity
    /// headers or are of another method, and [`KeyError::TooMany`] for more than
    /// [`MAX_IDENTITIES`].
    pub fn new(identities: Vec<Key>, key: Key) -> Result<Self, KeyError> {
        let method = key.method();
        if identities.len() > MAX_IDENTITIES {
            let limit = MAX_IDENTITIES;
            return Err(KeyError::TooMany { limit, method });
        }
        let fit = |identity: &Key| method.has_identities() && identity.method() == method;
        if !identities.iter().all(fit) {
            return Err(KeyError::Several { method });
        }
        // Each header names the key that follows its own.
        let named = identities.iter().skip(1).chain([&key]);
        let named: Vec<_> = named.map(|key| key.material().identity_hash()).collect();
        let links = identities.into_iter().zip(named);
        let links = links.map(|(identity, next)| IdentityLink { identity, next });
        Ok(Self {
            links: links.collect(),
            key,
        })
    }

    /// Returns the user's own key, which seals data and opens answers.
    #[must_use]
    pub const fn user_key(&self) -> &Key {
        &self.key
    }

    /// Returns the identity keys, in the order in which the stream passes their owners.
    pub fn identity_keys(&self) -> impl ExactSizeIterator<Item = &Key> {
        self.links.iter().map(|link| &link.identity)
    }

    /// Returns the method.
    #[must_use]
    pub fn method(&self) -> Method {
        self.key.method()
    }

    pub(crate) fn identity_links(&self) -> &[IdentityLink] {
        &self.links
    }

    /// Returns the sealed identity headers of a stream that begins with `salt`.
    pub(crate) fn seal_stream_headers(&self, salt: &[u8]) -> Result<Vec<u8>, ProtocolError> {
        let mut headers = Vec::new();
        for link in self.identity_links() {
            headers.extend_from_slice(&link.next.seal_stream(&link.identity, salt)?);
        }
        Ok(headers)
    }
}

impl From<Key> for KeyChain {
    fn from(key: Key) -> Self {
        let links = Arc::default();
        Self { key, links }
    }
}

impl fmt::Debug for KeyChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.identity_keys().chain([&self.key]);
        f.debug_list().entries(keys).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AES: Method = Method::Blake3Aes128Gcm;
    const A: &str = "AAECAwQFBgcICQoLDA0ODw==";
    const B: &str = "EBESExQVFhcYGRobHB0eHw==";

    #[test]
    fn identities_stand_before_the_key() {
        let one = KeyChain::parse(AES, A).unwrap();
        assert_eq!(one.identity_keys().len(), 0);
        let chain = KeyChain::parse(AES, &format!("{A}:{B}:{A}")).unwrap();
        let key = |text| Key::parse(AES, text).unwrap().id();
        let ids: Vec<_> = chain.identity_keys().map(Key::id).collect();
        assert_eq!(ids, [key(A), key(B)]);
        assert_eq!(chain.user_key().id(), key(A));
        assert_eq!(
            format!("{chain:?}"),
            format!(
                "[{:?}, {:?}, {:?}]",
                one.user_key(),
                Key::parse(AES, B).unwrap(),
                one.user_key()
            )
        );
    }

    #[test]
    fn what_is_no_chain() {
        let most = [A; MAX_IDENTITIES + 1].join(":");
        assert!(KeyChain::parse(AES, &most).is_ok());
        let limit = MAX_IDENTITIES;
        assert_eq!(
            KeyChain::parse(AES, &format!("{A}:{most}")).map(|_| ()),
            Err(KeyError::TooMany { limit, method: AES })
        );
        for text in [
            "",
            ":",
            &format!(":{A}"),
            &format!("{A}:"),
            &format!("{A}::{A}"),
        ] {
            assert!(KeyChain::parse(AES, text).is_err(), "{text}");
        }
        let long = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        let method = Method::Blake3ChaCha20Poly1305;
        assert_eq!(
            KeyChain::parse(method, &format!("{long}:{long}")).map(|_| ()),
            Err(KeyError::Several { method })
        );
        let other = Key::parse(Method::Blake3Aes256Gcm, long).unwrap();
        let key = Key::parse(AES, A).unwrap();
        assert!(
            KeyChain::new(vec![other], key).is_err(),
            "one method for all"
        );
    }

    #[test]
    fn passwords_may_hold_colons() {
        for method in [Method::Aes128Gcm, "aes-128-ctr".parse().unwrap()] {
            let chain = KeyChain::parse(method, "a:b").unwrap();
            assert_eq!(chain.identity_keys().len(), 0);
            let key = Key::parse(method, "a:b").unwrap();
            assert_eq!(chain.user_key().id(), key.id());
        }
    }
}
