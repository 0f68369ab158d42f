//! Output and input of a session's datagrams: correction and encryption, in batches.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;

use adit_crypto::packet::session::PacketSession;
use adit_fec::{CodeMatrix, Decoder, Encoder, HEADER, OOB_HEADER, encode_oob};
use adit_kcp_proto::{HEADER_LEN, KcpSession};
use adit_net::system::ThreadRng;
use adit_wire::{Time, subslice, subslice_mut, u64_from};

use super::amplification_limit::AmplificationLimit;
use super::counters::add_nonzero;
use super::oob::OobSender;
use super::route::DatagramRoute;
use super::settings::{DatagramLayout, MAX_DATAGRAM, Settings};
use super::socket::KcpSocket;

/// Datagrams that are passed to the system at once: as many full ones as its largest packet holds.
const BATCH: usize = 44;
/// Datagrams that are sealed together, so that the CFB chains run in parallel: as many as are still
/// in the first-level cache then.
const SEAL_BATCH: usize = 16;
/// Bytes by which sending may exceed the rate.
const RATE_BURST: u64 = 64 * 1500;

/// The stages between a session's packets and its socket. The encoder and the decoder are created
/// when they are needed, and freed while the session is idle.
#[derive(Debug, Default)]
pub(super) struct DatagramPipeline {
    encoder: Option<Box<Encoder>>,
    decoder: Option<Box<Decoder>>,
    /// The number of the next shard, while there is no encoder.
    next_shard: u32,
    /// The peer sends without correction, and this end follows.
    sends_plain: bool,
    /// The peer has sent a datagram that was part of a group.
    peer_uses_fec: bool,
    /// The peer's shards, as known when the decoder was freed.
    shards: Option<(usize, usize)>,
    /// The part of the decoder's counters that was already reported.
    reported: adit_fec::FecCounters,
    /// Time until which the sent data uses up the rate.
    rate_used_until: Time,
    /// The session's own rate in bytes per second, if it is not the socket's; 0 is no limit.
    pub(super) rate: Option<u32>,
    /// The limit of data for the peer, while it is not known to receive.
    pub(super) allowance: Option<Box<AmplificationLimit>>,
    /// Number of additional copies of each datagram.
    pub(super) copies: u8,
    /// Destination of out-of-band datagrams, if there is a receiver.
    pub(super) oob: Option<OobSender>,
}

/// Handling of a batch that is not full when all due data is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartialBatch {
    /// Send it.
    Send,
    /// Keep it: the same thread continues with it immediately.
    Keep,
}

/// Datagrams of a batch, back to back.
struct SendBatch {
    bytes: Vec<u8>,
    lens: [usize; BATCH],
    count: usize,
    /// Total length in bytes.
    used: usize,
    /// Number of sealed datagrams, and their bytes.
    sealed: (usize, usize),
    /// The batch persists for the next call.
    is_shared: bool,
}

thread_local! {
    static SEND_BATCH: RefCell<SendBatch> = const { RefCell::new(SendBatch::EMPTY) };
}

fn with_batch<R>(work: impl FnOnce(&mut SendBatch) -> R) -> R {
    SEND_BATCH.with(|places| match places.try_borrow_mut() {
        Ok(mut batch) => work(&mut batch),
        // The transport of one session may be another session, which sends in the middle of it.
        Err(_) => work(&mut SendBatch {
            is_shared: false,
            ..SendBatch::EMPTY
        }),
    })
}

impl DatagramPipeline {
    /// Sends the output of `kcp`, as far as the rate allows, sealed with `session` if given,
    /// otherwise with the key of the socket.
    pub(super) fn transmit(
        &mut self,
        socket: &KcpSocket,
        peer: SocketAddr,
        mut session: Option<&mut PacketSession>,
        kcp: &mut KcpSession,
        now: Time,
        rest: PartialBatch,
    ) {
        with_batch(|batch| {
            let (mut packets, mut bytes) = (0, 0);
            loop {
                let (sealed, _) = batch.sealed;
                self.fill_batch(batch, socket, kcp, now);
                let last = batch.count < (sealed + SEAL_BATCH).min(BATCH);
                if last && rest == PartialBatch::Keep && batch.is_shared {
                    break;
                }
                if batch.count > sealed {
                    batch.seal_pending(socket, session.as_deref_mut());
                }
                if last || batch.count == BATCH {
                    let times = self.send_count();
                    packets += batch.count as u64 * times;
                    bytes += batch.send_all(socket, peer, times);
                }
                if last {
                    break;
                }
            }
            if packets > 0 {
                let counters = &socket.settings.counters;
                add_nonzero(&counters.out_pkts, packets);
                add_nonzero(&counters.out_bytes, bytes);
            }
        });
    }

