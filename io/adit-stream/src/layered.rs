//! A record codec over a stream.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Range;
use std::task::{Context, Poll, ready};

use adit_wire::{Open, Opened, Overhead, ProtocolError, Seal, subslice, subslice_mut};

use crate::lane::RelayLane;
use crate::{Stream, Tcp};

/// Minimum size of a further slot, in bytes. A smaller one is not worth its own record.
const MIN_PAYLOAD: usize = 4096;

/// The adapter that puts record codecs over a stream.
///
/// Records are opened in the receive buffer of the stream below and sealed in its slot, so all
/// layers share the two buffers of the socket. All complete records that were received are opened
/// before any is lent, so that one gathered write can pass them on.
pub struct Layered<S, Se, Op> {
    below: S,
    seal: Se,
    open: Op,
    /// Plaintext in `below.filled()`, in order.
    runs: VecDeque<Range<usize>>,
    /// Bytes of `below.filled()` that belong to opened records.
    opened: usize,
    ended: bool,
    /// The codec has reported the end of this direction.
    complete: bool,
    /// The write direction is finished.
    finished: bool,
    /// An error to return once the valid bytes before it are consumed.
    error: Option<io::Error>,
    /// The overhead around the slot that is currently reserved, and the size of the slot.
    reserved: Option<(Overhead, usize)>,
}

/// Maximum number of records that a codec learns about before they are sealed.
const MAX_SEALED_AHEAD: usize = 8;

/// Iterator over the payload ranges of a slot: all full except the last.
#[derive(Clone)]
struct RecordRanges {
    room: Overhead,
    slot: usize,
    /// Bytes that are not in a record yet; `None` after the last record.
    rest: Option<usize>,
    /// Maximum payload of the next record.
    size: usize,
    at: usize,
}

impl RecordRanges {
    /// Returns the first ranges, and their number.
    #[inline(never)]
    fn collect_first(self) -> ([Range<usize>; MAX_SEALED_AHEAD], usize) {
        let mut all = [const { 0..0 }; MAX_SEALED_AHEAD];
        let mut count = 0;
        for (place, payload) in all.iter_mut().zip(self) {
            *place = payload;
            count += 1;
        }
        (all, count)
    }
}

impl Iterator for RecordRanges {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let rest = self.rest.take()?;
        let begin = self.at + self.room.head;
        let payload = begin..begin + rest.min(self.size);
        self.at = payload.end + self.room.tail;
        let rest = rest - payload.len();
        self.size = self.room.max_payload_in(self.slot.saturating_sub(self.at));
        // An empty record may be a head that is owed; nothing can follow it.
        self.rest = (rest > 0 && self.size > 0).then_some(rest);
        Some(payload)
    }
}

impl<S: Stream, Se: Seal, Op: Open> Layered<S, Se, Op> {
    /// Creates a layer with a pair of codecs over `below`.
    pub const fn new(below: S, seal: Se, open: Op) -> Self {
        Self {
            below,
            seal,
            open,
            runs: VecDeque::new(),
            opened: 0,
            ended: false,
            complete: false,
            finished: false,
            error: None,
            reserved: None,
        }
    }

    /// Removes the codecs. Bytes that were opened and not consumed are lost.
    pub fn into_below(self) -> S {
        self.below
    }

    /// Opens all complete records. Returns the number of bytes that the next one needs.
    fn open_all(&mut self) -> io::Result<usize> {
        loop {
            // Even without a byte: a codec may already know that none will arrive.
            let wire = subslice_mut(self.below.filled(), self.opened..);
            match self.open.open(wire).map_err(invalid_data)? {
                Opened::NeedMore { total } => return Ok(total.max(wire.len() + 1)),
                Opened::End => {
                    self.complete = true;
                    return Ok(0);
                }
                Opened::Record { consumed, payload } => {
                    if !payload.is_empty() {
                        self.runs
                            .push_back(self.opened + payload.start..self.opened + payload.end);
                    }
                    self.opened += consumed;
                    self.consume_spent();
                }
            }
        }
    }

    /// Consumes the bytes of the stream below that precede the first run.
    fn consume_spent(&mut self) {
        let spent = self.runs.front().map_or(self.opened, |run| run.start);
        if spent > 0 {
            self.below.consume(spent);
            self.opened -= spent;
            for run in &mut self.runs {
                *run = run.start - spent..run.end - spent;
            }
        }
    }

    /// Waits for the end of the exchange after the read direction is complete: until the answer is
    /// complete or the peer closes. Other bytes of the peer are discarded.
    fn poll_after_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.finished && !self.seal.is_finished() {
            let n = ready!(self.below.poll_fill(cx, self.opened + 1))?;
            if n <= self.opened {
                break;
            }
            if self.runs.is_empty() {
                self.below.consume(n);
                self.opened = 0;
            } else {
                break;
            }
        }
        self.ended = true;
        Poll::Ready(Ok(()))
    }

    /// Returns the number of readable bytes.
    fn readable_len(&self) -> usize {
        self.runs.iter().map(Range::len).sum()
    }

    /// Makes the first run at least `want` bytes long, if there are as many, by closing gaps.
    fn join_runs(&mut self, want: usize) {
        while self.runs.len() > 1 && self.runs.front().is_some_and(|run| run.len() < want) {
            if let (Some(first), Some(second)) = (self.runs.pop_front(), self.runs.pop_front()) {
                // The first run moves right, up to the second: usually the shorter copy.
                let start = second.start - first.len();
                self.below.filled().copy_within(first, start);
                self.runs.push_front(start..second.end);
            }
        }
        self.consume_spent();
    }
}

