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

use crate::bytes::ByteRing;
use crate::flight::{Flight, Mark, NEVER};
use crate::resend::{Evidence, Overtaken, Rules, Seg, Why};
use crate::seq::{Sn, SnRing};
use crate::{Compat, Config, SendError};

/// Maximum number of segments that one datagram's acknowledgements may examine. An honest window
/// has far fewer holes; beyond this, the time-outs repair the rest.
pub(crate) const EXAMINED_MAX: u32 = 16_384;

/// The send side of a session.
#[derive(Debug)]
pub(crate) struct SendWindow {
    segs: SnRing<Seg>,
    flight: Flight,
    bytes: ByteRing,
    una: Sn,
    fresh: Sn,
    numbered: Sn,
    end: Sn,
    /// Start of the current flush's search for due segments.
    cursor: Sn,
    /// True if the current flush has nothing new.
    quiet: bool,
    /// Maximum number of segments that the application may have queued or in flight.
    window: u32,
    mss: usize,
    stream: bool,
    compat: Compat,
    rules: Rules,
}

impl SendWindow {
    pub(crate) fn new(first: Sn, config: &Config) -> Self {
        Self {
            segs: SnRing::new(),
            flight: Flight::new(),
            bytes: ByteRing::new(),
            una: first,
            fresh: first,
            numbered: first,
            end: first,
            cursor: first,
            quiet: false,
            window: config.send_window,
            mss: config.mss(),
            stream: config.stream,
            compat: config.compat,
            rules: Rules::new(config),
        }
    }

    /// Changes the settings. Queued segments stay as they are.
    pub(crate) fn change(&mut self, config: &Config) {
        self.window = config.send_window;
        self.mss = config.mss();
        self.stream = config.stream;
        self.rules.change(config);
    }

    pub(crate) const fn flight(&self) -> &Flight {
        &self.flight
    }

    /// Returns the wire's clock at millisecond 0.
    pub(crate) const fn origin(&self) -> u32 {
        self.rules.origin
    }

    pub(crate) const fn set_origin(&mut self, origin: u32) {
        self.rules.origin = origin;
    }

    /// True if a segment with this number was sent, or if it precedes all.
    pub(crate) const fn was_sent(&self, sn: Sn) -> bool {
        sn.before(self.fresh)
    }

    /// Returns the number after the last queued segment.
    pub(crate) const fn end(&self) -> Sn {
        self.end
    }

    /// Discards everything that was not acknowledged.
    pub(crate) fn abandon(&mut self) {
        (self.una, self.fresh) = (self.end, self.end);
        (self.numbered, self.cursor) = (self.end, self.end);
        self.release();
    }

    /// Returns the first number not acknowledged.
    pub(crate) const fn una(&self) -> Sn {
        self.una
    }

    /// Returns the count of numbers between the oldest not acknowledged and the newest allowed out.
    pub(crate) const fn span(&self) -> u32 {
        self.numbered.distance(self.una)
    }

    /// Returns the number of segments allowed out and not sent.
    pub(crate) const fn unsent(&self) -> u32 {
        self.numbered.distance(self.fresh)
    }

    /// Returns the number of segments waiting for the window.
    pub(crate) const fn queued(&self) -> u32 {
        self.end.distance(self.numbered)
    }

    /// Returns the number of slots of the ring.
    pub(crate) const fn size(&self) -> usize {
        self.segs.size()
    }

