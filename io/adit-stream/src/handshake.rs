//! Runs a handshake core over a stream.

use std::io;

use adit_wire::{Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress};

use crate::Stream;
use crate::stream::{fill_to, flush_stream};

/// Error of a handshake that did not complete.
///
/// Implements [`std::error::Error`] where the core's error can be displayed.
///
/// The enum is exhaustive, so that programs that answer each kind of failure differently miss none.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError<E> {
    /// The core refused the peer's bytes. The caller sends the reply, since it may have to wait
    /// first or must not answer at all.
    #[error("{error}")]
    Core {
        /// The error of the core.
        error: E,
        /// The reply to send before the close. May be empty.
        unsent: Vec<u8>,
    },
    /// The peer closed the stream during the handshake.
    #[error("the peer closed the connection during the handshake")]
    Eof,
    /// The stream failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Runs `core` until it is done. Bytes that follow the handshake stay readable in `io`.
///
/// # Errors
///
/// See [`HandshakeError`]. The end of the stream before the handshake is complete is
/// [`HandshakeError::Eof`].
///
/// # Cancel safety
/// Not cancel safe: part of an answer may have been written, or input consumed. Close the stream.
pub async fn run_handshake<H: Handshake>(
    io: &mut dyn Stream,
    core: &mut H,
) -> Result<H::Output, HandshakeError<H::Error>> {
    let mut out = Vec::new();
    loop {
        let (step, eaten) = {
            let mut rx = HandshakeInput::new(io.filled());
            let step = core.step(&mut rx, &mut HandshakeOutput::new(&mut out));
            (step, rx.consumed())
        };
        let step = match step {
            Ok(step) => step,
            Err(error) => return Err(HandshakeError::Core { error, unsent: out }),
        };
        io.consume(eaten);
        if !out.is_empty() {
            write_and_flush(io, &out).await?;
            out.clear();
        }
        match step {
            HandshakeProgress::Done(output) => return Ok(output),
            HandshakeProgress::NeedMore { total } => {
                if fill_to(io, total).await? < total {
                    return Err(HandshakeError::Eof);
                }
            }
        }
    }
}

/// Writes `bytes` and flushes.
///
/// # Errors
///
/// As [`write_all`].
///
/// # Cancel safety
/// Not cancel safe: a part of `bytes` may have been written.
pub async fn write_and_flush(io: &mut dyn Stream, bytes: &[u8]) -> io::Result<()> {
    write_all(io, bytes).await?;
    flush_stream(io).await
}

/// Writes `bytes` to the stream without a flush: they are sent with the next flush, or when a
/// buffer is full.
///
/// # Errors
///
/// Fails with [`WriteZero`](io::ErrorKind::WriteZero) if the write direction is complete, or with
/// the error of the stream.
///
/// # Cancel safety
/// Not cancel safe: a part of `bytes` may have been written.
pub async fn write_all(io: &mut dyn Stream, mut bytes: &[u8]) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use std::error::Error;

    use adit_wire::{Handshake, ProtocolError};

    use super::*;
    use crate::Buffered;

    /// Reads two bytes, which must be `ok`.
    struct TwoBytes;

    impl Handshake for TwoBytes {
        type Output = ();
        type Error = ProtocolError;

        fn step(
            &mut self,
            rx: &mut HandshakeInput<'_>,
            tx: &mut HandshakeOutput<'_>,
        ) -> Result<HandshakeProgress<()>, ProtocolError> {
            match rx.bytes() {
                [] | [_] => Ok(HandshakeProgress::NeedMore { total: 2 }),
                [b'o', b'k', ..] => {
                    rx.consume(2);
                    Ok(HandshakeProgress::Done(()))
                }
                _ => {
                    tx.extend_from_slice(b"no");
                    Err(ProtocolError::Malformed("greeting"))
                }
            }
        }
    }

    /// Returns the outcome of a handshake with a peer that sends `bytes` and closes.
    async fn outcome(bytes: &[u8]) -> Result<(), Box<dyn Error + Send + Sync>> {
        let (near, mut far) = tokio::io::duplex(64);
        tokio::io::AsyncWriteExt::write_all(&mut far, bytes).await?;
        drop(far);
        Ok(run_handshake(&mut Buffered::from_tokio(near), &mut TwoBytes).await?)
    }

    #[tokio::test]
    async fn every_failure_is_an_error_with_its_reason() {
        outcome(b"ok and more").await.unwrap();
        let failure = outcome(b"xy").await.unwrap_err();
        assert_eq!(
            failure.to_string(),
            ProtocolError::Malformed("greeting").to_string()
        );
        let failure = failure.downcast::<HandshakeError<ProtocolError>>().unwrap();
        assert!(
            matches!(*failure, HandshakeError::Core { ref unsent, .. } if unsent == b"no"),
            "{failure:?}"
        );
        let failure = outcome(b"o").await.unwrap_err();
        assert!(failure.to_string().contains("closed the connection"));
        let failed = HandshakeError::<ProtocolError>::from(io::Error::other("the cause"));
        assert_eq!(failed.to_string(), "the cause");
    }
}
