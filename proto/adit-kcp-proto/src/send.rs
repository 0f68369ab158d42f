//! The send window: queued segments, segments in flight, and the choice of the next to send.
//!
//! ```text
//!     una               fresh            numbered             end
//!      ├── in flight, ────┤── may go, not ──┤──── queued ──────┤
//!      │   some acked     │   yet sent      │                  │
//! ```
//!
//! One ring of segments holds all of them: the number of a queued segment is already known, and the
//! window only decides when it may be sent.

use adit_wire::narrow_int;

use crate::byte_ring::ByteRing;
use crate::in_flight::{InFlight, NEVER, SegmentMark};
use crate::retransmit::{AckEvidence, OvertakeEffect, ResendRules, SendReason, SendSegment};
use crate::seq::{SeqNum, SeqRing};
use crate::{Compat, Config, SendError};

/// Maximum number of segments that one datagram's acknowledgements may examine. An honest window
/// has far fewer holes; beyond this, the time-outs repair the rest.
pub(crate) const MAX_EXAMINED: u32 = 16_384;

/// The send side of a session.
#[derive(Debug)]
pub(crate) struct SendWindow {
    segs: SeqRing<SendSegment>,
    flight: InFlight,
    bytes: ByteRing,
    una: SeqNum,
    next_unsent: SeqNum,
    admitted_end: SeqNum,
    end: SeqNum,
    /// Start of the current flush's search for due segments.
    due_cursor: SeqNum,
    /// True if the current flush has nothing new.
    quiet: bool,
    /// Maximum number of segments that the application may have queued or in flight.
    window: u32,
    mss: usize,
    stream: bool,
    compat: Compat,
    rules: ResendRules,
}

impl SendWindow {
    pub(crate) fn new(first: SeqNum, config: &Config) -> Self {
        Self {
            segs: SeqRing::new(),
            flight: InFlight::new(),
            bytes: ByteRing::new(),
            una: first,
            next_unsent: first,
            admitted_end: first,
            end: first,
            due_cursor: first,
            quiet: false,
            window: config.send_window,
            mss: config.mss(),
            stream: config.stream,
            compat: config.compat,
            rules: ResendRules::new(config),
        }
    }

    /// Changes the settings. Queued segments stay as they are.
    pub(crate) fn set_limits(&mut self, config: &Config) {
        self.window = config.send_window;
        self.mss = config.mss();
        self.stream = config.stream;
        self.rules.set_limits(config);
    }

    pub(crate) const fn in_flight(&self) -> &InFlight {
        &self.flight
    }

    /// Returns the wire's clock at millisecond 0.
    pub(crate) const fn clock_origin(&self) -> u32 {
        self.rules.origin
    }

    pub(crate) const fn set_clock_origin(&mut self, origin: u32) {
        self.rules.origin = origin;
    }

    /// True if a segment with this number was sent, or if it precedes all.
    pub(crate) const fn was_sent(&self, sn: SeqNum) -> bool {
        sn.is_before(self.next_unsent)
    }

    /// Returns the number after the last queued segment.
    pub(crate) const fn end_number(&self) -> SeqNum {
        self.end
    }

    /// Discards everything that was not acknowledged.
    pub(crate) fn discard_all(&mut self) {
        (self.una, self.next_unsent) = (self.end, self.end);
        (self.admitted_end, self.due_cursor) = (self.end, self.end);
        self.release_if_empty();
    }

    /// Returns the first number not acknowledged.
    pub(crate) const fn first_unacked(&self) -> SeqNum {
        self.una
    }

    /// Returns the count of numbers between the oldest not acknowledged and the newest allowed out.
    pub(crate) const fn numbered_span(&self) -> u32 {
        self.admitted_end.distance_from(self.una)
    }

    /// Returns the number of segments allowed out and not sent.
    pub(crate) const fn unsent_count(&self) -> u32 {
        self.admitted_end.distance_from(self.next_unsent)
    }

    /// Returns the number of segments waiting for the window.
    pub(crate) const fn queued_count(&self) -> u32 {
        self.end.distance_from(self.admitted_end)
    }

    /// Returns the number of slots of the ring.
    pub(crate) const fn ring_size(&self) -> usize {
        self.segs.slot_count()
    }

    /// Returns the number of bytes that [`push`](Self::push) would accept now.
    pub(crate) fn capacity(&self) -> usize {
        let held = self.end.distance_from(self.una);
        let free = self.window.saturating_sub(held) as usize;
        match (self.stream, free) {
            (true, _) => free * self.mss + self.last_capacity(),
            (false, 0) => 0,
            (false, _) => self.compat.max_fragments() * self.mss,
        }
    }

