//! A relay (SIP023): reads the identity header that is addressed to it, strips it, and forwards the
//! rest unchanged.
//!
//! ```text
//! stream  salt ‖ identity ‖ rest                       →  salt ‖ rest
//! packet  AES(own key, ids) ‖ identity ‖ rest          →  AES(next key, ids) ‖ rest
//! ```
//! A relay has its own identity key and the key of each next hop, which is another identity key or,
//! for a server with a single key, the user's key. It sees no plaintext and cannot authenticate a
//! client: bytes made without its key name a hop that does not exist. Replay protection is up to
//! the server. Answers are forwarded byte for byte.

mod tcp;
mod udp;

#[cfg(test)]
mod tests;

use core::fmt;
use std::sync::Arc;

use adit_crypto::HeaderCipher;
use adit_wire::{ProtocolError, usize_from};

use crate::identity::{IdentityHash, IdentityHashIndex};
use crate::{Key, Method};

pub use tcp::{RelayedStream, TcpRelay};
pub use udp::{RelayedPacket, relay_packet};

/// A relay's own key, and the next hops that it forwards clients to. Created once, shared, never
/// changed.
///
/// # Examples
///
/// ```
/// use adit_shadowsocks::relay::RelayTable;
/// use adit_shadowsocks::{Key, Method};
/// use adit_wire::FixedEntropy;
///
/// // Use the system's random numbers in a program.
/// let mut entropy = FixedEntropy::new((0..=255).collect::<Vec<u8>>());
/// let method = Method::Blake3Aes128Gcm;
/// let (identity, _) = Key::generate(method, &mut entropy);
/// let servers: Vec<Key> = (0..3).map(|_| Key::generate(method, &mut entropy).0).collect();
/// assert_eq!(RelayTable::new(&identity, servers)?.len(), 3);
/// # Ok::<(), adit_shadowsocks::relay::RelayError>(())
/// ```
pub struct RelayTable {
    identity: Key,
    next: Box<[(IdentityHash, Key)]>,
    named: IdentityHashIndex,
}

/// The reason keys do not form a valid relay table. Hops are counted from 0, in the order passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// A method without identity headers.
    #[error("{0} has no identity headers, so a relay cannot use it")]
    Method(Method),
    /// A next hop with another method than the relay.
    #[error("next hop {next} has method {found}, the relay has {expected}")]
    OtherMethod {
        /// Index of the hop.
        next: usize,
        /// The relay's method.
        expected: Method,
        /// The hop's method.
        found: Method,
    },
    /// Two hops that an identity header cannot tell apart.
    #[error("next hops {first} and {second} have the same key")]
    SameKey {
        /// The earlier hop.
        first: usize,
        /// The later hop.
        second: usize,
    },
    /// A hop with the relay's own key: it would forward clients to itself.
    #[error("next hop {0} has the key of the relay itself")]
    OwnKey(usize),
    /// More hops than [`MAX_USERS`](crate::MAX_USERS).
    #[error("more than {} next hops", crate::MAX_USERS)]
    TooMany,
}

impl RelayTable {
    /// Creates a relay with the key `identity` and the keys of its next hops, which are then
    /// identified by their indices.
    ///
    /// # Errors
    ///
    /// Fails if the method has no identity headers, if a hop has another method or the relay's own
    /// key, or if hops are duplicate or too many.
    pub fn new(
        identity: &Key,
        next: impl IntoIterator<Item = Key>,
    ) -> Result<Arc<Self>, RelayError> {
        let expected = identity.method();
        if !expected.has_identities() {
            return Err(RelayError::Method(expected));
        }
        let mut hops: Vec<(IdentityHash, Key)> = Vec::new();
        let mut named = IdentityHashIndex::default();
        for (place, key) in next.into_iter().enumerate() {
            let at = u32::try_from(place).ok();
            let at = at.filter(|_| place < crate::MAX_USERS);
            let at = at.ok_or(RelayError::TooMany)?;
            let found = key.method();
            if found != expected {
                return Err(RelayError::OtherMethod {
                    next: place,
                    expected,
                    found,
                });
            }
            if key.material() == identity.material() {
                return Err(RelayError::OwnKey(place));
            }
            hops.push((key.material().identity_hash(), key));
            named
                .insert(at, |place| {
                    hop_hash(&hops, place).copied().unwrap_or_default()
                })
                .map_err(|first| RelayError::SameKey {
                    first: usize_from(first),
                    second: place,
                })?;
        }
        Ok(Arc::new(Self {
            identity: identity.clone(),
            next: hops.into_boxed_slice(),
            named,
        }))
    }

    /// Returns the method, the same for all hops.
    #[must_use]
    pub fn method(&self) -> Method {
        self.identity.method()
    }

    /// Returns the number of next hops.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.next.len()
    }

    /// True if there are no hops, so that every client is refused.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    /// Returns the hop that a header names. An unknown hop is treated like a wrong key.
    fn find_hop(&self, hash: IdentityHash) -> Result<usize, ProtocolError> {
        let is = |place| hop_hash(&self.next, place) == Some(&hash);
        let place = self
            .named
            .find(hash, is)
            .ok_or(ProtocolError::Unauthentic)?;
        usize::try_from(place).map_err(|_| ProtocolError::Unauthentic)
    }
}

/// Returns the hash that names a hop.
fn hop_hash(hops: &[(IdentityHash, Key)], place: u32) -> Option<&IdentityHash> {
    let place = usize::try_from(place).ok()?;
    hops.get(place).map(|(hash, _)| hash)
}

/// Returns the header cipher of a key of this table; all its keys have one.
fn header_cipher(key: &Key) -> Result<&HeaderCipher, ProtocolError> {
    key.header_cipher().ok_or(ProtocolError::Malformed(
        "method: it has no identity headers",
    ))
}

impl fmt::Debug for RelayTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayTable")
            .field("identity", &self.identity)
            .field("next", &self.next.len())
            .finish_non_exhaustive()
    }
}
