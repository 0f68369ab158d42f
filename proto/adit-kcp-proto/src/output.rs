//! Output of datagrams.
//!
//! A flush moves queued segments into the window and collects those that are due. The datagrams are
//! then written one by one when the driver polls: acknowledgements, window probes, and data in the
//! order of numbers.

use adit_wire::{Time, narrow_int};

use crate::retransmit::SendReason;
use crate::segment::{Command, HEADER_LEN, SegmentHeader};
use crate::seq::SeqNum;
use crate::{Compat, KcpSession};

/// The current flush.
#[derive(Debug, Default)]
pub(crate) struct FlushState {
    /// Acknowledgements are being written.
    pub(crate) acks: bool,
    /// Everything else is being written.
    pub(crate) data: bool,
    /// An overtaken segment has been sent again.
    fast: bool,
    /// A segment that timed out has been sent again.
    lost: bool,
    /// A segment that timed out, of which a copy follows in a separate datagram.
    copy: Option<SeqNum>,
    /// The window at the start of the flush.
    window: u32,
}

/// Maximum number of segments in flight with which a segment that times out is sent twice. So few
/// are a dialogue, which waits for every answer, and a second loss would cost more than twice the
/// time of the first.
const MAX_DIALOGUE: u32 = 4;

/// The caller's buffer, up to the MTU.
struct DatagramBuf<'a> {
    out: &'a mut [u8],
    used: usize,
}

impl DatagramBuf<'_> {
    fn has_space(&self, len: usize) -> bool {
        HEADER_LEN + len <= self.out.len().saturating_sub(self.used)
    }

    /// Appends a segment that fits.
    fn push_segment(&mut self, header: &SegmentHeader, [first, second]: [&[u8]; 2]) {
        for part in [&header.encode()[..], first, second] {
            let end = self.used + part.len();
            if let Some(to) = self.out.get_mut(self.used..end) {
                to.copy_from_slice(part);
                self.used = end;
            }
        }
    }
}

