//! One UDP socket in two processes: the next one receives on it, and forwards the datagrams of those peers that
//! the previous one still serves. Both send on it.
//!
//! Datagrams are forwarded over a pair of Unix sockets that keeps their boundaries (`SOCK_SEQPACKET`), without
//! waiting: one that finds no space is lost. In the opposite direction the previous process sends the addresses
//! that it does not serve any more. When it closes its end, it serves none; when the next one closes its
//! end, the previous one receives on the socket again.

mod forwarded;
mod link;

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adit_wire::u64_from;

use super::sources::{encode_sources, parse_sources};
use forwarded::ForwardedSources;
use link::Link;

/// Maximum number of sessions that are handed over with a socket.
const MAX_SESSIONS: usize = 500_000;

/// A UDP socket that the next process continues, and the peers that the previous one still serves.
#[derive(Debug)]
pub struct HandedOverUdp {
    /// The socket.
    pub socket: OwnedFd,
    /// The end of the next process of the pair over which it forwards datagrams.
    pub link: OwnedFd,
    /// The addresses of the peers whose datagrams are forwarded. The caller adds those that it serves.
    pub sources: Vec<SocketAddr>,
    /// The numbers of sessions whose datagrams are forwarded from any address. The caller adds those of its protocol.
    pub sessions: Vec<u64>,
}

impl HandedOverUdp {
    /// Divides the value into the body and the descriptors of a [message](crate::handover::HandoverMessage).
    #[must_use]
    pub fn into_parts(self) -> (Vec<u8>, [OwnedFd; 2]) {
        let sources = encode_sources(&self.sources);
        let mut body = u64_from(sources.len()).to_be_bytes().to_vec();
        body.extend_from_slice(&sources);
        let sessions = self.sessions.iter().take(MAX_SESSIONS);
        body.extend(sessions.flat_map(|session| session.to_be_bytes()));
        (body, [self.socket, self.link])
    }

    /// Creates the value from the body and the descriptors of a message.
    ///
    /// # Errors
    /// `InvalidData` if the body is malformed or there are not exactly two descriptors.
    pub fn from_parts(body: &[u8], fds: Vec<OwnedFd>) -> io::Result<Self> {
        let fds = <[OwnedFd; 2]>::try_from(fds).ok();
        let (Some([socket, link]), Some((sources, sessions))) = (fds, parse_peers(body)) else {
            let what = "the message does not describe a UDP socket that is handed over";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        };
        Ok(Self {
            socket,
            link,
            sources,
            sessions,
        })
    }
}

/// Parses the length of the list of addresses, the list, and the numbers of sessions.
fn parse_peers(body: &[u8]) -> Option<(Vec<SocketAddr>, Vec<u64>)> {
    let (len, rest) = body.split_first_chunk()?;
    let len = usize::try_from(u64::from_be_bytes(*len)).ok()?;
    let (sources, sessions) = rest.split_at_checked(len)?;
    let (sessions, rest) = sessions.as_chunks();
    if !rest.is_empty() || sessions.len() > MAX_SESSIONS {
        return None;
    }
    let sessions = sessions.iter().map(|session| u64::from_be_bytes(*session));
    Some((parse_sources(sources)?, sessions.collect()))
}

/// The addresses of peers and the numbers of sessions.
#[derive(Debug, Default)]
pub(crate) struct ServedPeers {
    pub(crate) sources: Vec<SocketAddr>,
    pub(crate) sessions: Vec<u64>,
}

/// The part of a socket in handovers: to the next process, and from the previous one.
#[derive(Debug, Default)]
pub(crate) struct UdpHandover {
    /// True if `link` is set.
    is_handed_over: AtomicBool,
    /// The link to the next process.
    link: Mutex<Option<Arc<Link>>>,
    /// The peers that the previous process serves. In a box, because every association has a socket, and few of these
    /// are handed over.
    forwarded: Option<Box<ForwardedSources>>,
}