fn invalid_data(why: ProtocolError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

impl<S: Stream, Se: Seal, Op: Open> Stream for Layered<S, Se, Op> {
    fn bottom(&mut self) -> Option<&mut Tcp> {
        self.below.bottom()
    }

    fn lane(&self) -> RelayLane {
        self.below.lane()
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>, want: usize) -> Poll<io::Result<usize>> {
        loop {
            let readable = self.readable_len();
            if readable >= want || self.ended {
                self.join_runs(want.min(readable));
                return Poll::Ready(Ok(readable));
            }
            if self.complete {
                return self.poll_after_end(cx).map_ok(|()| readable);
            }
            if let Some(e) = self.error.take() {
                return Poll::Ready(Err(e));
            }
            let next = match self.open_all() {
                Ok(next) => next,
                // Bytes that were opened before the error are still valid.
                Err(e) if self.readable_len() >= want => {
                    self.error = Some(e);
                    continue;
                }
                Err(e) => return Poll::Ready(Err(e)),
            };
            if self.complete || self.readable_len() >= want {
                continue;
            }
            let total = self.opened + next;
            let have = ready!(self.below.poll_fill(cx, total))?;
            if have < total {
                if !self.open.is_at_boundary(have - self.opened) {
                    return Poll::Ready(Err(invalid_data(ProtocolError::Truncated("a record"))));
                }
                self.ended = true;
            }
        }
    }

    fn filled(&mut self) -> &mut [u8] {
        match self.runs.front() {
            Some(run) => subslice_mut(self.below.filled(), run.clone()),
            None => Default::default(),
        }
    }

    fn runs<'a>(&'a mut self, out: &mut [IoSlice<'a>]) -> usize {
        let bytes: &'a [u8] = self.below.filled();
        let mut count = 0;
        for (slice, run) in out.iter_mut().zip(&self.runs) {
            *slice = IoSlice::new(subslice(bytes, run.clone()));
            count += 1;
        }
        count
    }

    fn consume(&mut self, mut n: usize) {
        while n > 0 {
            let Some(run) = self.runs.front_mut() else {
                break;
            };
            let used = n.min(run.len());
            run.start += used;
            n -= used;
            if run.start >= run.end {
                self.runs.pop_front();
            }
        }
        self.consume_spent();
    }

    fn poll_slot(&mut self, cx: &mut Context<'_>, min: usize) -> Poll<io::Result<usize>> {
        if self.seal.is_finished() {
            return Poll::Ready(Ok(0));
        }
        let room = self.seal.overhead();
        let below_min = room.head + room.tail + min.min(room.max_payload);
        loop {
            let size = room.max_payload_in(ready!(self.below.poll_slot(cx, below_min))?);
            if size >= min.min(room.max_payload) {
                self.reserved = Some((room, size));
                return Poll::Ready(Ok(size));
            }
            if !self.below.owes_head() {
                return Poll::Ready(Err(invalid_data(ProtocolError::NoRoom(
                    "a record in the layer below",
                ))));
            }
            // A first record may be small: the head is sent alone, and the next slot is large
            // enough.
            ready!(self.below.poll_flush(cx))?;
        }
    }

    fn slot(&mut self) -> &mut [u8] {
        match self.reserved {
            Some((room, size)) => subslice_mut(self.below.slot(), room.head..room.head + size),
            None => Default::default(),
        }
    }

    fn slots<'a>(&'a mut self, out: &mut [IoSliceMut<'a>]) -> usize {
        let Some((room, size)) = self.reserved else {
            return 0;
        };
        let mut rest: &'a mut [u8] = self.below.slot();
        let mut count = 0;
        for slice in out {
            // Each record starts where it would if all before it were full.
            let size = if count == 0 {
                size
            } else {
                room.max_payload_in(rest.len())
            };
            let Some((record, behind)) = rest.split_at_mut_checked(room.head + size + room.tail)
            else {
                break;
            };
            if size == 0 || (count > 0 && size < MIN_PAYLOAD) {
                break;
            }
            rest = behind;
            let payload = subslice_mut(record, room.head..room.head + size);
            *slice = IoSliceMut::new(payload);
            count += 1;
            if !self.seal.has_steady_overhead() {
                break;
            }
        }
        count
    }

    fn commit(&mut self, n: usize) -> io::Result<()> {
        if n == 0 && !self.seal.must_send_head() {
            return Ok(());
        }
        let Some((room, size)) = self.reserved.take() else {
            return Ok(());
        };
        let slot = self.below.slot();
        let records = RecordRanges {
            room,
            slot: slot.len(),
            rest: Some(n),
            size,
            at: 0,
        };
        if n > size && self.seal.wants_seal_ahead() {
            let (all, count) = records.clone().collect_first();
            self.seal.seal_ahead(slot, subslice(&all, ..count));
        }
        let mut end = 0;
        for payload in records {
            let behind = payload.end + room.tail;
            let record = subslice_mut(slot, ..behind);
            let wire = self.seal.seal(record, payload).map_err(invalid_data)?;
            if wire.start > end {
                record.copy_within(wire.clone(), end);
            }
            end += wire.len();
        }
        self.below.commit(end)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.seal.must_send_head() {
            ready!(self.poll_slot(cx, 0))?;
            self.commit(0)?;
        }
        self.below.poll_flush(cx)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_flush(cx))?;
        self.finished = true;
        self.below.poll_finish(cx)
    }

    fn abort(&mut self) {
        self.below.abort();
    }

    fn complete(&self) -> bool {
        self.seal.is_finished()
    }

    fn owes_head(&self) -> bool {
        self.seal.must_send_head() || self.below.owes_head()
    }
}
