//! The trait of a path's kernel, and what all paths share.

/// The number of ChaCha rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChaChaRounds(u8);

impl ChaChaRounds {
    /// ChaCha8
    pub(crate) const EIGHT: Self = Self(8);
    /// ChaCha12
    #[cfg(test)]
    pub(crate) const TWELVE: Self = Self(12);
    /// ChaCha20
    pub(crate) const TWENTY: Self = Self(20);

    /// Returns the number of double rounds: a column round and a diagonal round each.
    pub(crate) const fn double_rounds(self) -> u8 {
        self.0 / 2
    }
}

/// The input of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TagInput {
    /// The data, zeros up to a whole block, and the two lengths (RFC 8439 section 2.8)
    Aead,
    /// The data alone (RFC 8439 section 2.5)
    Bare,
}

/// Maximum number of blocks in parallel.
pub(super) const MAX_BLOCKS: usize = 16;

/// Blocks of keystream: for each the nonce of its stream in two words and its block number, and the bytes
/// that it is added to, at most one block.
///
/// The words are in memory in the order of the vectors: assembling them in registers, one by one, took a
/// tenth of the time of their keystream.
pub(super) struct SalsaBlocks<'a, 'p> {
    pub(super) words: &'a [[u32; MAX_BLOCKS]; 3],
    pub(super) bytes: &'a mut [&'p mut [u8]],
}

/// The operations of a path; implemented by the proofs that its CPU features are available.
pub(super) trait Kernel: Copy {
    /// True if blocks of several streams are better computed in parallel.
    const TOGETHER: bool = true;

    /// Runs `task` in code compiled for this path.
    fn enter<T: Task>(self, task: T) -> T::Output;

    /// Adds the keystream from block `state[12]` on to `buf`. The counter wraps at 2³².
    fn xor_chacha(self, state: &[u32; 16], rounds: ChaChaRounds, buf: &mut [u8]);

    /// Adds the keystream of Salsa20 from block `state[8]` on to `buf`. The counter wraps at 2³².
    fn xor_salsa(self, state: &[u32; 16], buf: &mut [u8]);

    /// Adds the keystream of Salsa20 to at most 16 blocks of any streams; `state` has the key.
    fn xor_salsa_blocks(self, state: &[u32; 16], pieces: SalsaBlocks<'_, '_>);

    /// Returns the Poly1305 tag of `data` in this form.
    fn poly1305_tag(self, key: &[u8; 32], data: &[u8], form: TagInput) -> [u8; 16];
}

/// A task for any path. Implementations must be `#[inline(always)]`: only then are they compiled for the
/// features of the path.
pub(super) trait Task {
    /// The result of the task.
    type Output;

    /// Runs the task.
    fn run_on<K: Kernel>(self, kernel: K) -> Self::Output;
}

/// Clears secrets on the stack, a vector at a time where volatile writes would clear byte by byte.
#[inline(always)]
pub(super) fn wipe_stack<T: Copy + Default>(secret: &mut [T]) {
    secret.fill(T::default());
    zeroize::optimization_barrier(secret);
}
