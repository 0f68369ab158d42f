//! The receive window: segments in any order in, bytes or messages in order out.
//!
//! ```text
//!            front                next                 next + window
//!   read ──────┤  ordered, unread   ├──  out of order  ──────┤ dropped
//! ```
//!
//! Payloads lie in one byte ring in the order of their arrival. Reading follows the order of
//! numbers, so the head of the ring moves up when its oldest arrival has been read.

use alloc::collections::VecDeque;

use adit_wire::{narrow_int, subslice_mut};

use crate::byte_ring::ByteRing;
use crate::seq::{SeqNum, SeqRing};

/// A received segment; `full` is true if the slot is in use.
#[derive(Debug, Clone, Copy, Default)]
struct RecvSlot {
    pos: usize,
    len: usize,
    frg: u8,
    full: bool,
}

/// Result of receiving a data segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PushOutcome {
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
    slots: SeqRing<RecvSlot>,
    bytes: ByteRing,
    /// Numbers with data in the order of arrival; the first is the oldest that is not read.
    arrivals: VecDeque<SeqNum>,
    window: u32,
    stream: bool,
    /// The first segment that is not read completely.
    front: SeqNum,
    /// All segments before it have been received.
    next: SeqNum,
    /// One past the highest number received.
    end: SeqNum,
    /// Bytes of `front` already read.
    offset: usize,
    /// Segments left of a message that is being read.
    message: u32,
    /// Bytes in order and not read.
    ready: usize,
}