    /// Returns the number of bytes that [`push`](Self::push) would accept now.
    pub(crate) fn room(&self) -> usize {
        let held = self.end.distance(self.una);
        let free = self.window.saturating_sub(held) as usize;
        match (self.stream, free) {
            (true, _) => free * self.mss + self.last_room(),
            (false, 0) => 0,
            (false, _) => self.compat.fragments() * self.mss,
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
        let limit = self.compat.fragments() * self.mss;
        if len > limit {
            return Err(SendError::TooLong { limit });
        }
        // As kcp-go does: while the window has space for one segment, the whole message is
        // accepted.
        if self.room() == 0 {
            return Err(SendError::Full);
        }
        if len == 0 {
            self.append(&[], 0);
            return Ok(0);
        }
        let (mut after, mut room) = (len.div_ceil(self.mss), 0);
        for mut part in parts {
            while !part.is_empty() {
                if room == 0 {
                    after -= 1;
                    self.append(&[], narrow_int(after));
                    room = self.mss;
                }
                let (piece, tail) = part.split_at(part.len().min(room));
                self.lengthen(piece);
                room -= piece.len();
                part = tail;
            }
        }
        debug_assert_eq!(after, 0, "a fragment of the message is missing");
        Ok(len)
    }

    fn push_stream<'p>(&mut self, parts: impl Iterator<Item = &'p [u8]>) -> usize {
        let mut room = self.room();
        let mut taken = 0;
        for part in parts {
            let (data, behind) = part.split_at(part.len().min(room));
            room -= data.len();
            taken += data.len();
            let (top_up, mut rest) = data.split_at(data.len().min(self.last_room()));
            if !top_up.is_empty() {
                self.lengthen(top_up);
            }
            while !rest.is_empty() {
                let (piece, tail) = rest.split_at(rest.len().min(self.mss));
                self.append(piece, 0);
                rest = tail;
            }
            if !behind.is_empty() {
                break;
            }
        }
        taken
    }

    /// Appends to the last queued segment, which must have enough space.
    fn lengthen(&mut self, piece: &[u8]) {
        self.bytes.push(piece);
        if let Some(last) = self.segs.get_mut(self.end.plus(u32::MAX)) {
            last.len += piece.len();
            debug_assert!(last.len <= self.mss, "the segment exceeds the MTU");
        }
    }

    /// Returns the number of bytes that the last segment of a stream still accepts.
    fn last_room(&self) -> usize {
        if self.end == self.numbered {
            return 0;
        }
        let last = self.segs.get(self.end.plus(u32::MAX));
        last.map_or(0, |last| self.mss.saturating_sub(last.len))
    }

    fn append(&mut self, piece: &[u8], frg: u8) {
        let held = self.end.distance(self.una);
        self.segs.grow((held + 1).max(8) as usize, self.una, held);
        self.flight.grow(self.segs.size(), self.una, held);
        let pos = self.bytes.tail();
        self.bytes.push(piece);
        if let Some(seg) = self.segs.get_mut(self.end) {
            *seg = Seg::new(pos, piece.len(), frg);
        }
        self.end = self.end.plus(1);
    }

    /// True if a window of `window` segments from `una` on allows queued ones out.
    pub(crate) const fn can_number(&self, window: u32) -> bool {
        self.queued() > 0 && self.span() < window
    }

    /// Allows at most `most` segments out, up to `window` from `una` on. Returns their number.
    pub(crate) fn number(&mut self, window: u32, most: u32) -> u32 {
        let room = window.saturating_sub(self.span());
        let count = room.min(most).min(self.queued());
        self.numbered = self.numbered.plus(count);
        count
    }

    /// Records at `now` that the peer has everything before `sn`. Passes the length of each segment
    /// not yet acknowledged to `gone`. Returns false if the peer acknowledges data that was never
    /// sent.
    pub(crate) fn acked_before(
        &mut self,
        sn: Sn,
        now: u64,
        mut gone: impl FnMut(Sn, usize),
    ) -> bool {
        if self.fresh.before(sn) {
            return false;
        }
        if !self.una.before(sn) {
            return true;
        }
        while let Some(first) = self.flight.find(Mark::Live, self.una, sn) {
            self.flight.acked(first);
            if let Some(seg) = self.segs.get(first) {
                self.rules.arrived(seg, None, now);
                gone(first, seg.len);
            }
            self.una = first.plus(1);
        }
        self.una = sn;
        self.shrink();
        true
    }

    /// Records at `now` that the peer has `sn`, as sent at `ts`. Returns the length of its data and
    /// the evidence against earlier ones, unless it was acknowledged before or never sent.
    pub(crate) fn acked(&mut self, sn: Sn, ts: u32, now: u64) -> Option<(usize, Evidence)> {
        if sn.before(self.una) || !sn.before(self.fresh) || !self.flight.acked(sn) {
            return None;
        }
        let seg = self.segs.get(sn)?;
        self.rules.arrived(seg, Some(ts), now);
        let news = (seg.len, Evidence::new(seg, ts));
        if sn == self.una {
            self.shrink();
        }
        Some(news)
    }

