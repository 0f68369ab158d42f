//! Compiled sets as bytes, so that a start needs neither the lists nor their compilation.
//!
//! All numbers are big-endian:
//!
//! | bytes | field |
//! |--:|---|
//! | 8 | `ADITRULE` |
//! | 2 | version, 1 |
//! | 8 | length of the body |
//! | 4 | CRC-32 of the body |
//! | | the body: the set |
//!
//! The checksum finds damage. It does not authenticate: bytes of an attacker load as any set, within bounds.

mod decode;
mod encode;

use crate::rule_set::RuleSet;

const MAGIC: &[u8; 8] = b"ADITRULE";
const VERSION: u16 = 1;

/// In front of a group.
const TAG_ALL: u8 = 1;
const TAG_NOT: u8 = 2;

/// An error from loading a compiled set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The bytes are not a compiled set.
    #[error("not a compiled rule set")]
    Magic,
    /// The set was compiled by another version of adit.
    #[error("the rule set was compiled in version {0} of the format, which is not supported")]
    Version(u16),
    /// The length is not the one in the header.
    #[error("the compiled rule set is cut off, or something follows it")]
    Length,
    /// The checksum is wrong.
    #[error("the compiled rule set is damaged")]
    Checksum,
    /// The checksum is right, but the body is not a set.
    #[error("the content of the compiled rule set is not valid")]
    Content,
}

impl RuleSet {
    /// Returns the set as bytes for [`Self::from_cache`].
    #[must_use]
    pub fn to_cache(&self) -> Vec<u8> {
        let mut body = Vec::new();
        encode::encode_set(self, &mut body);
        let mut out = Vec::with_capacity(22 + body.len());
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_be_bytes());
        out.extend_from_slice(&adit_wire::u64_from(body.len()).to_be_bytes());
        out.extend_from_slice(&crc32fast::hash(&body).to_be_bytes());
        out.extend_from_slice(&body);
        out
    }

    /// Loads a set from the bytes of [`Self::to_cache`]. Any bytes are safe to load; the memory is bounded
    /// by a small multiple of their length, and that of regular expressions by their number.
    ///
    /// # Errors
    ///
    /// [`CacheError`] if the bytes are not a set of this version, or damaged.
    pub fn from_cache(bytes: &[u8]) -> Result<Self, CacheError> {
        let mut from = adit_wire::Reader::new(bytes);
        if from.take(MAGIC.len()) != Ok(MAGIC) {
            return Err(CacheError::Magic);
        }
        let version = from.u16().map_err(|_| CacheError::Length)?;
        if version != VERSION {
            return Err(CacheError::Version(version));
        }
        let len = from.u64().map_err(|_| CacheError::Length)?;
        let crc = from.array().map(u32::from_be_bytes);
        let crc = crc.map_err(|_| CacheError::Length)?;
        if adit_wire::u64_from(from.rest().len()) != len {
            return Err(CacheError::Length);
        }
        if crc32fast::hash(from.rest()) != crc {
            return Err(CacheError::Checksum);
        }
        let set = decode::decode_set(&mut from).ok_or(CacheError::Content)?;
        from.rest()
            .is_empty()
            .then_some(set)
            .ok_or(CacheError::Content)
    }
}
