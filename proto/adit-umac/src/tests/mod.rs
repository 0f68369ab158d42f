//! Golden vectors, properties of every implementation, and comparisons of the kernels.

mod agreement;
mod golden;
mod laws;
#[cfg(feature = "traits")]
mod traits;

use std::vec::Vec;

use serde_json::Value;

use crate::SimdLevel;

pub(crate) fn vectors() -> Value {
    serde_json::from_str(include_str!("../../vectors/umac.json")).unwrap()
}

pub(crate) fn hex(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap().as_bytes();
    let digit = |c: u8| u8::try_from(char::from(c).to_digit(16).unwrap()).unwrap();
    text.chunks(2)
        .map(|p| digit(p[0]) << 4 | digit(p[1]))
        .collect()
}

/// Returns the levels that this CPU supports.
fn levels() -> impl Iterator<Item = SimdLevel> {
    SimdLevel::ALL
        .into_iter()
        .filter(|level| level.is_available())
}

/// Returns pseudo-random bytes, the same for the same seed (splitmix64).
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let words = core::iter::repeat_with(next).take(length / 8 + 1);
    let mut octets: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    octets.truncate(length);
    octets
}