    /// Probes the peer if data waits for proof that it receives, and if the limit allows a probe.
    /// Returns the time of the next check: to send another probe, or to give up the session.
    pub(super) fn probe_peer(
        &mut self,
        socket: &KcpSocket,
        peer: SocketAddr,
        session: Option<&mut PacketSession>,
        kcp: &mut KcpSession,
        now: Time,
    ) -> Option<Time> {
        let allowance = self.allowance.as_mut()?;
        if kcp.poll_timeout().is_none_or(|at| at > now) {
            return None;
        }
        let silence = Duration::from_millis(kcp.config().silence_ms.into());
        let end = *allowance.blocked_since.get_or_insert(now) + silence;
        if end <= now {
            kcp.give_up();
            return None;
        }
        let layout = socket.layout;
        let header = if self.sends_plain { 0 } else { layout.fec };
        let len = layout.head + header + HEADER_LEN + layout.tail;
        if allowance.may_probe(len, now) {
            allowance.record_probe(len, now);
            self.send_probe(socket, peer, session, kcp, now);
        }
        let again = self.allowance.as_ref()?.next_probe(len);
        Some(again.map_or(end, |at| at.min(end)))
    }

    /// Sends a probe.
    fn send_probe(
        &mut self,
        socket: &KcpSocket,
        peer: SocketAddr,
        session: Option<&mut PacketSession>,
        kcp: &mut KcpSession,
        now: Time,
    ) {
        with_batch(|batch| {
            let layout = socket.layout;
            let header = if self.sends_plain { 0 } else { layout.fec };
            let Some(place) = batch.next_space(BATCH) else {
                return;
            };
            let (_, rest) = place.split_at_mut(layout.head);
            let (_, room) = rest.split_at_mut(header);
            let Some(len) = kcp.write_probe(now, room) else {
                return;
            };
            let len = header + len;
            if let (Some(encoder), Some(shard)) = (self.encoder_mut(socket), rest.get_mut(..len)) {
                let _ = encoder.seal(now, shard);
            }
            batch.push_datagram(layout.head + len + layout.tail);
            batch.seal_pending(socket, session);
            let bytes = batch.send_all(socket, peer, 1);
            let counters = &socket.settings.counters;
            add_nonzero(&counters.out_pkts, 1);
            add_nonzero(&counters.out_bytes, bytes);
        });
    }

    /// Sends an out-of-band datagram of a conversation, or drops it if the rate is used up or the
    /// limit for the peer does not allow it. The datagram must fit.
    pub(super) fn send_oob(
        &mut self,
        socket: &KcpSocket,
        peer: SocketAddr,
        session: Option<&mut PacketSession>,
        (conv, payload): (u32, &[u8]),
        now: Time,
    ) {
        let DatagramLayout { head, tail, .. } = socket.layout;
        let whole = head + OOB_HEADER + payload.len() + tail;
        let allowed = self.allowance.as_ref().is_none_or(|allowance| {
            // A probe must stay possible.
            whole <= allowance.capacity(head + HEADER + HEADER_LEN + tail)
        });
        if !allowed || self.rate_limited_until(socket, now).is_some() {
            return;
        }
        with_batch(|batch| {
            debug_assert_eq!(batch.count, 0, "a batch must not wait beyond one call");
            let place = batch
                .next_space(BATCH)
                .and_then(|place| place.get_mut(head..));
            let Some(len) = place.and_then(|place| encode_oob(conv, payload, place)) else {
                return;
            };
            debug_assert_eq!(head + len + tail, whole);
            batch.push_datagram(whole);
            batch.seal_pending(socket, session);
            let times = self.send_count();
            let counters = &socket.settings.counters;
            add_nonzero(&counters.out_pkts, batch.count as u64 * times);
            add_nonzero(&counters.out_bytes, batch.send_all(socket, peer, times));
        });
        if let Some(allowance) = &mut self.allowance {
            allowance.record_sent(whole);
        }
        self.spend_rate(socket, whole, now);
    }

