//! The client's side: codecs for each connection, and the state they share.

mod seal;

use core::fmt;
use std::sync::Arc;

use adit_wire::{Entropy, ProtocolError, UnixTime};

use crate::frame::{AdlerKind, FrameOpen, FrameOpener, FrameSeal, OneTimeSeal, TaggedCodec};
use crate::hello::{ClientIdentity, IdForm};
use crate::noise::NoiseRng;
use crate::packet::PacketAssociation;
use crate::port::PortParams;
use crate::protocol_kind::ProtocolFamily;
use crate::user_key::UserKey;
use crate::{ClientParam, ProtocolKind, head};

pub use seal::ClientSeal;
use seal::PendingHead;

/// A client's state for one server. Keep it for as long as the process runs: it stores the client
/// id and counts the connections, and servers check both.
pub struct ProtocolClient {
    port: Arc<PortParams>,
    user: Arc<UserKey>,
    uid: Option<u32>,
    identity: ClientIdentity,
}

impl ProtocolClient {
    /// Creates the state. `key` is the cipher's key (16 bytes of the same derivation for methods
    /// without a cipher). `obfs_overhead` is the number of bytes that the obfs adds to a full
    /// frame: 5 for those that imitate TLS and 0 for the others. Both must match the server's.
    #[must_use]
    pub fn new(kind: ProtocolKind, key: &[u8], param: ClientParam, obfs_overhead: u16) -> Self {
        let uid = param.uid();
        let user = match param.user {
            Some((_, password)) => UserKey::from_password(kind, key, password.expose().as_bytes()),
            None => UserKey::from_port_key(kind, key),
        };
        Self {
            port: Arc::new(PortParams::new(kind, key, obfs_overhead, param.interval)),
            user: Arc::new(user),
            uid,
            identity: ClientIdentity::new(),
        }
    }

    /// Returns the protocol.
    #[must_use]
    pub fn kind(&self) -> ProtocolKind {
        self.port.kind
    }

    /// Creates the codecs of one connection. `iv` is the cipher's IV of the request, empty if it
    /// has none. The first sealed payload must begin with the target header.
    ///
    /// # Errors
    ///
    /// Fails if no cipher can be derived from the key.
    pub fn connect_codecs(
        &self,
        iv: &[u8],
        now: UnixTime,
        entropy: &mut dyn Entropy,
    ) -> Result<(ClientSeal, FrameOpen), ProtocolError> {
        let mut noise = NoiseRng::new(entropy);
        let family = self.port.kind.family();
        let mut hello = |form| self.identity.next_hello(form, now, entropy);
        let (head, frames, open) = match family {
            ProtocolFamily::Origin => (None, FrameSeal::Raw, FrameOpener::Raw),
            ProtocolFamily::Crc { auth } => {
                let head = auth.then(|| PendingHead::Simple(hello(IdForm::Four)));
                (head, FrameSeal::Crc, FrameOpener::Crc)
            }
            ProtocolFamily::Deflate => (None, FrameSeal::Deflate(None), FrameOpener::Deflate(None)),
            ProtocolFamily::OneTime => {
                let frames = OneTimeSeal::new(iv, self.port.iv_key(iv));
                (None, FrameSeal::OneTime(frames), FrameOpener::Raw)
            }
            ProtocolFamily::Adler(kind) => {
                let form = match kind {
                    AdlerKind::V2 => IdForm::Eight,
                    _ => IdForm::Four,
                };
                let head = PendingHead::Sha1 {
                    kind,
                    port: self.port.clone(),
                    iv: iv.into(),
                    hello: hello(form),
                };
                (Some(head), FrameSeal::Adler(kind), FrameOpener::Adler(kind))
            }
            ProtocolFamily::Mac(kind) => {
                let hello = hello(IdForm::Four);
                let head = PendingHead::Aes {
                    kind,
                    iv_key: self.port.iv_key(iv),
                    user: self.user.clone(),
                    uid: self.uid_to_send(entropy),
                    hello,
                };
                let frames = || TaggedCodec::new(kind, self.user.key());
                let open = FrameOpener::Tagged(frames());
                (Some(head), FrameSeal::Tagged(frames()), open)
            }
            ProtocolFamily::Chain(chain) => {
                let hello = hello(IdForm::Four);
                let uid = self.uid_to_send(entropy);
                let iv_key = self.port.iv_key(iv);
                let (message, start) = head::chain::pack_message(
                    iv_key.expose(),
                    &self.user,
                    uid,
                    &hello,
                    self.port.overhead,
                    &mut noise,
                )?;
                let sizes = self.port.padding_sizes(chain, now);
                let seal = start.request_codec(sizes.clone(), &self.user);
                let open = start.answer_codec(sizes, &self.user).expecting_mss();
                let head = Some(PendingHead::Chain(message));
                let seal = FrameSeal::Chained(Box::new(seal));
                (head, seal, FrameOpener::Chained(Box::new(open)))
            }
        };
        Ok((ClientSeal::new(head, frames, noise), FrameOpen(open)))
    }

    /// Creates the packet codec of one UDP association.
    #[must_use]
    pub fn new_association(&self, entropy: &mut dyn Entropy) -> PacketAssociation {
        let uid = self.uid_to_send(entropy);
        PacketAssociation::new(self.port.clone(), self.user.clone(), uid)
    }

    /// Returns the user's id as sent; a random one if there is no user.
    fn uid_to_send(&self, entropy: &mut dyn Entropy) -> [u8; 4] {
        self.uid.map_or_else(
            || {
                let mut uid = [0; 4];
                entropy.fill(&mut uid);
                uid
            },
            u32::to_le_bytes,
        )
    }
}

impl fmt::Debug for ProtocolClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("kind", &self.port.kind)
            .field("uid", &self.uid)
            .finish_non_exhaustive()
    }
}
