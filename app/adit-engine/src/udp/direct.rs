//! Datagrams over this machine's own sockets.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use adit_net::dial::{self, Family};
use adit_net::names::Asker;
use adit_net::{PacketBuf, Udp, ambient};
use adit_wire::{Host, Name, Target, Time};

use super::Datagrams;
use super::backlog::Backlog;
use crate::access::Access;

/// Maximum number of names that one association caches.
const NAMES: usize = 64;
/// Time for which the result of a lookup is cached.
const NAME_TTL: Duration = Duration::from_secs(60);
/// Time for which a failed lookup is cached, so that it is not repeated for each datagram. The resolver
/// itself caches negative answers.
const NO_NAME_TTL: Duration = Duration::from_secs(1);
/// Maximum number of remembered targets that may reply under [`Filter::Contacted`].
const CONTACTS: usize = 1024;

/// The senders whose datagrams are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// Any sender: full-cone NAT behavior, which games and calls need.
    Anyone,
    /// Only addresses that were sent to (SEC-E3).
    Contacted,
}

/// One unconnected outgoing socket for both address families.
pub struct DirectUdp {
    inner: Arc<Inner>,
    filter: Filter,
}

struct Inner {
    socket: Udp,
    access: Access,
    family: Family,
    /// The owner that lookups are counted against.
    asker: Asker,
    names: Mutex<HashMap<Name, Lookup>>,
    contacts: Mutex<Vec<std::net::IpAddr>>,
}

enum Lookup {
    Running(Backlog<u16>),
    Done(Option<std::net::IpAddr>, Time),
}

impl DirectUdp {
    /// Opens the socket. Lookups are counted against the owner of the current task.
    ///
    /// # Errors
    ///
    /// Returns an error if the system cannot open the socket.
    pub fn new(access: Access, family: Family, filter: Filter) -> io::Result<Self> {
        let socket = Udp::ephemeral()?;
        let (names, contacts) = (Mutex::default(), Mutex::default());
        Ok(Self {
            inner: Arc::new(Inner {
                socket,
                asker: access.asker(),
                access,
                family,
                names,
                contacts,
            }),
            filter,
        })
    }

    fn send_named(&self, packet: &PacketBuf, name: &Name, port: u16) -> io::Result<()> {
        let mut names = lock(&self.inner.names);
        match names.get_mut(name) {
            Some(Lookup::Running(waiting)) => {
                let taken = waiting.push(port, packet.payload());
                return taken.then_some(()).ok_or_else(no_room);
            }
            Some(Lookup::Done(found, until)) if *until > ambient::now() => {
                let ip = found.ok_or(io::ErrorKind::HostUnreachable)?;
                drop(names);
                return self.inner.send(packet.payload(), SocketAddr::new(ip, port));
            }
            _ => {}
        }
        if names.len() >= NAMES {
            names.retain(|_, l| !matches!(l, Lookup::Done(..)));
            if names.len() >= NAMES {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
        }
        let mut waiting = Backlog::default();
        if !waiting.push(port, packet.payload()) {
            return Err(no_room());
        }
        names.insert(name.clone(), Lookup::Running(waiting));
        drop(names);
        let (inner, name) = (self.inner.clone(), name.clone());
        tokio::spawn(async move { inner.look_up(name).await });
        Ok(())
    }
}

impl Inner {
    async fn look_up(&self, name: Name) {
        let found = dial::resolve(name.as_str(), 0, self.family);
        let found = self.asker.scope(found).await;
        let ip = found.ok().and_then(|all| all.first().map(SocketAddr::ip));
        let ttl = if ip.is_some() { NAME_TTL } else { NO_NAME_TTL };
        let until = ambient::now() + ttl;
        let before = lock(&self.names).insert(name, Lookup::Done(ip, until));
        if let (Some(Lookup::Running(mut waiting)), Some(ip)) = (before, ip) {
            for (port, payload) in waiting.take() {
                // Datagrams may be lost.
                let _ = self.send(&payload, SocketAddr::new(ip, port));
            }
            let _ = self.socket.flush();
        }
    }

    fn send(&self, payload: &[u8], to: SocketAddr) -> io::Result<()> {
        let known = lock(&self.contacts).contains(&to.ip());
        if !known {
            // Checked once per address: the rule does not change while the socket is open.
            self.access
                .check(to)
                .map_err(|why| io::Error::new(io::ErrorKind::PermissionDenied, why))?;
            let mut contacts = lock(&self.contacts);
            if contacts.len() >= CONTACTS {
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

impl Datagrams for DirectUdp {
    fn send(&self, packet: &mut PacketBuf, to: &Target) -> io::Result<()> {
        match &to.host {
            Host::Ip(ip) => self
                .inner
                .send(packet.payload(), SocketAddr::new(*ip, to.port)),
            Host::Name(name) => self.send_named(packet, name, to.port),
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
                    let heard = self.filter == Filter::Anyone
                        || lock(&self.inner.contacts).contains(&from.ip());
                    if !heard {
                        return;
                    }
                    other.insert((from, from.into()))
                }
            };
            if packet.load(datagram) {
                each(packet, source);
            }
        })
    }
}

fn no_room() -> io::Error {
    io::Error::new(
        io::ErrorKind::QuotaExceeded,
        "too many datagrams wait for a lookup",
    )
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
