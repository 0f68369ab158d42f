//! Slicing and integer conversion for ranges and numbers that are valid by construction.
//!
//! These functions never panic in a release build: a range outside its slice yields an empty slice, a
//! number that is too large yields the type's maximum. Calling one states that this cannot happen, and a
//! debug build (tests, fuzzing, simulations) panics at the caller if it does. Do not use them for values
//! that a peer or a user chooses: these may be out of range and are checked with `get` and `try_from`.

use core::slice::SliceIndex;

const _: () = assert!(
    usize::BITS >= 32 && usize::BITS <= 64,
    "usize must be at least a u32 and at most a u64"
);

/// Returns `all[range]` for a range that lies inside `all`.
///
/// # Panics
/// Panics in a debug build if it does not; a release build returns an empty slice.
#[inline]
#[must_use]
#[track_caller]
pub fn subslice<T, I: SliceIndex<[T], Output = [T]>>(all: &[T], range: I) -> &[T] {
    let part = all.get(range);
    debug_assert!(
        part.is_some(),
        "range outside a slice of {} items",
        all.len()
    );
    part.unwrap_or_default()
}

/// Returns `all[range]` as a mutable slice for a range that lies inside `all`.
///
/// # Panics
/// Panics in a debug build if it does not; a release build returns an empty slice.
#[inline]
#[must_use]
#[track_caller]
pub fn subslice_mut<T, I: SliceIndex<[T], Output = [T]>>(all: &mut [T], range: I) -> &mut [T] {
    let len = all.len();
    let part = all.get_mut(range);
    debug_assert!(part.is_some(), "range outside a slice of {len} items");
    part.unwrap_or_default()
}

/// Returns `text[range]` for a range that lies inside `text` and ends at characters' boundaries.
///
/// # Panics
/// Panics in a debug build if it does not; a release build returns an empty string.
#[inline]
#[must_use]
#[track_caller]
pub fn substr<I: SliceIndex<str, Output = str>>(text: &str, range: I) -> &str {
    let part = text.get(range);
    debug_assert!(
        part.is_some(),
        "range outside a text of {} bytes, or inside a character",
        text.len()
    );
    part.unwrap_or_default()
}

/// Returns the first `N` bytes of an array. The compiler checks that it has that many.
#[inline]
#[must_use]
pub fn array_prefix<const N: usize, const ALL: usize>(all: &[u8; ALL]) -> [u8; N] {
    const { assert!(N <= ALL, "the array has fewer than N bytes") }
    let mut front = [0; N];
    for (to, from) in front.iter_mut().zip(all) {
        *to = *from;
    }
    front
}

/// Converts a non-negative number that fits into the smaller type `N`.
///
/// # Panics
/// Panics in a debug build if it does not fit; a release build returns the maximum of `N`.
#[inline]
#[must_use]
#[track_caller]
pub fn narrow_int<N: Number>(number: impl TryInto<N>) -> N {
    let number = number.try_into().ok();
    debug_assert!(number.is_some(), "number above {}", N::MOST);
    number.unwrap_or(N::MOST)
}

/// An integer type that [`narrow_int`] converts to.
pub trait Number: Copy + core::fmt::Display {
    /// The maximum of the type.
    const MOST: Self;
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(impl Number for $number {
            const MOST: Self = Self::MAX;
        })*
    };
}

numbers!(u8 u16 u32 u64 usize i32 i64);

/// Converts a length to a `u64`. Every length fits.
#[inline]
#[must_use]
pub const fn u64_from(len: usize) -> u64 {
    len as u64
}

/// Converts a `u32` to a `usize`. Every `u32` fits.
#[inline]
#[must_use]
pub const fn usize_from(number: u32) -> usize {
    number as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_right_is_given() {
        let mut all = [1, 2, 3];
        assert_eq!(subslice(&all, 1..), [2, 3]);
        assert_eq!(subslice(&all, 3..), [0; 0]);
        assert_eq!(substr("aé", 1..), "é");
        assert_eq!(substr("aé", 3..), "");
        subslice_mut(&mut all, ..2).fill(7);
        assert_eq!(all, [7, 7, 3]);
        assert_eq!(array_prefix(&all), [7, 7]);
        assert_eq!(narrow_int::<u8>(255_usize), 255);
        assert_eq!(narrow_int::<i32>(7_usize), 7);
        assert_eq!(u64_from(usize::MAX), usize::MAX as u64);
        assert_eq!(usize_from(u32::MAX), 0xffff_ffff);
    }

    #[test]
    #[cfg_attr(
        debug_assertions,
        should_panic(expected = "outside a slice of 3 items")
    )]
    fn a_part_that_is_not_there_is_noticed() {
        assert_eq!(subslice(&[1, 2, 3], 2..4), [0; 0]);
    }

    #[test]
    #[cfg_attr(
        debug_assertions,
        should_panic(expected = "outside a slice of 3 items")
    )]
    fn a_part_to_be_written_that_is_not_there_is_noticed() {
        assert_eq!(subslice_mut(&mut [1, 2, 3], 4..), [0; 0]);
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "above 255"))]
    fn a_number_that_is_too_large_is_noticed() {
        assert_eq!(narrow_int::<u8>(256_usize), 255);
    }
}