impl KcpSession {
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
        let mut datagram = DatagramBuf {
            out: room.get_mut(..longest)?,
            used: 0,
        };
        self.handle_timeout(now);
        if self.is_dead {
            return None;
        }
        self.fill_datagram(&mut datagram);
        if datagram.used == 0 {
            self.write_copy(&mut datagram);
        }
        if datagram.used == 0 {
            return None;
        }
        self.last_active = self.clock;
        self.stats.datagrams_out += 1;
        Some(datagram.used)
    }

    /// Starts a flush: admits queued segments, and collects those to send again.
    pub(crate) fn begin_flush(&mut self) {
        self.record_flush();
        let now = self.elapsed_ms();
        self.update_window_probe(now);
        let window = self.effective_window();
        let moved = self.send.admit_queued(window, self.max_new_segments());
        self.send.begin_flush(now, moved);
        self.flush.acks = true;
        self.flush.data = true;
        self.flush.window = window;
    }

    /// Fills the datagram with everything due that fits.
    fn fill_datagram(&mut self, datagram: &mut DatagramBuf<'_>) {
        if self.flush.acks {
            while let Some((sn, ts)) = self
                .acks
                .next_unwritten(self.config.compat, self.recv.next_expected())
            {
                if !datagram.has_space(0) {
                    return;
                }
                let ack = self.new_header(Command::Ack, ts, sn);
                self.write_control(datagram, &ack);
                self.acks.pop_written();
            }
            self.flush.acks = false;
        }
        if !self.flush.data {
            return;
        }
        if let Some(answer) = self.closing_answer() {
            if !datagram.has_space(0) {
                return;
            }
            self.write_control(datagram, &answer);
            self.clear_closing_answer();
        }
        for cmd in [Command::WindowProbe, Command::WindowReport] {
            let wanted = match cmd {
                Command::WindowProbe => self.probe.send_request,
                _ => self.probe.send_report,
            };
            if wanted {
                if !datagram.has_space(0) {
                    return;
                }
                let probe = self.new_header(cmd, 0, SeqNum(0));
                self.write_control(datagram, &probe);
                match cmd {
                    Command::WindowProbe => self.probe.send_request = false,
                    _ => self.probe.send_report = false,
                }
            }
        }
        if !self.write_data(datagram) {
            return;
        }
        if let Some(farewell) = self.due_closing() {
            if !datagram.has_space(0) {
                return;
            }
            self.write_control(datagram, &farewell);
            self.record_closing_sent();
        }
        self.end_flush();
    }

    /// Writes the copy of a segment that timed out, if one is wanted.
    fn write_copy(&mut self, datagram: &mut DatagramBuf<'_>) {
        let Some(sn) = self.flush.copy.take() else {
            return;
        };
        if !self.send.in_flight().is_live(sn) {
            return;
        }
        let header = self.new_header(Command::Push, self.wire_clock(), sn);
        let Some((seg, parts)) = self.send.segment_and_bytes(sn) else {
            return;
        };
        let (frg, len) = (seg.frg, seg.len);
        if datagram.has_space(len) {
            let len = narrow_int(len);
            datagram.push_segment(&SegmentHeader { frg, len, ..header }, parts);
            self.stats.segments_out += 1;
            self.stats.retransmitted += 1;
        }
    }

    /// Writes data. Returns true if all data was written.
    fn write_data(&mut self, datagram: &mut DatagramBuf<'_>) -> bool {
        let (now, ts) = (self.elapsed_ms(), self.wire_clock());
        while let Some((sn, why)) = self.send.next_to_send(now) {
            let header = self.new_header(Command::Push, ts, sn);
            if self.pacing_deadline().is_some() {
                return false;
            }
            let Some((seg, parts)) = self.send.segment_and_bytes(sn) else {
                return true;
            };
            let len = seg.len;
            if !datagram.has_space(len) {
                return false;
            }
            let header = SegmentHeader {
                frg: seg.frg,
                len: narrow_int(len),
                ..header
            };
            datagram.push_segment(&header, parts);
            self.stats.segments_out += 1;
            self.record_sent(sn, why, len, now);
        }
        true
    }

    /// Records a transmission of a segment.
    fn record_sent(&mut self, sn: SeqNum, why: SendReason, len: usize, now: u64) {
        if let Some(bbr) = &mut self.bbr {
            let held = self.send.numbered_span() + self.send.queued_count();
            bbr.grow(self.send.ring_size(), self.send.first_unacked(), held);
            let in_flight = self.send.in_flight().live_count();
            bbr.record_sent(sn, len, self.clock.0, in_flight, why != SendReason::New);
        }
        let attempts = self.send.record_sent(sn, why, now, self.rtt.rto());
        let limit = self.config.dead_link;
        // On a path that drops most of a full window, the number of attempts alone proves nothing.
        let silent = now.saturating_sub(self.last_heard_ms) >= u64::from(self.config.silence_ms);
        self.is_dead = limit > 0 && attempts >= limit && silent;
        match why {
            SendReason::New => return,
            SendReason::Timeout => {
                self.stats.lost += 1;
                self.flush.lost = true;
                let talk = self.send.in_flight().live_count() <= MAX_DIALOGUE
                    && self.send.unsent_count() == 0;
                if self.config.compat == Compat::Go && self.config.nodelay > 0 && talk {
                    self.flush.copy.get_or_insert(sn);
                }
            }
            SendReason::Fast => {
                self.stats.fast += 1;
                self.flush.fast = true;
            }
            SendReason::Early => {
                self.stats.early += 1;
                self.flush.fast = true;
            }
        }
        self.stats.retransmitted += 1;
    }

    /// Ends a flush, and updates congestion control.
    fn end_flush(&mut self) {
        let FlushState {
            fast,
            lost,
            copy,
            window,
            ..
        } = core::mem::take(&mut self.flush);
        self.flush.copy = copy;
        self.reno.end_flush(
            fast,
            lost,
            self.send.numbered_span(),
            window,
            self.config.resend,
        );
        if let Some(bbr) = &mut self.bbr {
            let out = self.send.in_flight().live_count();
            // With nothing to send, or with a window blocked by holes while the path runs dry, the
            // delivery rate says nothing about the path. With a window full of segments it does.
            let starved = self.send.queued_count() == 0
                && self.send.capacity() > 0
                && out < bbr.max_in_flight();
            let held_up = self.send.numbered_span() >= window && bbr.is_running_dry(out);
            if starved || held_up {
                bbr.record_idle(out);
            }
        }
        self.schedule_flush();
    }

    /// Appends a segment without data.
    fn write_control(&mut self, datagram: &mut DatagramBuf<'_>, header: &SegmentHeader) {
        datagram.push_segment(header, [&[], &[]]);
        self.stats.segments_out += 1;
    }

    pub(crate) fn new_header(&self, cmd: Command, ts: u32, sn: SeqNum) -> SegmentHeader {
        SegmentHeader {
            conv: self.conv,
            cmd,
            frg: 0,
            wnd: self.recv.free_segments(),
            ts,
            sn: sn.0,
            una: self.recv.next_expected().0,
            len: 0,
        }
    }
}
