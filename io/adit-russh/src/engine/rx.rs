//! What came from the stream and was not opened yet.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Octets that are asked for at once.
const READ: usize = 64 << 10;
/// What an empty buffer may keep, octets.
const KEPT: usize = 128 << 10;

/// What came from the stream and was not opened yet.
#[derive(Debug, Default)]
pub(super) struct Rx {
    bytes: Vec<u8>,
    from: usize,
    to: usize,
}

impl Rx {
    pub(super) const fn len(&self) -> usize {
        self.to - self.from
    }

    pub(super) fn filled(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.from..self.to).unwrap_or_default()
    }

    pub(super) fn consume(&mut self, n: usize) {
        self.from += n.min(self.len());
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
            if self.bytes.len() > KEPT {
                self.bytes = Vec::new();
            }
        }
    }

    /// Reads once; false at the end of the stream. There is room for `want` octets then, and more.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        io: Pin<&mut impl AsyncRead>,
        want: usize,
    ) -> Poll<io::Result<bool>> {
        let need = want.max(self.len() + READ / 4).max(READ);
        if self.bytes.len() - self.from < need {
            self.bytes.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.len());
            if self.bytes.len() < need {
                self.bytes.resize(need, 0);
            }
        }
        let mut room = ReadBuf::new(self.bytes.get_mut(self.to..).unwrap_or_default());
        ready!(io.poll_read(cx, &mut room))?;
        let n = room.filled().len();
        self.to += n;
        Poll::Ready(Ok(n > 0))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn bytes_come_in_their_order() {
        let all: Vec<u8> = (0..600_000_u32).map(|n| (n % 251) as u8).collect();
        let mut io = &*all;
        let mut cx = Context::from_waker(Waker::noop());
        let (mut rx, mut got) = (Rx::default(), Vec::new());
        for step in 1.. {
            let more = rx.poll_read(&mut cx, Pin::new(&mut io), step * 100);
            if !matches!(more, Poll::Ready(Ok(true))) {
                break;
            }
            let n = rx.len() / (1 + step % 3);
            got.extend_from_slice(&rx.filled()[..n]);
            rx.consume(n);
        }
        got.extend_from_slice(rx.filled());
        assert_eq!(got, all);
    }
}
