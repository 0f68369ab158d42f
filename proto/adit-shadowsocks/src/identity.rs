//! Identity headers (SIP023): one block that names the key of whoever reads on.
//!
//! ```text
//! stream  salt ‖ AES(subkey of iPSK and salt, hash of the next key) ‖ …
//! packet  AES(first iPSK, session ‖ packet id) ‖ AES(iPSK, hash of the next key ⊕ session ‖ packet id) ‖ …
//! ```
//! A header carries no tag: with a wrong key it names nobody, and what follows proves the rest.

use adit_crypto::HeaderCipher;
use adit_wire::{ProtocolError, array_prefix};
use hashbrown::HashTable;

use crate::Key;

/// The most identity keys a client puts in front of its own: the room for their headers is set
/// aside in every packet.
pub const MAX_IDENTITIES: usize = 4;

/// Length of an identity header.
pub(crate) const IDENTITY_LEN: usize = 16;

/// The first half of a key's BLAKE3 hash.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct IdentityHash([u8; IDENTITY_LEN]);

impl IdentityHash {
    /// Enough of it to tell users apart.
    pub(crate) fn half(self) -> u64 {
        u64::from_be_bytes(array_prefix(&self.0))
    }

    pub(crate) fn of(hash: [u8; 32]) -> Self {
        Self(array_prefix(&hash))
    }

    /// The header that tells the holder of `identity` who the stream with `salt` is for.
    pub(crate) fn seal_stream(
        self,
        identity: &Key,
        salt: &[u8],
    ) -> Result<[u8; IDENTITY_LEN], ProtocolError> {
        let mut block = self.0;
        identity
            .material()
            .identity(salt)?
            .encrypt_block(&mut block);
        Ok(block)
    }

    /// Reads a stream's header with our own identity key.
    pub(crate) fn open_stream(
        identity: &Key,
        salt: &[u8],
        mut block: [u8; IDENTITY_LEN],
    ) -> Result<Self, ProtocolError> {
        identity
            .material()
            .identity(salt)?
            .decrypt_block(&mut block);
        Ok(Self(block))
    }

    /// The header for the holder of `identity` in the packet whose separate header is `ids`.
    pub(crate) fn seal_packet(
        self,
        identity: &HeaderCipher,
        ids: &[u8; IDENTITY_LEN],
    ) -> [u8; IDENTITY_LEN] {
        let mut block = xor(self.0, ids);
        identity.encrypt_block(&mut block);
        block
    }

    /// Reads a packet's header with our own identity key.
    pub(crate) fn open_packet(
        identity: &HeaderCipher,
        ids: &[u8; IDENTITY_LEN],
        mut block: [u8; IDENTITY_LEN],
    ) -> Self {
        identity.decrypt_block(&mut block);
        Self(xor(block, ids))
    }

    /// Where it falls in a table: it is a hash already, and nobody but the holders of the keys
    /// chooses it.
    fn slot(self) -> u64 {
        u64::from_le_bytes(array_prefix(&self.0))
    }
}

fn xor(a: [u8; IDENTITY_LEN], b: &[u8; IDENTITY_LEN]) -> [u8; IDENTITY_LEN] {
    (u128::from_ne_bytes(a) ^ u128::from_ne_bytes(*b)).to_ne_bytes()
}

/// Whom an identity header means: places in a list of users or next hops. The list knows the hashes;
/// here are the places alone, so that a look-up reads little memory.
#[derive(Default)]
pub(crate) struct Directory(HashTable<u32>);

impl Directory {
    pub(crate) fn with_capacity(len: usize) -> Self {
        Self(HashTable::with_capacity(len))
    }

    /// Enters the next place; the place that has its hash already otherwise. `of` gives the hash of
    /// a place, that of the new one too.
    pub(crate) fn insert(
        &mut self,
        place: u32,
        of: impl Fn(u32) -> IdentityHash,
    ) -> Result<(), u32> {
        let hash = of(place);
        if let Some(taken) = self.find(hash, |known| of(known) == hash) {
            return Err(taken);
        }
        self.0
            .insert_unique(hash.slot(), place, |known| of(*known).slot());
        Ok(())
    }

    /// The place of `hash`; `is` tells whether a place has it.
    pub(crate) fn find(&self, hash: IdentityHash, is: impl Fn(u32) -> bool) -> Option<u32> {
        self.0.find(hash.slot(), |known| is(*known)).copied()
    }

    /// Bytes on the heap.
    #[cfg(test)]
    pub(crate) fn heap(&self) -> usize {
        self.0.allocation_size()
    }
}
