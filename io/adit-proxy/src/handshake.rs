//! Runs a handshake core over a stream without reading ahead.

use std::io;

use adit_wire::{Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, subslice_mut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The reason a handshake did not complete.
pub(crate) enum HandshakeFailure<E> {
    /// The core's error. What it wanted to send has been sent.
    Core(E),
    /// The peer closed the stream.
    Eof,
    /// The stream failed.
    Io(io::Error),
}

impl<E> From<io::Error> for HandshakeFailure<E> {
    fn from(why: io::Error) -> Self {
        Self::Io(why)
    }
}

/// Runs `core` until it is done, beginning with bytes that were already `received`. Each read is
/// for the bytes that the core needs at least, so all that follows the handshake stays in `io`.
pub(crate) async fn run<S, H>(
    io: &mut S,
    core: &mut H,
    mut received: Vec<u8>,
) -> Result<H::Output, HandshakeFailure<H::Error>>
where
    S: AsyncRead + AsyncWrite + Unpin,
    H: Handshake,
{
    let mut to_send = Vec::new();
    loop {
        let (step, consumed) = {
            let mut rx = HandshakeInput::new(&mut received);
            let step = core.step(&mut rx, &mut HandshakeOutput::new(&mut to_send));
            (step, rx.consumed())
        };
        received.drain(..consumed);
        if !to_send.is_empty() {
            let sent = send(io, &to_send).await;
            to_send.clear();
            // The core's error says more than that its refusal could not be sent.
            if step.is_ok() {
                sent?;
            }
        }
        match step.map_err(HandshakeFailure::Core)? {
            HandshakeProgress::Done(output) => return Ok(output),
            HandshakeProgress::NeedMore { total } => {
                let have = received.len();
                received.resize(total.max(have + 1), 0);
                let n = io.read(subslice_mut(&mut received, have..)).await?;
                if n == 0 {
                    return Err(HandshakeFailure::Eof);
                }
                received.truncate(have + n);
            }
        }
    }
}

/// Writes `bytes` and flushes.
pub(crate) async fn send(io: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    io.write_all(bytes).await?;
    io.flush().await
}
