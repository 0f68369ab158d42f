//! Detection of a peer's format from the first bytes that it sends.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use adit_smux_proto::Version;
use adit_stream::BoxStream;
use adit_wire::subslice;

use super::snappy::{STREAM_IDENTIFIER, SnappyChunk, SnappyDecoder};
use super::{EndReason, SnappyError};

/// The parameters that smux does not negotiate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmuxFormat {
    /// The version of smux.
    pub version: Version,
    /// True if all frames are in Snappy blocks.
    pub compress: bool,
}

impl SmuxFormat {
    /// Detects the format from the first bytes of a peer that sends first, and leaves them in the
    /// stream: an accepting end can follow any peer.
    ///
    /// # Errors
    ///
    /// The stream fails or ends, or the bytes are neither smux nor Snappy.
    ///
    /// # Cancel safety
    /// Cancel safe: the bytes stay in the stream.
    pub async fn detect(below: &mut BoxStream) -> Result<Self, EndReason> {
        poll_fn(|cx| Self::poll_detect(below, cx)).await
    }

    fn poll_detect(below: &mut BoxStream, cx: &mut Context<'_>) -> Poll<Result<Self, EndReason>> {
        let mut want = 1;
        loop {
            let have = ready!(below.poll_fill(cx, want))?;
            if have < want {
                return Poll::Ready(Err(EndReason::Ended));
            }
            match Self::detect_in(below.filled())? {
                DetectionResult::Format(manner) => return Poll::Ready(Ok(manner)),
                DetectionResult::NeedMore(total) => want = total,
            }
        }
    }

    fn detect_in(wire: &[u8]) -> Result<DetectionResult, EndReason> {
        if wire.first() != STREAM_IDENTIFIER.first() {
            return Ok(DetectionResult::from_first_byte(wire, false)?
                .unwrap_or(DetectionResult::NeedMore(1)));
        }
        let (mut decoder, mut at) = (SnappyDecoder::default(), 0);
        loop {
            let rest = subslice(wire, at..);
            match decoder.parse_front(rest)? {
                SnappyChunk::NeedMore(total) => return Ok(DetectionResult::NeedMore(at + total)),
                SnappyChunk::Skip(used) => at += used,
                SnappyChunk::Block(used, block) => {
                    let mut plain = vec![0; block.len];
                    SnappyDecoder::open_block(&block, rest, &mut plain)?;
                    if let Some(seen) = DetectionResult::from_first_byte(&plain, true)? {
                        return Ok(seen);
                    }
                    at += used;
                }
            }
            if at > MAX_DETECTION_BYTES {
                return Err(SnappyError::Length.into());
            }
        }
    }
}

/// Maximum number of bytes before the first frame of a peer.
const MAX_DETECTION_BYTES: usize = 4096;

/// Result of a detection.
enum DetectionResult {
    Format(SmuxFormat),
    /// The total number of bytes needed.
    NeedMore(usize),
}

impl DetectionResult {
    /// Detects the format from the first byte of a frame. Returns `None` if there is no byte.
    fn from_first_byte(plain: &[u8], compress: bool) -> Result<Option<Self>, EndReason> {
        let version = match plain.first() {
            None => return Ok(None),
            Some(1) => Version::V1,
            Some(2) => Version::V2,
            Some(_) => {
                return Err(EndReason::Protocol(adit_wire::ProtocolError::Malformed(
                    "smux version",
                )));
            }
        };
        Ok(Some(Self::Format(SmuxFormat { version, compress })))
    }
}

#[cfg(test)]
mod tests {
    use super::super::snappy::SnappyEncoder;
    use super::*;

    fn read(wire: &[u8]) -> Result<SmuxFormat, Option<usize>> {
        match SmuxFormat::detect_in(wire) {
            Ok(DetectionResult::Format(manner)) => Ok(manner),
            Ok(DetectionResult::NeedMore(total)) => Err(Some(total)),
            Err(_) => Err(None),
        }
    }

    #[test]
    fn every_manner_is_known_by_its_first_frame() {
        for (byte, version) in [(1, Version::V1), (2, Version::V2)] {
            let frame = [byte, 3, 0, 0, 0, 0, 0, 0];
            let manner = |compress| SmuxFormat { version, compress };
            assert_eq!(read(&frame[..1]), Ok(manner(false)));
            let mut packed = vec![0; SnappyEncoder::max_encoded_len(frame.len())];
            let len = SnappyEncoder::new()
                .encode_block(&frame, &mut packed)
                .unwrap();
            assert_eq!(read(&packed[..len]), Ok(manner(true)));
            // The requested total is more than there is, and not more than will arrive.
            for cut in 1..len {
                let total = read(&packed[..cut]).unwrap_err().unwrap();
                assert!(total > cut && total <= len, "{cut}: {total}");
            }
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for wire in [&[0][..], &[3], b"GET / HTTP/1.1", &[0xff, 1, 2, 3, 4, 5, 6]] {
            assert_eq!(read(wire), Err(None), "{wire:?}");
        }
        // Only chunks that are skipped.
        let skipped = [&STREAM_IDENTIFIER[..], &[0x80, 0, 16, 0], &[0; 4096]].concat();
        assert_eq!(read(&skipped), Err(None));
    }
}
