//! The layer between the smux core and the stream below: plain bytes, or Snappy blocks.

use std::task::{Context, Poll, ready};

use adit_smux_proto::{FRAME_HEADER, MIN_OUTPUT};
use adit_stream::BoxStream;
use adit_stream::pool::{Class, Lease};
use adit_wire::{Time, subslice, subslice_mut};

use super::shared::State;
use super::snappy::{BLOCK, Decoder, Encoder, Front, STREAM};
use super::{End, SnappyError};
use adit_stream::Buffer;

/// Maximum plaintext of a block, in bytes: four frames of kcptun.
const PIECE: usize = BLOCK / 2;

/// State of the detection of the peer's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Peer {
    Unknown,
    Known,
}

/// The format of bytes on the stream below.
pub(super) struct Framing {
    version: u8,
    peer: Peer,
    snappy: Option<Box<Snappy>>,
}

struct Snappy {
    encoder: Encoder,
    decoder: Decoder,
    /// Decompressed and not handled yet.
    plain: Buffer,
}

impl Framing {
    pub(super) fn new(version: u8, compress: bool) -> Self {
        let snappy = compress.then(|| {
            Box::new(Snappy {
                encoder: Encoder::new(),
                decoder: Decoder::default(),
                plain: Buffer::default(),
            })
        });
        Self {
            version,
            peer: Peer::Unknown,
            snappy,
        }
    }

    /// Makes bytes of the peer's frames available to [`take_in`](Self::take_in).
    pub(super) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        below: &mut BoxStream,
    ) -> Poll<Result<(), End>> {
        let Some(snappy) = &mut self.snappy else {
            if ready!(below.poll_fill(cx, 1))? == 0 {
                return Poll::Ready(Err(End::Ended));
            }
            if self.peer == Peer::Unknown && below.filled().first() == STREAM.first() {
                return Poll::Ready(Err(End::Compression { theirs: true }));
            }
            return Poll::Ready(Ok(()));
        };
        let mut want = 1;
        while snappy.plain.is_empty() {
            let have = ready!(below.poll_fill(cx, want))?;
            if have == 0 {
                return Poll::Ready(Err(End::Ended));
            }
            let wire = below.filled();
            // The first byte of a frame is a version.
            if !snappy.decoder.has_begun() && matches!(wire.first(), Some(1 | 2)) {
                return Poll::Ready(Err(End::Compression { theirs: false }));
            }
            match snappy.decoder.front(wire)? {
                Front::NeedMore(_) if have < want => return Poll::Ready(Err(End::Ended)),
                Front::NeedMore(total) => want = total,
                Front::Skip(used) => {
                    below.consume(used);
                    want = 1;
                }
                Front::Block(used, block) => {
                    if block.len > 0 {
                        snappy.plain.reserve(block.len);
                        Decoder::open(&block, wire, snappy.plain.room())?;
                        snappy.plain.fill(block.len);
                    }
                    below.consume(used);
                    want = 1;
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Passes the available bytes to the core. Returns true if it accepted all.
    pub(super) fn take_in(
        &mut self,
        below: &mut BoxStream,
        state: &mut State,
        now: Time,
    ) -> Result<bool, End> {
        let bytes = match &self.snappy {
            Some(snappy) => snappy.plain.bytes(),
            None => below.filled(),
        };
        if self.peer == Peer::Unknown
            && let Some(theirs) = bytes.first().copied()
        {
            if theirs != self.version && matches!(theirs, 1 | 2) {
                let ours = self.version;
                return Err(End::Version { ours, theirs });
            }
            self.peer = Peer::Known;
        }
        let (len, used) = (bytes.len(), state.core.handle_input(now, bytes)?);
        state.understood |= used > 0;
        match &mut self.snappy {
            Some(snappy) => snappy.plain.consume(used),
            None => below.consume(used),
        }
        Ok(used == len)
    }

    /// Returns the space in the stream below that [`give_out`](Self::give_out) needs, in bytes.
    pub(super) fn room(&self) -> usize {
        match &self.snappy {
            Some(_) => Encoder::room(PIECE),
            None => MIN_OUTPUT.max(FRAME_HEADER + 1),
        }
    }

    /// Moves frames of the core into the slot of the stream below, which has been reserved. Returns
    /// false if there were none.
    pub(super) fn give_out(
        &mut self,
        below: &mut BoxStream,
        state: &mut State,
    ) -> Result<bool, End> {
        let len = match &mut self.snappy {
            None => state.core.poll_output(below.slot()),
            Some(snappy) => {
                let mut piece = Lease::take(Class::SMALL, PIECE);
                let room = subslice_mut(&mut piece, ..PIECE);
                let len = state.core.poll_output(room);
                if len == 0 {
                    return Ok(false);
                }
                let plain = subslice(&piece, ..len);
                let packed = snappy.encoder.encode(plain, below.slot());
                packed.ok_or(SnappyError::Length)?
            }
        };
        below.commit(len)?;
        Ok(len > 0)
    }
}
