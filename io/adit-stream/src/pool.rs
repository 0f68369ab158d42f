//! A pool of buffers.
//!
//! A stream takes a buffer when its socket is ready and returns it when the buffer is empty. Each
//! thread keeps a few buffers of each size; a buffer may be returned on another thread.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// The sizes of buffers, in bytes.
///
/// The largest takes four full records of the widest codec (65,535 bytes and their tags). Larger
/// reads and writes brought no measurable gain.
pub const SIZES: [usize; 3] = [16 << 10, 72 << 10, 288 << 10];

/// Maximum number of free buffers of each size that a thread keeps: about 2.8 MiB in total.
const MAX_FREE: [usize; 3] = [64, 8, 4];

/// A size class: an index into [`SIZES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct SizeClass(u8);

impl SizeClass {
    /// The smallest size.
    pub const SMALL: Self = Self(0);
    /// The largest size of the pool.
    pub const LARGE: Self = Self(SIZES.len() as u8 - 1);

    /// Returns the next larger size, or this one if it is the largest.
    #[must_use]
    pub fn next_larger(self) -> Self {
        Self(self.0 + 1).min(Self::LARGE)
    }

    /// Returns the next smaller size, or this one if it is the smallest.
    #[must_use]
    pub const fn next_smaller(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// Returns the smallest size of at least `bytes` that is not below `self`.
    #[must_use]
    pub fn at_least(self, bytes: usize) -> Self {
        let mut class = self;
        while class < Self::LARGE && class.bytes() < bytes {
            class = class.next_larger();
        }
        class
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn bytes(self) -> usize {
        debug_assert!(self <= Self::LARGE, "no class above LARGE");
        SIZES.get(usize::from(self.0)).copied().unwrap_or(0)
    }
}

thread_local! {
    static FREE: RefCell<[Vec<Box<[u8]>>; 3]> = const { RefCell::new([const { Vec::new() }; 3]) };
}

/// A buffer from the pool, or an empty one after [`PoolBuffer::release`].
#[derive(Debug, Default)]
pub struct PoolBuffer {
    bytes: Box<[u8]>,
}

impl PoolBuffer {
    /// Takes a buffer of at least `class` and at least `min` bytes. A `min` beyond the sizes of the
    /// pool allocates a buffer outside the pool.
    #[must_use]
    pub fn take(class: SizeClass, min: usize) -> Self {
        let class = class.at_least(min);
        if class.bytes() < min {
            return Self {
                bytes: vec![0; min].into(),
            };
        }
        let kept =
            FREE.with_borrow_mut(|free| free.get_mut(usize::from(class.0)).and_then(Vec::pop));
        Self {
            bytes: kept.unwrap_or_else(|| vec![0; class.bytes()].into()),
        }
    }

    /// True if there is no buffer.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the buffer to the pool.
    pub fn release(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let Some(index) = SIZES.iter().position(|size| *size == bytes.len()) else {
            return;
        };
        // The pool of a thread that is ending is gone; then the buffer is freed.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if let (Some(list), Some(keep)) = (free.get_mut(index), MAX_FREE.get(index))
                && list.len() < *keep
            {
                list.push(bytes);
            }
        });
    }
}

impl Drop for PoolBuffer {
    fn drop(&mut self) {
        self.release();
    }
}

impl Deref for PoolBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for PoolBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_and_the_pool_is_bounded() {
        let mut a = PoolBuffer::take(SizeClass::SMALL, 0);
        a[0] = 7;
        a.release();
        assert!(a.is_none());
        assert_eq!(
            PoolBuffer::take(SizeClass::SMALL, 0)[0],
            7,
            "the same buffer"
        );
        let many: Vec<_> = (0..40)
            .map(|_| PoolBuffer::take(SizeClass::LARGE, 0))
            .collect();
        drop(many);
        FREE.with_borrow(|free| assert_eq!(free[2].len(), MAX_FREE[2]));
    }

    #[test]
    fn sizes_serve_the_need() {
        assert_eq!(
            PoolBuffer::take(SizeClass::SMALL, 65_535 + 34).len(),
            SIZES[1]
        );
        assert_eq!(PoolBuffer::take(SizeClass::SMALL, 1 << 20).len(), 1 << 20);
        assert_eq!(SizeClass::LARGE.next_larger(), SizeClass::LARGE);
        assert_eq!(SizeClass::SMALL.next_smaller(), SizeClass::SMALL);
    }
}
