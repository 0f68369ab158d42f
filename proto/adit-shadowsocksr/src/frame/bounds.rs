//! What a frame may hold, and what opening one finds.

use core::ops::Range;

/// The most data in a frame whose limit is 8,191 bytes.
pub(super) const MAX_DATA: usize = 8100;

/// Every such frame is shorter than this.
pub(super) const FRAME_LIMIT: usize = 8192;

/// The most random bytes in the padding of a small frame.
pub(super) const MAX_NOISE: usize = 511;

/// Data from this length on is not padded.
pub(super) const BULK: usize = 901;

/// What [`FrameOpen::open_frame`](super::FrameOpen::open_frame) found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Call again with at least `total` bytes, always more than there were.
    NeedMore {
        /// Bytes wanted, counted from the front.
        total: usize,
    },
    /// A frame whose data lies in the buffer.
    Plain {
        /// Bytes the frame took.
        consumed: usize,
        /// Where its data lies; may be empty.
        payload: Range<usize>,
    },
    /// A frame whose data is to be had from [`FrameOpen::inflated`](super::FrameOpen::inflated).
    Inflated {
        /// Bytes the frame took.
        consumed: usize,
    },
}
