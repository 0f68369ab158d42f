//! Handling of received datagrams.

use adit_wire::{ProtocolError, Time};

use crate::recv::Pushed;
use crate::resend::Evidence;
use crate::segment::{self, Cmd, HEADER_LEN, Header};
use crate::send::EXAMINED_MAX;
use crate::seq::{Sn, elapsed, low32};
use crate::{Compat, Congestion, Kcp};

/// State gathered from a datagram.
struct Gathered {
    /// Restored by forward error correction: late by nature, so it says nothing about the present.
    recovered: bool,
    /// The wire's clock.
    now: u32,
    /// The time stamp of the last acknowledgement.
    echoed: Option<u32>,
    /// C: the highest number acknowledged, with the evidence that follows from it.
    highest: Option<(Sn, Evidence)>,
    /// A segment was overtaken often enough.
    overtaken: bool,
    /// Number of holes that may still be examined.
    budget: u32,
}

impl Kcp {
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
        self.see(now);
        self.stats.datagrams_in += 1;
        let una = self.send.una();
        let mut gathered = Gathered {
            recovered,
            now: self.wire_clock(),
            echoed: None,
            highest: None,
            overtaken: false,
            budget: EXAMINED_MAX,
        };
        let result = self.take_segments(datagram, &mut gathered);
        if result.is_err() {
            self.stats.errors_in += 1;
        } else {
            self.active = self.clock;
            self.heard = self.ms();
        }
        self.conclude(una, &mut gathered);
        result
    }

    fn take_segments(
        &mut self,
        mut rest: &[u8],
        gathered: &mut Gathered,
    ) -> Result<(), ProtocolError> {
        if rest.len() < HEADER_LEN {
            return Err(ProtocolError::Truncated("a KCP datagram"));
        }
        let limit = self.config.data_max();
        while let Some((header, data)) = segment::next(&mut rest, self.conv)? {
            if data.len() > limit {
                return Err(ProtocolError::TooLong {
                    what: "a KCP segment",
                    limit,
                });
            }
            self.stats.segments_in += 1;
            self.take_una(&header, gathered)?;
            if !gathered.recovered && self.confirmed.take(&header, gathered.now) {
                self.dead = true;
                return Ok(());
            }
            match header.cmd {
                Cmd::Push => self.take_push(&header, data, gathered.recovered)?,
                Cmd::Ack => {
                    self.take_proof(&header, gathered.now);
                    self.take_ack(&header, gathered);
                }
                Cmd::Wask => self.probe.tell = true,
                Cmd::Wins => self.take_farewell(&header),
            }
        }
        Ok(())
    }

    fn take_una(&mut self, header: &Header, gathered: &Gathered) -> Result<(), ProtocolError> {
        let una = Sn(header.una);
        let old = una.before(self.send.una());
        let (now, ms) = (self.clock.0, self.ms());
        let bbr = &mut self.bbr;
        let sane = self.send.acked_before(una, ms, |sn, len| {
            if let Some(bbr) = bbr {
                bbr.acked(sn, len, now);
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

    fn take_push(
        &mut self,
        header: &Header,
        data: &[u8],
        recovered: bool,
    ) -> Result<(), ProtocolError> {
        let window = self.config.recv_window;
        if !self.config.stream && u32::from(header.frg) >= window {
            // It could never become complete, and would block the window forever.
            return Err(ProtocolError::TooLong {
                what: "a KCP message",
                limit: window as usize * self.config.data_max(),
            });
        }
        let sn = Sn(header.sn);
        match self.recv.push(sn, header.frg, data) {
            Pushed::Overrun => {
                self.stats.overrun += 1;
                return Ok(());
            }
            Pushed::Repeated => self.stats.repeated += 1,
            Pushed::New => {}
        }
        let ts = self.echo(header.ts, recovered);
        self.acks.push(sn, ts);
        Ok(())
    }

    /// Returns the time stamp to echo for data that was sent at `ts`.
    ///
    /// A datagram restored by FEC was lost long ago: with its own time stamp the peer would measure
    /// a round trip as long as its group took to fill. The peer's clock at which data that arrives
    /// directly now would have been sent is equally valid as evidence of arrival.
    fn echo(&mut self, ts: u32, recovered: bool) -> u32 {
        let ms = self.ms();
        let Some((newest, came)) = self.peer_ts else {
            if !recovered {
                self.peer_ts = Some((ts, ms));
            }
            return ts;
        };
        if recovered {
            let now = newest.wrapping_add(low32(ms - came));
            return if elapsed(now, ts) > 0 { now } else { ts };
        }
        if elapsed(newest, ts) <= 0 {
            self.peer_ts = Some((ts, ms));
        }
        ts
    }

    fn take_ack(&mut self, header: &Header, gathered: &mut Gathered) {
        let (sn, ts) = (Sn(header.sn), header.ts);
        if self.config.compat == Compat::C {
            self.sample(ts, gathered);
        }
        gathered.echoed = Some(ts);
        // A repeated acknowledgement does not prove that another segment has arrived.
        let Some((len, evidence)) = self.send.acked(sn, ts, self.ms()) else {
            return;
        };
        if let Some(bbr) = &mut self.bbr {
            bbr.acked(sn, len, self.clock.0);
        }
        match (self.config.compat, gathered.highest) {
            (Compat::Go, _) => {
                let due = self.send.overtake(sn, &evidence, &mut gathered.budget);
                gathered.overtaken |= due;
            }
            (Compat::C, Some((highest, at))) if !highest.before(sn) || elapsed(ts, at.ts) <= 0 => {}
            (Compat::C, _) => gathered.highest = Some((sn, evidence)),
        }
    }

    fn sample(&mut self, ts: u32, gathered: &Gathered) {
        let rtt = elapsed(gathered.now, ts);
        if let (Ok(rtt), false) = (u32::try_from(rtt), gathered.recovered) {
            self.rtt.sample(rtt);
        }
    }

    /// Evaluates a whole datagram, and decides when to answer.
    fn conclude(&mut self, una: Sn, gathered: &mut Gathered) {
        if let (Compat::Go, Some(ts)) = (self.config.compat, gathered.echoed) {
            self.sample(ts, gathered);
        }
        if let Some((sn, by)) = gathered.highest {
            gathered.overtaken |= self.send.overtake(sn, &by, &mut gathered.budget);
        }
        if let Some(bbr) = &mut self.bbr {
            bbr.update(self.clock.0, self.send.flight().live());
        }
        let moved = una.before(self.send.una());
        let reno = self.config.congestion == Congestion::Reno || self.config.compat == Compat::C;
        if moved && reno {
            self.reno.progress(self.peer_window);
        }
        if self.dead {
            return;
        }
        let many = self.acks.len() >= self.config.mtu / HEADER_LEN;
        if self.config.compat == Compat::Go && (moved || gathered.overtaken) {
            self.flush_by(self.clock);
        } else if self.acks.len() > 0 && (self.config.ack_nodelay || self.answers_early(many)) {
            self.flush.acks = true;
        }
        self.schedule();
    }

    fn answers_early(&self, many: bool) -> bool {
        many && self.config.compat == Compat::Go
    }
}