    /// Queues a message, or as much of a stream as fits: the bytes of all `parts`.
    pub(crate) fn push<'p>(
        &mut self,
        parts: impl Iterator<Item = &'p [u8]> + Clone,
    ) -> Result<usize, SendError> {
        if self.stream {
            return Ok(self.push_stream(parts));
        }
        let lens = parts.clone().map(<[u8]>::len);
        let len = lens.fold(0, usize::saturating_add);
        if len == 0 && self.compat == Compat::Go {
            return Err(SendError::Empty);
        }
        let limit = self.compat.max_fragments() * self.mss;
        if len > limit {
            return Err(SendError::TooLong { limit });
        }
        // As kcp-go does: while the window has space for one segment, the whole message is
        // accepted.
        if self.capacity() == 0 {
            return Err(SendError::Full);
        }
        if len == 0 {
            self.append_segment(&[], 0);
            return Ok(0);
        }
        let (mut after, mut room) = (len.div_ceil(self.mss), 0);
        for mut part in parts {
            while !part.is_empty() {
                if room == 0 {
                    after -= 1;
                    self.append_segment(&[], narrow_int(after));
                    room = self.mss;
                }
                let (piece, tail) = part.split_at(part.len().min(room));
                self.extend_last(piece);
                room -= piece.len();
                part = tail;
            }
        }
        debug_assert_eq!(after, 0, "a fragment of the message is missing");
        Ok(len)
    }

    fn push_stream<'p>(&mut self, parts: impl Iterator<Item = &'p [u8]>) -> usize {
        let mut room = self.capacity();
        let mut taken = 0;
        for part in parts {
            let (data, behind) = part.split_at(part.len().min(room));
            room -= data.len();
            taken += data.len();
            let (top_up, mut rest) = data.split_at(data.len().min(self.last_capacity()));
            if !top_up.is_empty() {
                self.extend_last(top_up);
            }
            while !rest.is_empty() {
                let (piece, tail) = rest.split_at(rest.len().min(self.mss));
                self.append_segment(piece, 0);
                rest = tail;
            }
            if !behind.is_empty() {
                break;
            }
        }
        taken
    }

    /// Appends to the last queued segment, which must have enough space.
    fn extend_last(&mut self, piece: &[u8]) {
        self.bytes.push(piece);
        if let Some(last) = self.segs.get_mut(self.end.wrapping_add(u32::MAX)) {
            last.len += piece.len();
            debug_assert!(last.len <= self.mss, "the segment exceeds the MTU");
        }
    }

    /// Returns the number of bytes that the last segment of a stream still accepts.
    fn last_capacity(&self) -> usize {
        if self.end == self.admitted_end {
            return 0;
        }
        let last = self.segs.get(self.end.wrapping_add(u32::MAX));
        last.map_or(0, |last| self.mss.saturating_sub(last.len))
    }

    fn append_segment(&mut self, piece: &[u8], frg: u8) {
        let held = self.end.distance_from(self.una);
        self.segs
            .grow_to((held + 1).max(8) as usize, self.una, held);
        self.flight.grow_to(self.segs.slot_count(), self.una, held);
        let pos = self.bytes.next_position();
        self.bytes.push(piece);
        if let Some(seg) = self.segs.get_mut(self.end) {
            *seg = SendSegment::new(pos, piece.len(), frg);
        }
        self.end = self.end.wrapping_add(1);
    }

    /// True if a window of `window` segments from `una` on allows queued ones out.
    pub(crate) const fn can_admit(&self, window: u32) -> bool {
        self.queued_count() > 0 && self.numbered_span() < window
    }

    /// Allows at most `most` segments out, up to `window` from `una` on. Returns their number.
    pub(crate) fn admit_queued(&mut self, window: u32, most: u32) -> u32 {
        let room = window.saturating_sub(self.numbered_span());
        let count = room.min(most).min(self.queued_count());
        self.admitted_end = self.admitted_end.wrapping_add(count);
        count
    }

    /// Records at `now` that the peer has everything before `sn`. Passes the length of each segment
    /// not yet acknowledged to `gone`. Returns false if the peer acknowledges data that was never
    /// sent.
    pub(crate) fn mark_acked_before(
        &mut self,
        sn: SeqNum,
        now: u64,
        mut gone: impl FnMut(SeqNum, usize),
    ) -> bool {
        if self.next_unsent.is_before(sn) {
            return false;
        }
        if !self.una.is_before(sn) {
            return true;
        }
        while let Some(first) = self.flight.find_marked(SegmentMark::Live, self.una, sn) {
            self.flight.mark_acked(first);
            if let Some(seg) = self.segs.get(first) {
                self.rules.record_arrival(seg, None, now);
                gone(first, seg.len);
            }
            self.una = first.wrapping_add(1);
        }
        self.una = sn;
        self.release_acked();
        true
    }

    /// Records at `now` that the peer has `sn`, as sent at `ts`. Returns the length of its data and
    /// the evidence against earlier ones, unless it was acknowledged before or never sent.
    pub(crate) fn mark_acked(
        &mut self,
        sn: SeqNum,
        ts: u32,
        now: u64,
    ) -> Option<(usize, AckEvidence)> {
        if sn.is_before(self.una) || !sn.is_before(self.next_unsent) || !self.flight.mark_acked(sn)
        {
            return None;
        }
        let seg = self.segs.get(sn)?;
        self.rules.record_arrival(seg, Some(ts), now);
        let news = (seg.len, AckEvidence::new(seg, ts));
        if sn == self.una {
            self.release_acked();
        }
        Some(news)
    }

    /// Moves `una` to the first remaining segment and releases the bytes before it.
    fn release_acked(&mut self) {
        let left = self
            .flight
            .find_marked(SegmentMark::Live, self.una, self.next_unsent);
        self.una = left.unwrap_or(self.next_unsent);
        if self.una == self.end {
            self.bytes.clear();
        } else if let Some(seg) = self.segs.get(self.una) {
            self.bytes.release_to(seg.position);
        }
    }

    /// Counts an acknowledgement of `sn` against every earlier segment sent before it. Returns true
    /// if one of them is due because of it. `budget` limits the number of segments examined.
    pub(crate) fn count_overtakes(
        &mut self,
        sn: SeqNum,
        by: &AckEvidence,
        budget: &mut u32,
    ) -> bool {
        if !self.rules.counts_overtakes() {
            return false;
        }
        let mut due = false;
        let mut at = self.una;
        while let Some(hole) = self.flight.find_marked(SegmentMark::Watched, at, sn) {
            if *budget == 0 {
                break;
            }
            *budget -= 1;
            at = hole.wrapping_add(1);
            let Some(seg) = self.segs.get_mut(hole) else {
                break;
            };
            match self.rules.count_overtake(seg, by) {
                OvertakeEffect::No => {}
                OvertakeEffect::Hint { last } => {
                    self.flight.mark_hinted(hole);
                    if last {
                        self.flight.stop_watching(hole);
                    }
                }
                OvertakeEffect::Due => {
                    self.flight.stop_watching(hole);
                    self.flight.mark_due(hole);
                    due = true;
                }
                OvertakeEffect::InVain => self.flight.stop_watching(hole),
            }
        }
        due
    }

    /// Starts a flush: collects the segments that timed out and, if nothing new was allowed out,
    /// all that were overtaken.
    pub(crate) fn begin_flush(&mut self, now: u64, moved: u32) {
        let (segs, rules) = (&self.segs, &self.rules);
        self.flight.mark_timed_out(now, |slot| {
            segs.slot_at(slot).map_or(NEVER, |seg| rules.deadline(seg))
        });
        self.quiet = moved == 0;
        if self.quiet && self.compat == Compat::Go {
            self.flight.make_hinted_due();
        }
        self.due_cursor = self.una;
    }

    /// Returns the next segment to send: due segments in order, then new ones.
    pub(crate) fn next_to_send(&mut self, now: u64) -> Option<(SeqNum, SendReason)> {
        if self.due_cursor.is_before(self.una) {
            self.due_cursor = self.una;
        }
        while self.flight.due_count() > 0 {
            let Some(sn) =
                self.flight
                    .find_marked(SegmentMark::Due, self.due_cursor, self.next_unsent)
            else {
                if self.due_cursor == self.una {
                    break;
                }
                // Made due behind the cursor after the flush began.
                self.due_cursor = self.una;
                continue;
            };
            self.due_cursor = sn;
            let Some(seg) = self.segs.get(sn) else { break };
            match self.rules.resend_reason(seg, now, self.quiet) {
                Some(why) => return Some((sn, why)),
                None => {
                    let deadline = self.rules.deadline(seg);
                    self.flight.wait_for_timeout(sn, deadline);
                }
            }
        }
        (self.next_unsent != self.admitted_end).then_some((self.next_unsent, SendReason::New))
    }

    /// Returns a segment and its bytes, in two parts if they wrap around the end of their ring.
    pub(crate) fn segment_and_bytes(&self, sn: SeqNum) -> Option<(&SendSegment, [&[u8]; 2])> {
        let seg = self.segs.get(sn)?;
        let (first, second) = self.bytes.slices(seg.position, seg.len);
        Some((seg, [first, second]))
    }

    /// Records that the segment was written into a datagram. Returns its transmissions so far.
    pub(crate) fn record_sent(&mut self, sn: SeqNum, why: SendReason, now: u64, rto: u32) -> u16 {
        let Some(seg) = self.segs.get_mut(sn) else {
            return 0;
        };
        let attempts = self.rules.record_sent(seg, why, now, rto);
        let deadline = self.rules.deadline(seg);
        self.flight.mark_sent(sn, deadline);
        if sn == self.next_unsent {
            self.next_unsent = sn.wrapping_add(1);
        }
        attempts
    }

    /// True if nothing is queued or in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.una == self.end
    }

    pub(crate) const fn heap_size(&self) -> usize {
        self.segs.heap_size() + self.flight.heap_size() + self.bytes.heap_size()
    }

    /// Frees the memory of an empty window.
    pub(crate) fn release_if_empty(&mut self) {
        if self.is_empty() {
            self.segs.release_memory();
            self.flight.release_memory();
            self.bytes.release_memory();
        }
    }
}
