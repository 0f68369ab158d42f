//! Operations on the state of a session alone.

use std::net::SocketAddr;
use std::time::Duration;

use adit_kcp_proto::{SessionState as Life, Stats};
use adit_wire::Time;

use super::SessionState;
use crate::amplification_limit::AmplificationLimit;
use crate::counters::add_nonzero;
use crate::socket::KcpSocket;

impl SessionState {
    /// Records packets received from the peer's address that have been handled.
    pub(super) fn record_received(&mut self, socket: &KcpSocket, packets: &[&[u8]], now: Time) {
        self.unanswered = None;
        (self.heard_at, self.is_probed) = (now, false);
        let Some(allowance) = &mut self.wire.allowance else {
            return;
        };
        if self.kcp.is_proven() {
            (self.wire.allowance, self.proven_addr) = (None, Some(self.peer));
            return;
        }
        let around = socket.layout.head + socket.layout.tail;
        let bytes = packets.iter().map(|packet| packet.len() + around).sum();
        allowance.record_received(packets.len(), bytes);
        allowance.blocked_since = None;
    }

    /// Probes a peer that has been silent for half of `limit`, and abandons it after all of it.
    /// Returns the time of the next check.
    pub(super) fn check_silence(&mut self, limit: Duration, now: Time) -> Option<Time> {
        if limit.is_zero() || self.kcp.state() == Life::Dead {
            return None;
        }
        let end = self.heard_at + limit;
        let half = self.heard_at + limit / 2;
        if now >= end {
            self.kcp.give_up();
            return None;
        }
        if now >= half && !self.is_probed {
            self.is_probed = true;
            self.kcp.request_window(now);
        }
        Some(if self.is_probed { end } else { half })
    }

    /// Handles a new address of the peer.
    pub(super) fn handle_move(&mut self, to: SocketAddr, now: Time) {
        self.peer = to;
        if self.proven_addr == Some(to) {
            self.kcp.assume_proven();
            self.wire.allowance = None;
        } else {
            self.kcp.demand_proof(now);
            self.wire.allowance = Some(Box::<AmplificationLimit>::default());
        }
    }

    /// True if no more out-of-band datagrams are sent or received.
    pub(super) fn is_over(&self) -> bool {
        let dead = self.kcp.state() == Life::Dead;
        dead || self.is_removed || self.linger_until.is_some() || self.kcp.is_unread_by_peer()
    }

    /// Discards received data that will not be read, so that the peer can finish.
    pub(super) fn discard_received(&mut self) {
        while self.kcp.front_bytes().is_some() {
            self.kcp.consume(usize::MAX);
        }
    }

    /// Adds the changes since the last report to the counters.
    pub(super) fn report_counters(&mut self, socket: &KcpSocket) {
        self.wire.report_counters(socket);
        let (now, told) = (self.kcp.stats(), self.reported);
        let to = &socket.settings.counters;
        for (counter, now, told) in [
            (&to.bytes_sent, now.bytes_sent, told.bytes_sent),
            (&to.bytes_received, now.bytes_received, told.bytes_received),
            (&to.kcp_in_errors, now.errors_in, told.errors_in),
            (&to.in_segs, now.segments_in, told.segments_in),
            (&to.out_segs, now.segments_out, told.segments_out),
            (&to.retrans_segs, now.retransmitted, told.retransmitted),
            (&to.fast_retrans_segs, now.fast, told.fast),
            (&to.early_retrans_segs, now.early, told.early),
            (&to.lost_segs, now.lost, told.lost),
            (&to.repeat_segs, now.repeated, told.repeated),
        ] {
            add_nonzero(counter, now - told);
        }
        let set = std::sync::atomic::Ordering::Relaxed;
        if now.segments_out != told.segments_out {
            to.ring_snd_queue.store(now.queued.into(), set);
            to.ring_snd_buffer.store(now.in_flight.into(), set);
        }
        let moved = |s: Stats| (s.segments_in, s.bytes_received);
        if moved(now) != moved(told) {
            let waiting = self.kcp.readable_len();
            to.ring_rcv_queue.store(waiting as u64, set);
        }
        self.reported = now;
    }
}
