//! Ranges and numbers that are right by construction, said where they are used.
//!
//! Nothing panics in a release build: a range outside of its slice gives nothing, a number that is
//! too large the largest there is. Where that cannot happen, these functions say so, and a debug
//! build (tests, fuzzing, simulations) stops at the caller if it happens all the same. They are not
//! for what a peer or a user chooses: that may fail, and is checked with `get` and `try_from`.

use core::slice::SliceIndex;

const _: () = assert!(
    usize::BITS >= 32 && usize::BITS <= 64,
    "a length is between a u32 and a u64"
);

/// `all[range]`, which lies inside.
///
/// If it does not: a panic in a debug build, nothing at all in a release build.
#[inline]
#[must_use]
#[track_caller]
pub fn held<T, I: SliceIndex<[T], Output = [T]>>(all: &[T], range: I) -> &[T] {
    let part = all.get(range);
    debug_assert!(part.is_some(), "a range outside of {} items", all.len());
    part.unwrap_or_default()
}

/// `all[range]`, which lies inside, to be written.
///
/// If it does not: a panic in a debug build, nothing at all in a release build.
#[inline]
#[must_use]
#[track_caller]
pub fn held_mut<T, I: SliceIndex<[T], Output = [T]>>(all: &mut [T], range: I) -> &mut [T] {
    let len = all.len();
    let part = all.get_mut(range);
    debug_assert!(part.is_some(), "a range outside of {len} items");
    part.unwrap_or_default()
}

/// The first `N` bytes of an array that has as many, which the compiler checks.
#[inline]
#[must_use]
pub fn front<const N: usize, const ALL: usize>(all: &[u8; ALL]) -> [u8; N] {
    const { assert!(N <= ALL, "the array is shorter") }
    let mut front = [0; N];
    for (to, from) in front.iter_mut().zip(all) {
        *to = *from;
    }
    front
}

/// A number that is not negative in a smaller type, which it fits.
///
/// If it does not: a panic in a debug build, the type's largest number in a release build.
#[inline]
#[must_use]
#[track_caller]
pub fn narrow<N: Number>(number: impl TryInto<N>) -> N {
    let number = number.try_into().ok();
    debug_assert!(number.is_some(), "a number above {}", N::MOST);
    number.unwrap_or(N::MOST)
}

/// What [`narrow`] gives.
pub trait Number: Copy + core::fmt::Display {
    /// The largest number.
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

/// A length as a `u64`. Every length fits.
#[inline]
#[must_use]
pub const fn u64_from(len: usize) -> u64 {
    len as u64
}

/// A number as a `usize`. Every `u32` fits.
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
        assert_eq!(held(&all, 1..), [2, 3]);
        assert_eq!(held(&all, 3..), [0; 0]);
        held_mut(&mut all, ..2).fill(7);
        assert_eq!(all, [7, 7, 3]);
        assert_eq!(front(&all), [7, 7]);
        assert_eq!(narrow::<u8>(255_usize), 255);
        assert_eq!(narrow::<i32>(7_usize), 7);
        assert_eq!(u64_from(usize::MAX), usize::MAX as u64);
        assert_eq!(usize_from(u32::MAX), 0xffff_ffff);
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "outside of 3 items"))]
    fn a_part_that_is_not_there_is_noticed() {
        assert_eq!(held(&[1, 2, 3], 2..4), [0; 0]);
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "outside of 3 items"))]
    fn a_part_to_be_written_that_is_not_there_is_noticed() {
        assert_eq!(held_mut(&mut [1, 2, 3], 4..), [0; 0]);
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "above 255"))]
    fn a_number_that_is_too_large_is_noticed() {
        assert_eq!(narrow::<u8>(256_usize), 255);
    }
}
