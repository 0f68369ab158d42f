//! The client's side of a table: receiving from clients and replying to them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use adit_net::transparent::TproxyUdp;
use adit_net::{BatchUdpSocket, PacketBuf};
use adit_wire::{ProtocolError, Target};

use super::transparent::{ContactedAddrs, InterceptedDatagrams, ReplySockets};
use super::{AssociationKey, PacketCodec, ReplySeal};
use crate::replay_claims::ClaimAnswer;
use crate::user_account::UserAccount;

/// The transport between a listener and its clients.
pub(super) enum ClientSide {
    /// One socket with a protocol.
    Protocol(Arc<BatchUdpSocket>, Box<dyn PacketCodec>),
    /// Intercepted datagrams, with replies sent from their original destinations.
    Intercepted(Arc<InterceptedDatagrams>),
}

/// The socket that datagrams are received on.
#[derive(Clone)]
pub(super) enum ClientReceiver {
    Spoken(Arc<BatchUdpSocket>),
    Taken(Arc<TproxyUdp>),
}

/// Sends the replies of one association.
pub(super) enum ClientSender {
    Spoken(Arc<BatchUdpSocket>, Box<dyn ReplySeal>),
    Taken(ReplySockets),
}

impl ClientSide {
    /// Creates the side of clients that speak a protocol.
    pub(super) fn new(socket: Arc<BatchUdpSocket>, codec: Box<dyn PacketCodec>) -> Self {
        #[cfg(target_os = "linux")]
        if codec.refuses_replays() {
            socket.open_before_forwarding();
        }
        Self::Protocol(socket, codec)
    }

    pub(super) fn receiver(&self) -> ClientReceiver {
        match self {
            Self::Protocol(socket, _) => ClientReceiver::Spoken(socket.clone()),
            Self::Intercepted(interception) => {
                ClientReceiver::Taken(interception.receive_socket().clone())
            }
        }
    }

    /// Opens packets with `codec` from now on; intercepted datagrams have none.
    pub(super) fn replace_codec(&mut self, fresh: Box<dyn PacketCodec>) {
        if let Self::Protocol(_, codec) = self {
            *codec = fresh;
        }
    }

    /// Opens a packet in place. `to` is its original destination if it was intercepted.
    pub(super) fn open_packet(
        &mut self,
        packet: &mut PacketBuf,
        from: SocketAddr,
        to: Option<SocketAddr>,
    ) -> Result<(AssociationKey, Target), ProtocolError> {
        match self {
            Self::Protocol(_, codec) => codec.open(packet, from),
            Self::Intercepted(interception) => interception.classify_datagram(from, to),
        }
    }

    /// Returns the sender of replies for a new association.
    pub(super) fn sender_for(&mut self, key: AssociationKey) -> Option<ClientSender> {
        match self {
            Self::Protocol(socket, codec) => {
                Some(ClientSender::Spoken(socket.clone(), codec.reply_seal(key)?))
            }
            Self::Intercepted(interception) => {
                Some(ClientSender::Taken(ReplySockets::new(interception)))
            }
        }
    }

    /// Returns the account of an association, where users can be removed.
    pub(super) fn account_of(&self, key: AssociationKey) -> Option<Arc<UserAccount>> {
        match self {
            Self::Protocol(_, codec) => codec.account_of(key),
            Self::Intercepted(_) => None,
        }
    }

    /// See [`PacketCodec::claim_association`].
    pub(super) fn claim_association(&mut self, key: AssociationKey) -> Option<ClaimAnswer> {
        match self {
            Self::Protocol(_, codec) => codec.claim_association(key),
            Self::Intercepted(_) => None,
        }
    }

    /// Returns the socket, if it can be handed over to the next process.
    #[cfg(target_os = "linux")]
    pub(super) fn shared_socket(&self) -> Option<&BatchUdpSocket> {
        match self {
            Self::Protocol(socket, _) => Some(socket),
            Self::Intercepted(_) => None,
        }
    }

    /// Returns a copy of a received datagram if it may have to be [forwarded](Self::forward_copy).
    pub(super) fn copy_to_forward(&self, packet: &PacketBuf) -> Option<Vec<u8>> {
        #[cfg(target_os = "linux")]
        if self.shared_socket()?.is_forwarding() {
            return Some(packet.payload().to_vec());
        }
        let _ = packet;
        None
    }

    /// Forwards the copy of a datagram to the process that this one succeeds, if that serves its session: its client
    /// has moved.
    pub(super) fn forward_copy(&self, copy: Option<&[u8]>, from: SocketAddr, why: ProtocolError) {
        #[cfg(target_os = "linux")]
        if let (Some(copy), ProtocolError::Elsewhere) = (copy, why)
            && let Some(socket) = self.shared_socket()
        {
            socket.forward_datagram(copy, from);
        }
        let _ = (copy, from, why);
    }

    /// Forwards the copy of a datagram that was opened to the process that this one succeeds, if that has its
    /// association. Returns false otherwise.
    pub(super) fn forward_opened(
        &self,
        copy: Option<&[u8]>,
        from: SocketAddr,
        key: AssociationKey,
    ) -> bool {
        #[cfg(target_os = "linux")]
        if let (Some(copy), Self::Protocol(socket, _)) = (copy, self) {
            match key {
                AssociationKey::Source(_) => return socket.forward_opened(copy, from),
                // A session of that process would not have been opened here.
                AssociationKey::Session(_) => socket.note_other_datagram(),
            }
        }
        let _ = (copy, from, key);
        false
    }

    /// Frees the state of an association that has ended.
    pub(super) fn forget_association(&mut self, key: AssociationKey) {
        if let Self::Protocol(_, codec) = self {
            codec.forget_association(key);
        }
    }
}

impl ClientReceiver {
    pub(super) async fn wait_readable(&self) -> io::Result<()> {
        match self {
            Self::Spoken(socket) => socket.readable().await,
            Self::Taken(socket) => socket.readable().await,
        }
    }

    /// Receives a batch without waiting. Calls `each` with each datagram, its sender and, if it was
    /// intercepted, its original destination.
    pub(super) fn try_recv_batch(
        &self,
        packet: &mut PacketBuf,
        mut each: impl FnMut(&mut PacketBuf, SocketAddr, Option<SocketAddr>),
    ) -> io::Result<()> {
        match self {
            Self::Spoken(socket) => socket.try_recv(&mut |datagram, from| {
                if packet.copy_from(datagram) {
                    each(packet, from, None);
                }
            }),
            Self::Taken(socket) => socket.try_recv(packet, each),
        }
    }
}

impl ClientSender {
    /// Returns the addresses that the association has sent to, where these decide which replies are accepted.
    pub(super) fn contacts(&self) -> Option<Arc<ContactedAddrs>> {
        match self {
            Self::Spoken(..) => None,
            Self::Taken(voices) => Some(voices.contacts().clone()),
        }
    }

    /// Queues a reply from `source` for the client at `back`, until [`flush_replies`](Self::flush_replies).
    pub(super) fn queue_reply(
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
            Self::Taken(voices) => voices.queue_reply(packet, source, back),
        }
    }

    /// Sends the queued replies.
    pub(super) fn flush_replies(&self) -> io::Result<()> {
        match self {
            Self::Spoken(socket, _) => socket.flush(),
            Self::Taken(voices) => voices.flush_replies(),
        }
    }
}