    /// Returns the number of transmissions of each datagram: one while it is not known that the
    /// peer receives.
    fn send_count(&self) -> u64 {
        match self.allowance {
            Some(_) => 1,
            None => 1 + u64::from(self.copies),
        }
    }

    fn rate_limit(&self, socket: &KcpSocket) -> u64 {
        self.rate.unwrap_or(socket.settings.rate).into()
    }

    /// Returns the time at which the rate allows more, if it does not now.
    pub(super) fn rate_limited_until(&self, socket: &KcpSocket, now: Time) -> Option<Time> {
        let rate = self.rate_limit(socket);
        let ahead = (RATE_BURST * 1_000_000).checked_div(rate)?;
        let at = Time(self.rate_used_until.0.saturating_sub(ahead));
        (at > now).then_some(at)
    }

    /// Charges sent bytes to the rate.
    fn spend_rate(&mut self, socket: &KcpSocket, bytes: usize, now: Time) {
        let rate = self.rate_limit(socket);
        let bytes = bytes as u64 * self.send_count();
        if let Some(time) = (bytes * 1_000_000).checked_div(rate) {
            self.rate_used_until = Time(self.rate_used_until.max(now).0.saturating_add(time));
        }
    }

    /// Fills the batch with datagrams of `kcp` and of the encoder.
    fn fill_batch(
        &mut self,
        batch: &mut SendBatch,
        socket: &KcpSocket,
        kcp: &mut KcpSession,
        now: Time,
    ) {
        let layout = socket.layout;
        let limited = self.rate_limit(socket) > 0;
        let header = if self.sends_plain { 0 } else { layout.fec };
        let (sealed, _) = batch.sealed;
        let end = (sealed + SEAL_BATCH).min(BATCH);
        let frame = layout.head + header + layout.tail;
        while let Some(place) = batch.next_space(end) {
            let (_, rest) = place.split_at_mut(layout.head);
            let mut parity = self.encoder.as_mut().and_then(|e| e.poll_output(rest));
            let limit = match &self.allowance {
                // No parity for a peer that may not exist.
                Some(_) if parity.take().is_some() => continue,
                Some(allowance) => allowance.capacity(frame + HEADER_LEN).saturating_sub(frame),
                None => usize::MAX,
            };
            let len = match parity {
                Some(len) => len,
                None if limited && self.rate_limited_until(socket, now).is_some() => break,
                None => {
                    let (_, room) = rest.split_at_mut(header);
                    let Some(len) = kcp.poll_output_within(now, room, limit) else {
                        break;
                    };
                    let len = header + len;
                    if let (Some(encoder), Some(shard)) =
                        (self.encoder_mut(socket), rest.get_mut(..len))
                        // Never too long: both were created for the same MTU.
                        && encoder.seal(now, shard).is_err()
                    {
                        continue;
                    }
                    len
                }
            };
            let len = layout.head + len + layout.tail;
            batch.push_datagram(len);
            if let Some(allowance) = &mut self.allowance {
                allowance.record_sent(len);
            }
            if limited {
                self.spend_rate(socket, len, now);
            }
        }
    }

    fn encoder_mut(&mut self, socket: &KcpSocket) -> Option<&mut Encoder> {
        if self.encoder.is_none() && !self.sends_plain {
            let code = socket.code.clone()?;
            let new = Encoder::resume(code, socket.layout.kcp_mtu, self.next_shard).ok()?;
            self.encoder = Some(Box::new(new));
        }
        self.encoder.as_deref_mut()
    }