impl UdpHandover {
    /// Returns the link to the next process, if the socket has been handed over.
    pub(crate) fn link(&self) -> Option<Arc<Link>> {
        // A load is cheaper than a lock, and there is rarely a handover.
        if !self.is_handed_over.load(Ordering::Acquire) {
            return None;
        }
        self.lock_link().clone()
    }

    fn lock_link(&self) -> MutexGuard<'_, Option<Arc<Link>>> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives on the socket again, because the next process has closed the link.
    pub(crate) fn resume(&self) {
        let mut link = self.lock_link();
        *link = None;
        self.is_handed_over.store(false, Ordering::Release);
    }

    /// Forwards a run of datagrams to the previous process if that serves its sender; returns false if it does not.
    /// `stride` is the size of each datagram, in bytes.
    pub(crate) fn forward(&self, bytes: &[u8], stride: usize, from: SocketAddr) -> bool {
        let Some(forwarded) = &self.forwarded else {
            return false;
        };
        // The next process of the next one forwards to this one.
        !forwarded.opens_first()
            && forwarded.forward(bytes, stride, from, &mut |released| self.release(released))
    }

    /// Has datagrams opened before they are forwarded.
    pub(crate) fn set_opens_first(&self) {
        if let Some(forwarded) = &self.forwarded {
            forwarded.set_opens_first();
        }
    }

    /// Forwards a datagram that was opened if the previous process serves its sender; returns false if it does not.
    pub(crate) fn forward_opened(&self, datagram: &[u8], from: SocketAddr) -> bool {
        let Some(forwarded) = self.forwarded.as_ref().filter(|one| one.opens_first()) else {
            return false;
        };
        let len = datagram.len();
        forwarded.forward(datagram, len, from, &mut |gone| self.release(gone))
    }

    /// Records a datagram that was opened and is not forwarded.
    pub(crate) fn note_other(&self) {
        if let Some(forwarded) = self.forwarded.as_ref().filter(|one| one.is_active()) {
            forwarded.note_other(&mut |released| self.release(released));
        }
    }

    /// Returns true if the previous process has not ended.
    pub(crate) fn is_forwarding(&self) -> bool {
        let forwarded = self.forwarded.as_deref();
        forwarded.is_some_and(ForwardedSources::is_active)
    }

    /// Forwards a datagram to the previous process, and returns true, if that has not ended and, where `session` is the
    /// number of its session, serves the session.
    pub(crate) fn forward_datagram(
        &self,
        datagram: &[u8],
        session: Option<u64>,
        from: SocketAddr,
    ) -> bool {
        let forwarded = self.forwarded.as_deref();
        forwarded.is_some_and(|forwarded| forwarded.forward_datagram(datagram, session, from))
    }

    /// Creates the link to the next process, which receives from now on. Returns the other end, and the peers that
    /// the previous process serves.
    pub(crate) fn hand_over(&self) -> io::Result<(OwnedFd, ServedPeers)> {
        let mut place = self.lock_link();
        if place.is_some() {
            let what = "the UDP socket has been handed over";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
        let (link, other) = Link::pair()?;
        *place = Some(Arc::new(link));
        self.is_handed_over.store(true, Ordering::Release);
        let forwarded = self.forwarded.as_deref();
        let served = forwarded.map_or_else(ServedPeers::default, ForwardedSources::served_peers);
        Ok((other, served))
    }

    /// Creates the state of a socket whose previous process serves these peers.
    pub(crate) fn continue_from(link: OwnedFd, served: ServedPeers) -> io::Result<Self> {
        Ok(Self {
            forwarded: Some(Box::new(ForwardedSources::new(link, served)?)),
            ..Self::default()
        })
    }

    pub(crate) fn is_handed_over(&self) -> bool {
        self.is_handed_over.load(Ordering::Acquire)
    }

    /// Informs the next process that these peers are not served any more.
    pub(crate) fn release(&self, sources: &[SocketAddr]) {
        if let Some(link) = self.link() {
            link.release(sources);
        }
    }

    /// Returns the number of peers that the previous process serves.
    pub(crate) fn forwarded_count(&self) -> usize {
        let forwarded = self.forwarded.as_deref();
        forwarded.map_or(0, ForwardedSources::count)
    }
}
