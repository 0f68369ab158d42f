//! The client's side: codecs for each connection, and the state they share.

mod seal;

use core::fmt;
use std::sync::Arc;

use adit_wire::{Broken, Entropy, Unix};

use crate::frame::{AdlerKind, FrameOpen, FrameSeal, OneTimeSeal, Opener, Tagged};
use crate::hello::{IdForm, Identity};
use crate::kind::Family;
use crate::noise::Noise;
use crate::packet::Association;
use crate::port::Port;
use crate::user::UserKey;
use crate::{ClientParam, ProtocolKind, head};

pub use seal::ClientSeal;
use seal::Head;

/// A client's state for one server. Keep it for as long as the process runs: it stores the client
/// id and counts the connections, and servers check both.
pub struct Client {
    port: Arc<Port>,
    user: Arc<UserKey>,
    uid: Option<u32>,
    identity: Identity,
}

impl Client {
    /// Creates the state. `key` is the cipher's key (16 bytes of the same derivation for methods
    /// without a cipher). `obfs_overhead` is the number of bytes that the obfs adds to a full
    /// frame: 5 for those that imitate TLS and 0 for the others. Both must match the server's.
    #[must_use]
    pub fn new(kind: ProtocolKind, key: &[u8], param: ClientParam, obfs_overhead: u16) -> Self {
        let uid = param.uid();
        let user = match param.user {
            Some((_, password)) => UserKey::of_password(kind, key, password.expose().as_bytes()),
            None => UserKey::of_port(kind, key),
        };
        Self {
            port: Arc::new(Port::new(kind, key, obfs_overhead, param.interval)),
            user: Arc::new(user),
            uid,
            identity: Identity::new(),
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
    pub fn connect(
        &self,
        iv: &[u8],
        now: Unix,
        entropy: &mut dyn Entropy,
    ) -> Result<(ClientSeal, FrameOpen), Broken> {
        let mut noise = Noise::new(entropy);
        let family = self.port.kind.family();
        let mut hello = |form| self.identity.next(form, now, entropy);
        let (head, frames, open) = match family {
            Family::Origin => (None, FrameSeal::Raw, Opener::Raw),
            Family::Crc { auth } => {
                let head = auth.then(|| Head::Simple(hello(IdForm::Four)));
                (head, FrameSeal::Crc, Opener::Crc)
            }
            Family::Deflate => (None, FrameSeal::Deflate(None), Opener::Deflate(None)),
            Family::OneTime => {
                let frames = OneTimeSeal::new(iv, self.port.iv_key(iv));
                (None, FrameSeal::OneTime(frames), Opener::Raw)
            }
            Family::Adler(kind) => {
                let form = match kind {
                    AdlerKind::V2 => IdForm::Eight,
                    _ => IdForm::Four,
                };
                let head = Head::Sha1 {
                    kind,
                    port: self.port.clone(),
                    iv: iv.into(),
                    hello: hello(form),
                };
                (Some(head), FrameSeal::Adler(kind), Opener::Adler(kind))
            }
            Family::Mac(kind) => {
                let hello = hello(IdForm::Four);
                let head = Head::Aes {
                    kind,
                    iv_key: self.port.iv_key(iv),
                    user: self.user.clone(),
                    uid: self.uid(entropy),
                    hello,
                };
                let frames = || Tagged::new(kind, self.user.key());
                let open = Opener::Tagged(frames());
                (Some(head), FrameSeal::Tagged(frames()), open)
            }
            Family::Chain(chain) => {
                let hello = hello(IdForm::Four);
                let uid = self.uid(entropy);
                let iv_key = self.port.iv_key(iv);
                let (message, start) = head::chain::pack(
                    iv_key.expose(),
                    &self.user,
                    uid,
                    &hello,
                    self.port.overhead,
                    &mut noise,
                )?;
                let sizes = self.port.sizes(chain, now);
                let seal = start.requests(sizes.clone(), &self.user);
                let open = start.answers(sizes, &self.user).told();
                let head = Some(Head::Chain(message));
                let seal = FrameSeal::Chained(Box::new(seal));
                (head, seal, Opener::Chained(Box::new(open)))
            }
        };
        Ok((ClientSeal::new(head, frames, noise), FrameOpen(open)))
    }

    /// Creates the packet codec of one UDP association.
    #[must_use]
    pub fn association(&self, entropy: &mut dyn Entropy) -> Association {
        let uid = self.uid(entropy);
        Association::new(self.port.clone(), self.user.clone(), uid)
    }

    /// Returns the user's id as sent; a random one if there is no user.
    fn uid(&self, entropy: &mut dyn Entropy) -> [u8; 4] {
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

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("kind", &self.port.kind)
            .field("uid", &self.uid)
            .finish_non_exhaustive()
    }
}
