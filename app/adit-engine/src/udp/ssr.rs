//! ShadowsocksR datagrams, client and server.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use adit_net::PacketBuf;
use adit_net::system::ThreadRng;
use adit_shadowsocksr::{PacketClient, PacketServer, ServerStack};
use adit_wire::{ProtocolError, Target};

use super::{AssociationKey, BoxDatagramPath, DatagramPath, PacketCodec, ReplySeal};
use crate::acceptor::SsrAccounts;
use crate::user_account::UserAccount;

/// An association with one server over any datagram path.
pub struct SsrUdp {
    association: Mutex<PacketClient>,
    server: Target,
    below: BoxDatagramPath,
}

impl SsrUdp {
    /// Creates an association.
    #[must_use]
    pub const fn new(association: PacketClient, server: Target, below: BoxDatagramPath) -> Self {
        Self {
            association: Mutex::new(association),
            server,
            below,
        }
    }

    fn lock_association(&self) -> std::sync::MutexGuard<'_, PacketClient> {
        let association = self.association.lock();
        association.unwrap_or_else(PoisonError::into_inner)
    }
}

impl DatagramPath for SsrUdp {
    fn send(&self, packet: &mut PacketBuf, to: &Target) -> io::Result<()> {
        let (bytes, payload) = packet.buffer_and_range();
        let sealed = self
            .lock_association()
            .seal_packet(bytes, payload, to, &mut ThreadRng);
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
            let opened = self.lock_association().open_packet(packet.payload_mut());
            // Packets that do not open are ignored (SEC-P5).
            if let Ok((source, part)) = opened {
                packet.narrow_to(part);
                each(packet, &source);
            }
        })
    }
}

/// The server's side.
pub struct SsrPackets {
    stack: Arc<ServerStack>,
    accounts: Arc<SsrAccounts>,
    /// The user of each association.
    owners: HashMap<AssociationKey, Option<u32>>,
}

impl SsrPackets {
    /// Creates a server for these users.
    #[must_use]
    pub fn new(stack: Arc<ServerStack>, accounts: Arc<SsrAccounts>) -> Self {
        Self {
            stack,
            accounts,
            owners: HashMap::new(),
        }
    }

    fn owner_of(&self, key: AssociationKey) -> Option<u32> {
        self.owners.get(&key).copied().flatten()
    }
}

impl PacketCodec for SsrPackets {
    fn open(
        &mut self,
        packet: &mut PacketBuf,
        from: SocketAddr,
    ) -> Result<(AssociationKey, Target), ProtocolError> {
        let (uid, target, payload) = self.stack.open_packet(packet.payload_mut())?;
        packet.narrow_to(payload);
        let key = AssociationKey::Source(from);
        // An association belongs to one user for its lifetime, who is counted and receives the replies.
        if uid.is_some() && *self.owners.entry(key).or_insert(uid) != uid {
            return Err(ProtocolError::Unauthentic);
        }
        Ok((key, target))
    }

    fn reply_seal(&mut self, key: AssociationKey) -> Option<Box<dyn ReplySeal>> {
        let answers = self.stack.answer_codec(self.owner_of(key));
        Some(Box::new(SsrReplySeal { answers }))
    }

    fn account_of(&self, key: AssociationKey) -> Option<Arc<UserAccount>> {
        Some(self.accounts.account_of(self.owner_of(key)))
    }

    fn forget_association(&mut self, key: AssociationKey) {
        self.owners.remove(&key);
    }
}

struct SsrReplySeal {
    answers: PacketServer,
}

impl ReplySeal for SsrReplySeal {
    fn seal(&mut self, packet: &mut PacketBuf, source: &Target) -> Result<(), ProtocolError> {
        let (bytes, payload) = packet.buffer_and_range();
        let sealed = self
            .answers
            .seal_packet(bytes, payload, source, &mut ThreadRng)?;
        packet.set_payload(sealed);
        Ok(())
    }
}
