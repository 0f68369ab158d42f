//! The connection of one client with its server, at either end.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use adit_crypto::packet::session::{PacketSession, Role, SessionCipher};
use adit_net::BatchUdpSocket;
use adit_net::system::{self, ThreadRng};
use adit_wire::{Time, subslice};
use tokio::time::{Instant, Sleep, sleep_until};

use super::state::ChannelState;
use super::{FecSettings, FecSocket};

/// Maximum number of datagrams that wait for their reader; more are lost.
const MAX_INBOX: usize = 512;

/// A channel for datagrams with forward error correction. Sending never waits.
///
/// Its timers only run while a task receives on it.
pub struct FecChannel {
    shared: Arc<SharedChannel>,
}

/// State that a lane shares with its listener.
pub(super) struct SharedChannel {
    pub(super) socket: Arc<FecSocket>,
    /// True if a listener receives for it.
    has_listener: bool,
    inner: Mutex<ChannelInner>,
}

/// State behind the lock.
struct ChannelInner {
    state: ChannelState,
    inbox: VecDeque<Vec<u8>>,
    /// The waker of the receiving task.
    waker: Option<Waker>,
    sleep: Option<Pin<Box<Sleep>>>,
    until: Option<Time>,
}

impl FecChannel {
    /// Creates a lane to `server`, on a new socket. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// Invalid [`FecSettings`], or an error of the system.
    pub fn connect(server: SocketAddr, settings: FecSettings) -> io::Result<Self> {
        let any = match server.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let open = || BatchUdpSocket::bind(SocketAddr::new(any, 0));
        let socket = Arc::new(FecSocket::new(settings, open)?);
        let session = match &socket.settings.session {
            Some(key) => {
                let session = key.connect(SessionCipher::preferred(), &mut ThreadRng);
                Some(Box::new(session.map_err(io::Error::other)?))
            }
            None => None,
        };
        let shared = SharedChannel::new(socket, server, session, false)?;
        Ok(Self { shared })
    }

    pub(super) const fn from_shared(shared: Arc<SharedChannel>) -> Self {
        Self { shared }
    }

