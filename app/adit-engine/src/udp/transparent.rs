//! Intercepted datagrams.
//!
//! They have no header: their original destination is the target, and a reply is sent from the address of
//! its sender, as if that host had sent it. All associations of the listener share one socket per
//! sender address, which is open as long as one of them uses it.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use adit_net::transparent::{self, TproxyUdp};
use adit_net::{BatchUdpSocket, BufferSizes, PacketBuf};
use adit_wire::{Host, ProtocolError, Target, unmap_ipv4};
use tracing::warn;

use super::{AssociationKey, HeldDescriptor, ListenerQuota};
use crate::acceptor::is_own_listener;
use crate::access::is_private;

/// Maximum number of reply sockets of a listener; each takes a descriptor.
const MAX_REPLY_SOCKETS: usize = 4096;
/// Maximum number of reply sockets of one association.
const MAX_REPLY_SOCKETS_PER_ASSOCIATION: usize = 8;
/// Maximum number of addresses that an association has sent to and remembers, the latest ones.
const MAX_CONTACTS: usize = 1024;

/// A socket bound to the address of a remote host, for replies in its name.
struct ReplySocket {
    socket: BatchUdpSocket,
    _held: Option<HeldDescriptor>,
}

/// The datagrams of one transparent listener.
pub struct InterceptedDatagrams {
    socket: Arc<TproxyUdp>,
    port: u16,
    full_cone: bool,
    /// The quota that reply sockets are counted against, since each takes a descriptor like an association.
    share: Option<Arc<ListenerQuota>>,
    voices: Mutex<HashMap<SocketAddr, Weak<ReplySocket>>>,
    complained: AtomicBool,
}

impl InterceptedDatagrams {
    /// Returns the receive and send buffer sizes of its socket.
    pub(crate) fn buffers(&self) -> BufferSizes {
        self.socket.buffers()
    }

    /// Accepts the datagrams of `socket`, which is bound to `port`. Replies are accepted from addresses that
    /// the client has sent to or, with `full_cone`, from every public address.
    #[must_use]
    pub fn new(socket: TproxyUdp, port: u16, full_cone: bool) -> Self {
        Self {
            socket: Arc::new(socket),
            port,
            full_cone,
            share: None,
            voices: Mutex::default(),
            complained: AtomicBool::new(false),
        }
    }

    /// Counts the reply sockets among the descriptors of these associations.
    pub(super) fn with_quota(mut self, share: Arc<ListenerQuota>) -> Self {
        self.share = Some(share);
        self
    }

    /// Returns the socket that datagrams are received on.
    pub(super) const fn receive_socket(&self) -> &Arc<TproxyUdp> {
        &self.socket
    }

    /// Returns the association and the target of a datagram.
    pub(super) fn classify_datagram(
        &self,
        from: SocketAddr,
        to: Option<SocketAddr>,
    ) -> Result<(AssociationKey, Target), ProtocolError> {
        let to = to.ok_or(ProtocolError::Malformed(
            "datagram: its original destination is unknown",
        ))?;
        if to.port() == 0 {
            return Err(ProtocolError::Malformed("port 0"));
        }
        if is_own_listener(to, self.port) {
            return Err(ProtocolError::Refused(
                "its destination is this listener itself",
            ));
        }
        Ok((AssociationKey::Source(from), to.into()))
    }

    /// Returns the socket for replies in the name of `source`.
    fn reply_socket(&self, source: SocketAddr) -> io::Result<Arc<ReplySocket>> {
        let mut voices = lock_ignoring_poison(&self.voices);
        if let Some(voice) = voices.get(&source).and_then(Weak::upgrade) {
            return Ok(voice);
        }
        if voices.len() >= MAX_REPLY_SOCKETS {
            voices.retain(|_, voice| voice.strong_count() > 0);
            if voices.len() >= MAX_REPLY_SOCKETS {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
        }
        let held = match &self.share {
            None => None,
            Some(share) => Some(
                share
                    .hold_descriptor()
                    .ok_or(io::ErrorKind::QuotaExceeded)?,
            ),
        };
        let socket =
            transparent::bind_foreign(source).inspect_err(|why| self.warn_once(source, why))?;
        let voice = Arc::new(ReplySocket {
            socket,
            _held: held,
        });
        voices.insert(source, Arc::downgrade(&voice));
        Ok(voice)
    }

    /// Warns once: an obstacle to one reply is usually an obstacle to many.
    fn warn_once(&self, source: SocketAddr, why: &io::Error) {
        if !self.complained.swap(true, Ordering::Relaxed) {
            let port = source.port();
            let hint = match why.kind() {
                io::ErrorKind::PermissionDenied => {
                    "CAP_NET_BIND_SERVICE is missing, which ports below 1024 require".into()
                }
                _ => format!(
                    "another program on this machine may be listening on UDP port {port} of all \
                     addresses"
                ),
            };
            warn!("cannot reply from the address {source}: {why}; {hint} (reported once)");
        }
    }
}

/// The addresses that one association has sent to.
#[derive(Debug, Default)]
pub(super) struct ContactedAddrs(Mutex<Vec<IpAddr>>);

impl ContactedAddrs {
    /// Records that the client sends to `target`.
    pub(super) fn record_contact(&self, target: &Target) {
        let Host::Ip(ip) = target.host else { return };
        let mut seen = lock_ignoring_poison(&self.0);
        // The latest is last, so that consecutive datagrams to one address cost one comparison.
        if let Some(at) = seen.iter().rposition(|known| *known == ip) {
            let last = seen.len() - 1;
            seen.swap(at, last);
            return;
        }
        if seen.len() >= MAX_CONTACTS {
            seen.remove(0);
        }
        seen.push(ip);
    }

