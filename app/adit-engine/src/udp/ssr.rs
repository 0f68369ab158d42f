//! ShadowsocksR datagrams, client and server.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use adit_net::PacketBuf;
use adit_net::ambient::Chance;
use adit_shadowsocksr::{PacketClient, PacketServer, ServerStack};
use adit_wire::{Broken, Target};

use super::{BoxDatagrams, Datagrams, Key, PacketCodec, ReplySeal};
use crate::acceptor::Accounts;
use crate::account::Account;

/// An association with one server over any datagram path.
pub struct SsrUdp {
    association: Mutex<PacketClient>,
    server: Target,
    below: BoxDatagrams,
}

impl SsrUdp {
    /// Creates an association.
    #[must_use]
    pub const fn new(association: PacketClient, server: Target, below: BoxDatagrams) -> Self {
        Self {
            association: Mutex::new(association),
            server,
            below,
        }
    }

    fn association(&self) -> std::sync::MutexGuard<'_, PacketClient> {
        let association = self.association.lock();
        association.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Datagrams for SsrUdp {
    fn send(&self, packet: &mut PacketBuf, to: &Target) -> io::Result<()> {
        let (bytes, payload) = packet.parts();
        let sealed = self.association().seal(bytes, payload, to, &mut Chance);
        packet.set_payload(sealed.map_err(io::Error::other)?);
        self.below.send(packet, &self.server)
    }

    fn flush(&self) -> io::Result<()> {
        self.below.flush()
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        packet: &mut PacketBuf,
        each: &mut dyn FnMut(&mut PacketBuf, &Target),
    ) -> Poll<io::Result<()>> {
        self.below.poll_recv(cx, packet, &mut |packet, _| {
            let opened = self.association().open(packet.payload_mut());
            // Packets that do not open are ignored (SEC-P5).
            if let Ok((source, part)) = opened {
                packet.narrow(part);
                each(packet, &source);
            }
        })
    }
}

/// The server's side.
pub struct SsrPackets {
    stack: Arc<ServerStack>,
    accounts: Arc<Accounts>,
    /// The user of each association.
    owners: HashMap<Key, Option<u32>>,
}

impl SsrPackets {
    /// Creates a server for these users.
    #[must_use]
    pub fn new(stack: Arc<ServerStack>, accounts: Arc<Accounts>) -> Self {
        Self {
            stack,
            accounts,
            owners: HashMap::new(),
        }
    }

    fn owner(&self, key: Key) -> Option<u32> {
        self.owners.get(&key).copied().flatten()
    }
}

impl PacketCodec for SsrPackets {
    fn open(&mut self, packet: &mut PacketBuf, from: SocketAddr) -> Result<(Key, Target), Broken> {
        let (uid, target, payload) = self.stack.open_packet(packet.payload_mut())?;
        packet.narrow(payload);
        let key = Key::Source(from);
        // An association belongs to one user for its lifetime, who is counted and receives the replies.
        if uid.is_some() && *self.owners.entry(key).or_insert(uid) != uid {
            return Err(Broken::Unauthentic);
        }
        Ok((key, target))
    }

    fn sealer(&mut self, key: Key) -> Option<Box<dyn ReplySeal>> {
        let answers = self.stack.answers(self.owner(key));
        Some(Box::new(Back { answers }))
    }

    fn account(&self, key: Key) -> Option<Arc<Account>> {
        Some(self.accounts.of(self.owner(key)))
    }

    fn forget(&mut self, key: Key) {
        self.owners.remove(&key);
    }
}

struct Back {
    answers: PacketServer,
}

impl ReplySeal for Back {
    fn seal(&mut self, packet: &mut PacketBuf, source: &Target) -> Result<(), Broken> {
        let (bytes, payload) = packet.parts();
        let sealed = self.answers.seal(bytes, payload, source, &mut Chance)?;
        packet.set_payload(sealed);
        Ok(())
    }
}
