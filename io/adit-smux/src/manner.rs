//! Detection of a peer's format from the first bytes that it sends.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use adit_smux_proto::Version;
use adit_stream::BoxStream;
use adit_wire::subslice;

use super::snappy::{Decoder, Front, STREAM};
use super::{End, SnappyError};

/// The parameters that smux does not negotiate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manner {
    /// The version of smux.
    pub version: Version,
    /// True if all frames are in Snappy blocks.
    pub compress: bool,
}

impl Manner {
    /// Detects the format from the first bytes of a peer that sends first, and leaves them in the
    /// stream: an accepting end can follow any peer.
    ///
    /// # Errors
    ///
    /// The stream fails or ends, or the bytes are neither smux nor Snappy.
    pub async fn of(below: &mut BoxStream) -> Result<Self, End> {
        poll_fn(|cx| Self::poll(below, cx)).await
    }

    fn poll(below: &mut BoxStream, cx: &mut Context<'_>) -> Poll<Result<Self, End>> {
        let mut want = 1;
        loop {
            let have = ready!(below.poll_fill(cx, want))?;
            if have < want {
                return Poll::Ready(Err(End::Ended));
            }
            match Self::read(below.filled())? {
                Seen::Manner(manner) => return Poll::Ready(Ok(manner)),
                Seen::NeedMore(total) => want = total,
            }
        }
    }

    fn read(wire: &[u8]) -> Result<Seen, End> {
        if wire.first() != STREAM.first() {
            return Ok(Seen::first_of(wire, false)?.unwrap_or(Seen::NeedMore(1)));
        }
        let (mut decoder, mut at) = (Decoder::default(), 0);
        loop {
            let rest = subslice(wire, at..);
            match decoder.front(rest)? {
                Front::NeedMore(total) => return Ok(Seen::NeedMore(at + total)),
                Front::Skip(used) => at += used,
                Front::Block(used, block) => {
                    let mut plain = vec![0; block.len];
                    Decoder::open(&block, rest, &mut plain)?;
                    if let Some(seen) = Seen::first_of(&plain, true)? {
                        return Ok(seen);
                    }
                    at += used;
                }
            }
            if at > MOST {
                return Err(SnappyError::Length.into());
            }
        }
    }
}

/// Maximum number of bytes before the first frame of a peer.
const MOST: usize = 4096;

/// Result of a detection.
enum Seen {
    Manner(Manner),
    /// The total number of bytes needed.
    NeedMore(usize),
}

impl Seen {
    /// Detects the format from the first byte of a frame. Returns `None` if there is no byte.
    fn first_of(plain: &[u8], compress: bool) -> Result<Option<Self>, End> {
        let version = match plain.first() {
            None => return Ok(None),
            Some(1) => Version::V1,
            Some(2) => Version::V2,
            Some(_) => {
                return Err(End::Protocol(adit_wire::ProtocolError::Malformed(
                    "smux version",
                )));
            }
        };
        Ok(Some(Self::Manner(Manner { version, compress })))
    }
}

#[cfg(test)]
mod tests {
    use super::super::snappy::Encoder;
    use super::*;

    fn read(wire: &[u8]) -> Result<Manner, Option<usize>> {
        match Manner::read(wire) {
            Ok(Seen::Manner(manner)) => Ok(manner),
            Ok(Seen::NeedMore(total)) => Err(Some(total)),
            Err(_) => Err(None),
        }
    }

    #[test]
    fn every_manner_is_known_by_its_first_frame() {
        for (byte, version) in [(1, Version::V1), (2, Version::V2)] {
            let frame = [byte, 3, 0, 0, 0, 0, 0, 0];
            let manner = |compress| Manner { version, compress };
            assert_eq!(read(&frame[..1]), Ok(manner(false)));
            let mut packed = vec![0; Encoder::room(frame.len())];
            let len = Encoder::new().encode(&frame, &mut packed).unwrap();
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
        let skipped = [&STREAM[..], &[0x80, 0, 16, 0], &[0; 4096]].concat();
        assert_eq!(read(&skipped), Err(None));
    }
}
