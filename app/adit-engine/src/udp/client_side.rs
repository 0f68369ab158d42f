//! The client's side of a table: receiving from clients and replying to them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use adit_net::transparent::Taken;
use adit_net::{PacketBuf, Udp};
use adit_wire::{Broken, Target};

use super::transparent::{Contacts, Interception, Voices};
use super::{Key, PacketCodec, ReplySeal};
use crate::account::Account;

/// The transport between a listener and its clients.
pub(super) enum ClientSide {
    /// One socket with a protocol.
    Spoken(Arc<Udp>, Box<dyn PacketCodec>),
    /// Intercepted datagrams, with replies sent from their original destinations.
    Taken(Arc<Interception>),
}

/// The socket that datagrams are received on.
#[derive(Clone)]
pub(super) enum ClientReceiver {
    Spoken(Arc<Udp>),
    Taken(Arc<Taken>),
}

/// Sends the replies of one association.
pub(super) enum ClientSender {
    Spoken(Arc<Udp>, Box<dyn ReplySeal>),
    Taken(Voices),
}

impl ClientSide {
    pub(super) fn ear(&self) -> ClientReceiver {
        match self {
            Self::Spoken(socket, _) => ClientReceiver::Spoken(socket.clone()),
            Self::Taken(interception) => ClientReceiver::Taken(interception.socket().clone()),
        }
    }

    /// Opens a packet in place. `to` is its original destination if it was intercepted.
    pub(super) fn open(
        &mut self,
        packet: &mut PacketBuf,
        from: SocketAddr,
        to: Option<SocketAddr>,
    ) -> Result<(Key, Target), Broken> {
        match self {
            Self::Spoken(_, codec) => codec.open(packet, from),
            Self::Taken(interception) => interception.open(from, to),
        }
    }

    /// Returns the sender of replies for a new association.
    pub(super) fn mouth(&mut self, key: Key) -> Option<ClientSender> {
        match self {
            Self::Spoken(socket, codec) => {
                Some(ClientSender::Spoken(socket.clone(), codec.sealer(key)?))
            }
            Self::Taken(interception) => Some(ClientSender::Taken(Voices::new(interception))),
        }
    }

    /// Returns the account of an association, where users can be removed.
    pub(super) fn account(&self, key: Key) -> Option<Arc<Account>> {
        match self {
            Self::Spoken(_, codec) => codec.account(key),
            Self::Taken(_) => None,
        }
    }

    /// Frees the state of an association that has ended.
    pub(super) fn forget(&mut self, key: Key) {
        if let Self::Spoken(_, codec) = self {
            codec.forget(key);
        }
    }
}

impl ClientReceiver {
    pub(super) async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Spoken(socket) => socket.readable().await,
            Self::Taken(socket) => socket.readable().await,
        }
    }

    /// Receives a batch without waiting. Calls `each` with each datagram, its sender and, if it was
    /// intercepted, its original destination.
    pub(super) fn try_recv(
        &self,
        packet: &mut PacketBuf,
        mut each: impl FnMut(&mut PacketBuf, SocketAddr, Option<SocketAddr>),
    ) -> io::Result<()> {
        match self {
            Self::Spoken(socket) => socket.try_recv(&mut |datagram, from| {
                if packet.load(datagram) {
                    each(packet, from, None);
                }
            }),
            Self::Taken(socket) => socket.try_recv(packet, each),
        }
    }
}

impl ClientSender {
    /// Returns the addresses that the association has sent to, where these decide which replies are accepted.
    pub(super) fn contacts(&self) -> Option<Arc<Contacts>> {
        match self {
            Self::Spoken(..) => None,
            Self::Taken(voices) => Some(voices.contacts().clone()),
        }
    }

    /// Queues a reply from `source` for the client at `back`, until [`flush`](Self::flush).
    pub(super) fn queue(
        &mut self,
        packet: &mut PacketBuf,
        source: &Target,
        back: SocketAddr,
    ) -> io::Result<()> {
        match self {
            Self::Spoken(socket, sealer) => {
                sealer.seal(packet, source).map_err(io::Error::other)?;
                socket.queue(packet.payload(), back)
            }
            Self::Taken(voices) => voices.queue(packet, source, back),
        }
    }

    /// Sends the queued replies.
    pub(super) fn flush(&self) -> io::Result<()> {
        match self {
            Self::Spoken(socket, _) => socket.flush(),
            Self::Taken(voices) => voices.flush(),
        }
    }
}
