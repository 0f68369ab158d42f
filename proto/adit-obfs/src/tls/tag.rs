//! The tag: ten bytes of an HMAC keyed with the connection's key and the client's id.

use core::fmt;

use adit_crypto::{Secret, ct_eq, hmac_sha1};
use adit_wire::{ProtocolError, array_prefix};

/// Length of a tag in bytes.
pub(crate) const TAG_LEN: usize = 10;
/// Length of a client's id, which is the session id of its hellos.
pub(crate) const CLIENT_ID_LEN: usize = 32;

/// Creates and checks tags of one client.
pub(crate) struct Tagger {
    key: Secret<Vec<u8>>,
    id: [u8; CLIENT_ID_LEN],
}

impl Tagger {
    /// Creates a tagger. `key` is the key of the stream cipher, or its substitute for methods
    /// without a cipher.
    pub(crate) fn new(key: &[u8], id: [u8; CLIENT_ID_LEN]) -> Self {
        Self {
            key: [key, &id[..]].concat().into(),
            id,
        }
    }

    pub(crate) const fn client_id(&self) -> &[u8; CLIENT_ID_LEN] {
        &self.id
    }

    /// Returns the tag of the concatenated `parts`.
    pub(crate) fn compute_tag(&self, parts: &[&[u8]]) -> [u8; TAG_LEN] {
        array_prefix(&hmac_sha1(self.key.expose(), parts))
    }

    /// Checks that `message` ends in the tag of the bytes before it.
    pub(crate) fn check_tag(&self, message: &[u8]) -> Result<(), ProtocolError> {
        let (text, tag) = message
            .split_last_chunk::<TAG_LEN>()
            .ok_or(ProtocolError::Truncated("a tagged message"))?;
        if ct_eq(&self.compute_tag(&[text]), tag) {
            Ok(())
        } else {
            Err(ProtocolError::Unauthentic)
        }
    }
}

impl fmt::Debug for Tagger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tagger(***)")
    }
}
