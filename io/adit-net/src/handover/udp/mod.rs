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

use super::sources::{encode_sources, parse_sources};
use forwarded::ForwardedSources;
use link::Link;

/// A UDP socket that the next process continues, and the peers that the previous one still serves.
#[derive(Debug)]
pub struct HandedOverUdp {
    /// The socket.
    pub socket: OwnedFd,
    /// The end of the next process of the pair over which it forwards datagrams.
    pub link: OwnedFd,
    /// The addresses of the peers whose datagrams are forwarded. The caller adds those that it serves.
    pub sources: Vec<SocketAddr>,
}

impl HandedOverUdp {
    /// Divides the value into the body and the descriptors of a [message](crate::handover::HandoverMessage).
    #[must_use]
    pub fn into_parts(self) -> (Vec<u8>, [OwnedFd; 2]) {
        (encode_sources(&self.sources), [self.socket, self.link])
    }

    /// Creates the value from the body and the descriptors of a message.
    ///
    /// # Errors
    /// `InvalidData` if the body is malformed or there are not exactly two descriptors.
    pub fn from_parts(body: &[u8], fds: Vec<OwnedFd>) -> io::Result<Self> {
        let fds = <[OwnedFd; 2]>::try_from(fds).ok();
        let (Some([socket, link]), Some(sources)) = (fds, parse_sources(body)) else {
            let what = "the message does not describe a UDP socket that is handed over";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        };
        Ok(Self {
            socket,
            link,
            sources,
        })
    }
}

/// The part of a socket in handovers: to the next process, and from the previous one.
#[derive(Debug, Default)]
pub(crate) struct UdpHandover {
    /// True if `link` is set.
    is_handed_over: AtomicBool,
    /// The link to the next process.
    link: Mutex<Option<Arc<Link>>>,
    /// The peers that the previous process serves.
    forwarded: Option<ForwardedSources>,
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
        forwarded.forward(bytes, stride, from, &mut |released| {
            // The next process of the next one forwards to this one.
            self.release(released);
        })
    }

    /// Creates the link to the next process, which receives from now on. Returns the other end, and the peers that
    /// the previous process serves.
    pub(crate) fn hand_over(&self) -> io::Result<(OwnedFd, Vec<SocketAddr>)> {
        let mut place = self.lock_link();
        if place.is_some() {
            let what = "the UDP socket has been handed over";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
        let (link, other) = Link::pair()?;
        *place = Some(Arc::new(link));
        self.is_handed_over.store(true, Ordering::Release);
        let sources = match &self.forwarded {
            Some(forwarded) => forwarded.sources(),
            None => Vec::new(),
        };
        Ok((other, sources))
    }

    /// Creates the state of a socket whose previous process serves these peers.
    pub(crate) fn continue_from(link: OwnedFd, sources: Vec<SocketAddr>) -> io::Result<Self> {
        Ok(Self {
            forwarded: Some(ForwardedSources::new(link, sources)?),
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
        let forwarded = self.forwarded.as_ref();
        forwarded.map_or(0, ForwardedSources::count)
    }
}
