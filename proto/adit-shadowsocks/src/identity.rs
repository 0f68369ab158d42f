//! Identity headers (SIP023): one block that names the key of the next reader.
//!
//! ```text
//! stream  salt ‖ AES(subkey of iPSK and salt, hash of the next key) ‖ …
//! packet  AES(first iPSK, session ‖ packet id) ‖ AES(iPSK, hash of the next key ⊕ session ‖ packet id) ‖ …
//! ```
//! A header has no tag: with a wrong key it names an unknown user, and the sealed data after it
//! proves the rest.

use adit_crypto::HeaderCipher;
use adit_wire::{ProtocolError, array_prefix};
use hashbrown::HashTable;

use crate::Key;

/// Maximum number of identity keys that a client puts before its own. Every packet reserves room
/// for their headers.
pub const MAX_IDENTITIES: usize = 4;

/// Length of an identity header in bytes.
pub(crate) const IDENTITY_LEN: usize = 16;

/// The first half of a key's BLAKE3 hash.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct IdentityHash([u8; IDENTITY_LEN]);

impl IdentityHash {
    /// Returns half of the hash, which suffices to tell users apart.
    pub(crate) fn first_half(self) -> u64 {
        u64::from_be_bytes(array_prefix(&self.0))
    }

    pub(crate) fn from_key_hash(hash: [u8; 32]) -> Self {
        Self(array_prefix(&hash))
    }

    /// Seals the header that tells the owner of `identity` which key the stream with `salt` is for.
    pub(crate) fn seal_stream(
        self,
        identity: &Key,
        salt: &[u8],
    ) -> Result<[u8; IDENTITY_LEN], ProtocolError> {
        let mut block = self.0;
        identity
            .material()
            .derive_identity_cipher(salt)?
            .encrypt_block(&mut block);
        Ok(block)
    }

    /// Opens a stream's header with our own identity key.
    pub(crate) fn open_stream(
        identity: &Key,
        salt: &[u8],
        mut block: [u8; IDENTITY_LEN],
    ) -> Result<Self, ProtocolError> {
        identity
            .material()
            .derive_identity_cipher(salt)?
            .decrypt_block(&mut block);
        Ok(Self(block))
    }

    /// Seals the header for the owner of `identity` in the packet with the separate header `ids`.
    pub(crate) fn seal_packet(
        self,
        identity: &HeaderCipher,
        ids: &[u8; IDENTITY_LEN],
    ) -> [u8; IDENTITY_LEN] {
        let mut block = xor_blocks(self.0, ids);
        identity.encrypt_block(&mut block);
        block
    }

    /// Opens a packet's header with our own identity key.
    pub(crate) fn open_packet(
        identity: &HeaderCipher,
        ids: &[u8; IDENTITY_LEN],
        mut block: [u8; IDENTITY_LEN],
    ) -> Self {
        identity.decrypt_block(&mut block);
        Self(xor_blocks(block, ids))
    }

    /// Returns the table slot. The value is a hash already, and only owners of the keys choose it.
    fn table_slot(self) -> u64 {
        u64::from_le_bytes(array_prefix(&self.0))
    }
}

fn xor_blocks(a: [u8; IDENTITY_LEN], b: &[u8; IDENTITY_LEN]) -> [u8; IDENTITY_LEN] {
    (u128::from_ne_bytes(a) ^ u128::from_ne_bytes(*b)).to_ne_bytes()
}

/// An index from identity hashes to positions in a list of users or next hops. The list stores the
/// hashes and this table only the positions, so that a lookup reads little memory.
#[derive(Default)]
pub(crate) struct IdentityHashIndex(HashTable<u32>);

impl IdentityHashIndex {
    pub(crate) fn with_capacity(len: usize) -> Self {
        Self(HashTable::with_capacity(len))
    }

    /// Inserts a position; fails with the position that already has its hash. `of` returns the hash
    /// of a position, including the new one.
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
            .insert_unique(hash.table_slot(), place, |known| of(*known).table_slot());
        Ok(())
    }

    /// Returns the position of `hash`; `is` is true for a position that has it.
    pub(crate) fn find(&self, hash: IdentityHash, is: impl Fn(u32) -> bool) -> Option<u32> {
        self.0.find(hash.table_slot(), |known| is(*known)).copied()
    }

    /// Returns the number of bytes on the heap.
    #[cfg(test)]
    pub(crate) fn heap_bytes(&self) -> usize {
        self.0.allocation_size()
    }
}