    /// Moves `una` to the first remaining segment and releases the bytes before it.
    fn shrink(&mut self) {
        let left = self.flight.find(Mark::Live, self.una, self.fresh);
        self.una = left.unwrap_or(self.fresh);
        if self.una == self.end {
            self.bytes.clear();
        } else if let Some(seg) = self.segs.get(self.una) {
            self.bytes.release_to(seg.pos);
        }
    }

    /// Counts an acknowledgement of `sn` against every earlier segment sent before it. Returns true
    /// if one of them is due because of it. `budget` limits the number of segments examined.
    pub(crate) fn overtake(&mut self, sn: Sn, by: &Evidence, budget: &mut u32) -> bool {
        if !self.rules.count() {
            return false;
        }
        let mut due = false;
        let mut at = self.una;
        while let Some(hole) = self.flight.find(Mark::Watched, at, sn) {
            if *budget == 0 {
                break;
            }
            *budget -= 1;
            at = hole.plus(1);
            let Some(seg) = self.segs.get_mut(hole) else {
                break;
            };
            match self.rules.overtake(seg, by) {
                Overtaken::No => {}
                Overtaken::Hint { last } => {
                    self.flight.hint(hole);
                    if last {
                        self.flight.unwatch(hole);
                    }
                }
                Overtaken::Due => {
                    self.flight.unwatch(hole);
                    self.flight.make_due(hole);
                    due = true;
                }
                Overtaken::InVain => self.flight.unwatch(hole),
            }
        }
        due
    }

    /// Starts a flush: collects the segments that timed out and, if nothing new was allowed out,
    /// all that were overtaken.
    pub(crate) fn collect(&mut self, now: u64, moved: u32) {
        let (segs, rules) = (&self.segs, &self.rules);
        self.flight.time_out(now, |slot| {
            segs.slot(slot).map_or(NEVER, |seg| rules.deadline(seg))
        });
        self.quiet = moved == 0;
        if self.quiet && self.compat == Compat::Go {
            self.flight.hinted_are_due();
        }
        self.cursor = self.una;
    }

    /// Returns the next segment to send: due segments in order, then new ones.
    pub(crate) fn next(&mut self, now: u64) -> Option<(Sn, Why)> {
        if self.cursor.before(self.una) {
            self.cursor = self.una;
        }
        while self.flight.due() > 0 {
            let Some(sn) = self.flight.find(Mark::Due, self.cursor, self.fresh) else {
                if self.cursor == self.una {
                    break;
                }
                // Made due behind the cursor after the flush began.
                self.cursor = self.una;
                continue;
            };
            self.cursor = sn;
            let Some(seg) = self.segs.get(sn) else { break };
            match self.rules.why(seg, now, self.quiet) {
                Some(why) => return Some((sn, why)),
                None => {
                    let deadline = self.rules.deadline(seg);
                    self.flight.wait(sn, deadline);
                }
            }
        }
        (self.fresh != self.numbered).then_some((self.fresh, Why::New))
    }

    /// Returns a segment and its bytes, in two parts if they wrap around the end of their ring.
    pub(crate) fn segment(&self, sn: Sn) -> Option<(&Seg, [&[u8]; 2])> {
        let seg = self.segs.get(sn)?;
        let (first, second) = self.bytes.parts(seg.pos, seg.len);
        Some((seg, [first, second]))
    }

    /// Records that the segment was written into a datagram. Returns its transmissions so far.
    pub(crate) fn sent(&mut self, sn: Sn, why: Why, now: u64, rto: u32) -> u16 {
        let Some(seg) = self.segs.get_mut(sn) else {
            return 0;
        };
        let attempts = self.rules.sent(seg, why, now, rto);
        let deadline = self.rules.deadline(seg);
        self.flight.sent(sn, deadline);
        if sn == self.fresh {
            self.fresh = sn.plus(1);
        }
        attempts
    }

    /// True if nothing is queued or in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.una == self.end
    }

    pub(crate) const fn heap(&self) -> usize {
        self.segs.heap() + self.flight.heap() + self.bytes.heap()
    }

    /// Frees the memory of an empty window.
    pub(crate) fn release(&mut self) {
        if self.is_empty() {
            self.segs.release();
            self.flight.release();
            self.bytes.release();
        }
    }
}
