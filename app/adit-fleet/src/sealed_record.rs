//! Sealed records: the only form in which the store, and its backups, have users.
//!
//! ```text
//! 1 || digest of the name (16) || change number (8) || nonce (12) || AES-256-GCM(user or order) || tag (16)
//! ```
//!
//! The key of each record is derived from the key of the realm, its name, the kind of the record, the user's (or
//! node's) number, the change number and the digest: a record that the store moved to another user, another change or
//! another realm cannot be opened. Nonces are random, and each key seals one record.

use std::fmt;

use adit_wire::Reader;
use base64::Engine;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::change::ChangeId;
use crate::record::EncodeError;

/// Version of the format.
pub(crate) const VERSION: u8 = 1;
/// Length of the tag, in bytes.
pub(crate) const TAG: usize = 16;
/// Length of the nonce, in bytes.
pub(crate) const NONCE: usize = 12;
/// Length of everything before the ciphertext.
pub(crate) const HEADER: usize = 1 + 16 + 8 + NONCE;
/// Maximum length of a sealed record, in bytes.
pub const MAX_SEALED: usize = 8 << 10;

/// The error of a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Too short or too long.
    #[error("a record is cut off, or too long")]
    Length,
    /// A newer adit has written it.
    #[error("a newer adit has written this record, in format {0}")]
    NewerFormat(u8),
    /// It does not belong to this place, or has been changed, or the key of the realm is another one.
    #[error("a record was changed or moved, or belongs to another realm")]
    Forged,
    /// It is older than what this node has applied.
    #[error("a record is older than the changes that this node has applied")]
    RolledBack,
    /// Its content is none that this adit writes.
    #[error("a record has content that this adit does not know")]
    Content,
    /// The user cannot be sealed.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The node operation cannot be sealed.
    #[error("a node operation is too long")]
    TooLong,
}

/// A sealed user or order. It is not checked before it is opened.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedRecord(Vec<u8>);

impl fmt::Debug for SealedRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "SealedRecord({} bytes, {:?})",
            self.0.len(),
            self.number()
        )
    }
}

impl SealedRecord {
    /// Returns a record with these bytes, which need not be one.
    #[must_use]
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the number of the change that wrote the record, as the record itself states it.
    #[must_use]
    pub fn number(&self) -> Option<ChangeId> {
        self.header().ok().map(|header| header.number)
    }

    /// Returns the digest of the user's name.
    #[must_use]
    pub fn name_digest(&self) -> Option<NameDigest> {
        self.header().ok().map(|header| header.digest)
    }

    pub(crate) fn header(&self) -> Result<Header, RecordError> {
        let mut reader = Reader::new(&self.0);
        if self.0.len() < HEADER + TAG || self.0.len() > MAX_SEALED {
            return Err(RecordError::Length);
        }
        let length = |_| RecordError::Length;
        match reader.u8().map_err(length)? {
            VERSION => {}
            newer => return Err(RecordError::NewerFormat(newer)),
        }
        Ok(Header {
            digest: NameDigest(reader.array().map_err(length)?),
            number: ChangeId(reader.u64().map_err(length)?),
            nonce: reader.array().map_err(length)?,
        })
    }
}

impl Serialize for SealedRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(&self.0, &STANDARD))
    }
}

impl<'de> Deserialize<'de> for SealedRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(RecordText)
    }
}

/// Reads a record from its text, without a copy of it.
struct RecordText;

impl Visitor<'_> for RecordText {
    type Value = SealedRecord;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record in base64")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SealedRecord, E> {
        let bytes = STANDARD.decode(text);
        let bytes = bytes.map_err(|_| E::custom("no base64"))?;
        Ok(SealedRecord(bytes))
    }
}

/// The part of a record before its ciphertext.
pub(crate) struct Header {
    pub(crate) digest: NameDigest,
    pub(crate) number: ChangeId,
    pub(crate) nonce: [u8; NONCE],
}

/// The keyed digest of a user's name, by which the store finds a user and keeps names unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameDigest(pub [u8; 16]);