    /// Handles the decrypted packets at the front that belong to this session. Returns their
    /// number.
    pub(super) fn handle_input(
        &mut self,
        socket: &KcpSocket,
        kcp: &mut KcpSession,
        packets: &[&[u8]],
        now: Time,
        ours: impl Fn(DatagramRoute<'_>) -> bool,
    ) -> usize {
        let mut taken = 0;
        while let Some(rest @ [packet, ..]) = packets.get(taken..) {
            let route = DatagramRoute::classify(packet);
            if !ours(route) {
                break;
            }
            match route {
                DatagramRoute::Data(..) | DatagramRoute::Parity => {
                    taken += self.handle_shards(socket, kcp, rest, now, &ours);
                }
                DatagramRoute::Bare(datagram, _) => {
                    if socket.settings.fec_follows && !self.peer_uses_fec {
                        (self.sends_plain, self.encoder) = (true, None);
                    }
                    // The session itself counts errors, and continues.
                    let _ = kcp.handle_input(now, datagram, false);
                    taken += 1;
                }
                DatagramRoute::Oob(_, payload) => {
                    add_nonzero(&socket.settings.counters.oob_packets, 1);
                    if let Some(oob) = &self.oob {
                        oob.try_send(payload);
                    }
                    taken += 1;
                }
                DatagramRoute::Unknown => taken += 1,
            }
        }
        taken
    }

    /// Like [`handle_input`](Self::handle_input), for consecutive shards; the first packet is one.
    fn handle_shards(
        &mut self,
        socket: &KcpSocket,
        kcp: &mut KcpSession,
        packets: &[&[u8]],
        now: Time,
        ours: impl Fn(DatagramRoute<'_>) -> bool,
    ) -> usize {
        (self.sends_plain, self.peer_uses_fec) = (false, true);
        let decoder = self.decoder.get_or_insert_with(|| {
            let fec = socket.settings.fec;
            let matrix = fec.map_or(CodeMatrix::Vandermonde, |fec| fec.matrix);
            Box::new(match socket.code.clone() {
                Some(code) => Decoder::new(code, MAX_DATAGRAM),
                None => Decoder::with_unknown_shards(matrix, MAX_DATAGRAM),
            })
        });
        let mut view = decoder.view_packets(packets);
        for (at, packet) in packets.iter().enumerate() {
            let route = DatagramRoute::classify(packet);
            match route {
                DatagramRoute::Data(..) | DatagramRoute::Parity if at > 0 && !ours(route) => {
                    return at;
                }
                DatagramRoute::Data(datagram, _) if !datagram.is_empty() => {
                    let _ = kcp.handle_input(now, datagram, false);
                }
                DatagramRoute::Data(..) | DatagramRoute::Parity => {}
                DatagramRoute::Bare(..) | DatagramRoute::Oob(..) | DatagramRoute::Unknown => {
                    return at;
                }
            }
            view.handle_input(at);
            while let Some(datagram) = view.poll_recovered() {
                let _ = kcp.handle_input(now, datagram, true);
            }
        }
        packets.len()
    }

    /// True if the peer has sent any datagram that was part of a group.
    pub(super) const fn peer_uses_fec(&self) -> bool {
        self.peer_uses_fec
    }

    /// Returns the numbers of data and parity shards of the peer, once they are known.
    pub(super) fn peer_shards(&self) -> Option<(usize, usize)> {
        let Some(decoder) = &self.decoder else {
            return self.shards;
        };
        if decoder.counters().parity > 0 {
            return decoder.known_shards();
        }
        self.shards
    }

    /// Frees memory after a time without traffic.
    pub(super) fn release_idle(&mut self, socket: &KcpSocket) {
        self.report_counters(socket);
        if let Some(encoder) = self.encoder.take() {
            self.next_shard = encoder.position();
        }
        self.shards = self.peer_shards();
        let Some(decoder) = &mut self.decoder else {
            return;
        };
        let settings = socket.settings.fec.map(|fec| (fec.data, fec.parity));
        if decoder.known_shards() == settings {
            (self.decoder, self.reported) = (None, adit_fec::FecCounters::default());
        } else {
            // Otherwise it would have to detect the shards again.
            decoder.release_memory();
        }
    }

    /// Adds the decoder's changes since the last report to the counters.
    pub(super) fn report_counters(&mut self, socket: &KcpSocket) {
        let Some(decoder) = &self.decoder else { return };
        let (now, told) = (decoder.counters(), self.reported);
        if now == told {
            return;
        }
        let counters = &socket.settings.counters;
        add_nonzero(&counters.fec_parity_shards, now.parity - told.parity);
        add_nonzero(&counters.fec_full_shards, now.complete - told.complete);
        add_nonzero(&counters.fec_recovered, now.recovered - told.recovered);
        add_nonzero(&counters.fec_errs, now.errors - told.errors);
        let set = std::sync::atomic::Ordering::Relaxed;
        let waiting = u64_from(decoder.waiting_groups());
        counters.fec_shard_set.store(waiting, set);
        let newest = decoder.newest_group().unwrap_or(0);
        counters.fec_shard_min.store(newest.into(), set);
        self.reported = now;
    }
}

impl SendBatch {
    const EMPTY: Self = Self {
        bytes: Vec::new(),
        lens: [0; BATCH],
        count: 0,
        used: 0,
        sealed: (0, 0),
        is_shared: true,
    };

    /// Returns the space for the next datagram, or `None` when there are `end`.
    fn next_space(&mut self, end: usize) -> Option<&mut [u8]> {
        if self.bytes.is_empty() {
            self.bytes.resize(BATCH * MAX_DATAGRAM, 0);
        }
        if self.count >= end {
            return None;
        }
        self.bytes.get_mut(self.used..self.used + MAX_DATAGRAM)
    }

    /// Completes the datagram in that space, except for its encryption.
    fn push_datagram(&mut self, len: usize) {
        if let Some(place) = self.lens.get_mut(self.count) {
            *place = len;
            self.count += 1;
            self.used += len;
        }
    }

    /// Seals those that are not sealed yet, at most [`SEAL_BATCH`].
    fn seal_pending(&mut self, socket: &KcpSocket, session: Option<&mut PacketSession>) {
        let (done, start) = self.sealed;
        let lens = subslice(&self.lens, done..self.count);
        let mut packets: [&mut [u8]; SEAL_BATCH] = std::array::from_fn(|_| Default::default());
        let mut rest = subslice_mut(&mut self.bytes, start..);
        for (packet, len) in packets.iter_mut().zip(lens) {
            (*packet, rest) = rest.split_at_mut(*len);
        }
        let packets = subslice_mut(&mut packets, ..lens.len());
        let Settings { crypt, key, .. } = &socket.settings;
        let sealed = match (session, crypt, key) {
            (Some(session), _, _) => packets
                .iter_mut()
                .try_for_each(|packet| session.seal(packet)),
            (None, Some(crypt), _) => packets
                .iter_mut()
                .try_for_each(|packet| crypt.seal(packet, &mut ThreadRng)),
            (None, None, Some(key)) => key.seal_batch(packets, &mut ThreadRng),
            (None, None, None) => Ok(()),
        };
        if sealed.is_err() {
            // The layout leaves enough space: either the session has used up its numbers, and will
            // count as dead, or the custom cipher has failed. Nothing is sent unsealed.
            (self.count, self.used) = self.sealed;
        }
        self.sealed = (self.count, self.used);
    }

    /// Passes all datagrams to the socket, `times` times, and returns their bytes. A datagram that
    /// the socket does not accept is lost, and sent again like any other.
    fn send_all(&mut self, socket: &KcpSocket, peer: SocketAddr, times: u64) -> u64 {
        let (count, used) = std::mem::take(&mut self.sealed);
        (self.count, self.used) = (0, 0);
        // Copies follow the whole batch: an event that loses one rarely loses the other as well.
        for _ in 0..times {
            let mut rest = subslice(&self.bytes, ..used);
            for run in equal_length_runs(subslice(&self.lens, ..count)) {
                let segment = run.first().copied().unwrap_or(0);
                let (bytes, behind) = rest.split_at(run.iter().sum::<usize>().min(rest.len()));
                rest = behind;
                let failed = socket.transport.send_all(bytes, segment, peer).is_err();
                add_nonzero(&socket.settings.counters.in_errs, failed.into());
            }
        }
        used as u64 * times
    }
}

/// Splits into runs of equal lengths; the last of each run may be shorter.
fn equal_length_runs(mut lens: &[usize]) -> impl Iterator<Item = &[usize]> {
    std::iter::from_fn(move || {
        let first = *lens.first()?;
        let equal = lens.iter().take_while(|len| **len == first).count();
        let short = lens.get(equal).is_some_and(|len| *len < first);
        let (run, rest) = lens.split_at(equal + usize::from(short));
        lens = rest;
        Some(run)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_of_a_run_is_shorter() {
        let found = |lens| {
            equal_length_runs(lens)
                .map(<[usize]>::to_vec)
                .collect::<Vec<_>>()
        };
        assert_eq!(found(&[]), [[0; 0]; 0]);
        assert_eq!(found(&[7]), [[7]]);
        assert_eq!(
            found(&[9, 9, 9, 5, 5, 9, 3, 2, 2]),
            [&[9, 9, 9, 5][..], &[5], &[9, 3], &[2, 2]]
        );
    }
}