    /// Returns the address at which the peer was last heard, or is expected.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.shared.peer_addr()
    }

    /// True if a valid packet was received since this end last sent; with session keys, if one was
    /// ever received in this session. A peer with session keys answers on its own.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.shared.lock().state.is_heard()
    }

    /// Returns the maximum size of a datagram in bytes.
    #[must_use]
    pub fn max_datagram(&self) -> usize {
        self.shared.socket.max_datagram
    }

    /// Queues a datagram; it may wait for others until [`Self::flush`].
    ///
    /// # Errors
    ///
    /// The datagram is too long, or the system did not accept it; then it is lost.
    pub fn send(&self, datagram: &[u8]) -> io::Result<()> {
        let (shared, now) = (&self.shared, system::monotonic_now());
        let mut inner = shared.lock();
        if !shared.has_listener {
            inner.state.renew_session(&shared.socket, now);
        }
        let sent = inner.state.send(&shared.socket, datagram, now);
        // The receiver owns the timer.
        let due = inner.state.poll_timeout();
        let waker = if due.is_some() && due != inner.until {
            inner.waker.take()
        } else {
            None
        };
        drop(inner);
        waker.into_iter().for_each(Waker::wake);
        sent
    }

    /// Sends the queued datagrams.
    ///
    /// # Errors
    ///
    /// An error of the system; the lane stays usable.
    pub fn flush(&self) -> io::Result<()> {
        self.shared.socket.udp.flush()
    }

    /// Receives a batch and passes each datagram to `each`, which must not use this lane.
    ///
    /// # Errors
    ///
    /// The socket has failed.
    pub fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        each: &mut dyn FnMut(&[u8]),
    ) -> Poll<io::Result<()>> {
        let shared = &*self.shared;
        {
            let mut inner = shared.lock();
            inner.waker = Some(cx.waker().clone());
            inner.run_timers(&shared.socket, cx);
        }
        if !shared.has_listener {
            return shared.poll_socket(cx, each);
        }
        let mut inner = shared.lock();
        if inner.inbox.is_empty() {
            return Poll::Pending;
        }
        inner.inbox.drain(..).for_each(|datagram| each(&datagram));
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
impl FecChannel {
    /// Seals a packet as this end would.
    pub(super) fn seal_for_test(&self, packet: &mut [u8]) {
        self.shared.lock().state.seal_for_test(packet);
    }
}

impl SharedChannel {
    pub(super) fn peer_addr(&self) -> SocketAddr {
        self.lock().state.peer
    }

    pub(super) fn new(
        socket: Arc<FecSocket>,
        peer: SocketAddr,
        session: Option<Box<PacketSession>>,
        served: bool,
    ) -> io::Result<Arc<Self>> {
        let state = ChannelState::new(&socket, peer, session, system::monotonic_now())?;
        Ok(Arc::new(Self {
            socket,
            has_listener: served,
            inner: Mutex::new(ChannelInner {
                state,
                inbox: VecDeque::new(),
                waker: None,
                sleep: None,
                until: None,
            }),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, ChannelInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives on a client's own socket.
    fn poll_socket(
        &self,
        cx: &mut Context<'_>,
        each: &mut dyn FnMut(&[u8]),
    ) -> Poll<io::Result<()>> {
        loop {
            let mut any = false;
            let mut counted = |datagram: &[u8]| {
                any = true;
                each(datagram);
            };
            let now = system::monotonic_now();
            ready!(self.socket.udp.poll_recv(cx, &mut |packet, from| {
                let mut inner = self.lock();
                let state = &mut inner.state;
                let settings = &self.socket.settings;
                let payload: &[u8] = match (&settings.session, &settings.key) {
                    (Some(key), _) => {
                        let Some(head) = key.decrypt_header(Role::Server, packet) else {
                            return;
                        };
                        let opened = state.open_sealed(&self.socket, head, packet, from);
                        let Ok(payload) = opened else { return };
                        payload
                    }
                    _ if from != state.peer => return,
                    (None, Some(key)) => match key.open(packet) {
                        Ok(range) => subslice(packet, range),
                        Err(_) => return,
                    },
                    (None, None) => packet,
                };
                state.handle_input(&self.socket, payload, now, &mut counted);
            }))?;
            if any {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Handles a packet for a listener's lane, sealed by its session.
    pub(super) fn handle_sealed(
        &self,
        head: adit_crypto::packet::session::SessionHeader,
        packet: &mut [u8],
        from: SocketAddr,
        now: Time,
    ) {
        let mut inner = self.lock();
        let opened = inner.state.open_sealed(&self.socket, head, packet, from);
        let Ok(payload) = opened else { return };
        self.deliver_payload(&mut inner, payload, now);
    }

    /// Handles an opened packet for a listener's lane.
    pub(super) fn handle_opened(&self, payload: &[u8], now: Time) {
        self.deliver_payload(&mut self.lock(), payload, now);
    }

    /// Queues the datagrams of a packet for the reader, and wakes it.
    fn deliver_payload(&self, inner: &mut ChannelInner, payload: &[u8], now: Time) {
        let ChannelInner { state, inbox, .. } = inner;
        state.handle_input(&self.socket, payload, now, &mut |datagram| {
            if inbox.len() < MAX_INBOX {
                inbox.push_back(datagram.to_vec());
            }
        });
        if !inbox.is_empty() {
            inner.waker.take().into_iter().for_each(Waker::wake);
        }
    }
}

impl ChannelInner {
    /// Handles due timers, and sets the timer for the next.
    fn run_timers(&mut self, socket: &FecSocket, cx: &mut Context<'_>) {
        loop {
            let now = system::monotonic_now();
            let Some(due) = self.state.poll_timeout() else {
                self.until = None;
                return;
            };
            if due <= now {
                self.state.handle_timeout(socket, now);
                let _ = socket.udp.flush();
                continue;
            }
            let at = Instant::now() + due.duration_since(now);
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(at)));
            if self.until != Some(due) {
                self.until = Some(due);
                sleep.as_mut().reset(at);
            }
            if Future::poll(sleep.as_mut(), cx).is_pending() {
                return;
            }
            self.until = None;
        }
    }
}

impl fmt::Debug for FecChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lane(with {})", self.peer_addr())
    }
}
