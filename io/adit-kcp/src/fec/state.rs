//! The state of a lane: both codes, its keys, and the numbers of received datagrams.

use std::io;
use std::net::SocketAddr;

use adit_crypto::packet::session::{PacketSession, SessionCipher, SessionHeader};
use adit_fec::{Decoder, Encoder, HEADER, Packet};
use adit_net::system::{self, ThreadRng};
use adit_wire::{ProtocolError, SlidingWindow, Time, subslice, subslice_mut};

use super::{FecSocket, MAX_PACKET, NUMBER_LEN};
use crate::new_peers::seal_empty;

/// Silence after which an end that receives data sends an empty packet, in microseconds.
const KEEPALIVE_AFTER: u64 = 1_000_000;
/// Silence after which a client starts a new session, in microseconds.
const RENEW_AFTER: u64 = 3_000_000;

/// One end of a lane.
#[derive(Debug)]
pub(super) struct ChannelState {
    encoder: Encoder,
    decoder: Decoder,
    /// Session keys, if there are any.
    crypt: Option<Box<PacketSession>>,
    pub(super) peer: SocketAddr,
    /// The number of the next datagram.
    next_number: u64,
    seen: SlidingWindow,
    /// Time at which the last packet was sent.
    last_sent: Time,
    /// Time since which data was sent and nothing was received.
    unheard_since: Option<Time>,
    scratch: Box<[u8; MAX_PACKET]>,
}

impl ChannelState {
    pub(super) fn new(
        socket: &FecSocket,
        peer: SocketAddr,
        crypt: Option<Box<PacketSession>>,
        now: Time,
    ) -> io::Result<Self> {
        let longest = NUMBER_LEN + socket.max_datagram;
        let mut encoder = Encoder::new(socket.code.clone(), longest).map_err(io::Error::other)?;
        encoder.set_early(Some(socket.settings.parity_wait));
        Ok(Self {
            encoder,
            decoder: Decoder::new(socket.code.clone(), MAX_PACKET),
            crypt,
            peer,
            // Four million datagrams for each second of a clock that does not repeat.
            next_number: system::unix_now().0 << 22,
            seen: SlidingWindow::default(),
            last_sent: now,
            unheard_since: None,
            scratch: Box::new([0; MAX_PACKET]),
        })
    }

    /// Returns the time at which [`Self::handle_timeout`] is due.
    pub(super) const fn poll_timeout(&self) -> Option<Time> {
        self.encoder.poll_timeout()
    }

    pub(super) fn handle_timeout(&mut self, socket: &FecSocket, now: Time) {
        // The peer ignores a shard without a number.
        self.encoder.handle_timeout(now, &[]);
        // A packet that is not sent is lost like any other.
        let _ = self.send_parity(socket, now);
    }

