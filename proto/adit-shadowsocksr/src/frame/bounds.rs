//! Limits of frames, and the result of opening one.

use core::ops::Range;

/// Maximum data in a frame with a limit of 8,191 bytes.
pub(super) const MAX_DATA: usize = 8100;

/// Upper bound of the length of such a frame, exclusive.
pub(super) const FRAME_LIMIT: usize = 8192;

/// Maximum number of random bytes in the padding of a small frame.
pub(super) const MAX_NOISE: usize = 511;

/// Minimum length of data that is not padded.
pub(super) const MIN_BULK_LEN: usize = 901;

/// The result of [`FrameOpen::open_frame`](super::FrameOpen::open_frame).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenedFrame {
    /// Call again with at least `total` bytes, always more than in this call.
    NeedMore {
        /// Number of bytes needed, counted from the front.
        total: usize,
    },
    /// A frame with its data in the buffer.
    Plain {
        /// Number of bytes in the frame.
        consumed: usize,
        /// The range of its data; may be empty.
        payload: Range<usize>,
    },
    /// A frame whose data [`FrameOpen::inflated`](super::FrameOpen::inflated) returns.
    Inflated {
        /// Number of bytes in the frame.
        consumed: usize,
    },
}
