//! Random polynomials with coefficients -1, 0 and 1, drawn and sorted in constant time.

use adit_wire::{Entropy, narrow_int};
use zeroize::Zeroizing;

use super::ring::{P, Poly};

/// Number of non-zero coefficients of a short polynomial.
pub(super) const WEIGHT: usize = 286;

/// Draws each coefficient independently, uniform up to 2⁻³⁰.
pub(super) fn random_small(entropy: &mut dyn Entropy) -> Poly {
    let mut out = Zeroizing::new([0; P]);
    for (to, word) in out.iter_mut().zip(random_words(entropy).iter()) {
        *to = (((word & 0x3fff_ffff) * 3) >> 30).cast_signed() - 1;
    }
    out
}

/// Draws a polynomial with exactly [`WEIGHT`] non-zero coefficients at random positions: random words with
/// the coefficient in the low two bits, sorted.
pub(super) fn random_short(entropy: &mut dyn Entropy) -> Poly {
    let mut list = random_words(entropy);
    for (at, word) in list.iter_mut().enumerate() {
        *word = if at < WEIGHT {
            *word & !1
        } else {
            *word & !3 | 1
        };
    }
    sort_constant_time(&mut list);
    let mut out = Zeroizing::new([0; P]);
    for (to, word) in out.iter_mut().zip(list.iter()) {
        *to = (word & 3).cast_signed() - 1;
    }
    out
}

fn random_words(entropy: &mut dyn Entropy) -> Zeroizing<[u32; P]> {
    let mut raw = Zeroizing::new([0u8; 4 * P]);
    entropy.fill(&mut *raw);
    let mut out = Zeroizing::new([0; P]);
    for (to, from) in out.iter_mut().zip(raw.as_chunks::<4>().0) {
        *to = u32::from_le_bytes(*from);
    }
    out
}

/// Sorts with Batcher's merge exchange (Knuth, volume 3, 5.2.2 M): the positions that are compared depend
/// on the length alone.
fn sort_constant_time(list: &mut [u32; P]) {
    let mut p = P.next_power_of_two() / 2;
    let top = p;
    while p > 0 {
        for i in (0..P - p).filter(|i| i & p == 0) {
            compare_exchange(list, i, i + p);
        }
        let mut q = top;
        while q > p {
            for i in (0..P - q).filter(|i| i & p == 0) {
                compare_exchange(list, i + p, i + q);
            }
            q /= 2;
        }
        p /= 2;
    }
}

fn compare_exchange(list: &mut [u32; P], low: usize, high: usize) {
    let (a, b) = (list[low], list[high]);
    // All ones if b < a: the borrow of b - a in 64 bits.
    let borrow = (u64::from(b).wrapping_sub(u64::from(a)) >> 32) & 0xffff_ffff;
    let mask = narrow_int::<u32>(borrow);
    let t = mask & (a ^ b);
    list[low] = a ^ t;
    list[high] = b ^ t;
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_wire::FixedEntropy;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn short_means_the_weight(bytes in proptest::collection::vec(any::<u8>(), 4 * P)) {
            let mut entropy = FixedEntropy::new(bytes.clone());
            let mut list = random_words(&mut entropy);
            let mut sorted = list.to_vec();
            sorted.sort_unstable();
            sort_constant_time(&mut list);
            prop_assert_eq!(&list[..], &sorted);
            let short = random_short(&mut FixedEntropy::new(bytes.clone()));
            prop_assert_eq!(short.iter().filter(|x| **x != 0).count(), WEIGHT);
            prop_assert!(short.iter().all(|x| (-1..=1).contains(x)));
            let small = random_small(&mut FixedEntropy::new(bytes));
            prop_assert!(small.iter().all(|x| (-1..=1).contains(x)));
        }
    }
}
