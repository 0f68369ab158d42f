//! Blocking reads and writes on inherited streams, even if these are non-blocking.
//!
//! `O_NONBLOCK` belongs to the open file and not to the descriptor: a program that shares a stream with adit can
//! set it at any time, and `rsync` does so for the socket pair that it starts `ssh` with. The flag is not
//! changed, because the other program relies on it; where it makes a call fail, [`BlockingStream`] waits for the stream
//! and repeats the call.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Delay before another call on a stream that is ready but accepts nothing. A terminal with space for one byte is
/// such a stream: a line end needs two.
const RETRY_DELAY: Duration = Duration::from_millis(5);

/// A stream whose reads and writes block. Interrupted calls are repeated.
#[derive(Debug)]
pub struct BlockingStream<F>(pub F);

/// Returns standard input.
pub fn stdin() -> BlockingStream<BorrowedFd<'static>> {
    BlockingStream(rustix::stdio::stdin())
}

/// Returns standard output, without a buffer.
pub fn stdout() -> BlockingStream<BorrowedFd<'static>> {
    BlockingStream(rustix::stdio::stdout())
}

/// Returns standard error.
pub fn stderr() -> BlockingStream<BorrowedFd<'static>> {
    BlockingStream(rustix::stdio::stderr())
}

/// Waits until `stream` is ready, up to `limit`; returns true if it is. `in_vain` is true if it was ready before
/// but accepted nothing. An interrupted wait returns false.
///
/// # Errors
/// The error of `poll`.
pub fn wait_ready(
    stream: impl AsFd,
    ready: PollFlags,
    in_vain: bool,
    limit: Option<&Timespec>,
) -> io::Result<bool> {
    if in_vain {
        thread::sleep(RETRY_DELAY);
    }
    let mut watched = [PollFd::from_borrowed_fd(stream.as_fd(), ready)];
    match poll(&mut watched, limit) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(why) => Err(why.into()),
    }
}

impl<F: AsFd> BlockingStream<F> {
    /// Repeats `call` until it succeeds or fails for another reason than blocking.
    fn retry_until_done<T>(
        &self,
        ready: PollFlags,
        mut call: impl FnMut(&F) -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        let mut in_vain = false;
        loop {
            match call(&self.0) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => in_vain = wait_ready(&self.0, ready, in_vain, None)?,
                done => return Ok(done?),
            }
        }
    }
}

impl<F: AsFd> Read for BlockingStream<F> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.retry_until_done(PollFlags::IN, |stream| rustix::io::read(stream, &mut *out))
    }
}

impl<F: AsFd> Write for BlockingStream<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.retry_until_done(PollFlags::OUT, |stream| rustix::io::write(stream, bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

    use super::*;

    fn impatient(stream: &impl AsFd) {
        let flags = fcntl_getfl(stream).unwrap();
        fcntl_setfl(stream, flags | OFlags::NONBLOCK).unwrap();
    }

    #[test]
    fn much_goes_through_a_pipe_that_does_not_wait() {
        let (read, write) = io::pipe().unwrap();
        impatient(&read);
        impatient(&write);
        let much: Vec<u8> = (0..1_u32 << 20).map(|i| (i % 251) as u8).collect();
        let sent = much.clone();
        let writer = thread::spawn(move || {
            let mut write = BlockingStream(OwnedFd::from(write));
            // Late, and more than the capacity of a pipe.
            thread::sleep(Duration::from_millis(30));
            write.write_all(&sent).unwrap();
            assert!(fcntl_getfl(&write.0).unwrap().contains(OFlags::NONBLOCK));
        });
        let mut got = Vec::new();
        BlockingStream(read).read_to_end(&mut got).unwrap();
        writer.join().unwrap();
        assert!(got == much, "{} bytes", got.len());
    }

    #[test]
    fn a_reader_that_has_left_is_an_error() {
        let (read, write) = io::pipe().unwrap();
        impatient(&write);
        drop(read);
        let why = BlockingStream(write).write(b"x").unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::BrokenPipe);
    }
}
