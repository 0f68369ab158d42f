//! Output of datagrams.
//!
//! A flush moves queued segments into the window and collects those that are due. The datagrams are
//! then written one by one when the driver polls: acknowledgements, window probes, and data in the
//! order of numbers.

use adit_wire::{Time, narrow_int};

use crate::resend::Why;
use crate::segment::{Cmd, HEADER_LEN, Header};
use crate::seq::Sn;
use crate::{Compat, Kcp};

/// The current flush.
#[derive(Debug, Default)]
pub(crate) struct Flush {
    /// Acknowledgements are being written.
    pub(crate) acks: bool,
    /// Everything else is being written.
    pub(crate) data: bool,
    /// An overtaken segment has been sent again.
    fast: bool,
    /// A segment that timed out has been sent again.
    lost: bool,
    /// A segment that timed out, of which a copy follows in a separate datagram.
    copy: Option<Sn>,
    /// The window at the start of the flush.
    window: u32,
}

/// Maximum number of segments in flight with which a segment that times out is sent twice. So few
/// are a dialogue, which waits for every answer, and a second loss would cost more than twice the
/// time of the first.
const TALK: u32 = 4;

/// The caller's buffer, up to the MTU.
struct Datagram<'a> {
    room: &'a mut [u8],
    used: usize,
}

impl Datagram<'_> {
    fn fits(&self, len: usize) -> bool {
        HEADER_LEN + len <= self.room.len().saturating_sub(self.used)
    }

    /// Appends a segment that fits.
    fn put(&mut self, header: &Header, [first, second]: [&[u8]; 2]) {
        for part in [&header.bytes()[..], first, second] {
            let end = self.used + part.len();
            if let Some(to) = self.room.get_mut(self.used..end) {
                to.copy_from_slice(part);
                self.used = end;
            }
        }
    }
}

impl Kcp {
    /// Writes the next datagram to the front of `out` and returns its length; `None` when there is
    /// nothing to send now. Nothing is sent if `out` is shorter than
    /// [`Config::mtu`](crate::Config::mtu).
    pub fn poll_output(&mut self, now: Time, out: &mut [u8]) -> Option<usize> {
        self.poll_output_within(now, out, usize::MAX)
    }

    /// Like [`poll_output`](Self::poll_output), with at most `limit` bytes. Segments that do not
    /// fit keep waiting; then [`poll_timeout`](Self::poll_timeout) returns a time that has passed.
    pub fn poll_output_within(&mut self, now: Time, out: &mut [u8], limit: usize) -> Option<usize> {
        let room = out.get_mut(..self.config.mtu)?;
        let longest = room.len().min(limit);
        let mut datagram = Datagram {
            room: room.get_mut(..longest)?,
            used: 0,
        };
        self.handle_timeout(now);
        if self.dead {
            return None;
        }
        self.fill(&mut datagram);
        if datagram.used == 0 {
            self.fill_copy(&mut datagram);
        }
        if datagram.used == 0 {
            return None;
        }
        self.active = self.clock;
        self.stats.datagrams_out += 1;
        Some(datagram.used)
    }

    /// Starts a flush: admits queued segments, and collects those to send again.
    pub(crate) fn begin_flush(&mut self) {
        self.flush_begins();
        let now = self.ms();
        self.watch_window(now);
        let window = self.window();
        let moved = self.send.number(window, self.most());
        self.send.collect(now, moved);
        self.flush.acks = true;
        self.flush.data = true;
        self.flush.window = window;
    }

    /// Fills the datagram with everything due that fits.
    fn fill(&mut self, datagram: &mut Datagram<'_>) {
        if self.flush.acks {
            while let Some((sn, ts)) = self.acks.next(self.config.compat, self.recv.next()) {
                if !datagram.fits(0) {
                    return;
                }
                let ack = self.header(Cmd::Ack, ts, sn);
                self.put(datagram, &ack);
                self.acks.pop();
            }
            self.flush.acks = false;
        }
        if !self.flush.data {
            return;
        }
        if let Some(answer) = self.answer() {
            if !datagram.fits(0) {
                return;
            }
            self.put(datagram, &answer);
            self.answered();
        }
        for cmd in [Cmd::Wask, Cmd::Wins] {
            let wanted = match cmd {
                Cmd::Wask => self.probe.ask,
                _ => self.probe.tell,
            };
            if wanted {
                if !datagram.fits(0) {
                    return;
                }
                let probe = self.header(cmd, 0, Sn(0));
                self.put(datagram, &probe);
                match cmd {
                    Cmd::Wask => self.probe.ask = false,
                    _ => self.probe.tell = false,
                }
            }
        }
        if !self.fill_data(datagram) {
            return;
        }
        if let Some(farewell) = self.farewell() {
            if !datagram.fits(0) {
                return;
            }
            self.put(datagram, &farewell);
            self.farewell_said();
        }
        self.end_flush();
    }

