//! Any of tokio's readers and writers as a stream: Unix sockets, pairs of pipes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Buffered, RawStream};

/// A reader and writer of tokio; [`Buffered::from_tokio`] makes a stream of it.
#[derive(Debug)]
pub struct TokioIo<T>(T);

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Buffered<TokioIo<T>> {
    /// Creates a stream over `io`. [`abort`](crate::Stream::abort) does nothing: the peer sees what
    /// it sees when `io` is dropped.
    #[must_use]
    pub fn from_tokio(io: T) -> Self {
        Self::new(TokioIo(io))
    }

    /// Returns the reader and writer. Bytes that were received and not consumed, or committed and
    /// not sent, are lost.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.raw.0
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> RawStream for TokioIo<T> {
    fn poll_read(&mut self, cx: &mut Context<'_>, out: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut out = ReadBuf::new(out);
        ready!(Pin::new(&mut self.0).poll_read(cx, &mut out))?;
        Poll::Ready(Ok(out.filled().len()))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match ready!(Pin::new(&mut self.0).poll_write(cx, bytes))? {
            0 => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            n => Poll::Ready(Ok(n)),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn abort(&mut self) {}
}

#[cfg(all(test, unix))]
mod tests {
    use crate::{EndReason, RelayTimeouts, Stream, TrafficMeter, relay};
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;

    use super::*;

    #[tokio::test]
    async fn what_has_a_buffer_of_its_own_is_flushed_too() {
        let (near, mut far) = tokio::io::duplex(100);
        let mut stream = Buffered::from_tokio(tokio::io::BufStream::new(near));
        stream.write_all(b"word").await.unwrap();
        stream.flush().await.unwrap();
        let mut got = [0; 4];
        far.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"word");
    }

    #[tokio::test]
    async fn a_relay_carries_and_ends_each_direction() {
        let (mut client, near) = UnixStream::pair().unwrap();
        let (far, mut target) = UnixStream::pair().unwrap();
        let carried = tokio::spawn(async move {
            let limits = RelayTimeouts {
                idle: Duration::ZERO,
                half_close_idle: Duration::ZERO,
            };
            let (mut near, mut far) = (Buffered::from_tokio(near), Buffered::from_tokio(far));
            let (near, far): (&mut dyn Stream, &mut dyn Stream) = (&mut near, &mut far);
            relay(near, far, &limits, &TrafficMeter::default()).await
        });
        let much = vec![7; 1 << 20];
        let asked = async {
            client.write_all(&much).await.unwrap();
            client.shutdown().await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let answered = async {
            let mut got = Vec::new();
            target.read_to_end(&mut got).await.unwrap();
            target.write_all(b"all of it").await.unwrap();
            drop(target);
            got.len()
        };
        let (answer, got) = tokio::join!(asked, answered);
        assert_eq!((&*answer, got), ("all of it", much.len()));
        let outcome = carried.await.unwrap();
        assert!(matches!(outcome.end, EndReason::Finished), "{outcome:?}");
        assert_eq!((outcome.up, outcome.down), (1 << 20, 9));
    }
}
