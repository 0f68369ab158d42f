//! All sessions of a socket, and the rules for new ones.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use adit_crypto::packet::session::{PacketSession, SessionId};
use adit_wire::{Time, source_network, subslice, subslice_mut};
use tokio::sync::mpsc;

use super::counters::add_nonzero;
use super::route::{DatagramRoute, FirstSegment};
use super::session::{Session, SettleOutcome};
use super::settings::DatagramLayout;
use super::socket::KcpSocket;
use super::stream::{KcpStream, Link};
use super::transport::{self, Transport};
use crate::new_peers::NewPeers;

/// Maximum number of sessions of one address: a client that was restarted, or several behind one
/// port.
const MAX_PER_ADDR: usize = 4;
/// Sessions that unauthenticated packets may start: per second, and in a burst.
const NEW_SESSION_RATE: (u64, u64) = (256, 512);
/// Number of ended sessions that are remembered, and the time for which they are: packets that a
/// peer sends after the end start no new session.
const ENDED_HISTORY: (usize, Duration) = (256, Duration::from_secs(60));

/// The sessions of a socket.
#[derive(Debug)]
pub(super) struct SessionTable {
    pub(super) socket: Arc<KcpSocket>,
    pub(super) slots: Vec<Option<Arc<Session>>>,
    pub(super) free: Vec<usize>,
    /// The slots of each address, the newest session last.
    pub(super) peers: HashMap<SocketAddr, Vec<usize>>,
    /// Number of sessions of each source.
    sources: HashMap<IpAddr, usize>,
    /// The session of the last datagram.
    last: Option<(SocketAddr, Arc<Session>)>,
    /// Slots of the sessions that have received data.
    pub(super) touched: Vec<usize>,
    pub(super) accept: Option<mpsc::Sender<KcpStream>>,
    /// Time at which the budget for unauthenticated sessions is full again.
    budget_full_at: Time,
    ended: VecDeque<(Time, SocketAddr, u32)>,
    /// The slots of sessions with session keys, by their clients' ids.
    pub(super) ids: HashMap<SessionId, usize>,
    /// New clients of such sessions, if they can start here.
    pub(super) new_peers: Option<NewPeers>,
    /// The transport has ended.
    is_transport_closed: bool,
}

/// Maximum number of datagrams that are opened together: as many as are still in the first-level
/// cache when they are read.
const BATCH: usize = transport::BATCH;

/// Counts of one batch.
#[derive(Debug, Default)]
pub(super) struct BatchStats {
    packets: u64,
    bytes: u64,
    pub(super) refused: u64,
    pub(super) malformed: u64,
    pub(super) oob: u64,
}

impl BatchStats {
    fn count_datagram(&mut self, datagram: &[u8]) {
        self.packets += 1;
        self.bytes += datagram.len() as u64;
    }
}

impl SessionTable {
    pub(super) fn new(socket: Arc<KcpSocket>, accept: Option<mpsc::Sender<KcpStream>>) -> Self {
        let key = socket.settings.session.clone().filter(|_| accept.is_some());
        Self {
            new_peers: key.map(NewPeers::new),
            ids: HashMap::new(),
            socket,
            slots: Vec::new(),
            free: Vec::new(),
            peers: HashMap::new(),
            sources: HashMap::new(),
            last: None,
            touched: Vec::new(),
            accept,
            budget_full_at: Time(0),
            ended: VecDeque::new(),
            is_transport_closed: false,
        }
    }

    /// Applies other settings, if there are any: sessions that start from now on have them.
    pub(super) fn apply_change(&mut self) {
        let Some(change) = self.socket.take_change() else {
            return;
        };
        if change.ends_sessions {
            for session in self.slots.iter().flatten() {
                session.fail_transport();
                // The driver sees that it has ended.
                self.touched.push(session.slot);
            }
            let key = change.socket.settings.session.clone();
            let key = key.filter(|_| self.accept.is_some());
            self.new_peers = key.map(NewPeers::new);
            self.ids.clear();
            self.last = None;
        }
        self.socket = change.socket;
    }

    /// True if the socket is not needed any more.
    pub(super) fn is_finished(&self) -> bool {
        let open = self.accept.as_ref().is_some_and(|to| !to.is_closed());
        !open && self.peers.is_empty()
    }

