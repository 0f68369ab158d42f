//! The loops that move a client's bytes: over tokio, and over blocking readers and writers.

use std::io::{self, Read, Write};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use adit_ssh_proto::sftp::FrameReader;
use adit_stream::{Buffered, Stream, fill_to, finish_stream, flush_stream, write_all};
use adit_wire::subslice;
use tokio::io::{AsyncRead, AsyncWrite};

use super::Handler;
use super::options::ServeError;
use super::session::Session;

/// Number of bytes that a blocking reader is asked for.
const READ_LEN: usize = 256 * 1024;
/// Number of bytes of answers from which on they are sent although there are more requests.
const WRITE_LEN: usize = 64 * 1024;

/// Serves a handler's files to one client until it closes its side of the stream, a channel of
/// `adit-ssh` for example.
///
/// Requests are executed in their order, one at a time, and answered together as far as they arrive
/// together.
///
/// # Errors
/// [`ServeError::Protocol`] if the client violated the protocol, [`ServeError::Truncated`] if it left within a
/// message, [`ServeError::Stream`] if the stream failed. A client that leaves without reading its last
/// answers is not an error.
pub async fn serve<S: Stream, H: Handler>(stream: S, handler: H) -> Result<(), ServeError> {
    serve_until(stream, handler, std::future::pending()).await
}

/// Serves a handler's files until the client closes its side of the stream, or `stop` is ready between two
/// requests.
pub(super) async fn serve_until<S: Stream, H: Handler>(
    mut stream: S,
    handler: H,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let mut stop = pin!(stop);
    let mut session = Session::new(handler);
    let mut frames = FrameReader::new();
    let mut out = Vec::new();
    loop {
        let mut data: &[u8] = stream.filled();
        let filled = data.len();
        while out.len() < WRITE_LEN
            && let Some(frame) = frames.next_frame(&mut data)?
        {
            session.execute(frame, &mut out).await?;
        }
        let used = filled - data.len();
        stream.consume(used);
        let idle = stream.filled().is_empty();
        if idle || out.len() >= WRITE_LEN {
            let send = async {
                write_all(&mut stream, &out).await?;
                match idle {
                    true => flush_stream(&mut stream).await,
                    false => Ok(()),
                }
            };
            let Some(sent) = unless(stop.as_mut(), send).await else {
                return Ok(());
            };
            if is_left(sent)? {
                return Ok(());
            }
            out.clear();
        }
        if idle {
            let Some(filled) = unless(stop.as_mut(), fill_to(&mut stream, 1)).await else {
                return Ok(());
            };
            if filled? == 0 {
                break;
            }
        }
    }
    if !frames.at_boundary() {
        return Err(ServeError::Truncated);
    }
    is_left(finish_stream(&mut stream).await).map(drop)
}

/// Serves a handler's files over a reader and writer of tokio: a socket, or the pipes of a process
/// joined by [`tokio::io::join`]. See [`serve`].
///
/// # Errors
/// As [`serve`].
pub async fn serve_tokio<T, H>(io: T, handler: H) -> Result<(), ServeError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send,
    H: Handler,
{
    serve(Buffered::from_tokio(io), handler).await
}

/// Serves a handler's files over blocking streams, on the calling thread: the standard streams of a
/// process that is a server's subsystem. See [`serve`].
///
/// # Errors
/// As [`serve`].
pub fn serve_blocking<H: Handler>(
    mut input: impl Read,
    mut output: impl Write,
    handler: H,
) -> Result<(), ServeError> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut session = Session::new(handler);
    let mut frames = FrameReader::new();
    let mut buffer = vec![0; READ_LEN];
    let mut out = Vec::new();
    loop {
        let read = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
            Err(why) => return Err(why.into()),
        };
        let mut data = subslice(&buffer, ..read);
        while let Some(frame) = frames.next_frame(&mut data)? {
            block_on(&waker, session.execute(frame, &mut out))?;
            if out.len() >= WRITE_LEN {
                if is_left(output.write_all(&out))? {
                    return Ok(());
                }
                out.clear();
            }
        }
        if is_left(output.write_all(&out).and_then(|()| output.flush()))? {
            return Ok(());
        }
        out.clear();
    }
    match frames.at_boundary() {
        true => Ok(()),
        false => Err(ServeError::Truncated),
    }
}

/// Awaits `work`; `None` if `stop` is ready before.
async fn unless<T>(
    stop: Pin<&mut impl Future<Output = ()>>,
    work: impl Future<Output = T>,
) -> Option<T> {
    // A client that always has another request must not keep the thread for itself.
    tokio::task::consume_budget().await;
    tokio::select! {
        biased;
        () = stop => None,
        done = work => Some(done),
    }
}

/// True if the client reads no more answers.
fn is_left(sent: io::Result<()>) -> Result<bool, ServeError> {
    match sent {
        Ok(()) => Ok(false),
        Err(why) => match why.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(true),
            _ => Err(why.into()),
        },
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls a future on the thread of `waker`.
fn block_on<F: Future>(waker: &Waker, future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[cfg(test)]
pub(super) fn execute<H: Handler>(session: &mut Session<H>, frame: &[u8], out: &mut Vec<u8>) {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    block_on(&waker, session.execute(frame, out)).unwrap();
}