    /// Sends a datagram, and its parity if the group is full.
    pub(super) fn send(
        &mut self,
        socket: &FecSocket,
        datagram: &[u8],
        now: Time,
    ) -> io::Result<()> {
        if datagram.len() > socket.max_datagram {
            let why = format!(
                "a datagram of {} bytes is longer than {}",
                datagram.len(),
                socket.max_datagram
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let (head, _) = socket.settings.overhead();
        let len = HEADER + NUMBER_LEN + datagram.len();
        let number = self.next_number.to_le_bytes();
        self.next_number += 1;
        let shard = subslice_mut(&mut self.scratch[..], head..head + len);
        let (_, payload) = shard.split_at_mut(HEADER.min(shard.len()));
        let (place, rest) = payload.split_at_mut(NUMBER_LEN.min(payload.len()));
        place.copy_from_slice(&number);
        rest.copy_from_slice(datagram);
        self.encoder.seal(now, shard).map_err(io::Error::other)?;
        self.seal_and_queue(socket, len, now)?;
        self.send_parity(socket, now)
    }

    fn send_parity(&mut self, socket: &FecSocket, now: Time) -> io::Result<()> {
        let (head, _) = socket.settings.overhead();
        loop {
            let room = subslice_mut(&mut self.scratch[..], head..);
            let Some(len) = self.encoder.poll_output(room) else {
                return Ok(());
            };
            self.seal_and_queue(socket, len, now)?;
        }
    }

    /// Seals the shard of `len` bytes in the scratch buffer and passes it to the socket.
    fn seal_and_queue(&mut self, socket: &FecSocket, len: usize, now: Time) -> io::Result<()> {
        let (head, tail) = socket.settings.overhead();
        let packet = subslice_mut(&mut self.scratch[..], ..head + len + tail);
        match (&mut self.crypt, &socket.settings.key) {
            (Some(session), _) => session.seal(packet),
            (None, Some(key)) => key.seal(packet, &mut ThreadRng),
            (None, None) => Ok(()),
        }
        .map_err(io::Error::other)?;
        self.last_sent = now;
        self.unheard_since.get_or_insert(now);
        socket.udp.queue(packet, self.peer)
    }

    /// True if a packet of the peer was opened since this end last sent, or ever with session keys.
    pub(super) fn is_heard(&self) -> bool {
        let keyed = self
            .crypt
            .as_ref()
            .is_some_and(|crypt| crypt.peer_id().is_some());
        keyed || self.unheard_since.is_none()
    }

    /// Starts a new session if a client has not received anything for a while.
    pub(super) fn renew_session(&mut self, socket: &FecSocket, now: Time) {
        let silent = |since: Time| now.0.saturating_sub(since.0) >= RENEW_AFTER;
        if !self.unheard_since.is_some_and(silent) {
            return;
        }
        self.unheard_since = None;
        if let Some(key) = &socket.settings.session
            && let Ok(session) = key.connect(SessionCipher::preferred(), &mut ThreadRng)
        {
            self.crypt = Some(Box::new(session));
        }
    }

    /// Opens a packet with the session keys, and takes its source as the peer's address.
    pub(super) fn open_sealed<'p>(
        &mut self,
        socket: &FecSocket,
        head: SessionHeader,
        packet: &'p mut [u8],
        from: SocketAddr,
    ) -> Result<&'p [u8], ProtocolError> {
        let session = self.crypt.as_mut().ok_or(ProtocolError::Unauthentic)?;
        let unknown = session.peer_id().is_none();
        let range = session.open(head, packet)?;
        self.peer = from;
        if unknown && let Some(sign) = seal_empty(session) {
            // The server waits for it; the next datagram has the same effect.
            let _ = socket.udp.try_send(&sign[..], from);
        }
        Ok(subslice(packet, range))
    }

    /// Handles an opened packet and passes its datagrams to `each`.
    pub(super) fn handle_input(
        &mut self,
        socket: &FecSocket,
        packet: &[u8],
        now: Time,
        each: &mut dyn FnMut(&[u8]),
    ) {
        self.unheard_since = None;
        if let Some(Packet::Data { datagram, .. }) = self.decoder.handle_input(packet) {
            deliver_new(&mut self.seen, datagram, each);
        }
        while let Some(datagram) = self.decoder.poll_recovered() {
            deliver_new(&mut self.seen, datagram, each);
        }
        if !packet.is_empty()
            && now.0.saturating_sub(self.last_sent.0) >= KEEPALIVE_AFTER
            && let Some(session) = &mut self.crypt
            && let Some(sign) = seal_empty(session)
        {
            self.last_sent = now;
            let _ = socket.udp.try_send(&sign[..], self.peer);
        }
    }
}

/// Passes on a datagram that was not received before.
fn deliver_new(seen: &mut SlidingWindow, numbered: &[u8], each: &mut dyn FnMut(&[u8])) {
    if let Some((number, datagram)) = numbered.split_first_chunk::<NUMBER_LEN>()
        && seen.accept(u64::from_le_bytes(*number))
    {
        each(datagram);
    }
}

#[cfg(test)]
impl ChannelState {
    pub(super) fn seal_for_test(&mut self, packet: &mut [u8]) {
        self.crypt.as_mut().unwrap().seal(packet).unwrap();
    }
}
