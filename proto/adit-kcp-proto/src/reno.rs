//! KCP's congestion window: slow start, one step per round trip, halved by loss.

use adit_wire::u64_from;

use crate::{Compat, Config};

const SSTHRESH_MIN: u32 = 2;

/// The window in segments and its growth in bytes.
#[derive(Debug)]
pub(crate) struct RenoWindow {
    compat: Compat,
    mss: u64,
    cwnd: u32,
    ssthresh: u32,
    incr: u64,
}

impl RenoWindow {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            compat: config.compat,
            mss: u64_from(config.mss()),
            // C opens its window at the end of the first flush.
            cwnd: u32::from(config.compat == Compat::Go),
            ssthresh: SSTHRESH_MIN,
            incr: 0,
        }
    }

    pub(crate) const fn cwnd(&self) -> u32 {
        self.cwnd
    }

    pub(crate) const fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    /// Grows the window after a datagram that acknowledged data in order.
    pub(crate) fn grow_window(&mut self, peer_window: u32) {
        if self.cwnd >= peer_window {
            return;
        }
        if self.cwnd < self.ssthresh {
            self.cwnd += 1;
            self.incr += self.mss;
        } else {
            self.incr = self.incr.max(self.mss);
            self.incr += self.mss * self.mss / self.incr + self.mss / 16;
            if u64::from(self.cwnd + 1) * self.mss <= self.incr {
                let segments = self.incr.div_ceil(self.mss);
                self.cwnd = u32::try_from(segments).unwrap_or(u32::MAX);
            }
        }
        if self.cwnd > peer_window {
            self.set_cwnd(peer_window);
        }
    }

    /// Adapts the window after a flush that sent overtaken segments again (`fast`), or segments
    /// that had timed out (`lost`), with `span` numbers in flight under an `effective` window.
    pub(crate) fn end_flush(
        &mut self,
        fast: bool,
        lost: bool,
        span: u32,
        effective: u32,
        resend: u16,
    ) {
        let before = match self.compat {
            Compat::C => self.cwnd,
            Compat::Go => effective,
        };
        if fast {
            self.ssthresh = (span / 2).max(SSTHRESH_MIN);
            self.set_cwnd(self.ssthresh + u32::from(resend));
        }
        if lost {
            self.ssthresh = (before / 2).max(SSTHRESH_MIN);
            self.set_cwnd(1);
        }
        if self.cwnd < 1 {
            self.set_cwnd(1);
        }
    }

    fn set_cwnd(&mut self, cwnd: u32) {
        self.cwnd = cwnd;
        self.incr = u64::from(cwnd) * self.mss;
    }
}
