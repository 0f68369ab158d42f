//! A stream in memory: its input is there from the start, its output is kept.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use adit_stream::Stream;
use adit_stream::pool::SIZES;

/// Size of a window: that of the pool's largest buffer.
const WINDOW: usize = SIZES[SIZES.len() - 1];

/// Bytes to read, and space for bytes to write.
#[derive(Debug)]
pub(super) struct MemoryStream {
    input: Vec<u8>,
    /// Number of consumed bytes, and number of lent bytes.
    consumed: usize,
    filled_len: usize,
    output: Vec<u8>,
    written: usize,
}

impl MemoryStream {
    /// Creates a stream that yields `input` and takes `room` bytes.
    pub(super) fn new(input: Vec<u8>, room: usize) -> Self {
        Self {
            input,
            consumed: 0,
            filled_len: 0,
            output: vec![0; room],
            written: 0,
        }
    }

    /// Returns the number of bytes written so far.
    pub(super) const fn written(&self) -> usize {
        self.written
    }

    fn free_slot(&mut self) -> &mut [u8] {
        let end = self.output.len().min(self.written + WINDOW);
        self.output.get_mut(self.written..end).unwrap_or_default()
    }
}

impl Stream for MemoryStream {
    fn poll_fill(&mut self, _: &mut Context<'_>, want: usize) -> Poll<io::Result<usize>> {
        if self.filled_len - self.consumed < want {
            let end = self.consumed + want.max(WINDOW);
            self.filled_len = end.min(self.input.len());
        }
        Poll::Ready(Ok(self.filled_len - self.consumed))
    }

    fn filled(&mut self) -> &mut [u8] {
        self.input
            .get_mut(self.consumed..self.filled_len)
            .unwrap_or_default()
    }

    fn runs<'a>(&'a mut self, out: &mut [IoSlice<'a>]) -> usize {
        let Some(first) = out.first_mut().filter(|_| self.consumed < self.filled_len) else {
            return 0;
        };
        *first = IoSlice::new(
            self.input
                .get(self.consumed..self.filled_len)
                .unwrap_or_default(),
        );
        1
    }

    fn consume(&mut self, n: usize) {
        self.consumed += n;
    }

    fn poll_slot(&mut self, _: &mut Context<'_>, min: usize) -> Poll<io::Result<usize>> {
        let free = self.free_slot().len();
        if free < min {
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
        }
        Poll::Ready(Ok(free))
    }

    fn slot(&mut self) -> &mut [u8] {
        self.free_slot()
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