    /// Writes the copy of a segment that timed out, if one is wanted.
    fn fill_copy(&mut self, datagram: &mut Datagram<'_>) {
        let Some(sn) = self.flush.copy.take() else {
            return;
        };
        if !self.send.flight().is_live(sn) {
            return;
        }
        let header = self.header(Cmd::Push, self.wire_clock(), sn);
        let Some((seg, parts)) = self.send.segment(sn) else {
            return;
        };
        let (frg, len) = (seg.frg, seg.len);
        if datagram.fits(len) {
            let len = narrow_int(len);
            datagram.put(&Header { frg, len, ..header }, parts);
            self.stats.segments_out += 1;
            self.stats.retransmitted += 1;
        }
    }

    /// Writes data. Returns true if all data was written.
    fn fill_data(&mut self, datagram: &mut Datagram<'_>) -> bool {
        let (now, ts) = (self.ms(), self.wire_clock());
        while let Some((sn, why)) = self.send.next(now) {
            let header = self.header(Cmd::Push, ts, sn);
            if self.paced_until().is_some() {
                return false;
            }
            let Some((seg, parts)) = self.send.segment(sn) else {
                return true;
            };
            let len = seg.len;
            if !datagram.fits(len) {
                return false;
            }
            let header = Header {
                frg: seg.frg,
                len: narrow_int(len),
                ..header
            };
            datagram.put(&header, parts);
            self.stats.segments_out += 1;
            self.sent(sn, why, len, now);
        }
        true
    }

    /// Records a transmission of a segment.
    fn sent(&mut self, sn: Sn, why: Why, len: usize, now: u64) {
        if let Some(bbr) = &mut self.bbr {
            let held = self.send.span() + self.send.queued();
            bbr.grow(self.send.size(), self.send.una(), held);
            let in_flight = self.send.flight().live();
            bbr.transmit(sn, len, self.clock.0, in_flight, why != Why::New);
        }
        let attempts = self.send.sent(sn, why, now, self.rtt.rto());
        let limit = self.config.dead_link;
        // On a path that drops most of a full window, the number of attempts alone proves nothing.
        let silent = now.saturating_sub(self.heard) >= u64::from(self.config.silence_ms);
        self.dead = limit > 0 && attempts >= limit && silent;
        match why {
            Why::New => return,
            Why::Timeout => {
                self.stats.lost += 1;
                self.flush.lost = true;
                let talk = self.send.flight().live() <= TALK && self.send.unsent() == 0;
                if self.config.compat == Compat::Go && self.config.nodelay > 0 && talk {
                    self.flush.copy.get_or_insert(sn);
                }
            }
            Why::Fast => {
                self.stats.fast += 1;
                self.flush.fast = true;
            }
            Why::Early => {
                self.stats.early += 1;
                self.flush.fast = true;
            }
        }
        self.stats.retransmitted += 1;
    }

    /// Ends a flush, and updates congestion control.
    fn end_flush(&mut self) {
        let Flush {
            fast,
            lost,
            copy,
            window,
            ..
        } = core::mem::take(&mut self.flush);
        self.flush.copy = copy;
        self.reno
            .flushed(fast, lost, self.send.span(), window, self.config.resend);
        if let Some(bbr) = &mut self.bbr {
            let out = self.send.flight().live();
            // With nothing to send, or with a window blocked by holes while the path runs dry, the
            // delivery rate says nothing about the path. With a window full of segments it does.
            let starved = self.send.queued() == 0 && self.send.room() > 0 && out < bbr.limit();
            let held_up = self.send.span() >= window && bbr.runs_dry(out);
            if starved || held_up {
                bbr.idle(out);
            }
        }
        self.schedule();
    }

    /// Appends a segment without data.
    fn put(&mut self, datagram: &mut Datagram<'_>, header: &Header) {
        datagram.put(header, [&[], &[]]);
        self.stats.segments_out += 1;
    }

    pub(crate) fn header(&self, cmd: Cmd, ts: u32, sn: Sn) -> Header {
        Header {
            conv: self.conv,
            cmd,
            frg: 0,
            wnd: self.recv.free(),
            ts,
            sn: sn.0,
            una: self.recv.next().0,
            len: 0,
        }
    }
}
