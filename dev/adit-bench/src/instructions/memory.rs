//! A stream in memory: its input is there from the start, its output is kept.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use adit_stream::Stream;
use adit_stream::pool::SIZES;

/// Size of a window: that of the pool's largest buffer.
const WINDOW: usize = SIZES[SIZES.len() - 1];

/// Bytes to read, and space for bytes to write.
#[derive(Debug)]
pub(super) struct Memory {
    input: Vec<u8>,
    /// Number of consumed bytes, and number of lent bytes.
    used: usize,
    lent: usize,
    output: Vec<u8>,
    written: usize,
}

impl Memory {
    /// Creates a stream that yields `input` and takes `room` bytes.
    pub(super) fn new(input: Vec<u8>, room: usize) -> Self {
        Self {
            input,
            used: 0,
            lent: 0,
            output: vec![0; room],
            written: 0,
        }
    }

    /// Returns the number of bytes written so far.
    pub(super) const fn written(&self) -> usize {
        self.written
    }

    fn free(&mut self) -> &mut [u8] {
        let end = self.output.len().min(self.written + WINDOW);
        self.output.get_mut(self.written..end).unwrap_or_default()
    }
}

impl Stream for Memory {
    fn poll_fill(&mut self, _: &mut Context<'_>, want: usize) -> Poll<io::Result<usize>> {
        if self.lent - self.used < want {
            let end = self.used + want.max(WINDOW);
            self.lent = end.min(self.input.len());
        }
        Poll::Ready(Ok(self.lent - self.used))
    }

    fn filled(&mut self) -> &mut [u8] {
        self.input.get_mut(self.used..self.lent).unwrap_or_default()
    }

    fn runs<'a>(&'a mut self, out: &mut [IoSlice<'a>]) -> usize {
        let Some(first) = out.first_mut().filter(|_| self.used < self.lent) else {
            return 0;
        };
        *first = IoSlice::new(self.input.get(self.used..self.lent).unwrap_or_default());
        1
    }

    fn consume(&mut self, n: usize) {
        self.used += n;
    }

    fn poll_slot(&mut self, _: &mut Context<'_>, min: usize) -> Poll<io::Result<usize>> {
        let free = self.free().len();
        if free < min {
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
        }
        Poll::Ready(Ok(free))
    }

    fn slot(&mut self) -> &mut [u8] {
        self.free()
    }

    fn commit(&mut self, n: usize) -> io::Result<()> {
        self.written += n;
        Ok(())
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn abort(&mut self) {}
}
