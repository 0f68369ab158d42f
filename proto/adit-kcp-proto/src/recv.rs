//! The receive window: segments in any order in, bytes or messages in order out.
//!
//! ```text
//!            front                next                 next + window
//!   read ──────┤  ordered, unread   ├──  out of order  ──────┤ dropped
//! ```
//!
//! Payloads lie in one byte ring in the order of their arrival. Reading follows the order of
//! numbers, so the head of the ring moves up when its oldest arrival has been read.

use std::collections::VecDeque;

use adit_wire::{narrow_int, subslice_mut};

use crate::bytes::ByteRing;
use crate::seq::{Sn, SnRing};

/// A received segment; `full` is true if the slot is in use.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    pos: usize,
    len: usize,
    frg: u8,
    full: bool,
}

/// Result of receiving a data segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// Stored.
    New,
    /// Received before; its acknowledgement may have been lost.
    Repeated,
    /// Beyond the window: neither stored nor acknowledged.
    Overrun,
}

/// The receive side of a session.
#[derive(Debug)]
pub(crate) struct RecvWindow {
    slots: SnRing<Slot>,
    bytes: ByteRing,
    /// Numbers with data in the order of arrival; the first is the oldest that is not read.
    arrivals: VecDeque<Sn>,
    window: u32,
    stream: bool,
    /// The first segment that is not read completely.
    front: Sn,
    /// All segments before it have been received.
    next: Sn,
    /// One past the highest number received.
    end: Sn,
    /// Bytes of `front` already read.
    offset: usize,
    /// Segments left of a message that is being read.
    message: u32,
    /// Bytes in order and not read.
    ready: usize,
}

impl RecvWindow {
    pub(crate) fn new(first: Sn, window: u32, stream: bool) -> Self {
        Self {
            slots: SnRing::new(),
            bytes: ByteRing::new(),
            arrivals: VecDeque::new(),
            window,
            stream,
            front: first,
            next: first,
            end: first,
            offset: 0,
            message: 0,
            ready: 0,
        }
    }

    /// Changes the settings.
    pub(crate) const fn change(&mut self, window: u32, stream: bool) {
        (self.window, self.stream) = (window, stream);
    }

    /// Returns the number before which everything has been received.
    pub(crate) const fn next(&self) -> Sn {
        self.next
    }

    /// Returns the number of free segments that is reported to the peer. Segments out of order do
    /// not count.
    pub(crate) fn free(&self) -> u16 {
        narrow_int(self.window.saturating_sub(self.ordered()))
    }

    /// Adds a data segment.
    pub(crate) fn push(&mut self, sn: Sn, frg: u8, data: &[u8]) -> Pushed {
        if !sn.before(self.next.plus(self.window)) {
            return Pushed::Overrun;
        }
        if sn.before(self.next) || self.held(sn).is_some() {
            return Pushed::Repeated;
        }
        // At most twice the window: as much may be ordered and unread as out of order.
        let count = self.end.distance(self.front);
        let wanted = sn.plus(1).distance(self.front).max(count);
        self.slots.grow(wanted.max(8) as usize, self.front, count);
        let pos = self.bytes.tail();
        if let Some(slot) = self.slots.get_mut(sn) {
            *slot = Slot {
                pos,
                len: data.len(),
                frg,
                full: true,
            };
        }
        // Empty data has no position: the ring starts over when it is empty, and forgets positions.
        if !data.is_empty() {
            self.bytes.push(data);
            self.arrivals.push_back(sn);
        }
        if self.end.before(sn.plus(1)) {
            self.end = sn.plus(1);
        }
        self.order();
        Pushed::New
    }

    /// Returns the number of readable bytes: in stream mode all in order, otherwise the rest of the
    /// front message.
    pub(crate) fn readable(&self) -> usize {
        if self.stream {
            return self.ready;
        }
        let segments = (0..self.front_message()).filter_map(|n| self.slots.get(self.front.plus(n)));
        let whole: usize = segments.map(|slot| slot.len).sum();
        whole - self.offset.min(whole)
    }

    /// Returns the next bytes in place, up to the end of the front segment or of the ring.
    pub(crate) fn front(&self) -> Option<&[u8]> {
        if self.front_message() == 0 {
            return None;
        }
        let slot = self.slots.get(self.front)?;
        let (first, second) = self.rest(slot);
        Some(if first.is_empty() { second } else { first })
    }

