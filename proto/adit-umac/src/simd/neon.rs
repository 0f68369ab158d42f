//! 128-bit vectors: NEON. A register contains the sums of one stream.

use core::arch::aarch64::*;

use crate::kdf::STREAMS;
use crate::nh::{GroupRun, NhKey, Sums, halves, pad_tail};

/// Proof that this CPU supports NEON: the module is compiled only for targets that require it.
#[derive(Clone, Copy)]
pub(crate) struct Neon(());

impl Neon {
    pub(super) const fn new() -> Self {
        Self(())
    }

    /// Computes the contribution of `run` to the NH of its block.
    #[inline(always)]
    pub(super) fn compute_nh<const TAG: usize>(self, key: &NhKey, run: GroupRun<'_>) -> Sums {
        // SAFETY: `self` proves that the feature is available.
        unsafe { compute_nh::<TAG>(key, run) }
    }
}

#[target_feature(enable = "neon")]
fn compute_nh<const TAG: usize>(key: &NhKey, run: GroupRun<'_>) -> Sums {
    let mut sums = [(vdupq_n_u64(0), vdupq_n_u64(0)); STREAMS];
    let tail = run.tail().1.map(pad_tail);
    let (piece, groups) = run.groups();
    let keys = key
        .words_from::<4>(piece)
        .array_windows::<{ STREAMS + 1 }>();
    let groups = groups.iter().chain(&tail);
    for (group, keys) in groups.zip(keys.step_by(2)) {
        let (low, high) = halves(group);
        let (low, high) = (load(low), load(high));
        let keys = keys
            .array_windows()
            .map(|[k, l]| (load_key(k), load_key(l)));
        for ((even, odd), (k, l)) in sums.iter_mut().take(TAG / 4).zip(keys) {
            let (a, b) = (vaddq_u32(low, k), vaddq_u32(high, l));
            *even = vmlal_u32(*even, vget_low_u32(a), vget_low_u32(b));
            *odd = vmlal_high_u32(*odd, a, b);
        }
    }
    sums.map(|(even, odd)| vaddvq_u64(vaddq_u64(even, odd)))
}

#[inline]
#[target_feature(enable = "neon")]
fn load(half: &[u8; 16]) -> uint32x4_t {
    // SAFETY: reads the 16 bytes of `half`; no alignment is required.
    vreinterpretq_u32_u8(unsafe { vld1q_u8(half.as_ptr()) })
}

#[inline]
#[target_feature(enable = "neon")]
fn load_key(words: &[u32; 4]) -> uint32x4_t {
    // SAFETY: reads the 16 bytes of `words`; no alignment is required.
    unsafe { vld1q_u32(words.as_ptr()) }
}
