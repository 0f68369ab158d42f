//! Handling of received datagrams.

use adit_wire::{ProtocolError, Time};

use crate::recv::PushOutcome;
use crate::retransmit::AckEvidence;
use crate::segment::{self, Command, HEADER_LEN, SegmentHeader};
use crate::send::MAX_EXAMINED;
use crate::seq::{SeqNum, elapsed_ms, low_u32};
use crate::{Compat, CongestionControl, KcpSession};

/// State gathered from a datagram.
struct InputSummary {
    /// Restored by forward error correction: late by nature, so it says nothing about the present.
    recovered: bool,
    /// The wire's clock.
    now: u32,
    /// The time stamp of the last acknowledgement.
    echoed: Option<u32>,
    /// C: the highest number acknowledged, with the evidence that follows from it.
    highest: Option<(SeqNum, AckEvidence)>,
    /// A segment was overtaken often enough.
    overtaken: bool,
    /// Number of holes that may still be examined.
    budget: u32,
}

impl KcpSession {
    /// Handles a datagram from the peer. `recovered` is true if forward error correction has
    /// rebuilt it, so that its window and time stamps are outdated.
    ///
    /// # Errors
    ///
    /// The datagram, or its rest from some segment on, does not belong to this conversation or is
    /// not KCP. The segments before it stay in effect, and the session continues.
    pub fn handle_input(
        &mut self,
        now: Time,
        datagram: &[u8],
        recovered: bool,
    ) -> Result<(), ProtocolError> {
        self.advance_clock(now);
        self.stats.datagrams_in += 1;
        let una = self.send.first_unacked();
        let mut gathered = InputSummary {
            recovered,
            now: self.wire_clock(),
            echoed: None,
            highest: None,
            overtaken: false,
            budget: MAX_EXAMINED,
        };
        let result = self.handle_segments(datagram, &mut gathered);
        if result.is_err() {
            self.stats.errors_in += 1;
        } else {
            self.last_active = self.clock;
            self.last_heard_ms = self.elapsed_ms();
        }
        self.finish_input(una, &mut gathered);
        result
    }

    fn handle_segments(
        &mut self,
        mut rest: &[u8],
        gathered: &mut InputSummary,
    ) -> Result<(), ProtocolError> {
        if rest.len() < HEADER_LEN {
            return Err(ProtocolError::Truncated("a KCP datagram"));
        }
        let limit = self.config.max_received_data();
        while let Some((header, data)) = segment::next_segment(&mut rest, self.conv)? {
            if data.len() > limit {
                return Err(ProtocolError::TooLong {
                    what: "a KCP segment",
                    limit,
                });
            }
            self.stats.segments_in += 1;
            self.handle_una(&header, gathered)?;
            if !gathered.recovered && self.confirmed.handle_segment(&header, gathered.now) {
                self.is_dead = true;
                return Ok(());
            }
            match header.cmd {
                Command::Push => self.handle_push(&header, data, gathered.recovered)?,
                Command::Ack => {
                    self.check_proof(&header, gathered.now);
                    self.handle_ack(&header, gathered);
                }
                Command::WindowProbe => self.probe.send_report = true,
                Command::WindowReport => self.handle_closing(&header),
            }
        }
        Ok(())
    }

    fn handle_una(
        &mut self,
        header: &SegmentHeader,
        gathered: &InputSummary,
    ) -> Result<(), ProtocolError> {
        let una = SeqNum(header.una);
        let old = una.is_before(self.send.first_unacked());
        let (now, ms) = (self.clock.0, self.elapsed_ms());
        let bbr = &mut self.bbr;
        let sane = self.send.mark_acked_before(una, ms, |sn, len| {
            if let Some(bbr) = bbr {
                bbr.record_acked(sn, len, now);
            }
        });
        if !sane {
            return Err(ProtocolError::Malformed("KCP una"));
        }
        // A reordered datagram reports an old window.
        if !old && !gathered.recovered {
            self.peer_window = header.wnd.into();
        }
        Ok(())
    }

