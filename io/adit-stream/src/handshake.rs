//! Drives a handshake core over a stream.

use std::io;

use adit_wire::{Handshake, Rx, Step, Tx};

use crate::Stream;
use crate::stream::{fill, flush};

/// Why a handshake did not come to its end.
#[derive(Debug)]
pub enum RunError<E> {
    /// The core refused the peer's bytes. What it wants to be sent before the close is left to
    /// the caller, who may have to wait first (or must not answer at all).
    Core {
        /// The core's reason.
        error: E,
        /// The refusal to be sent, may be empty.
        unsent: Vec<u8>,
    },
    /// The peer closed in the middle.
    Eof,
    /// The stream failed.
    Io(io::Error),
}

impl<E> From<io::Error> for RunError<E> {
    fn from(e: io::Error) -> Self {
        Self::Io(e)
    }
}

/// Runs `core` until it is done. Bytes behind the dialogue stay readable in `io`.
pub async fn run<H: Handshake>(
    io: &mut dyn Stream,
    core: &mut H,
) -> Result<H::Output, RunError<H::Error>> {
    let mut out = Vec::new();
    loop {
        let (step, eaten) = {
            let mut rx = Rx::new(io.filled());
            let step = core.step(&mut rx, &mut Tx::new(&mut out));
            (step, rx.consumed())
        };
        let step = match step {
            Ok(step) => step,
            Err(error) => return Err(RunError::Core { error, unsent: out }),
        };
        io.consume(eaten);
        if !out.is_empty() {
            send(io, &out).await?;
            out.clear();
        }
        match step {
            Step::Done(output) => return Ok(output),
            Step::NeedMore { total } => {
                if fill(io, total).await? < total {
                    return Err(RunError::Eof);
                }
            }
        }
    }
}

/// Writes `bytes` and flushes.
pub async fn send(io: &mut dyn Stream, bytes: &[u8]) -> io::Result<()> {
    put(io, bytes).await?;
    flush(io).await
}

/// Puts `bytes` into the stream; they leave with the next flush, or when a buffer is full.
pub async fn put(io: &mut dyn Stream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let size = std::future::poll_fn(|cx| io.poll_slot(cx, 1)).await?;
        if size == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let (now, later) = bytes.split_at(bytes.len().min(size));
        if let Some(slot) = io.slot().get_mut(..now.len()) {
            slot.copy_from_slice(now);
        }
        io.commit(now.len())?;
        bytes = later;
    }
    Ok(())
}
