//! The layer between the smux core and the stream below: plain bytes, or Snappy blocks.

use std::task::{Context, Poll, ready};

use adit_smux_proto::{FRAME_HEADER, MIN_OUTPUT};
use adit_stream::BoxStream;
use adit_stream::pool::{PoolBuffer, SizeClass};
use adit_wire::{Time, subslice, subslice_mut};

use super::shared::SessionState;
use super::snappy::{MAX_BLOCK, STREAM_IDENTIFIER, SnappyChunk, SnappyDecoder, SnappyEncoder};
use super::{EndReason, SnappyError};
use adit_stream::PooledBuffer;

/// Maximum plaintext of a block, in bytes: four frames of kcptun.
const MAX_BLOCK_PLAINTEXT: usize = MAX_BLOCK / 2;

/// State of the detection of the peer's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DetectionState {
    Unknown,
    Known,
}

/// The format of bytes on the stream below.
pub(super) struct Framing {
    version: u8,
    peer: DetectionState,
    snappy: Option<Box<SnappyFraming>>,
}

struct SnappyFraming {
    encoder: SnappyEncoder,
    decoder: SnappyDecoder,
    /// Decompressed and not handled yet.
    plain: PooledBuffer,
}

impl Framing {
    pub(super) fn new(version: u8, compress: bool) -> Self {
        let snappy = compress.then(|| {
            Box::new(SnappyFraming {
                encoder: SnappyEncoder::new(),
                decoder: SnappyDecoder::default(),
                plain: PooledBuffer::default(),
            })
        });
        Self {
            version,
            peer: DetectionState::Unknown,
            snappy,
        }
    }

    /// Makes bytes of the peer's frames available to [`handle_input`](Self::handle_input).
    pub(super) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        below: &mut BoxStream,
    ) -> Poll<Result<(), EndReason>> {
        let Some(snappy) = &mut self.snappy else {
            if ready!(below.poll_fill(cx, 1))? == 0 {
                return Poll::Ready(Err(EndReason::Ended));
            }
            if self.peer == DetectionState::Unknown
                && below.filled().first() == STREAM_IDENTIFIER.first()
            {
                return Poll::Ready(Err(EndReason::Compression { theirs: true }));
            }
            return Poll::Ready(Ok(()));
        };
        let mut want = 1;
        while snappy.plain.is_empty() {
            let have = ready!(below.poll_fill(cx, want))?;
            if have == 0 {
                return Poll::Ready(Err(EndReason::Ended));
            }
            let wire = below.filled();
            // The first byte of a frame is a version.
            if !snappy.decoder.has_begun() && matches!(wire.first(), Some(1 | 2)) {
                return Poll::Ready(Err(EndReason::Compression { theirs: false }));
            }
            match snappy.decoder.parse_front(wire)? {
                SnappyChunk::NeedMore(_) if have < want => {
                    return Poll::Ready(Err(EndReason::Ended));
                }
                SnappyChunk::NeedMore(total) => want = total,
                SnappyChunk::Skip(used) => {
                    below.consume(used);
                    want = 1;
                }
                SnappyChunk::Block(used, block) => {
                    if block.len > 0 {
                        snappy.plain.reserve(block.len);
                        SnappyDecoder::open_block(&block, wire, snappy.plain.spare_mut())?;
                        snappy.plain.advance_end(block.len);
                    }
                    below.consume(used);
                    want = 1;
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Passes the available bytes to the core. Returns true if it accepted all.
    pub(super) fn handle_input(
        &mut self,
        below: &mut BoxStream,
        state: &mut SessionState,
        now: Time,
    ) -> Result<bool, EndReason> {
        let bytes = match &self.snappy {
            Some(snappy) => snappy.plain.bytes(),
            None => below.filled(),
        };
        if self.peer == DetectionState::Unknown
            && let Some(theirs) = bytes.first().copied()
        {
            if theirs != self.version && matches!(theirs, 1 | 2) {
                let ours = self.version;
                return Err(EndReason::Version { ours, theirs });
            }
            self.peer = DetectionState::Known;
        }
        let (len, used) = (bytes.len(), state.core.handle_input(now, bytes)?);
        state.has_valid_input |= used > 0;
        match &mut self.snappy {
            Some(snappy) => snappy.plain.consume(used),
            None => below.consume(used),
        }
        Ok(used == len)
    }

    /// Returns the space in the stream below that [`write_output`](Self::write_output) needs, in bytes.
    pub(super) fn output_space(&self) -> usize {
        match &self.snappy {
            Some(_) => SnappyEncoder::max_encoded_len(MAX_BLOCK_PLAINTEXT),
            None => MIN_OUTPUT.max(FRAME_HEADER + 1),
        }
    }

    /// Moves frames of the core into the slot of the stream below, which has been reserved. Returns
    /// false if there were none.
    pub(super) fn write_output(
        &mut self,
        below: &mut BoxStream,
        state: &mut SessionState,
    ) -> Result<bool, EndReason> {
        let len = match &mut self.snappy {
            None => state.core.poll_output(below.slot()),
            Some(snappy) => {
                let mut piece = PoolBuffer::take(SizeClass::SMALL, MAX_BLOCK_PLAINTEXT);
                let room = subslice_mut(&mut piece, ..MAX_BLOCK_PLAINTEXT);
                let len = state.core.poll_output(room);
                if len == 0 {
                    return Ok(false);
                }
                let plain = subslice(&piece, ..len);
                let packed = snappy.encoder.encode_block(plain, below.slot());
                packed.ok_or(SnappyError::Length)?
            }
        };
        below.commit(len)?;
        Ok(len > 0)
    }
}