    /// Consumes up to `n` bytes, including the boundary of a message at its end. Returns the number
    /// of bytes consumed.
    pub(crate) fn consume(&mut self, n: usize) -> usize {
        let mut left = n;
        while self.front_message() > 0 {
            let here = self.front_slot().len - self.offset;
            if left < here {
                self.begin();
                self.offset += left;
                self.ready -= left;
                return n;
            }
            left -= here;
            let ended = self.pass();
            if left == 0 || (ended && !self.stream) {
                break;
            }
        }
        n - left
    }

    /// Copies the next bytes, in message mode of one message at most. Returns `None` if there is
    /// nothing to read yet.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> Option<usize> {
        if self.front_message() == 0 {
            return None;
        }
        let mut filled = 0;
        while self.front_message() > 0 {
            let Some(slot) = self.slots.get(self.front) else {
                break;
            };
            let (first, second) = self.rest(slot);
            let had = filled;
            for part in [first, second] {
                let room = subslice_mut(out, filled..);
                let (part, _) = part.split_at(part.len().min(room.len()));
                let (to, _) = room.split_at_mut(part.len());
                to.copy_from_slice(part);
                filled += part.len();
            }
            let whole = filled - had == first.len() + second.len();
            if !whole {
                self.begin();
                self.offset += filled - had;
                self.ready -= filled - had;
                break;
            }
            let ended = self.pass();
            if (ended && !self.stream) || (self.stream && filled == out.len()) {
                break;
            }
        }
        Some(filled)
    }

    /// True if the window is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.front == self.end
    }

    pub(crate) fn heap(&self) -> usize {
        self.slots.heap() + self.bytes.heap() + self.arrivals.capacity() * size_of::<Sn>()
    }

    /// Frees the memory of an empty window.
    pub(crate) fn release(&mut self) {
        if self.is_empty() {
            self.slots.release();
            self.bytes.release();
            self.arrivals = VecDeque::new();
        }
    }

    /// Returns the number of segments that are in order and not read.
    const fn ordered(&self) -> u32 {
        self.next.distance(self.front)
    }

    /// Returns the front segment, which has arrived.
    fn front_slot(&self) -> Slot {
        let slot = self.slots.get(self.front).copied();
        debug_assert!(slot.is_some(), "the front is not in the ring");
        slot.unwrap_or_default()
    }

    /// Returns the number of segments of the front message if it is complete; in stream mode every
    /// segment is a message.
    fn front_message(&self) -> u32 {
        let ordered = self.ordered();
        if ordered == 0 || self.message > 0 {
            return self.message;
        }
        let frg = self.front_slot().frg;
        match (self.stream, u32::from(frg) + 1) {
            (true, _) => 1,
            (false, count) if count <= ordered => count,
            (false, _) => 0,
        }
    }

    /// Stores the number of segments of a message of which the first part is taken.
    fn begin(&mut self) {
        self.message = self.front_message();
    }

    /// Returns the rest of the front segment.
    fn rest(&self, slot: &Slot) -> (&[u8], &[u8]) {
        self.bytes
            .parts(slot.pos.wrapping_add(self.offset), slot.len - self.offset)
    }

    /// Returns the segment with that number, if it has arrived and is not consumed.
    fn held(&self, sn: Sn) -> Option<&Slot> {
        let slot = self.slots.get(sn).filter(|slot| slot.full)?;
        sn.before(self.end).then_some(slot)
    }

    /// Consumes the front segment. Returns true if a message ended with it.
    fn pass(&mut self) -> bool {
        self.begin();
        self.message = self.message.saturating_sub(1);
        self.drop_front();
        self.order();
        self.message == 0
    }

    /// Removes the front segment, and releases the bytes before the oldest remaining one.
    fn drop_front(&mut self) {
        if let Some(slot) = self.slots.get_mut(self.front) {
            self.ready -= slot.len - self.offset;
            slot.full = false;
        }
        self.offset = 0;
        self.front = self.front.plus(1);
        while self
            .arrivals
            .front()
            .is_some_and(|sn| sn.before(self.front))
        {
            self.arrivals.pop_front();
        }
        match self.arrivals.front().and_then(|sn| self.slots.get(*sn)) {
            Some(oldest) => self.bytes.release_to(oldest.pos),
            None => self.bytes.clear(),
        }
    }

    /// Extends the ordered part with segments that have arrived, within the window.
    fn order(&mut self) {
        loop {
            while self.ordered() < self.window {
                let Some(len) = self.held(self.next).map(|slot| slot.len) else {
                    break;
                };
                self.ready += len;
                self.next = self.next.plus(1);
            }
            // An empty segment is no data to a stream.
            let empty = self.slots.get(self.front).is_some_and(|slot| slot.len == 0);
            if !(self.stream && empty && self.ordered() > 0) {
                return;
            }
            self.drop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(window: &mut RecvWindow, room: usize) -> Option<Vec<u8>> {
        let mut out = vec![0; room];
        let n = window.read(&mut out)?;
        out.truncate(n);
        Some(out)
    }

    #[test]
    fn order_is_restored_across_the_wrap() {
        let first = Sn(u32::MAX - 1);
        let mut w = RecvWindow::new(first, 8, true);
        for n in [3, 1, 2] {
            assert_eq!(w.push(first.plus(n), 0, &[n as u8; 100]), Pushed::New);
            assert_eq!((w.readable(), w.front()), (0, None));
        }
        assert_eq!(w.push(first.plus(2), 0, b"again"), Pushed::Repeated);
        assert_eq!(w.push(first.plus(8), 0, b"far"), Pushed::Overrun);
        assert_eq!(w.push(first.plus(u32::MAX), 0, b"old"), Pushed::Repeated);
        assert_eq!(w.push(first, 0, &[0; 100]), Pushed::New);
        assert_eq!((w.readable(), w.free(), w.next()), (400, 4, Sn(2)));
        assert_eq!(read(&mut w, 150).unwrap().len(), 150);
        assert_eq!(w.front(), Some(&[1; 50][..]));
        assert_eq!(w.consume(51), 51);
        assert_eq!(w.front(), Some(&[2; 99][..]));
        assert_eq!(w.consume(1000), 199);
        assert!(w.is_empty());
        w.release();
        assert_eq!(w.heap(), 0);
    }

    #[test]
    fn messages_come_whole_or_not_at_all() {
        let mut w = RecvWindow::new(Sn(0), 8, false);
        w.push(Sn(0), 1, b"ab");
        assert_eq!(read(&mut w, 9), None);
        w.push(Sn(1), 0, b"cd");
        w.push(Sn(2), 0, b"");
        w.push(Sn(3), 0, b"xyz");
        assert_eq!(w.readable(), 4);
        assert_eq!(read(&mut w, 3).unwrap(), b"abc");
        assert_eq!((w.readable(), w.front()), (1, Some(&b"d"[..])));
        assert_eq!(read(&mut w, 3).unwrap(), b"d");
        assert_eq!(read(&mut w, 3).unwrap(), b"");
        assert_eq!(w.consume(9), 3);
        assert_eq!(read(&mut w, 3), None);
    }

    #[test]
    fn a_full_queue_holds_the_rest_back() {
        let mut w = RecvWindow::new(Sn(0), 2, true);
        for n in 0..2 {
            w.push(Sn(n), 0, b"z");
        }
        assert_eq!(w.free(), 0);
        // Still within next + window: stored, but not yet in order.
        assert_eq!(w.push(Sn(2), 0, b"z"), Pushed::New);
        assert_eq!((w.next(), w.readable()), (Sn(2), 2));
        assert_eq!(w.consume(1), 1);
        assert_eq!((w.next(), w.readable()), (Sn(3), 2));
    }

    /// An empty segment stores a position of bytes that are gone when its turn comes.
    #[test]
    fn empty_segments_hold_no_place_in_the_ring() {
        for stream in [true, false] {
            let mut w = RecvWindow::new(Sn(0), 8, stream);
            w.push(Sn(0), 0, b"abc");
            w.push(Sn(2), 0, b"");
            assert_eq!(read(&mut w, 9).unwrap(), b"abc");
            // The ring is empty here and starts over.
            w.push(Sn(1), 0, b"x");
            assert_eq!(read(&mut w, 9).unwrap(), b"x");
            w.push(Sn(3), 0, b"yz");
            if !stream {
                assert_eq!(read(&mut w, 9).unwrap(), b"");
            }
            assert_eq!(read(&mut w, 9).unwrap(), b"yz");
            assert!(w.is_empty());
        }
    }

    #[test]
    fn empty_segments_vanish_from_streams() {
        let mut w = RecvWindow::new(Sn(0), 8, true);
        w.push(Sn(0), 0, b"");
        assert_eq!((w.front(), w.is_empty()), (None, true));
        w.push(Sn(1), 0, b"a");
        w.push(Sn(2), 0, b"");
        w.push(Sn(3), 0, b"b");
        assert_eq!(read(&mut w, 9).unwrap(), b"ab");
        assert!(w.is_empty());
    }
}
