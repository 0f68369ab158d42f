//! Datagrams that were on their way to somebody else.
//!
//! They have no header: where they were going is the target, and an answer leaves from the
//! address of the party that gave it, as if that party had sent it. A socket for each such
//! address is shared by all associations of the listener and lives as long as one of them uses it.

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

/// Addresses in whose name a listener speaks at the same time; each takes a descriptor.
const VOICES: usize = 4096;
/// The same for one association.
const VOICES_EACH: usize = 8;
/// Addresses an association has written to that it remembers, the latest ones.
const CONTACTS: usize = 1024;

/// A socket that speaks in somebody's name.
struct Voice {
    socket: Udp,
    _held: Option<Held>,
}

/// The datagrams of one transparent listener.
pub struct Interception {
    socket: Arc<Taken>,
    port: u16,
    full_cone: bool,
    /// Where voices are counted, which take a descriptor each as associations do.
    share: Option<Arc<Share>>,
    voices: Mutex<HashMap<SocketAddr, Weak<Voice>>>,
    complained: AtomicBool,
}

impl Interception {
    /// What the system gave its socket for datagrams that wait.
    pub(crate) fn buffers(&self) -> Buffers {
        self.socket.buffers()
    }

    /// What `socket`, which is bound to `port`, takes. Answers come from whom the client has
    /// written to, or with `full_cone` from every public address.
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

    /// Counts the sockets for answers among the descriptors of these associations.
    pub(super) fn counted_by(mut self, share: Arc<Share>) -> Self {
        self.share = Some(share);
        self
    }

    /// Where datagrams come from.
    pub(super) const fn socket(&self) -> &Arc<Taken> {
        &self.socket
    }

    /// The association and the target of a datagram.
    pub(super) fn open(
        &self,
        from: SocketAddr,
        to: Option<SocketAddr>,
    ) -> Result<(Key, Target), Broken> {
        let to = to.ok_or(Broken::Malformed(
            "datagram: it does not say where it was going",
        ))?;
        if to.port() == 0 {
            return Err(Broken::Malformed("port 0"));
        }
        if leads_back(to, self.port) {
            return Err(Broken::Refused("its destination is this listener itself"));
        }
        Ok((Key::Source(from), to.into()))
    }

    /// The socket that speaks in the name of `source`.
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

    /// Once: what is in the way of one answer is mostly in the way of many.
    fn complain(&self, source: SocketAddr, why: &io::Error) {
        if !self.complained.swap(true, Ordering::Relaxed) {
            let port = source.port();
            let hint = match why.kind() {
                io::ErrorKind::PermissionDenied => {
                    "CAP_NET_BIND_SERVICE is missing, which the names of ports below 1024 need"
                        .into()
                }
                _ => format!(
                    "a program of this machine that listens on UDP port {port} of all addresses \
                     would be in the way"
                ),
            };
            warn!("cannot answer in the name of {source}: {why}; {hint} (said once)");
        }
    }
}

/// Whom one association has written to.
#[derive(Debug, Default)]
pub(super) struct Contacts(Mutex<Vec<IpAddr>>);

impl Contacts {
    /// The client writes to `target`.
    pub(super) fn note(&self, target: &Target) {
        let Host::Ip(ip) = target.host else { return };
        let mut seen = lock(&self.0);
        // The latest stands last, so that a run of datagrams to one party costs one comparison.
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

/// The way back of one association: each answer in the name of the party that gave it.
pub(super) struct Voices {
    listener: Arc<Interception>,
    contacts: Arc<Contacts>,
    /// The one that speaks stands last.
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

    /// Takes an answer of `source` for the client at `back`, until [`flush`](Self::flush).
    pub(super) fn queue(
        &mut self,
        packet: &PacketBuf,
        source: &Target,
        back: SocketAddr,
    ) -> io::Result<()> {
        let Host::Ip(ip) = source.host else {
            return Err(io::Error::other(
                "an answer from a name, not from an address",
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

    /// Sends what was taken.
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

    /// A server far away says who has answered. It is not believed everything: in the name of a
    /// neighbour, or of this machine, nobody speaks whom the client has not written to.
    fn may_speak(&self, source: SocketAddr, back: SocketAddr) -> io::Result<()> {
        let ip = source.ip();
        let wanted = self.contacts.has(ip) || (self.listener.full_cone && !is_private(ip));
        if wanted && source.port() != 0 && source.is_ipv4() == back.is_ipv4() {
            return Ok(());
        }
        let why = format!("an answer from {source}, to whom the client has not written");
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
