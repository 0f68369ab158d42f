//! QPP over a stream: kcptun applies it between a smux stream and the application.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use adit_crypto::packet::qpp::{PadPosition, PermutationPads};
use adit_wire::subslice_mut;

/// Maximum number of bytes encrypted together: two frames of kcptun.
const MAX_PIECE: usize = 16 << 10;

thread_local! {
    /// A copy of the bytes to write: those of the writer must not be changed.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The positions of both directions of a stream.
#[derive(Debug)]
pub(super) struct QppStream {
    pads: Arc<PermutationPads>,
    reads: Mutex<PadPosition>,
    writes: Mutex<PadPosition>,
}

impl QppStream {
    pub(super) fn new(pads: Arc<PermutationPads>) -> Self {
        Self {
            reads: Mutex::new(pads.start_position()),
            writes: Mutex::new(pads.start_position()),
            pads,
        }
    }

    /// Reads into `out` with `below`, and decrypts the bytes.
    pub(super) fn read_with(
        &self,
        out: &mut [u8],
        below: impl FnOnce(&mut [u8]) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let mut at = lock_position(&self.reads);
        let done = below(out);
        if let Poll::Ready(Ok(n)) = done {
            self.pads.decrypt_stream(&mut at, subslice_mut(out, ..n));
        }
        done
    }

    /// Encrypts `bytes` and writes them with `below`, as far as it accepts them.
    pub(super) fn write_with(
        &self,
        bytes: &[u8],
        below: impl FnOnce(&[u8]) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let (piece, _) = bytes.split_at(bytes.len().min(MAX_PIECE));
        let mut at = lock_position(&self.writes);
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.clear();
            scratch.extend_from_slice(piece);
            let mut behind = at.clone();
            self.pads.encrypt_stream(&mut behind, scratch);
            let done = below(scratch);
            match done {
                Poll::Ready(Ok(n)) if n == piece.len() => *at = behind,
                Poll::Ready(Ok(n)) => at.skip_bytes(n),
                _ => {}
            }
            done
        })
    }
}

fn lock_position(position: &Mutex<PadPosition>) -> MutexGuard<'_, PadPosition> {
    position.lock().unwrap_or_else(PoisonError::into_inner)
}
