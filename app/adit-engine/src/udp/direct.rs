//! Datagrams over this machine's own sockets.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use adit_net::dial::Family;
use adit_net::names::LookupOrigin;
use adit_net::{BatchUdpSocket, PacketBuf, system};
use adit_wire::{Host, Name, Target, Time};

use super::DatagramPath;
use super::backlog::Backlog;
use crate::access::AccessRule;
use crate::dns::NameResolver;

/// Maximum number of names that one association caches.
const MAX_CACHED_NAMES: usize = 64;
/// Time for which the result of a lookup is cached.
const NAME_TTL: Duration = Duration::from_secs(60);
/// Time for which a failed lookup is cached, so that it is not repeated for each datagram. The resolver
/// itself caches negative answers.
const FAILED_LOOKUP_TTL: Duration = Duration::from_secs(1);
/// Maximum number of remembered targets that may reply under [`SenderFilter::Contacted`].
const MAX_CONTACTS: usize = 1024;

/// The senders whose datagrams are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SenderFilter {
    /// Any sender: full-cone NAT behavior, which games and calls need.
    Anyone,
    /// Only addresses that were sent to (SEC-E3).
    Contacted,
}

/// One unconnected outgoing socket for both address families.
pub struct DirectUdp {
    inner: Arc<DirectUdpInner>,
    filter: SenderFilter,
}

struct DirectUdpInner {
    socket: BatchUdpSocket,
    access: AccessRule,
    family: Family,
    resolver: NameResolver,
    /// The owner that lookups are counted against.
    asker: LookupOrigin,
    names: Mutex<HashMap<Name, LookupState>>,
    contacts: Mutex<Vec<std::net::IpAddr>>,
}

enum LookupState {
    Running(Backlog<u16>),
    Done(Option<std::net::IpAddr>, Time),
}

impl DirectUdp {
    /// Opens the socket. Lookups are counted against the owner of the current task.
    ///
    /// # Errors
    ///
    /// Returns an error if the system cannot open the socket.
    pub fn new(access: AccessRule, family: Family, filter: SenderFilter) -> io::Result<Self> {
        Self::with_names(access, family, filter, NameResolver::system())
    }

    /// Does the same, and looks names up with `resolver`.
    pub(crate) fn with_names(
        access: AccessRule,
        family: Family,
        filter: SenderFilter,
        resolver: NameResolver,
    ) -> io::Result<Self> {
        let socket = BatchUdpSocket::bind_ephemeral()?;
        let (names, contacts) = (Mutex::default(), Mutex::default());
        Ok(Self {
            inner: Arc::new(DirectUdpInner {
                socket,
                asker: access.lookup_owner(),
                access,
                family,
                resolver,
                names,
                contacts,
            }),
            filter,
        })
    }

    fn send_to_name(&self, packet: &PacketBuf, name: &Name, port: u16) -> io::Result<()> {
        let mut names = lock_ignoring_poison(&self.inner.names);
        match names.get_mut(name) {
            Some(LookupState::Running(waiting)) => {
                let taken = waiting.push(port, packet.payload());
                return taken.then_some(()).ok_or_else(backlog_full_error);
            }
            Some(LookupState::Done(found, until)) if *until > system::monotonic_now() => {
                let ip = found.ok_or(io::ErrorKind::HostUnreachable)?;
                drop(names);
                return self
                    .inner
                    .send_checked(packet.payload(), SocketAddr::new(ip, port));
            }
            _ => {}
        }
        if names.len() >= MAX_CACHED_NAMES {
            names.retain(|_, l| !matches!(l, LookupState::Done(..)));
            if names.len() >= MAX_CACHED_NAMES {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
        }
        let mut waiting = Backlog::default();
        if !waiting.push(port, packet.payload()) {
            return Err(backlog_full_error());
        }
        names.insert(name.clone(), LookupState::Running(waiting));
        drop(names);
        let (inner, name) = (self.inner.clone(), name.clone());
        tokio::spawn(async move { inner.resolve_and_send(name).await });
        Ok(())
    }
}

impl DirectUdpInner {
    async fn resolve_and_send(&self, name: Name) {
        let found = self.resolver.resolve(name.as_str(), 0, self.family);
        let found = self.asker.scope(found).await;
        let ip = found.ok().and_then(|all| all.first().map(SocketAddr::ip));
        let ttl = if ip.is_some() {
            NAME_TTL
        } else {
            FAILED_LOOKUP_TTL
        };
        let until = system::monotonic_now() + ttl;
        let before = lock_ignoring_poison(&self.names).insert(name, LookupState::Done(ip, until));
        if let (Some(LookupState::Running(mut waiting)), Some(ip)) = (before, ip) {
            for (port, payload) in waiting.take_all() {
                // Datagrams may be lost.
                let _ = self.send_checked(&payload, SocketAddr::new(ip, port));
            }
            let _ = self.socket.flush();
        }
    }

    fn send_checked(&self, payload: &[u8], to: SocketAddr) -> io::Result<()> {
        let known = lock_ignoring_poison(&self.contacts).contains(&to.ip());
        if !known {
            // Checked once per address: the rule does not change while the socket is open.
            self.access
                .check_addr(to)
                .map_err(|why| io::Error::new(io::ErrorKind::PermissionDenied, why))?;
            let mut contacts = lock_ignoring_poison(&self.contacts);
            if contacts.len() >= MAX_CONTACTS {
                contacts.remove(0);
            }
            if contacts.is_empty() {
                // Most associations have a single contact.
                contacts.reserve_exact(1);
            }
            contacts.push(to.ip());
        }
        self.socket.queue(payload, to)
    }
}

impl DatagramPath for DirectUdp {
    fn send(&self, packet: &mut PacketBuf, to: &Target) -> io::Result<()> {
        match &to.host {
            Host::Ip(ip) => self
                .inner
                .send_checked(packet.payload(), SocketAddr::new(*ip, to.port)),
            Host::Name(name) => self.send_to_name(packet, name, to.port),
        }
    }

    fn flush(&self) -> io::Result<()> {
        self.inner.socket.flush()
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        packet: &mut PacketBuf,
        each: &mut dyn FnMut(&mut PacketBuf, &Target),
    ) -> Poll<io::Result<()>> {
        let mut last: Option<(SocketAddr, Target)> = None;
        self.inner.socket.poll_recv(cx, &mut |datagram, from| {
            // Most datagrams of a batch have the same sender.
            let (_, source) = match &mut last {
                Some(known) if known.0 == from => known,
                other => {
                    let heard = self.filter == SenderFilter::Anyone
                        || lock_ignoring_poison(&self.inner.contacts).contains(&from.ip());
                    if !heard {
                        return;
                    }
                    other.insert((from, from.into()))
                }
            };
            if packet.copy_from(datagram) {
                each(packet, source);
            }
        })
    }
}

fn backlog_full_error() -> io::Error {
    io::Error::new(
        io::ErrorKind::QuotaExceeded,
        "too many datagrams wait for a lookup",
    )
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
