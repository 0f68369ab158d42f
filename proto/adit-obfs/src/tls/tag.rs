//! The tag: ten bytes of an HMAC keyed with the connection's key and the client's id.

use core::fmt;

use adit_crypto::{Secret, ct_eq, hmac_sha1};
use adit_wire::{Broken, front};

/// Length of a tag in bytes.
pub(crate) const TAG: usize = 10;
/// Length of a client's id, which is the session id of its hellos.
pub(crate) const CLIENT_ID: usize = 32;

/// Creates and checks tags of one client.
pub(crate) struct Tagger {
    key: Secret<Vec<u8>>,
    id: [u8; CLIENT_ID],
}

impl Tagger {
    /// Creates a tagger. `key` is the key of the stream cipher, or its substitute for methods
    /// without a cipher.
    pub(crate) fn new(key: &[u8], id: [u8; CLIENT_ID]) -> Self {
        Self {
            key: [key, &id[..]].concat().into(),
            id,
        }
    }

    pub(crate) const fn id(&self) -> &[u8; CLIENT_ID] {
        &self.id
    }

    /// Returns the tag of the concatenated `parts`.
    pub(crate) fn tag(&self, parts: &[&[u8]]) -> [u8; TAG] {
        front(&hmac_sha1(self.key.expose(), parts))
    }

    /// Checks that `message` ends in the tag of the bytes before it.
    pub(crate) fn check(&self, message: &[u8]) -> Result<(), Broken> {
        let (text, tag) = message
            .split_last_chunk::<TAG>()
            .ok_or(Broken::Truncated("a tagged message"))?;
        if ct_eq(&self.tag(&[text]), tag) {
            Ok(())
        } else {
            Err(Broken::Unauthentic)
        }
    }
}

impl fmt::Debug for Tagger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tagger(***)")
    }
}
