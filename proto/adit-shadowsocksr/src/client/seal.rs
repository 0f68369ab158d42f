//! The sealing codec of a client: the first message, then frames.

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use adit_crypto::Secret;
use adit_wire::{Overhead, ProtocolError, Seal};

use crate::field::{check_overhead, put_field, range_around};
use crate::frame::{AdlerKind, FrameSeal};
use crate::head::{FIRST_DATA, aes, chain, sha1, simple};
use crate::hello::Hello;
use crate::mac::MacKind;
use crate::noise::NoiseRng;
use crate::port::PortParams;
use crate::user_key::UserKey;

/// Seals the data that a client sends.
///
/// The first message is sent with the first payload; [`Seal::must_send_head`] is true until then if the
/// protocol has one. That payload must begin with the complete target header.
pub struct ClientSeal {
    /// `None` once the first message was sealed.
    head: Option<Box<PendingHead>>,
    frames: FrameSeal,
    noise: NoiseRng,
}

/// A first message that waits for its data.
pub(super) enum PendingHead {
    Simple(Hello),
    Sha1 {
        kind: AdlerKind,
        port: Arc<PortParams>,
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

impl PendingHead {
    /// Returns the overhead of the first record; `frames` is that of the others.
    fn seal_overhead(&self, frames: Overhead) -> Overhead {
        let (head, tail) = match self {
            Self::Simple(_) => (simple::head_len(), frames.tail),
            Self::Sha1 { .. } => sha1::ROOM,
            Self::Aes { .. } => aes::ROOM,
            Self::Chain(message) => (message.len() + frames.head, frames.tail),
        };
        Overhead {
            head,
            tail,
            max_payload: FIRST_DATA,
        }
    }

    fn seal_head(
        &self,
        record: &mut [u8],
        payload: Range<usize>,
        frames: &mut FrameSeal,
        noise: &mut NoiseRng,
    ) -> Result<Range<usize>, ProtocolError> {
        let len = payload.len();
        match self {
            Self::Simple(hello) => simple::seal_message(hello, record, payload, noise),
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
                let pad = head.draw_pad(len, noise);
                head.pack_message(hello, record, payload, pad, noise)
            }
            Self::Aes {
                kind,
                iv_key,
                user,
                uid,
                hello,
            } => {
                let n = aes::draw_noise_len(len, noise);
                let head = aes::AesHead {
                    kind: *kind,
                    iv_key: iv_key.expose(),
                };
                head.pack_message((user, *uid), hello, record, payload, n, noise)
            }
            Self::Chain(message) => {
                let frame = frames.seal_frame(record, payload, noise)?;
                let range = range_around(record, &frame, message.len(), 0)?;
                put_field(record, range.start, message)?;
                Ok(range)
            }
        }
    }
}

impl ClientSeal {
    pub(super) fn new(head: Option<PendingHead>, frames: FrameSeal, noise: NoiseRng) -> Self {
        Self {
            head: head.map(Box::new),
            frames,
            noise,
        }
    }
}

impl Seal for ClientSeal {
    /// The first record has the larger head and tail.
    fn has_steady_overhead(&self) -> bool {
        true
    }

    fn overhead(&self) -> Overhead {
        let frames = self.frames.seal_overhead();
        match &self.head {
            Some(head) => head.seal_overhead(frames),
            None => frames,
        }
    }

    /// Seals a payload. An empty one results in an empty range, unless a head is owed.
    fn seal(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, ProtocolError> {
        check_overhead(self.overhead(), record, &payload)?;
        if payload.is_empty() && !self.must_send_head() {
            return Ok(payload);
        }
        match self.head.take() {
            Some(head) => head.seal_head(record, payload, &mut self.frames, &mut self.noise),
            None => self.frames.seal_frame(record, payload, &mut self.noise),
        }
    }

    fn wants_seal_ahead(&self) -> bool {
        self.head.is_none() && self.frames.looks_ahead()
    }

    fn seal_ahead(&mut self, slot: &mut [u8], payloads: &[Range<usize>]) {
        self.frames.seal_ahead(slot, payloads);
    }

    fn must_send_head(&self) -> bool {
        self.head.is_some() || matches!(&self.frames, FrameSeal::OneTime(f) if f.owes_head())
    }
}

impl fmt::Debug for ClientSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSeal")
            .field("owes_head", &self.must_send_head())
            .finish_non_exhaustive()
    }
}
