//! One step of a direction whose bytes pass through memory.

use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Deref;
use std::task::{Context, Poll};

use adit_wire::{subslice, subslice_mut};

use super::{FailedSide, StepOutcome};
use crate::{ShortRead, Stream};

/// Maximum number of slots filled by one read.
const MAX_SLOTS: usize = 8;
/// Maximum number of runs gathered in one write.
const MAX_RUNS: usize = 16;

/// Moves bytes, at most `most`, through memory: read into the slot, or written from where they were opened.
pub(super) fn copy_step(
    cx: &mut Context<'_>,
    from: &mut dyn Stream,
    to: &mut dyn Stream,
    most: usize,
) -> Result<StepOutcome, FailedSide> {
    if let Some(socket) = from.bare()
        && socket.buffered_len() == 0
    {
        // From the socket straight into the place where the destination seals. Readiness first, so
        // that no task holds a buffer while it waits.
        match socket.poll_readable(cx) {
            Poll::Ready(done) => done.map_err(FailedSide::From)?,
            Poll::Pending => return Ok(StepOutcome::SourceEmpty),
        }
        match to.poll_slot(cx, 1) {
            Poll::Ready(Ok(0)) => return Ok(StepOutcome::End),
            Poll::Ready(done) => drop(done.map_err(FailedSide::To)?),
            Poll::Pending => return Ok(StepOutcome::TargetFull),
        }
        let mut slots: [IoSliceMut<'_>; MAX_SLOTS] =
            std::array::from_fn(|_| IoSliceMut::new(&mut []));
        let count = to.slots(&mut slots);
        let mut slots = subslice_mut(&mut slots, ..count);
        let mut one;
        if exceeds(slots, most) {
            let first = slots.first_mut().map_or(&mut [][..], |slot| &mut **slot);
            let len = first.len().min(most);
            one = [IoSliceMut::new(subslice_mut(first, ..len))];
            slots = &mut one;
        }
        return match socket.poll_read_into(cx, slots, ShortRead::Ask) {
            Poll::Ready(Ok(0)) => Ok(StepOutcome::End),
            Poll::Ready(Ok(n)) => to
                .commit(n)
                .map(|()| StepOutcome::Bytes(n))
                .map_err(FailedSide::To),
            Poll::Ready(Err(e)) => Err(FailedSide::From(e)),
            Poll::Pending => Ok(StepOutcome::SourceEmpty),
        };
    }
    match from.poll_fill(cx, 1) {
        Poll::Ready(Ok(0)) => return Ok(StepOutcome::End),
        Poll::Ready(done) => drop(done.map_err(FailedSide::From)?),
        Poll::Pending => return Ok(StepOutcome::SourceEmpty),
    }
    if let Some(socket) = to.bare() {
        // From where the source opened the bytes straight to the socket, all records in one write.
        let mut runs: [IoSlice<'_>; MAX_RUNS] = std::array::from_fn(|_| IoSlice::new(&[]));
        let count = from.runs(&mut runs);
        let mut runs = subslice(&runs, ..count);
        let one;
        if exceeds(runs, most) {
            let first = runs.first().map_or(&[][..], |run| &**run);
            one = [IoSlice::new(subslice(first, ..first.len().min(most)))];
            runs = &one;
        }
        return match socket.poll_write_from(cx, runs) {
            Poll::Ready(Ok(0)) => Err(FailedSide::To(io::ErrorKind::WriteZero.into())),
            Poll::Ready(Ok(n)) => {
                from.consume(n);
                Ok(StepOutcome::Bytes(n))
            }
            Poll::Ready(Err(e)) => Err(FailedSide::To(e)),
            Poll::Pending => Ok(StepOutcome::TargetFull),
        };
    }
    match to.poll_slot(cx, 1) {
        Poll::Ready(Ok(0)) => return Ok(StepOutcome::End),
        Poll::Ready(done) => drop(done.map_err(FailedSide::To)?),
        Poll::Pending => return Ok(StepOutcome::TargetFull),
    }
    let (lent, slot) = (from.filled(), to.slot());
    let n = lent.len().min(slot.len()).min(most);
    if let (Some(lent), Some(slot)) = (lent.get(..n), slot.get_mut(..n)) {
        slot.copy_from_slice(lent);
    }
    from.consume(n);
    to.commit(n)
        .map(|()| StepOutcome::Bytes(n))
        .map_err(FailedSide::To)
}

/// Returns true if the pieces have more than `most` bytes together.
fn exceeds<T: Deref<Target = [u8]>>(pieces: &[T], most: usize) -> bool {
    most != usize::MAX && pieces.iter().map(|piece| piece.len()).sum::<usize>() > most
}