impl RecvWindow {
    pub(crate) fn new(first: SeqNum, window: u32, stream: bool) -> Self {
        Self {
            slots: SeqRing::new(),
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
    pub(crate) const fn set_limits(&mut self, window: u32, stream: bool) {
        (self.window, self.stream) = (window, stream);
    }

    /// Returns the number before which everything has been received.
    pub(crate) const fn next_expected(&self) -> SeqNum {
        self.next
    }

    /// Returns the number of free segments that is reported to the peer. Segments out of order do
    /// not count.
    pub(crate) fn free_segments(&self) -> u16 {
        narrow_int(self.window.saturating_sub(self.ordered_count()))
    }

    /// Adds a data segment.
    pub(crate) fn push(&mut self, sn: SeqNum, frg: u8, data: &[u8]) -> PushOutcome {
        if !sn.is_before(self.next.wrapping_add(self.window)) {
            return PushOutcome::Overrun;
        }
        if sn.is_before(self.next) || self.received_slot(sn).is_some() {
            return PushOutcome::Repeated;
        }
        // At most twice the window: as much may be ordered and unread as out of order.
        let count = self.end.distance_from(self.front);
        let wanted = sn.wrapping_add(1).distance_from(self.front).max(count);
        self.slots
            .grow_to(wanted.max(8) as usize, self.front, count);
        let pos = self.bytes.next_position();
        if let Some(slot) = self.slots.get_mut(sn) {
            *slot = RecvSlot {
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
        if self.end.is_before(sn.wrapping_add(1)) {
            self.end = sn.wrapping_add(1);
        }
        self.advance_order();
        PushOutcome::New
    }

    /// Returns the number of readable bytes: in stream mode all in order, otherwise the rest of the
    /// front message.
    pub(crate) fn readable_len(&self) -> usize {
        if self.stream {
            return self.ready;
        }
        let segments = (0..self.front_message_segments())
            .filter_map(|n| self.slots.get(self.front.wrapping_add(n)));
        let whole: usize = segments.map(|slot| slot.len).sum();
        whole - self.offset.min(whole)
    }

    /// Returns the next bytes in place, up to the end of the front segment or of the ring.
    pub(crate) fn front_bytes(&self) -> Option<&[u8]> {
        if self.front_message_segments() == 0 {
            return None;
        }
        let slot = self.slots.get(self.front)?;
        let (first, second) = self.front_rest(slot);
        Some(if first.is_empty() { second } else { first })
    }

    /// Consumes up to `n` bytes, including the boundary of a message at its end. Returns the number
    /// of bytes consumed.
    pub(crate) fn consume(&mut self, n: usize) -> usize {
        let mut left = n;
        while self.front_message_segments() > 0 {
            let here = self.front_slot().len - self.offset;
            if left < here {
                self.begin_message();
                self.offset += left;
                self.ready -= left;
                return n;
            }
            left -= here;
            let ended = self.pass_front();
            if left == 0 || (ended && !self.stream) {
                break;
            }
        }
        n - left
    }

    /// Copies the next bytes, in message mode of one message at most. Returns `None` if there is
    /// nothing to read yet.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> Option<usize> {
        if self.front_message_segments() == 0 {
            return None;
        }
        let mut filled = 0;
        while self.front_message_segments() > 0 {
            let Some(slot) = self.slots.get(self.front) else {
                break;
            };
            let (first, second) = self.front_rest(slot);
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
                self.begin_message();
                self.offset += filled - had;
                self.ready -= filled - had;
                break;
            }
            let ended = self.pass_front();
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

    pub(crate) fn heap_size(&self) -> usize {
        self.slots.heap_size()
            + self.bytes.heap_size()
            + self.arrivals.capacity() * size_of::<SeqNum>()
    }

    /// Frees the memory of an empty window.
    pub(crate) fn release_if_empty(&mut self) {
        if self.is_empty() {
            self.slots.release_memory();
            self.bytes.release_memory();
            self.arrivals = VecDeque::new();
        }
    }

    /// Returns the number of segments that are in order and not read.
    const fn ordered_count(&self) -> u32 {
        self.next.distance_from(self.front)
    }

    /// Returns the front segment, which has arrived.
    fn front_slot(&self) -> RecvSlot {
        let slot = self.slots.get(self.front).copied();
        debug_assert!(slot.is_some(), "the front is not in the ring");
        slot.unwrap_or_default()
    }

    /// Returns the number of segments of the front message if it is complete; in stream mode every
    /// segment is a message.
    fn front_message_segments(&self) -> u32 {
        let ordered = self.ordered_count();
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
    fn begin_message(&mut self) {
        self.message = self.front_message_segments();
    }

    /// Returns the rest of the front segment.
    fn front_rest(&self, slot: &RecvSlot) -> (&[u8], &[u8]) {
        self.bytes
            .slices(slot.pos.wrapping_add(self.offset), slot.len - self.offset)
    }

    /// Returns the segment with that number, if it has arrived and is not consumed.
    fn received_slot(&self, sn: SeqNum) -> Option<&RecvSlot> {
        let slot = self.slots.get(sn).filter(|slot| slot.full)?;
        sn.is_before(self.end).then_some(slot)
    }

    /// Consumes the front segment. Returns true if a message ended with it.
    fn pass_front(&mut self) -> bool {
        self.begin_message();
        self.message = self.message.saturating_sub(1);
        self.drop_front();
        self.advance_order();
        self.message == 0
    }

    /// Removes the front segment, and releases the bytes before the oldest remaining one.
    fn drop_front(&mut self) {
        if let Some(slot) = self.slots.get_mut(self.front) {
            self.ready -= slot.len - self.offset;
            slot.full = false;
        }
        self.offset = 0;
        self.front = self.front.wrapping_add(1);
        while self
            .arrivals
            .front()
            .is_some_and(|sn| sn.is_before(self.front))
        {
            self.arrivals.pop_front();
        }
        match self.arrivals.front().and_then(|sn| self.slots.get(*sn)) {
            Some(oldest) => self.bytes.release_to(oldest.pos),
            None => self.bytes.clear(),
        }
    }

    /// Extends the ordered part with segments that have arrived, within the window.
    fn advance_order(&mut self) {
        loop {
            while self.ordered_count() < self.window {
                let Some(len) = self.received_slot(self.next).map(|slot| slot.len) else {
                    break;
                };
                self.ready += len;
                self.next = self.next.wrapping_add(1);
            }
            // An empty segment is no data to a stream.
            let empty = self.slots.get(self.front).is_some_and(|slot| slot.len == 0);
            if !(self.stream && empty && self.ordered_count() > 0) {
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
        let first = SeqNum(u32::MAX - 1);
        let mut w = RecvWindow::new(first, 8, true);
        for n in [3, 1, 2] {
            assert_eq!(
                w.push(first.wrapping_add(n), 0, &[n as u8; 100]),
                PushOutcome::New
            );
            assert_eq!((w.readable_len(), w.front_bytes()), (0, None));
        }
        assert_eq!(
            w.push(first.wrapping_add(2), 0, b"again"),
            PushOutcome::Repeated
        );
        assert_eq!(
            w.push(first.wrapping_add(8), 0, b"far"),
            PushOutcome::Overrun
        );
        assert_eq!(
            w.push(first.wrapping_add(u32::MAX), 0, b"old"),
            PushOutcome::Repeated
        );
        assert_eq!(w.push(first, 0, &[0; 100]), PushOutcome::New);
        assert_eq!(
            (w.readable_len(), w.free_segments(), w.next_expected()),
            (400, 4, SeqNum(2))
        );
        assert_eq!(read(&mut w, 150).unwrap().len(), 150);
        assert_eq!(w.front_bytes(), Some(&[1; 50][..]));
        assert_eq!(w.consume(51), 51);
        assert_eq!(w.front_bytes(), Some(&[2; 99][..]));
        assert_eq!(w.consume(1000), 199);
        assert!(w.is_empty());
        w.release_if_empty();
        assert_eq!(w.heap_size(), 0);
    }

    #[test]
    fn messages_come_whole_or_not_at_all() {
        let mut w = RecvWindow::new(SeqNum(0), 8, false);
        w.push(SeqNum(0), 1, b"ab");
        assert_eq!(read(&mut w, 9), None);
        w.push(SeqNum(1), 0, b"cd");
        w.push(SeqNum(2), 0, b"");
        w.push(SeqNum(3), 0, b"xyz");
        assert_eq!(w.readable_len(), 4);
        assert_eq!(read(&mut w, 3).unwrap(), b"abc");
        assert_eq!((w.readable_len(), w.front_bytes()), (1, Some(&b"d"[..])));
        assert_eq!(read(&mut w, 3).unwrap(), b"d");
        assert_eq!(read(&mut w, 3).unwrap(), b"");
        assert_eq!(w.consume(9), 3);
        assert_eq!(read(&mut w, 3), None);
    }

    #[test]
    fn a_full_queue_holds_the_rest_back() {
        let mut w = RecvWindow::new(SeqNum(0), 2, true);
        for n in 0..2 {
            w.push(SeqNum(n), 0, b"z");
        }
        assert_eq!(w.free_segments(), 0);
        // Still within next + window: stored, but not yet in order.
        assert_eq!(w.push(SeqNum(2), 0, b"z"), PushOutcome::New);
        assert_eq!((w.next_expected(), w.readable_len()), (SeqNum(2), 2));
        assert_eq!(w.consume(1), 1);
        assert_eq!((w.next_expected(), w.readable_len()), (SeqNum(3), 2));
    }

    /// An empty segment stores a position of bytes that are gone when its turn comes.
    #[test]
    fn empty_segments_hold_no_place_in_the_ring() {
        for stream in [true, false] {
            let mut w = RecvWindow::new(SeqNum(0), 8, stream);
            w.push(SeqNum(0), 0, b"abc");
            w.push(SeqNum(2), 0, b"");
            assert_eq!(read(&mut w, 9).unwrap(), b"abc");
            // The ring is empty here and starts over.
            w.push(SeqNum(1), 0, b"x");
            assert_eq!(read(&mut w, 9).unwrap(), b"x");
            w.push(SeqNum(3), 0, b"yz");
            if !stream {
                assert_eq!(read(&mut w, 9).unwrap(), b"");
            }
            assert_eq!(read(&mut w, 9).unwrap(), b"yz");
            assert!(w.is_empty());
        }
    }

    #[test]
    fn empty_segments_vanish_from_streams() {
        let mut w = RecvWindow::new(SeqNum(0), 8, true);
        w.push(SeqNum(0), 0, b"");
        assert_eq!((w.front_bytes(), w.is_empty()), (None, true));
        w.push(SeqNum(1), 0, b"a");
        w.push(SeqNum(2), 0, b"");
        w.push(SeqNum(3), 0, b"b");
        assert_eq!(read(&mut w, 9).unwrap(), b"ab");
        assert!(w.is_empty());
    }
}
