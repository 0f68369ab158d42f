//! The end of the next process.

use std::collections::HashSet;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use adit_wire::{narrow_int, subslice};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};
use socket2::{Domain, SockRef, Type};

use super::ServedPeers;
use crate::handover::sources::{RunHeader, parse_sources};

/// Maximum size of a message of the previous process, in bytes: 512 addresses of 18 bytes.
const MAX_RELEASE_BYTES: usize = 512 * 18;
/// Number of runs of other peers after which the link is read: the previous process may have ended.
const CHECK_INTERVAL: u32 = 1024;

/// Forwards the datagrams of peers that the previous process serves.
#[derive(Debug)]
pub(super) struct ForwardedSources {
    /// False if there are no such peers, and will be none.
    is_active: AtomicBool,
    /// True if datagrams are opened before they are forwarded.
    opens_first: AtomicBool,
    link: OwnedFd,
    sources: Mutex<HashSet<SocketAddr>>,
    /// Sessions that the previous process serves or has served: they are never used again.
    sessions: HashSet<u64>,
    /// Number of runs of other peers.
    others: AtomicU32,
}

impl ForwardedSources {
    /// Creates the set.
    ///
    /// # Errors
    /// `InvalidInput` if `link` is not one.
    pub(super) fn new(link: OwnedFd, served: ServedPeers) -> io::Result<Self> {
        let socket = SockRef::from(&link);
        if !matches!(
            (socket.domain(), socket.r#type()),
            (Ok(Domain::UNIX), Ok(Type::SEQPACKET))
        ) {
            let what = "the descriptor is not a link between two processes";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        socket.set_nonblocking(true)?;
        Ok(Self {
            is_active: AtomicBool::new(true),
            opens_first: AtomicBool::new(false),
            link,
            sources: Mutex::new(served.sources.into_iter().collect()),
            sessions: served.sessions.into_iter().collect(),
            others: AtomicU32::new(0),
        })
    }

    fn lock_sources(&self) -> MutexGuard<'_, HashSet<SocketAddr>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the peers and the sessions.
    pub(super) fn served_peers(&self) -> ServedPeers {
        ServedPeers {
            sources: self.lock_sources().iter().copied().collect(),
            sessions: self.sessions.iter().copied().collect(),
        }
    }

    /// Returns false if the previous process has ended.
    pub(super) fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// Returns true if datagrams are opened before they are forwarded.
    pub(super) fn opens_first(&self) -> bool {
        self.opens_first.load(Ordering::Relaxed)
    }

    /// Has datagrams opened before they are forwarded.
    pub(super) fn set_opens_first(&self) {
        self.opens_first.store(true, Ordering::Relaxed);
    }

    /// Records a datagram that is not forwarded. Passes the addresses of peers that the previous process does not serve
    /// any more to `released`.
    pub(super) fn note_other(&self, released: &mut dyn FnMut(&[SocketAddr])) {
        let others = self.others.fetch_add(1, Ordering::Relaxed);
        if others % CHECK_INTERVAL == CHECK_INTERVAL - 1 {
            self.read_releases(&mut self.lock_sources(), released);
        }
    }

    /// Returns the number of peers.
    pub(super) fn count(&self) -> usize {
        let mut sources = self.lock_sources();
        self.read_releases(&mut sources, &mut |_| ());
        sources.len()
    }

    /// Forwards a run if the previous process serves its sender; returns false if it does not. Passes the addresses
    /// of peers that it does not serve any more to `released`.
    pub(super) fn forward(
        &self,
        bytes: &[u8],
        stride: usize,
        from: SocketAddr,
        released: &mut dyn FnMut(&[SocketAddr]),
    ) -> bool {
        if !self.is_active() {
            return false;
        }
        let mut sources = self.lock_sources();
        if !sources.contains(&from) {
            let others = self.others.fetch_add(1, Ordering::Relaxed);
            if others % CHECK_INTERVAL == CHECK_INTERVAL - 1 {
                self.read_releases(&mut sources, released);
            }
            return false;
        }
        self.read_releases(&mut sources, released);
        if !sources.contains(&from) {
            return false;
        }
        drop(sources);
        self.send_run(bytes, stride, from)
    }

    /// Forwards a datagram from any address, if the previous process serves its session.
    pub(super) fn forward_datagram(
        &self,
        datagram: &[u8],
        session: Option<u64>,
        from: SocketAddr,
    ) -> bool {
        self.is_active()
            && session.is_none_or(|session| self.sessions.contains(&session))
            && self.send_run(datagram, datagram.len(), from)
    }

    /// Sends a run, or drops it if there is no space. Returns false if the link is closed.
    fn send_run(&self, bytes: &[u8], stride: usize, from: SocketAddr) -> bool {
        let stride = match bytes.len() {
            0 => 0,
            // The kernel joins datagrams of at most 64 KiB.
            len => narrow_int(stride.min(len)),
        };
        let header = RunHeader { from, stride }.to_bytes();
        let parts = [IoSlice::new(&header), IoSlice::new(bytes)];
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        // If there is no space, it is lost, as in any full queue. If the link is closed, the previous process has
        // no sessions: the next call reads that.
        let sent = sendmsg(
            &self.link,
            &parts,
            &mut SendAncillaryBuffer::default(),
            flags,
        );
        !matches!(sent, Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN))
    }

    /// Removes the peers that the previous process does not serve any more; all if it has closed the link.
    fn read_releases(
        &self,
        sources: &mut HashSet<SocketAddr>,
        released: &mut dyn FnMut(&[SocketAddr]),
    ) {
        if !self.is_active() {
            return;
        }
        let mut message = [0; MAX_RELEASE_BYTES];
        loop {
            match recv(&self.link, &mut message[..], RecvFlags::DONTWAIT) {
                Ok((len, _)) if len > 0 => {
                    // Both ends are adit.
                    let gone = parse_sources(subslice(&message, ..len)).unwrap_or_default();
                    for source in &gone {
                        sources.remove(source);
                    }
                    released(&gone);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                _ => break,
            }
        }
        self.is_active.store(false, Ordering::Relaxed);
        let gone: Vec<SocketAddr> = sources.drain().collect();
        released(&gone);
    }
}
