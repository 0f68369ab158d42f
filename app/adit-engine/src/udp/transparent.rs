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

use adit_net::transparent::{self, Taken};
use adit_net::{Buffers, PacketBuf, Udp};
use adit_wire::{Broken, Host, Target, unmap};
use tracing::warn;

use super::{Held, Key, Share};
use crate::acceptor::leads_back;
use crate::access::is_private;

/// Maximum number of reply sockets of a listener; each takes a descriptor.
const VOICES: usize = 4096;
/// Maximum number of reply sockets of one association.
const VOICES_EACH: usize = 8;
/// Maximum number of addresses that an association has sent to and remembers, the latest ones.
const CONTACTS: usize = 1024;

/// A socket bound to the address of a remote host, for replies in its name.
struct Voice {
    socket: Udp,
    _held: Option<Held>,
}

/// The datagrams of one transparent listener.
pub struct Interception {
    socket: Arc<Taken>,
    port: u16,
    full_cone: bool,
    /// The quota that reply sockets are counted against, since each takes a descriptor like an association.
    share: Option<Arc<Share>>,
    voices: Mutex<HashMap<SocketAddr, Weak<Voice>>>,
    complained: AtomicBool,
}

impl Interception {
    /// Returns the receive and send buffer sizes of its socket.
    pub(crate) fn buffers(&self) -> Buffers {
        self.socket.buffers()
    }

    /// Accepts the datagrams of `socket`, which is bound to `port`. Replies are accepted from addresses that
    /// the client has sent to or, with `full_cone`, from every public address.
    #[must_use]
    pub fn new(socket: Taken, port: u16, full_cone: bool) -> Self {
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
    pub(super) fn counted_by(mut self, share: Arc<Share>) -> Self {
        self.share = Some(share);
        self
    }

    /// Returns the socket that datagrams are received on.
    pub(super) const fn socket(&self) -> &Arc<Taken> {
        &self.socket
    }

    /// Returns the association and the target of a datagram.
    pub(super) fn open(
        &self,
        from: SocketAddr,
        to: Option<SocketAddr>,
    ) -> Result<(Key, Target), Broken> {
        let to = to.ok_or(Broken::Malformed(
            "datagram: its original destination is unknown",
        ))?;
        if to.port() == 0 {
            return Err(Broken::Malformed("port 0"));
        }
        if leads_back(to, self.port) {
            return Err(Broken::Refused("its destination is this listener itself"));
        }
        Ok((Key::Source(from), to.into()))
    }

    /// Returns the socket for replies in the name of `source`.
    fn voice(&self, source: SocketAddr) -> io::Result<Arc<Voice>> {
        let mut voices = lock(&self.voices);
        if let Some(voice) = voices.get(&source).and_then(Weak::upgrade) {
            return Ok(voice);
        }
        if voices.len() >= VOICES {
            voices.retain(|_, voice| voice.strong_count() > 0);
            if voices.len() >= VOICES {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
        }
        let held = match &self.share {
            None => None,
            Some(share) => Some(share.hold().ok_or(io::ErrorKind::QuotaExceeded)?),
        };
        let socket = transparent::voice(source).inspect_err(|why| self.complain(source, why))?;
        let voice = Arc::new(Voice {
            socket,
            _held: held,
        });
        voices.insert(source, Arc::downgrade(&voice));
        Ok(voice)
    }

    /// Warns once: an obstacle to one reply is usually an obstacle to many.
    fn complain(&self, source: SocketAddr, why: &io::Error) {
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
pub(super) struct Contacts(Mutex<Vec<IpAddr>>);

impl Contacts {
    /// Records that the client sends to `target`.
    pub(super) fn note(&self, target: &Target) {
        let Host::Ip(ip) = target.host else { return };
        let mut seen = lock(&self.0);
        // The latest is last, so that consecutive datagrams to one address cost one comparison.
        if let Some(at) = seen.iter().rposition(|known| *known == ip) {
            let last = seen.len() - 1;
            seen.swap(at, last);
            return;
        }
        if seen.len() >= CONTACTS {
            seen.remove(0);
        }
        seen.push(ip);
    }

    fn has(&self, ip: IpAddr) -> bool {
        lock(&self.0).contains(&ip)
    }
}

/// The replies of one association, each sent in the name of its sender.
pub(super) struct Voices {
    listener: Arc<Interception>,
    contacts: Arc<Contacts>,
    /// The reply sockets, with the current one last.
    known: Vec<(SocketAddr, Arc<Voice>)>,
}

impl Voices {
    pub(super) fn new(listener: &Arc<Interception>) -> Self {
        Self {
            listener: listener.clone(),
            contacts: Arc::default(),
            known: Vec::new(),
        }
    }

    pub(super) const fn contacts(&self) -> &Arc<Contacts> {
        &self.contacts
    }

    /// Queues a reply from `source` for the client at `back`, until [`flush`](Self::flush).
    pub(super) fn queue(
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
        let source = SocketAddr::new(unmap(ip), source.port);
        if self.known.last().is_none_or(|(known, _)| *known != source) {
            self.flush()?;
            self.turn_to(source, back)?;
        }
        match self.known.last() {
            Some((_, voice)) => voice.socket.queue(packet.payload(), back),
            None => Ok(()),
        }
    }

    /// Sends the queued replies.
    pub(super) fn flush(&self) -> io::Result<()> {
        let last = self.known.last();
        last.map_or(Ok(()), |(_, voice)| voice.socket.flush())
    }

    fn turn_to(&mut self, source: SocketAddr, back: SocketAddr) -> io::Result<()> {
        let at = self.known.iter().position(|(known, _)| *known == source);
        let voice = match at {
            Some(at) => self.known.remove(at),
            None => {
                self.may_speak(source, back)?;
                if self.known.len() >= VOICES_EACH {
                    self.known.remove(0);
                }
                (source, self.listener.voice(source)?)
            }
        };
        self.known.push(voice);
        Ok(())
    }

    /// Checks the sender of a reply, which a distant server reports and which is not fully trusted: replies
    /// in the name of neighbors, or of this machine, are only allowed if the client has sent to them.
    fn may_speak(&self, source: SocketAddr, back: SocketAddr) -> io::Result<()> {
        let ip = source.ip();
        let wanted = self.contacts.has(ip) || (self.listener.full_cone && !is_private(ip));
        if wanted && source.port() != 0 && source.is_ipv4() == back.is_ipv4() {
            return Ok(());
        }
        let why = format!("a reply from {source}, which the client has not sent to");
        Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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
        let contacts = Contacts::default();
        for n in 0..=u32::try_from(CONTACTS).unwrap() {
            let ip = IpAddr::from((0x0a00_0000 + n).to_be_bytes());
            contacts.note(&SocketAddr::new(ip, 1).into());
            contacts.note(&target("192.0.2.1"));
        }
        assert!(contacts.has("192.0.2.1".parse().unwrap()));
        assert!(contacts.has("10.0.4.0".parse().unwrap()), "the last one");
        assert!(!contacts.has("10.0.0.0".parse().unwrap()), "the first one");
        assert_eq!(lock(&contacts.0).len(), CONTACTS);
    }
}
