//! UHASH (RFC 4418 section 5.1): the three layers, over whole messages or parts.

use core::slice;

use zeroize::Zeroize;

use crate::kdf::{HashKeys, STREAMS};
use crate::nh::{BLOCK, GROUP, GROUPS, Group, GroupRun, Sums};
use crate::poly::PolyState;
use crate::simd::NhKernel;

/// Returns the hash of a whole message in the upper `TAG` bytes.
#[inline(always)]
pub(crate) fn uhash<const TAG: usize>(keys: &HashKeys, kernel: NhKernel, message: &[u8]) -> u128 {
    if message.len() <= BLOCK {
        let (groups, rest) = message.as_chunks();
        // The empty message is hashed as one group of zeros.
        let tail = (!rest.is_empty() || message.is_empty()).then_some(rest);
        let sums = kernel.compute_nh::<TAG>(&keys.nh, GroupRun::new(0, groups, tail));
        return hash_short_message::<TAG>(keys, with_length(sums, message.len()));
    }
    uhash_long::<TAG>(keys, kernel, message)
}

#[inline(never)]
fn uhash_long<const TAG: usize>(keys: &HashKeys, kernel: NhKernel, message: &[u8]) -> u128 {
    let mut state = UhashState::<TAG>::new();
    state.update(keys, kernel, message);
    state.finish_hash(keys, kernel)
}

/// State of UHASH over an incomplete message.
pub(crate) struct UhashState<const TAG: usize> {
    /// NH of the open block's whole groups, without its length
    sums: Sums,
    /// Number of bytes in the open block. A block of 1,024 bytes stays open until more bytes
    /// follow, because only a longer message goes through L2
    filled: usize,
    /// The open group, of which `filled % GROUP` bytes are present
    group: Group,
    /// Result of the closed blocks
    poly: PolyState,
}

impl<const TAG: usize> UhashState<TAG> {
    pub(crate) const fn new() -> Self {
        Self {
            sums: [0; STREAMS],
            filled: 0,
            group: [0; GROUP],
            poly: PolyState::new(),
        }
    }

    pub(crate) fn update(&mut self, keys: &HashKeys, kernel: NhKernel, mut data: &[u8]) {
        while !data.is_empty() {
            if self.filled == BLOCK {
                self.close_block(keys);
            }
            let taken = if self.filled.is_multiple_of(GROUP) && data.len() >= GROUP {
                self.take_groups(keys, kernel, data)
            } else {
                self.take_octets(keys, kernel, data)
            };
            debug_assert!(taken <= data.len(), "no more than the data");
            data = data.get(taken..).unwrap_or_default();
        }
    }

    /// Closes the open block, which is full.
    fn close_block(&mut self, keys: &HashKeys) {
        let sums = with_length(self.sums, BLOCK);
        self.poly.absorb_block::<TAG>(&keys.poly, sums);
        self.sums = [0; STREAMS];
        self.filled = 0;
    }

    /// Hashes whole groups up to the end of the block in place; returns the number of bytes.
    fn take_groups(&mut self, keys: &HashKeys, kernel: NhKernel, data: &[u8]) -> usize {
        let first = self.filled / GROUP;
        let (groups, _) = data.as_chunks();
        let groups = groups.get(..GROUPS - first).unwrap_or(groups);
        let sums = kernel.compute_nh::<TAG>(&keys.nh, GroupRun::new(first, groups, None));
        self.add_sums(sums);
        let taken = groups.as_flattened().len();
        self.filled += taken;
        taken
    }

    /// Copies bytes up to the end of the group; returns their number.
    fn take_octets(&mut self, keys: &HashKeys, kernel: NhKernel, data: &[u8]) -> usize {
        let at = self.filled % GROUP;
        let mut taken = 0;
        for (to, from) in self.group.iter_mut().skip(at).zip(data) {
            *to = *from;
            taken += 1;
        }
        self.filled += taken;
        if at + taken == GROUP {
            let run = GroupRun::new(self.filled / GROUP - 1, slice::from_ref(&self.group), None);
            self.add_sums(kernel.compute_nh::<TAG>(&keys.nh, run));
        }
        taken
    }

    fn add_sums(&mut self, sums: Sums) {
        for (sum, more) in self.sums.iter_mut().zip(sums) {
            *sum = sum.wrapping_add(more);
        }
    }

    /// Returns the hash in the upper `TAG` bytes. The state must not be used afterwards.
    pub(crate) fn finish_hash(&mut self, keys: &HashKeys, kernel: NhKernel) -> u128 {
        let open = self.filled % GROUP;
        if open != 0 || self.filled == 0 {
            let tail = self.group.get(..open);
            let run = GroupRun::new(self.filled / GROUP, &[], tail);
            self.add_sums(kernel.compute_nh::<TAG>(&keys.nh, run));
        }
        let sums = with_length(self.sums, self.filled);
        if self.poly.is_empty() {
            return hash_short_message::<TAG>(keys, sums);
        }
        self.poly.absorb_block::<TAG>(&keys.poly, sums);
        let mut values = self.poly.finish_poly(&keys.poly);
        let hash = join_words(
            keys.inner.iter().zip(values).take(TAG / 4),
            |(key, value)| key.hash_u128(value),
        );
        values.zeroize();
        hash
    }
}

impl<const TAG: usize> Drop for UhashState<TAG> {
    fn drop(&mut self) {
        // Clears with vector instructions, where volatile writes would clear word by word.
        self.sums = [0; STREAMS];
        self.group = [0; GROUP];
        self.poly = PolyState::new();
        zeroize::optimization_barrier(self);
    }
}

/// Returns the result of L1: the sum of NH and the length of the block in bits.
#[inline(always)]
fn with_length(sums: Sums, octets: usize) -> Sums {
    debug_assert!(octets <= BLOCK, "at most a block");
    let bits = u64::try_from(8 * octets).unwrap_or(0);
    sums.map(|sum| sum.wrapping_add(bits))
}

/// Returns L3 of a message of one block, which skips L2.
#[inline(always)]
fn hash_short_message<const TAG: usize>(keys: &HashKeys, sums: Sums) -> u128 {
    join_words(keys.inner.iter().zip(sums).take(TAG / 4), |(key, sum)| {
        key.hash_u64(sum)
    })
}

/// Concatenates the words of the streams in the upper bytes.
#[inline(always)]
fn join_words<T>(streams: impl Iterator<Item = T>, word: impl Fn(T) -> u32) -> u128 {
    let mut hash = 0;
    for (shift, stream) in [96, 64, 32, 0].into_iter().zip(streams) {
        hash |= u128::from(word(stream)) << shift;
    }
    hash
}
