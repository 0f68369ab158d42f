//! The sealing codec of a client: the first message, then frames.

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use adit_crypto::Secret;
use adit_wire::{Broken, Room, Seal};

use crate::field::{around, check_room, put};
use crate::frame::{AdlerKind, FrameSeal};
use crate::head::{FIRST_DATA, aes, chain, sha1, simple};
use crate::hello::Hello;
use crate::mac::MacKind;
use crate::noise::Noise;
use crate::port::Port;
use crate::user::UserKey;

/// Seals the data that a client sends.
///
/// The first message is sent with the first payload; [`Seal::owes_head`] is true until then if the
/// protocol has one. That payload must begin with the complete target header.
pub struct ClientSeal {
    /// `None` once the first message was sealed.
    head: Option<Box<Head>>,
    frames: FrameSeal,
    noise: Noise,
}

/// A first message that waits for its data.
pub(super) enum Head {
    Simple(Hello),
    Sha1 {
        kind: AdlerKind,
        port: Arc<Port>,
        iv: Box<[u8]>,
        hello: Hello,
    },
    Aes {
        kind: MacKind,
        iv_key: Secret<Vec<u8>>,
        user: Arc<UserKey>,
        uid: [u8; 4],
        hello: Hello,
    },
    Chain([u8; chain::HEAD]),
}

impl Head {
    /// Returns the overhead of the first record; `frames` is that of the others.
    fn room(&self, frames: Room) -> Room {
        let (head, tail) = match self {
            Self::Simple(_) => (simple::room(), frames.tail),
            Self::Sha1 { .. } => sha1::ROOM,
            Self::Aes { .. } => aes::ROOM,
            Self::Chain(message) => (message.len() + frames.head, frames.tail),
        };
        Room {
            head,
            tail,
            max: FIRST_DATA,
        }
    }

    fn seal(
        &self,
        record: &mut [u8],
        payload: Range<usize>,
        frames: &mut FrameSeal,
        noise: &mut Noise,
    ) -> Result<Range<usize>, Broken> {
        let len = payload.len();
        match self {
            Self::Simple(hello) => simple::seal(hello, record, payload, noise),
            Self::Sha1 {
                kind,
                port,
                iv,
                hello,
            } => {
                let head = sha1::Sha1Head {
                    kind: *kind,
                    name: port.kind.name(),
                    key: port.key(),
                    iv,
                };
                let pad = head.pad(len, noise);
                head.pack(hello, record, payload, pad, noise)
            }
            Self::Aes {
                kind,
                iv_key,
                user,
                uid,
                hello,
            } => {
                let n = aes::noise_len(len, noise);
                let head = aes::AesHead {
                    kind: *kind,
                    iv_key: iv_key.expose(),
                };
                head.pack((user, *uid), hello, record, payload, n, noise)
            }
            Self::Chain(message) => {
                let frame = frames.seal(record, payload, noise)?;
                let range = around(record, &frame, message.len(), 0)?;
                put(record, range.start, message)?;
                Ok(range)
            }
        }
    }
}

impl ClientSeal {
    pub(super) fn new(head: Option<Head>, frames: FrameSeal, noise: Noise) -> Self {
        Self {
            head: head.map(Box::new),
            frames,
            noise,
        }
    }
}

impl Seal for ClientSeal {
    /// The first record has the larger head and tail.
    fn steady(&self) -> bool {
        true
    }

    fn room(&self) -> Room {
        let frames = self.frames.room();
        match &self.head {
            Some(head) => head.room(frames),
            None => frames,
        }
    }

    /// Seals a payload. An empty one results in an empty range, unless a head is owed.
    fn seal(&mut self, record: &mut [u8], payload: Range<usize>) -> Result<Range<usize>, Broken> {
        check_room(self.room(), record, &payload)?;
        if payload.is_empty() && !self.owes_head() {
            return Ok(payload);
        }
        match self.head.take() {
            Some(head) => head.seal(record, payload, &mut self.frames, &mut self.noise),
            None => self.frames.seal(record, payload, &mut self.noise),
        }
    }

    fn looks_ahead(&self) -> bool {
        self.head.is_none() && self.frames.looks_ahead()
    }

    fn seal_ahead(&mut self, slot: &mut [u8], payloads: &[Range<usize>]) {
        self.frames.seal_ahead(slot, payloads);
    }

    fn owes_head(&self) -> bool {
        self.head.is_some() || matches!(&self.frames, FrameSeal::OneTime(f) if f.owes_head())
    }
}

impl fmt::Debug for ClientSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSeal")
            .field("owes_head", &self.owes_head())
            .finish_non_exhaustive()
    }
}
