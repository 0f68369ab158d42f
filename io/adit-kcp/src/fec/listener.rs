//! The listening end for lanes.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};

use adit_crypto::packet::session::{Role, SessionId};
use adit_net::{BufferSizes, system};
use adit_wire::{Time, subslice};

use super::lane::{Lane, Shared};
use super::{Settings, Socket};
use crate::newcomers::{Met, Newcomer, Newcomers};

/// Number of lanes from which on unused ones are removed.
const SWEEP: usize = 64;

/// Receives for all lanes of one UDP socket.
///
/// A lane starts with the first packet that passes the check; with [`Settings::session`] as soon as
/// its client has shown that it is not a recording. It ends when it is dropped.
pub struct FecListener {
    socket: Arc<Socket>,
    lanes: HashMap<Name, Weak<Shared>>,
    newcomers: Option<Newcomers>,
    /// Lanes that wait to be accepted.
    born: Vec<Lane>,
    sweep: usize,
}

/// The key by which the lane of a packet is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Name {
    Session(SessionId),
    Peer(SocketAddr),
}

impl FecListener {
    /// Listens on `addr`.
    ///
    /// # Errors
    ///
    /// Invalid [`Settings`], or an error of the system.
    pub fn bind(addr: SocketAddr, settings: Settings) -> io::Result<Self> {
        let socket = Arc::new(Socket::bind(addr, settings)?);
        Ok(Self {
            newcomers: socket.settings.session.clone().map(Newcomers::new),
            socket,
            lanes: HashMap::new(),
            born: Vec::new(),
            sweep: SWEEP,
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
    pub async fn accept(&mut self) -> io::Result<Lane> {
        poll_fn(|cx| self.poll_accept(cx)).await
    }

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Lane>> {
        loop {
            if let Some(lane) = self.born.pop() {
                return Poll::Ready(Ok(lane));
            }
            let (socket, now) = (Arc::clone(&self.socket), system::monotonic_now());
            ready!(socket.udp.poll_recv(cx, &mut |packet, from| {
                if self.newcomers.is_some() {
                    self.sealed(packet, from, now);
                } else {
                    self.plain(packet, from, now);
                }
            }))?;
        }
    }

    /// Handles a packet sealed with session keys.
    fn sealed(&mut self, packet: &mut [u8], from: SocketAddr, now: Time) {
        let key = self.socket.settings.session.as_ref();
        let Some(head) = key.and_then(|key| key.decrypt_header(Role::Client, packet)) else {
            return;
        };
        let name = Name::Session(head.id());
        if let Some(lane) = self.find(name) {
            return lane.sealed(head, packet, from, now);
        }
        let Some(newcomers) = &mut self.newcomers else {
            return;
        };
        match newcomers.meet(head, packet, now) {
            Met::Foreign => {}
            Met::Answer(answer) => {
                // Lost like any other: the client sends again.
                let _ = self.socket.udp.try_send(&answer[..], from);
            }
            Met::Fresh(one, range) => {
                let Newcomer { session, early, .. } = one;
                if let Some(lane) = self.begin(name, from, Some(session)) {
                    early.iter().for_each(|payload| lane.opened(payload, now));
                    lane.opened(subslice(packet, range), now);
                }
            }
        }
    }

    /// Handles a packet that is not sealed with session keys.
    fn plain(&mut self, packet: &mut [u8], from: SocketAddr, now: Time) {
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
        let name = Name::Peer(from);
        let lane = self.find(name).or_else(|| self.begin(name, from, None));
        if let Some(lane) = lane {
            lane.opened(payload, now);
        }
    }

    fn find(&mut self, name: Name) -> Option<Arc<Shared>> {
        let found = self.lanes.get(&name)?.upgrade();
        if found.is_none() {
            self.lanes.remove(&name);
        }
        found
    }

    fn begin(
        &mut self,
        name: Name,
        from: SocketAddr,
        session: Option<Box<adit_crypto::packet::session::PacketSession>>,
    ) -> Option<Arc<Shared>> {
        if self.lanes.len() >= self.sweep.min(self.socket.settings.lanes) {
            self.lanes.retain(|_, lane| lane.strong_count() > 0);
            self.sweep = SWEEP.max(self.lanes.len() * 2);
        }
        if self.lanes.len() >= self.socket.settings.lanes {
            return None;
        }
        let shared = Shared::new(Arc::clone(&self.socket), from, session, true).ok()?;
        self.lanes.insert(name, Arc::downgrade(&shared));
        self.born.push(Lane::of(Arc::clone(&shared)));
        Some(shared)
    }
}

impl fmt::Debug for FecListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FecListener({} lanes)", self.lanes.len())
    }
}
