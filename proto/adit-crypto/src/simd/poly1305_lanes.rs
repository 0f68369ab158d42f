//! Poly1305 on several blocks in parallel, for any vector and any limbs; safe code.
//!
//! Lane i processes every n-th block and multiplies by r^n; at the end the lanes are multiplied by r^n down
//! to r and added. If the number of blocks is not a multiple of n, zero blocks are assumed before the first
//! one, where they change nothing: so there is no scalar remainder.

use super::{
    TagInput,
    poly1305::{Limbs, MessageEnding, Poly1305, mul_limbs},
    wipe_stack,
};

/// Maximum number of lanes on any path.
const MOST: usize = 8;

/// A vector of 64-bit words.
pub(super) trait Wide: Copy {
    /// The proof that the CPU has the instructions.
    type Proof: Copy;
    /// Number of words in a vector: 4 or 8.
    const LANES: usize;

    /// Returns a vector with one word everywhere.
    fn splat64(proof: Self::Proof, word: u64) -> Self;
    /// Loads the first [`Wide::LANES`] of these words.
    fn load64(proof: Self::Proof, words: &[u64; MOST]) -> Self;
    /// Loads the low and the high halves of [`Wide::LANES`] blocks, in the order of [`block_of_lane`].
    fn halves(proof: Self::Proof, blocks: &[u8]) -> (Self, Self);

    /// Adds word by word.
    fn add64(self, other: Self) -> Self;
    /// Computes the bitwise and.
    fn and(self, other: Self) -> Self;
    /// Computes the bitwise or.
    fn or(self, other: Self) -> Self;
    /// Shifts each word to the right.
    fn shr(self, bits: u32) -> Self;
    /// Shifts each word to the left.
    fn shl(self, bits: u32) -> Self;
    /// Multiplies the low 32 bits of each word.
    fn mul32(self, other: Self) -> Self;
    /// Returns the sum of all words.
    fn sum(self) -> u64;

    /// Multiplies each word by five.
    #[inline(always)]
    fn times5(self) -> Self {
        self.add64(self.shl(2))
    }
}

/// A number modulo 2¹³⁰ - 5 in each lane.
pub(super) trait Accumulator: Copy {
    /// The vector of a limb.
    type Vector: Wide;
    /// A prepared factor.
    type Factor: Copy;
    /// The proof that the CPU has the instructions.
    type Proof: Copy;

    /// Returns the proof for the vectors alone.
    fn vector(proof: Self::Proof) -> <Self::Vector as Wide>::Proof;
    /// Prepares limbs of 44, 44 and 42 bits as a factor.
    fn factor(proof: Self::Proof, limbs: [Self::Vector; 3]) -> Self::Factor;
    /// Loads one block per lane, and adds 2¹²⁸ where `present` is 1 and not 0.
    fn message(proof: Self::Proof, blocks: &[u8], present: Self::Vector) -> Self;
    /// Returns the sum, not carried.
    fn add(self, other: Self) -> Self;
    /// Returns the product, carried.
    fn mul(self, factor: Self::Factor) -> Self;
    /// Returns the sum of all lanes, as limbs of less than 60 bits.
    fn total(self) -> Limbs;
}

/// Returns the block that unpacking two loads moves to `lane`.
const fn block_of_lane(lane: usize, lanes: usize) -> usize {
    lane / 2 + lane % 2 * (lanes / 2)
}

/// The powers r, r², …, one for each lane; cleared on drop.
struct Powers([Limbs; MOST]);

impl Powers {
    #[inline(always)]
    fn new(r: Limbs, count: usize) -> Self {
        let mut powers = [r; MOST];
        // Compute each from the half below, so that the products do not wait for one another.
        for i in 1..count {
            powers[i] = mul_limbs(powers[i / 2], powers[(i - 1) / 2]);
        }
        Self(powers)
    }

    /// Returns the power for the last block of each lane, as the three vectors of the limbs.
    #[inline(always)]
    fn lane_powers<W: Wide>(&self, proof: W::Proof) -> [W; 3] {
        let mut words = [[0; MOST]; 3];
        for (limb, words) in words.iter_mut().enumerate() {
            for (lane, word) in words.iter_mut().enumerate().take(W::LANES) {
                *word = self.0[W::LANES - 1 - block_of_lane(lane, W::LANES)][limb];
            }
        }
        let vectors = [
            W::load64(proof, &words[0]),
            W::load64(proof, &words[1]),
            W::load64(proof, &words[2]),
        ];
        wipe_stack(words.as_flattened_mut());
        vectors
    }

    /// Returns the power for a step of all lanes.
    #[inline(always)]
    fn step_power<W: Wide>(&self, proof: W::Proof) -> [W; 3] {
        let [r0, r1, r2] = self.0[W::LANES - 1];
        [
            W::splat64(proof, r0),
            W::splat64(proof, r1),
            W::splat64(proof, r2),
        ]
    }
}

impl Drop for Powers {
    #[inline(always)]
    fn drop(&mut self) {
        wipe_stack(self.0.as_flattened_mut());
    }
}

/// Returns the tag of `data`; below `shortest` blocks the powers do not pay, and it is computed scalar.
#[inline(always)]
pub(super) fn tag_in_lanes<A: Accumulator>(
    proof: A::Proof,
    shortest: usize,
    key: &[u8; 32],
    data: &[u8],
    form: TagInput,
) -> [u8; 16] {
    let lanes = A::Vector::LANES;
    let (whole, last) = MessageEnding::split(data, form);
    let ending = last.as_bytes();
    let mut poly = Poly1305::new(key);
    if data.len() < shortest.max(2 * lanes) * 16 {
        poly.absorb(whole);
        poly.absorb(ending);
        if let Some(block) = last.partial_block() {
            poly.absorb_partial(block);
        }
        return poly.finish();
    }
    let vector = A::vector(proof);
    let powers = Powers::new(poly.r(), lanes);
    let step = A::factor(proof, powers.step_power(vector));

    // The first blocks, which make the rest a multiple of the lanes.
    let first = match (whole.len() + ending.len()) / 16 % lanes {
        0 => lanes,
        some => some,
    };
    let (front, rest) = whole.split_at(first * 16);
    let mut padded = [0; MOST * 16];
    padded[(lanes - first) * 16..lanes * 16].copy_from_slice(front);
    let mut present = [0; MOST];
    for (lane, word) in present.iter_mut().enumerate().take(lanes) {
        *word = u64::from(block_of_lane(lane, lanes) >= lanes - first);
    }
    let mut h = A::message(
        proof,
        &padded[..lanes * 16],
        A::Vector::load64(vector, &present),
    );

    let present = A::Vector::splat64(vector, 1);
    let mut groups = rest.chunks_exact(lanes * 16);
    for blocks in &mut groups {
        h = h.mul(step).add(A::message(proof, blocks, present));
    }

    // The rest and the ending form one group: `first` ensures that.
    if !ending.is_empty() {
        let left = groups.remainder();
        padded[..left.len()].copy_from_slice(left);
        padded[left.len()..lanes * 16].copy_from_slice(ending);
        h = h
            .mul(step)
            .add(A::message(proof, &padded[..lanes * 16], present));
    }

    h = h.mul(A::factor(proof, powers.lane_powers(vector)));
    poly.replace_state(h.total());
    if let Some(block) = last.partial_block() {
        poly.absorb_partial(block);
    }
    poly.finish()
}