    fn handle_push(
        &mut self,
        header: &SegmentHeader,
        data: &[u8],
        recovered: bool,
    ) -> Result<(), ProtocolError> {
        let window = self.config.recv_window;
        if !self.config.stream && u32::from(header.frg) >= window {
            // It could never become complete, and would block the window forever.
            return Err(ProtocolError::TooLong {
                what: "a KCP message",
                limit: window as usize * self.config.max_received_data(),
            });
        }
        let sn = SeqNum(header.sn);
        match self.recv.push(sn, header.frg, data) {
            PushOutcome::Overrun => {
                self.stats.overrun += 1;
                return Ok(());
            }
            PushOutcome::Repeated => self.stats.repeated += 1,
            PushOutcome::New => {}
        }
        let ts = self.timestamp_to_echo(header.ts, recovered);
        self.acks.push(sn, ts);
        Ok(())
    }

    /// Returns the time stamp to echo for data that was sent at `ts`.
    ///
    /// A datagram restored by FEC was lost long ago: with its own time stamp the peer would measure
    /// a round trip as long as its group took to fill. The peer's clock at which data that arrives
    /// directly now would have been sent is equally valid as evidence of arrival.
    fn timestamp_to_echo(&mut self, ts: u32, recovered: bool) -> u32 {
        let ms = self.elapsed_ms();
        let Some((newest, came)) = self.peer_ts else {
            if !recovered {
                self.peer_ts = Some((ts, ms));
            }
            return ts;
        };
        if recovered {
            let now = newest.wrapping_add(low_u32(ms - came));
            return if elapsed_ms(now, ts) > 0 { now } else { ts };
        }
        if elapsed_ms(newest, ts) <= 0 {
            self.peer_ts = Some((ts, ms));
        }
        ts
    }

    fn handle_ack(&mut self, header: &SegmentHeader, gathered: &mut InputSummary) {
        let (sn, ts) = (SeqNum(header.sn), header.ts);
        if self.config.compat == Compat::C {
            self.sample_rtt(ts, gathered);
        }
        gathered.echoed = Some(ts);
        // A repeated acknowledgement does not prove that another segment has arrived.
        let Some((len, evidence)) = self.send.mark_acked(sn, ts, self.elapsed_ms()) else {
            return;
        };
        if let Some(bbr) = &mut self.bbr {
            bbr.record_acked(sn, len, self.clock.0);
        }
        match (self.config.compat, gathered.highest) {
            (Compat::Go, _) => {
                let due = self
                    .send
                    .count_overtakes(sn, &evidence, &mut gathered.budget);
                gathered.overtaken |= due;
            }
            (Compat::C, Some((highest, at)))
                if !highest.is_before(sn) || elapsed_ms(ts, at.ts) <= 0 => {}
            (Compat::C, _) => gathered.highest = Some((sn, evidence)),
        }
    }

    fn sample_rtt(&mut self, ts: u32, gathered: &InputSummary) {
        let rtt = elapsed_ms(gathered.now, ts);
        if let (Ok(rtt), false) = (u32::try_from(rtt), gathered.recovered) {
            self.rtt.add_sample(rtt);
        }
    }

    /// Evaluates a whole datagram, and decides when to answer.
    fn finish_input(&mut self, una: SeqNum, gathered: &mut InputSummary) {
        if let (Compat::Go, Some(ts)) = (self.config.compat, gathered.echoed) {
            self.sample_rtt(ts, gathered);
        }
        if let Some((sn, by)) = gathered.highest {
            gathered.overtaken |= self.send.count_overtakes(sn, &by, &mut gathered.budget);
        }
        if let Some(bbr) = &mut self.bbr {
            bbr.end_input(self.clock.0, self.send.in_flight().live_count());
        }
        let moved = una.is_before(self.send.first_unacked());
        let reno =
            self.config.congestion == CongestionControl::Reno || self.config.compat == Compat::C;
        if moved && reno {
            self.reno.grow_window(self.peer_window);
        }
        if self.is_dead {
            return;
        }
        let many = self.acks.len() >= self.config.mtu / HEADER_LEN;
        if self.config.compat == Compat::Go && (moved || gathered.overtaken) {
            self.request_flush_by(self.clock);
        } else if self.acks.len() > 0 && (self.config.ack_nodelay || self.must_ack_early(many)) {
            self.flush.acks = true;
        }
        self.schedule_flush();
    }

    fn must_ack_early(&self, many: bool) -> bool {
        many && self.config.compat == Compat::Go
    }
}