    fn has_contacted(&self, ip: IpAddr) -> bool {
        lock_ignoring_poison(&self.0).contains(&ip)
    }
}

/// The replies of one association, each sent in the name of its sender.
pub(super) struct ReplySockets {
    listener: Arc<InterceptedDatagrams>,
    contacts: Arc<ContactedAddrs>,
    /// The reply sockets, with the current one last.
    known: Vec<(SocketAddr, Arc<ReplySocket>)>,
}

impl ReplySockets {
    pub(super) fn new(listener: &Arc<InterceptedDatagrams>) -> Self {
        Self {
            listener: listener.clone(),
            contacts: Arc::default(),
            known: Vec::new(),
        }
    }

    pub(super) const fn contacts(&self) -> &Arc<ContactedAddrs> {
        &self.contacts
    }

    /// Queues a reply from `source` for the client at `back`, until [`flush_replies`](Self::flush_replies).
    pub(super) fn queue_reply(
        &mut self,
        packet: &PacketBuf,
        source: &Target,
        back: SocketAddr,
    ) -> io::Result<()> {
        let Host::Ip(ip) = source.host else {
            return Err(io::Error::other(
                "the reply has a name as source, not an address",
            ));
        };
        let source = SocketAddr::new(unmap_ipv4(ip), source.port);
        if self.known.last().is_none_or(|(known, _)| *known != source) {
            self.flush_replies()?;
            self.select_socket(source, back)?;
        }
        match self.known.last() {
            Some((_, voice)) => voice.socket.queue(packet.payload(), back),
            None => Ok(()),
        }
    }

    /// Sends the queued replies.
    pub(super) fn flush_replies(&self) -> io::Result<()> {
        let last = self.known.last();
        last.map_or(Ok(()), |(_, voice)| voice.socket.flush())
    }

    fn select_socket(&mut self, source: SocketAddr, back: SocketAddr) -> io::Result<()> {
        let at = self.known.iter().position(|(known, _)| *known == source);
        let voice = match at {
            Some(at) => self.known.remove(at),
            None => {
                self.check_sender(source, back)?;
                if self.known.len() >= MAX_REPLY_SOCKETS_PER_ASSOCIATION {
                    self.known.remove(0);
                }
                (source, self.listener.reply_socket(source)?)
            }
        };
        self.known.push(voice);
        Ok(())
    }

    /// Checks the sender of a reply, which a distant server reports and which is not fully trusted: replies
    /// in the name of neighbors, or of this machine, are only allowed if the client has sent to them.
    fn check_sender(&self, source: SocketAddr, back: SocketAddr) -> io::Result<()> {
        let ip = source.ip();
        let wanted =
            self.contacts.has_contacted(ip) || (self.listener.full_cone && !is_private(ip));
        if wanted && source.port() != 0 && source.is_ipv4() == back.is_ipv4() {
            return Ok(());
        }
        let why = format!("a reply from {source}, which the client has not sent to");
        Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
    }
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(ip: &str) -> Target {
        SocketAddr::new(ip.parse().unwrap(), 53).into()
    }

    #[test]
    fn the_latest_contacts_are_remembered() {
        let contacts = ContactedAddrs::default();
        for n in 0..=u32::try_from(MAX_CONTACTS).unwrap() {
            let ip = IpAddr::from((0x0a00_0000 + n).to_be_bytes());
            contacts.record_contact(&SocketAddr::new(ip, 1).into());
            contacts.record_contact(&target("192.0.2.1"));
        }
        assert!(contacts.has_contacted("192.0.2.1".parse().unwrap()));
        assert!(
            contacts.has_contacted("10.0.4.0".parse().unwrap()),
            "the last one"
        );
        assert!(
            !contacts.has_contacted("10.0.0.0".parse().unwrap()),
            "the first one"
        );
        assert_eq!(lock_ignoring_poison(&contacts.0).len(), MAX_CONTACTS);
    }
}
