//! The listening end for lanes.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};

use adit_crypto::packet::session::{Role, SessionId};
use adit_net::{BatchUdpSocket, BufferSizes, system};
use adit_wire::{Time, subslice};

use super::channel::{FecChannel, SharedChannel};
use super::{FecSettings, FecSocket};
use crate::new_peers::{NewPeer, NewPeerPacket, NewPeers};

/// Number of lanes from which on unused ones are removed.
const MIN_SWEEP: usize = 64;

/// Receives for all lanes of one UDP socket.
///
/// A lane starts with the first packet that passes the check; with [`FecSettings::session`] as soon as
/// its client has shown that it is not a recording. It ends when it is dropped.
pub struct FecListener {
    pub(super) socket: Arc<FecSocket>,
    pub(super) channels: HashMap<ChannelKey, Weak<SharedChannel>>,
    new_peers: Option<NewPeers>,
    /// Lanes that wait to be accepted.
    accepted: Vec<FecChannel>,
    sweep_at: usize,
}

/// The key by which the lane of a packet is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ChannelKey {
    Session(SessionId),
    Peer(SocketAddr),
}

impl FecListener {
    /// Listens on `addr`.
    ///
    /// # Errors
    ///
    /// Invalid [`FecSettings`], or an error of the system.
    pub fn bind(addr: SocketAddr, settings: FecSettings) -> io::Result<Self> {
        Self::listen_with(settings, || BatchUdpSocket::bind(addr))
    }

    /// Listens on a bound socket of this project, such as one that another process has handed over.
    ///
    /// # Errors
    ///
    /// Invalid [`FecSettings`].
    pub fn over_udp(socket: BatchUdpSocket, settings: FecSettings) -> io::Result<Self> {
        Self::listen_with(settings, || Ok(socket))
    }

    fn listen_with(
        settings: FecSettings,
        open: impl FnOnce() -> io::Result<BatchUdpSocket>,
    ) -> io::Result<Self> {
        let socket = Arc::new(FecSocket::new(settings, open)?);
        Ok(Self {
            new_peers: socket.settings.session.clone().map(NewPeers::new),
            socket,
            channels: HashMap::new(),
            accepted: Vec::new(),
            sweep_at: MIN_SWEEP,
        })
    }

    /// Returns the address of the socket.
    ///
    /// # Errors
    ///
    /// An error of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.udp.local_addr()
    }

    /// Returns the sizes of the socket's kernel buffers.
    #[must_use]
    pub fn buffers(&self) -> BufferSizes {
        self.socket.udp.buffer_sizes()
    }

    /// Waits for the next lane, and meanwhile receives for all others. Call it again immediately
    /// after it returns.
    ///
    /// # Errors
    ///
    /// The socket has failed.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn accept(&mut self) -> io::Result<FecChannel> {
        poll_fn(|cx| self.poll_accept(cx)).await
    }

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<FecChannel>> {
        loop {
            if let Some(lane) = self.accepted.pop() {
                return Poll::Ready(Ok(lane));
            }
            let (socket, now) = (Arc::clone(&self.socket), system::monotonic_now());
            ready!(socket.udp.poll_recv(cx, &mut |packet, from| {
                if self.new_peers.is_some() {
                    self.handle_sealed(packet, from, now);
                } else {
                    self.handle_plain(packet, from, now);
                }
            }))?;
        }
    }

    /// Handles a packet sealed with session keys.
    fn handle_sealed(&mut self, packet: &mut [u8], from: SocketAddr, now: Time) {
        let key = self.socket.settings.session.as_ref();
        let Some(head) = key.and_then(|key| key.decrypt_header(Role::Client, packet)) else {
            return;
        };
        let name = ChannelKey::Session(head.id());
        if let Some(lane) = self.find_channel(name) {
            return lane.handle_sealed(head, packet, from, now);
        }
        if self.is_served_elsewhere(head.id(), packet, from) {
            return;
        }
        let Some(newcomers) = &mut self.new_peers else {
            return;
        };
        match newcomers.handle_packet(head, packet, now) {
            NewPeerPacket::Foreign => {}
            NewPeerPacket::Answer(answer) => {
                // Lost like any other: the client sends again.
                let _ = self.socket.udp.try_send(&answer[..], from);
            }
            NewPeerPacket::Fresh(one, range) => {
                let NewPeer { session, early, .. } = one;
                if let Some(lane) = self.open_channel(name, from, Some(session)) {
                    early
                        .iter()
                        .for_each(|payload| lane.handle_opened(payload, now));
                    lane.handle_opened(subslice(packet, range), now);
                }
            }
        }
    }

    /// Returns true if another process serves a packet that is not of a lane here: the previous one serves its lane, to
    /// which it was forwarded, or the next one serves new clients.
    fn is_served_elsewhere(&self, id: SessionId, packet: &[u8], from: SocketAddr) -> bool {
        #[cfg(target_os = "linux")]
        {
            let udp = &self.socket.udp;
            udp.forward_session(id.to_u64(), packet, from) || udp.is_handed_over()
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (id, packet, from);
            false
        }
    }

    /// Handles a packet that is not sealed with session keys.
    fn handle_plain(&mut self, packet: &mut [u8], from: SocketAddr, now: Time) {
        let payload: &[u8] = match &self.socket.settings.key {
            Some(key) => match key.open(packet) {
                Ok(range) => subslice(packet, range),
                Err(_) => return,
            },
            None => packet,
        };
        if adit_fec::Packet::parse(payload).is_none() {
            return;
        }
        let name = ChannelKey::Peer(from);
        let lane = self
            .find_channel(name)
            .or_else(|| self.open_channel(name, from, None));
        if let Some(lane) = lane {
            lane.handle_opened(payload, now);
        }
    }

    fn find_channel(&mut self, name: ChannelKey) -> Option<Arc<SharedChannel>> {
        let found = self.channels.get(&name)?.upgrade();
        if found.is_none() {
            self.channels.remove(&name);
        }
        found
    }

    fn open_channel(
        &mut self,
        name: ChannelKey,
        from: SocketAddr,
        session: Option<Box<adit_crypto::packet::session::PacketSession>>,
    ) -> Option<Arc<SharedChannel>> {
        #[cfg(target_os = "linux")]
        if self.socket.udp.is_handed_over() {
            return None;
        }
        if self.channels.len() >= self.sweep_at.min(self.socket.settings.max_channels) {
            self.channels.retain(|_, lane| lane.strong_count() > 0);
            self.sweep_at = MIN_SWEEP.max(self.channels.len() * 2);
        }
        if self.channels.len() >= self.socket.settings.max_channels {
            return None;
        }
        let shared = SharedChannel::new(Arc::clone(&self.socket), from, session, true).ok()?;
        self.channels.insert(name, Arc::downgrade(&shared));
        self.accepted
            .push(FecChannel::from_shared(Arc::clone(&shared)));
        Some(shared)
    }
}

impl fmt::Debug for FecListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FecListener({} lanes)", self.channels.len())
    }
}