    /// Handles the datagrams that the socket has received.
    pub(super) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        now: Time,
    ) -> Poll<std::io::Result<()>> {
        let socket = Arc::clone(&self.socket);
        let mut tally = BatchStats::default();
        let done = match &*socket.transport {
            Transport::Udp(udp) => udp.poll_recv_runs(cx, &mut |run, from| {
                for some in run.bytes.chunks_mut(run.stride * BATCH) {
                    let mut packets: [&mut [u8]; BATCH] =
                        std::array::from_fn(|_| Default::default());
                    let mut count = 0;
                    for (place, datagram) in packets.iter_mut().zip(some.chunks_mut(run.stride)) {
                        *place = datagram;
                        count += 1;
                    }
                    let packets = subslice_mut(&mut packets, ..count);
                    self.handle_datagrams(&socket, packets, from, now, &mut tally);
                }
            }),
            Transport::Own(_) if self.is_transport_closed => Poll::Pending,
            Transport::Own(own) => transport::poll_receive(&**own, cx, &mut |packets, from| {
                self.handle_datagrams(&socket, packets, from, now, &mut tally);
            }),
        };
        let counters = &socket.settings.counters;
        add_nonzero(&counters.in_pkts, tally.packets);
        add_nonzero(&counters.in_bytes, tally.bytes);
        add_nonzero(&counters.in_csum_errors, tally.refused);
        add_nonzero(&counters.kcp_in_errors, tally.malformed);
        add_nonzero(&counters.oob_packets, tally.oob);
        add_nonzero(
            &counters.in_errs,
            matches!(done, Poll::Ready(Err(_))).into(),
        );
        if let (Poll::Ready(Err(why)), Transport::Own(_)) = (&done, &*socket.transport)
            && why.kind() == std::io::ErrorKind::BrokenPipe
        {
            self.is_transport_closed = true;
            self.accept = None;
            self.slots
                .iter()
                .flatten()
                .for_each(|session| session.fail_transport());
        }
        done
    }

    /// Sends answers, and handles timers that are due.
    pub(super) fn settle_sessions(&mut self, now: Time) {
        let mut touched = std::mem::take(&mut self.touched);
        for slot in touched.drain(..) {
            self.visit_slot(slot, now, Session::settle_input);
        }
        self.touched = touched;
        loop {
            let due = self.socket.lock_timers().pop_due(now);
            let Some(slot) = due else { break };
            self.visit_slot(slot, now, Session::handle_timer);
        }
    }

    /// Adds a session that starts here or at a peer.
    pub(super) fn insert_session(
        &mut self,
        peer: SocketAddr,
        conv: u32,
        by_peer: bool,
        crypt: Option<Box<PacketSession>>,
    ) -> KcpStream {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let socket = Arc::clone(&self.socket);
        let session = Arc::new(Session::new(socket, peer, conv, slot, by_peer, crypt));
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Some(Arc::clone(&session));
        }
        self.peers.entry(peer).or_default().push(slot);
        *self.sources.entry(source_network(peer.ip())).or_default() += 1;
        self.socket.settings.counters.count_opened(by_peer);
        Link::new_stream(session)
    }

    /// Handles at most [`BATCH`] datagrams of one peer.
    fn handle_datagrams(
        &mut self,
        socket: &KcpSocket,
        packets: &mut [&mut [u8]],
        from: SocketAddr,
        now: Time,
        tally: &mut BatchStats,
    ) {
        debug_assert!(packets.len() <= BATCH, "more than BATCH would be ignored");
        packets
            .iter()
            .for_each(|packet| tally.count_datagram(packet));
        if socket.settings.session.is_some() {
            for packet in packets {
                self.handle_sealed(packet, from, now, tally);
            }
            return;
        }
        let mut opened = [true; BATCH];
        let DatagramLayout { head, tail, .. } = socket.layout;
        if let Some(crypt) = &socket.settings.crypt {
            for (packet, opened) in packets.iter_mut().zip(&mut opened) {
                *opened = packet.len() >= head + tail && crypt.open(packet).is_ok();
            }
        } else if let Some(key) = &socket.settings.key {
            key.open_batch(packets, &mut |at, packet| {
                if let (Err(_), Some(opened)) = (packet, opened.get_mut(at)) {
                    *opened = false;
                }
            });
        }
        let mut payloads: [&[u8]; BATCH] = [&[]; BATCH];
        let mut count = 0;
        for (packet, opened) in packets.iter().zip(opened) {
            let payload = packet.get(head..packet.len().saturating_sub(tail));
            if let (true, Some(payload), Some(place)) = (opened, payload, payloads.get_mut(count)) {
                *place = payload;
                count += 1;
            } else {
                tally.refused += 1;
                if self.peers.contains_key(&from) {
                    socket.count_refused();
                }
            }
        }
        let mut rest = subslice(&payloads, ..count);
        while let Some((first, others)) = rest.split_first() {
            // In most cases all belong to the session of the previous one.
            if let Some((_, session)) = self.last.as_ref().filter(|(peer, _)| *peer == from) {
                let (taken, fresh) = session.handle_packets(rest, now);
                if fresh {
                    self.touched.push(session.slot);
                }
                rest = subslice(rest, taken..);
                if taken > 0 {
                    continue;
                }
            }
            self.handle_payload(first, from, now, tally);
            rest = others;
        }
    }

    /// Handles a packet that does not belong to the session of the previous one.
    fn handle_payload(
        &mut self,
        payload: &[u8],
        from: SocketAddr,
        now: Time,
        tally: &mut BatchStats,
    ) {
        let route = DatagramRoute::classify(payload);
        let conv = match route {
            DatagramRoute::Bare(_, opening) | DatagramRoute::Data(_, Some(opening)) => {
                Some(opening.conv)
            }
            DatagramRoute::Data(_, None) | DatagramRoute::Parity => None,
            DatagramRoute::Oob(conv, _) => Some(conv),
            DatagramRoute::Unknown => {
                tally.malformed += 1;
                return;
            }
        };
        let Some(session) = self
            .find_session(from, conv)
            .or_else(|| self.begin_session(from, route, now))
        else {
            tally.oob += u64::from(matches!(route, DatagramRoute::Oob(..)));
            return;
        };
        if session.handle_input(payload, now) {
            self.touched.push(session.slot);
        }
        self.last = Some((from, session));
    }

    /// Returns the session of a packet: that of its conversation, or the newest if the packet has
    /// no conversation number.
    fn find_session(&self, from: SocketAddr, conv: Option<u32>) -> Option<Arc<Session>> {
        let slots = self.peers.get(&from)?.iter().rev();
        let mut sessions = slots.filter_map(|slot| self.slots.get(*slot)?.as_ref());
        let found = sessions.find(|session| conv.is_none_or(|conv| conv == session.conv));
        found.map(Arc::clone)
    }

    /// Starts a new session, if the peer may start one. Never affects an existing one.
    fn begin_session(
        &mut self,
        from: SocketAddr,
        route: DatagramRoute<'_>,
        now: Time,
    ) -> Option<Arc<Session>> {
        let (DatagramRoute::Bare(_, opening) | DatagramRoute::Data(_, Some(opening))) = route
        else {
            return None;
        };
        if !opening.may_begin_session() || self.has_ended(from, opening, now) {
            return None;
        }
        if self.socket.transport.is_handed_over() {
            return None;
        }
        let here = self.peers.get(&from).map_or(0, Vec::len);
        if here >= MAX_PER_ADDR || !self.is_within_limits(from) {
            return None;
        }
        let permit = self.accept.clone()?.try_reserve_owned().ok()?;
        if !self.socket.settings.authenticates() && !self.take_new_session_budget(now) {
            return None;
        }
        let stream = self.insert_session(from, opening.conv, true, None);
        let session = Arc::clone(stream.session());
        permit.send(stream);
        Some(session)
    }

    /// True if one more session of that address is within the limits.
    pub(super) fn is_within_limits(&self, from: SocketAddr) -> bool {
        let settings = &self.socket.settings;
        let of_source = self
            .sources
            .get(&source_network(from.ip()))
            .copied()
            .unwrap_or(0);
        let sessions = self.slots.len() - self.free.len();
        sessions < settings.sessions && of_source < settings.per_source
    }

    fn has_ended(&mut self, from: SocketAddr, opening: FirstSegment, now: Time) -> bool {
        let (_, long) = ENDED_HISTORY;
        while self
            .ended
            .front()
            .is_some_and(|(at, ..)| now.duration_since(*at) > long)
        {
            self.ended.pop_front();
        }
        let mut ended = self.ended.iter();
        ended.any(|(_, peer, conv)| (*peer, *conv) == (from, opening.conv))
    }

    /// Takes one session from the budget for unauthenticated ones. Returns false if it is used up.
    fn take_new_session_budget(&mut self, now: Time) -> bool {
        let (rate, burst) = NEW_SESSION_RATE;
        let full = self
            .budget_full_at
            .max(now)
            .0
            .saturating_add(1_000_000 / rate);
        let fits = full - now.0 <= burst * 1_000_000 / rate;
        if fits {
            self.budget_full_at = Time(full);
        }
        fits
    }

    /// Runs `what` on a session, and removes the session if it has ended.
    fn visit_slot(&mut self, slot: usize, now: Time, what: fn(&Session, Time) -> SettleOutcome) {
        let session = self.slots.get(slot).and_then(Option::as_ref);
        if session.is_some_and(|session| what(session, now) == SettleOutcome::Remove) {
            self.remove_session(slot, now);
        }
    }

    /// Removes a session, and remembers that it has ended.
    fn remove_session(&mut self, slot: usize, now: Time) {
        let Some(session) = self.slots.get_mut(slot).and_then(Option::take) else {
            return;
        };
        session.release();
        if let Some(id) = session.peer_id() {
            self.ids.remove(&id);
        }
        self.free.push(slot);
        self.last = None;
        if let Some(slots) = self.peers.get_mut(&session.first_addr) {
            slots.retain(|other| *other != slot);
            if slots.is_empty() {
                self.peers.remove(&session.first_addr);
            }
        }
        #[cfg(target_os = "linux")]
        self.release_sources(&session);
        let source = source_network(session.first_addr.ip());
        if let Some(count) = self.sources.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                self.sources.remove(&source);
            }
        }
        let (most, _) = ENDED_HISTORY;
        if self.ended.len() == most {
            self.ended.pop_front();
        }
        self.ended
            .push_back((now, session.first_addr, session.conv));
    }
}
