//! QPP over a stream: kcptun applies it between a smux stream and the application.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use adit_crypto::packet::qpp::{Pads, Position};
use adit_wire::held_mut;

/// Maximum number of bytes encrypted together: two frames of kcptun.
const PIECE: usize = 16 << 10;

thread_local! {
    /// A copy of the bytes to write: those of the writer must not be changed.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The positions of both directions of a stream.
#[derive(Debug)]
pub(super) struct Padded {
    pads: Arc<Pads>,
    reads: Mutex<Position>,
    writes: Mutex<Position>,
}

impl Padded {
    pub(super) fn new(pads: Arc<Pads>) -> Self {
        Self {
            reads: Mutex::new(pads.position()),
            writes: Mutex::new(pads.position()),
            pads,
        }
    }

    /// Reads into `out` with `below`, and decrypts the bytes.
    pub(super) fn read(
        &self,
        out: &mut [u8],
        below: impl FnOnce(&mut [u8]) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let mut at = lock(&self.reads);
        let done = below(out);
        if let Poll::Ready(Ok(n)) = done {
            self.pads.decrypt(&mut at, held_mut(out, ..n));
        }
        done
    }

    /// Encrypts `bytes` and writes them with `below`, as far as it accepts them.
    pub(super) fn write(
        &self,
        bytes: &[u8],
        below: impl FnOnce(&[u8]) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let (piece, _) = bytes.split_at(bytes.len().min(PIECE));
        let mut at = lock(&self.writes);
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.clear();
            scratch.extend_from_slice(piece);
            let mut behind = at.clone();
            self.pads.encrypt(&mut behind, scratch);
            let done = below(scratch);
            match done {
                Poll::Ready(Ok(n)) if n == piece.len() => *at = behind,
                Poll::Ready(Ok(n)) => at.skip(n),
                _ => {}
            }
            done
        })
    }
}

fn lock(position: &Mutex<Position>) -> MutexGuard<'_, Position> {
    position.lock().unwrap_or_else(PoisonError::into_inner)
}
