//! Copies a file or a pipe to a channel, or a channel to a pipe, on a dedicated thread.
//!
//! A pipe that is registered for readiness wakes its watcher with every write of the other program; a sleeping
//! thread is not woken, and a thread can block on any kind of file.

use std::future::poll_fn;
use std::io::{self, IoSlice, Read, Write};
#[cfg(unix)]
pub(super) use std::os::fd::AsFd as AsStream;
#[cfg(windows)]
pub(super) use std::os::windows::io::AsHandle as AsStream;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

use adit_ssh::{ChannelReader, ChannelWriter};
use adit_wire::subslice;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::pipe_pace::PipePacer;

/// Maximum number of slices in a vectored write.
pub(super) const MAX_SLICES: usize = 8;

/// Copies `from` to the channel until its end. Blocks the calling thread, which must not be one of the runtime.
///
/// # Errors
/// The error of the file or the session; the peer accepts no more data; `is_wanted` returned `false`.
pub(super) fn file_to_channel(
    runtime: &Handle,
    from: impl Read + AsStream + Unpin,
    to: &mut ChannelWriter,
    is_wanted: impl Fn() -> bool + Unpin,
) -> io::Result<()> {
    let mut source = BlockingSource { from, is_wanted };
    let mut pace = PipePacer::default();
    loop {
        let read = poll_fn(|cx| to.poll_write_from(cx, Pin::new(&mut source)));
        match runtime.block_on(read)? {
            0 => return Ok(()),
            n => {
                if let Some(pause) = pace.pause_after_read(n, &source.from) {
                    thread::sleep(pause);
                }
            }
        }
    }
}

/// Copies the channel to a stream, blocking or not, until its end, or until the receiver of `wanted` is dropped.
/// Blocks the calling thread, which must not be one of the runtime.
///
/// # Errors
/// The error of the stream or the session.
pub(super) fn channel_to_pipe<T>(
    runtime: &Handle,
    from: &mut ChannelReader,
    mut to: impl Write + AsStream,
    wanted: &mut oneshot::Sender<T>,
) -> io::Result<()> {
    let mut pace = PipePacer::default();
    let mut in_vain = false;
    loop {
        let fill = poll_fn(|cx| match wanted.poll_closed(cx) {
            Poll::Ready(()) => Poll::Ready(Ok(0)),
            Poll::Pending => from.poll_fill(cx, 1),
        });
        if runtime.block_on(fill)? == 0 {
            return Ok(());
        }
        let mut runs = [IoSlice::new(&[]); MAX_SLICES];
        let count = from.runs(&mut runs);
        let runs = subslice(&runs, ..count);
        let offered = runs.iter().map(|run| run.len()).sum();
        let n = match to.write_vectored(runs) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => n,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                in_vain = wait_ready(&to, Readiness::Write, in_vain, || !wanted.is_closed())?;
                continue;
            }
            Err(why) => return Err(why),
        };
        in_vain = false;
        from.consume(n);
        if let Some(pause) = pace.pause_after_write(n, offered, &to) {
            thread::sleep(pause);
        }
    }
}

/// The direction of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readiness {
    Read,
    Write,
}

/// Waits a second at most for `file`; returns true if it is ready. Fails if the copy is no longer wanted.
#[cfg(unix)]
fn wait_ready(
    file: impl AsStream,
    ready: Readiness,
    in_vain: bool,
    is_wanted: impl Fn() -> bool,
) -> io::Result<bool> {
    use rustix::event::{PollFlags, Timespec};
    let ready = match ready {
        Readiness::Read => PollFlags::IN,
        Readiness::Write => PollFlags::OUT,
    };
    let second = Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    let is_ready = adit_cli::blocking_stream::wait_ready(file, ready, in_vain, Some(&second))?;
    if !is_ready && !is_wanted() {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(is_ready)
}

/// Fails: streams of Windows always block.
#[cfg(windows)]
fn wait_ready(_: impl AsStream, _: Readiness, _: bool, _: impl Fn() -> bool) -> io::Result<bool> {
    Err(io::ErrorKind::WouldBlock.into())
}

/// A file whose reads block the thread, even if it is non-blocking.
pub(super) struct BlockingSource<R, F> {
    pub(super) from: R,
    pub(super) is_wanted: F,
}

impl<R: Read + AsStream, F: Fn() -> bool> Read for BlockingSource<R, F> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut in_vain = false;
        loop {
            match self.from.read(out) {
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                    in_vain = wait_ready(&self.from, Readiness::Read, in_vain, &self.is_wanted)?;
                }
                read => return read,
            }
        }
    }
}

impl<R: Read + AsStream + Unpin, F: Fn() -> bool + Unpin> AsyncRead for BlockingSource<R, F> {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let n = self.get_mut().read(out.initialize_unfilled())?;
        out.advance(n);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::time::Duration;

    use super::*;

    /// A pipe whose reading end is non-blocking.
    fn pipe() -> (File, io::PipeWriter) {
        let (read, write) = io::pipe().unwrap();
        let flags = rustix::fs::fcntl_getfl(&read).unwrap();
        rustix::fs::fcntl_setfl(&read, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
        (File::from(std::os::fd::OwnedFd::from(read)), write)
    }

    #[test]
    fn a_source_waits_for_what_comes_late() {
        let (from, mut late) = pipe();
        let writer = thread::spawn(move || {
            thread::sleep(Duration::from_millis(30));
            late.write_all(b"here").unwrap();
        });
        let mut source = BlockingSource {
            from,
            is_wanted: || true,
        };
        let mut got = Vec::new();
        source.read_to_end(&mut got).unwrap();
        writer.join().unwrap();
        assert_eq!(got, b"here");
    }

    #[test]
    fn a_silent_source_that_nobody_wants_is_left() {
        let (from, _silent) = pipe();
        let mut source = BlockingSource {
            from,
            is_wanted: || false,
        };
        let why = source.read(&mut [0]).unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::BrokenPipe);
    }
}
