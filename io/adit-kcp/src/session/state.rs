//! Operations on the state of a session alone.

use std::net::SocketAddr;
use std::time::Duration;

use adit_kcp_proto::{State as Life, Stats};
use adit_wire::Time;

use super::State;
use crate::allowance::Allowance;
use crate::counters::add;
use crate::socket::Socket;

impl State {
    /// Records packets received from the peer's address that have been handled.
    pub(super) fn came(&mut self, socket: &Socket, packets: &[&[u8]], now: Time) {
        self.unanswered = None;
        (self.heard_at, self.asked) = (now, false);
        let Some(allowance) = &mut self.wire.allowance else {
            return;
        };
        if self.kcp.is_proven() {
            (self.wire.allowance, self.reached) = (None, Some(self.peer));
            return;
        }
        let around = socket.layout.head + socket.layout.tail;
        let bytes = packets.iter().map(|packet| packet.len() + around).sum();
        allowance.came(packets.len(), bytes);
        allowance.blocked = None;
    }

    /// Probes a peer that has been silent for half of `limit`, and gives it up after all of it.
    /// Returns the time of the next check.
    pub(super) fn watch(&mut self, limit: Duration, now: Time) -> Option<Time> {
        if limit.is_zero() || self.kcp.state() == Life::Dead {
            return None;
        }
        let end = self.heard_at + limit;
        let half = self.heard_at + limit / 2;
        if now >= end {
            self.kcp.give_up();
            return None;
        }
        if now >= half && !self.asked {
            self.asked = true;
            self.kcp.ask_window(now);
        }
        Some(if self.asked { end } else { half })
    }

    /// Handles a new address of the peer.
    pub(super) fn moved(&mut self, to: SocketAddr, now: Time) {
        self.peer = to;
        if self.reached == Some(to) {
            self.kcp.waive_proof();
            self.wire.allowance = None;
        } else {
            self.kcp.demand_proof(now);
            self.wire.allowance = Some(Box::<Allowance>::default());
        }
    }

    /// True if no more out-of-band datagrams are sent or received.
    pub(super) fn is_over(&self) -> bool {
        let dead = self.kcp.state() == Life::Dead;
        dead || self.gone || self.leaving.is_some() || self.kcp.peer_left()
    }

    /// Discards received data that will not be read, so that the peer can finish.
    pub(super) fn discard(&mut self) {
        while self.kcp.front().is_some() {
            self.kcp.consume(usize::MAX);
        }
    }

    /// Adds the changes since the last report to the counters.
    pub(super) fn report(&mut self, socket: &Socket) {
        self.wire.report(socket);
        let (now, told) = (self.kcp.stats(), self.told);
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
            add(counter, now - told);
        }
        let set = std::sync::atomic::Ordering::Relaxed;
        if now.segments_out != told.segments_out {
            to.ring_snd_queue.store(now.queued.into(), set);
            to.ring_snd_buffer.store(now.in_flight.into(), set);
        }
        let moved = |s: Stats| (s.segments_in, s.bytes_received);
        if moved(now) != moved(told) {
            let waiting = self.kcp.readable();
            to.ring_rcv_queue.store(waiting as u64, set);
        }
        self.told = now;
    }
}
