//! The client's side of a connection: a sealing and an opening codec.

use core::ops::Range;
use std::sync::Arc;

use adit_crypto::{Direction, TAG_LEN, ct_eq};
use adit_wire::{
    Clock, EndOfInput, Entropy, Open, Opened, Overhead, ProtocolError, Reader, Seal, Target,
    UnixTime, encode_addr,
};

use super::body::{BodyOpen, BodySeal};
use super::chunk::{ChunkOpen, ChunkSeal, LENGTH_LEN, check_overhead};
use super::request::{FIXED_SEALED, RequestHead};
use super::{ClientProgress, FIXED_LEN, MAX_2022, MAX_AEAD, MAX_RAW, RESPONSE, max_chunk};
use crate::padding::{PADDING_MAX, choose_request_padding};
use crate::salt::Salt;
use crate::{Edition, Key, KeyChain, Method, timestamp};

/// Creates the codecs of one connection to `target`.
///
/// The request header is sent with the first sealed payload, which may be empty;
/// [`Seal::must_send_head`] is true until then. It contains one identity header for each identity key of
/// the `chain`; the user's key seals the data and opens the answers. `clock` provides the header's
/// timestamp and checks the response's; `entropy` is used only during this call.
///
/// # Errors
///
/// Fails if no session key can be derived.
pub fn client_codecs(
    chain: &KeyChain,
    target: &Target,
    clock: Arc<dyn Clock>,
    entropy: &mut dyn Entropy,
) -> Result<(ClientSeal, ClientOpen), ProtocolError> {
    let key = chain.user_key();
    let method = key.method();
    let mut address = Vec::with_capacity(target.addr_len());
    encode_addr(target, &mut address);
    let salt = Salt::draw_random(method, entropy);
    let mut rng = [0; 8];
    entropy.fill(&mut rng);
    let body = match method.edition() {
        Edition::None => BodySeal::Raw,
        Edition::Stream => {
            let cipher = key.start_cipher(&salt, Direction::Encrypt)?;
            BodySeal::Stream(Box::new(cipher))
        }
        _ => BodySeal::Chunks(ChunkSeal::new(key.material().derive_session_key(&salt)?)),
    };
    let head = PendingRequest {
        salt,
        identities: chain.seal_stream_headers(&salt)?,
        address,
        padding_seed: u64::from_le_bytes(rng),
        clock: clock.clone(),
    };
    let seal = ClientSeal {
        method,
        head: Some(Box::new(head)),
        body,
    };
    let waiting = AwaitedResponse {
        key: key.clone(),
        request_salt: salt,
        clock,
    };
    let open = ClientOpen {
        state: State::Waiting(Box::new(waiting)),
        progress: Arc::default(),
    };
    Ok((seal, open))
}

/// Seals the data that a client sends.
pub struct ClientSeal {
    method: Method,
    /// `None` once the first record was sealed.
    head: Option<Box<PendingRequest>>,
    body: BodySeal,
}

struct PendingRequest {
    salt: Salt,
    /// The identity headers, sealed.
    identities: Vec<u8>,
    address: Vec<u8>,
    /// Random number that determines the length of the padding.
    padding_seed: u64,
    clock: Arc<dyn Clock>,
}

impl PendingRequest {
    fn seal_overhead(&self, edition: Edition) -> Overhead {
        let address = self.address.len();
        match edition {
            Edition::Aead2022 => Overhead {
                head: self.salt.len()
                    + self.identities.len()
                    + FIXED_SEALED
                    + address
                    + 2
                    + PADDING_MAX,
                tail: TAG_LEN,
                max_payload: MAX_2022 - address - 2,
            },
            Edition::Aead => Overhead {
                head: self.salt.len() + LENGTH_LEN + address,
                tail: TAG_LEN,
                max_payload: MAX_AEAD - address,
            },
            Edition::None | Edition::Stream => Overhead {
                head: self.salt.len() + address,
                tail: 0,
                max_payload: MAX_RAW,
            },
        }
    }

    /// Returns the padding of the first record.
    fn choose_padding(&self, payload: usize) -> &'static [u8] {
        choose_request_padding(payload, self.padding_seed)
    }
}

impl ClientSeal {
    /// Seals the first record; in the 2022 edition with the padding that the caller chose.
    fn seal_first(
        &mut self,
        head: &PendingRequest,
        padding: &[u8],
        record: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, ProtocolError> {
        let address = &head.address[..];
        let no_room = ProtocolError::NoRoom("an address");
        let plain = payload.start.checked_sub(address.len()).ok_or(no_room)?;
        let BodySeal::Chunks(chunks) = &mut self.body else {
            put_at(record, plain, address)?;
            return seal_with_salt(&mut self.body, &head.salt, record, plain..payload.end);
        };
        if self.method.edition() == Edition::Aead2022 {
            let head = RequestHead {
                salt: &head.salt,
                identities: &head.identities,
                stamp: head.clock.unix_time(),
                address,
                padding,
            };
            return head.seal_request(chunks, record, payload);
        }
        put_at(record, plain, address)?;
        seal_with_salt(&mut self.body, &head.salt, record, plain..payload.end)
    }
}

/// Seals the first record of all editions except 2022, with the salt in front.
pub(super) fn seal_with_salt(
    body: &mut BodySeal,
    salt: &[u8],
    record: &mut [u8],
    payload: Range<usize>,
) -> Result<Range<usize>, ProtocolError> {
    let wire = body.seal(record, payload)?;
    let start = wire.start.checked_sub(salt.len());
    let start = start.ok_or(ProtocolError::NoRoom("a salt"))?;
    put_at(record, start, salt)?;
    Ok(start..wire.end)
}

fn put_at(record: &mut [u8], at: usize, bytes: &[u8]) -> Result<(), ProtocolError> {
    crate::header_writer::HeaderWriter::new(record, at..at.saturating_add(bytes.len()))?
        .put_bytes(bytes)
}

impl Seal for ClientSeal {
    /// The first record has the larger head.
    fn has_steady_overhead(&self) -> bool {
        true
    }

    fn overhead(&self) -> Overhead {
        match &self.head {
            Some(head) => head.seal_overhead(self.method.edition()),
            None => self.body.seal_overhead(self.method),
        }
    }

    fn seal(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, ProtocolError> {
        check_overhead(self.overhead(), record, &payload)?;
        if let Some(head) = self.head.take() {
            let padding = head.choose_padding(payload.len());
            return self.seal_first(&head, padding, record, payload);
        }
        self.body.seal(record, payload)
    }

    fn must_send_head(&self) -> bool {
        self.head.is_some()
    }
}

/// Opens the data that the server sends.
pub struct ClientOpen {
    state: State,
    progress: Arc<ClientProgress>,
}

enum State {
    Waiting(Box<AwaitedResponse>),
    Open(BodyOpen),
}

/// State until the response header was received.
struct AwaitedResponse {
    key: Key,
    request_salt: Salt,
    clock: Arc<dyn Clock>,
}

impl ClientOpen {
    /// Returns the shared progress, which stays readable when the codec is moved into a stream.
    #[must_use]
    pub fn progress(&self) -> Arc<ClientProgress> {
        self.progress.clone()
    }

    /// True if the server has proved that it has the key; see [`ClientProgress::is_authenticated`].
    #[must_use]
    pub fn is_authenticated(&self) -> bool {
        self.progress.is_authenticated()
    }

    /// Returns the clock skew in seconds; see [`ClientProgress::clock_skew`].
    #[must_use]
    pub fn clock_skew(&self) -> Option<i64> {
        self.progress.clock_skew()
    }
}

impl Open for ClientOpen {
    fn open(&mut self, wire: &mut [u8]) -> Result<Opened, ProtocolError> {
        if let State::Waiting(waiting) = &self.state {
            let total = waiting.head_len();
            if wire.len() < total {
                return Ok(Opened::NeedMore { total });
            }
            self.state = State::Open(waiting.open_head(wire, &self.progress)?);
        }
        match &mut self.state {
            State::Open(body) => body.open(wire),
            State::Waiting(_) => Err(ProtocolError::Malformed("response header")),
        }
    }

    fn is_at_boundary(&self, unread: usize) -> bool {
        match &self.state {
            State::Open(body) => body.at_boundary(unread),
            // The target may close without sending anything. Its server then has no header to send,
            // since the header goes out with the first payload. `ClientProgress` records if it arrived.
            State::Waiting(_) => unread == 0,
        }
    }
}

impl AwaitedResponse {
    /// Returns the number of wire bytes before the first sealed payload.
    fn head_len(&self) -> usize {
        let salt = self.request_salt.len();
        match self.key.method().edition() {
            Edition::Aead2022 => salt + FIXED_LEN + salt + TAG_LEN,
            Edition::Aead => salt + LENGTH_LEN,
            Edition::None => 1,
            Edition::Stream => salt.max(1),
        }
    }

    /// Opens the header and returns the codec of the body, which stores the position of the first
    /// payload.
    fn open_head(
        &self,
        wire: &mut [u8],
        progress: &ClientProgress,
    ) -> Result<BodyOpen, ProtocolError> {
        let method = self.key.method();
        if method.edition() == Edition::None {
            progress.set_authenticated();
            return Ok(BodyOpen::Raw);
        }
        let short = ProtocolError::Truncated("the response header");
        let salt = Salt::read_from(method, wire).ok_or(short)?;
        if method.is_legacy() {
            // SEC-R6, as far as there is an IV to compare.
            if !salt.is_empty() && salt == self.request_salt {
                return Err(ProtocolError::Replayed);
            }
            let cipher = Box::new(self.key.start_cipher(&salt, Direction::Decrypt)?);
            progress.set_authenticated();
            let iv = salt.len();
            return Ok(BodyOpen::Stream { cipher, iv });
        }
        let mut chunks = ChunkOpen::new(
            self.key.material().derive_session_key(&salt)?,
            max_chunk(method),
        );
        if method.edition() == Edition::Aead {
            chunks.open_length(wire, salt.len())?;
            // SEC-R6: our own stream, reflected, has our key.
            if salt == self.request_salt {
                return Err(ProtocolError::Replayed);
            }
            progress.set_authenticated();
            return Ok(BodyOpen::Chunks(chunks));
        }
        let header = salt.len()..salt.len() + FIXED_LEN + salt.len();
        chunks.open_block(wire, header.clone())?;
        let header = wire.get(header).ok_or(short)?;
        let n = self.check_header(header, progress)?;
        if n == 0 {
            // The header goes out with the first payload, so every server implementation has one
            // here.
            return Err(ProtocolError::Malformed("response: empty first payload"));
        }
        chunks.expect_payload(self.head_len(), n)?;
        Ok(BodyOpen::Chunks(chunks))
    }

    /// Checks the opened response header of the 2022 edition and returns the first payload's
    /// length.
    fn check_header(&self, header: &[u8], progress: &ClientProgress) -> Result<u16, ProtocolError> {
        let mut r = Reader::new(header);
        let mut fields = || {
            Ok((
                r.u8()?,
                UnixTime(r.u64()?),
                r.take(self.request_salt.len())?,
                r.u16()?,
            ))
        };
        let (kind, stamp, request_salt, n) =
            fields().map_err(|EndOfInput| ProtocolError::Malformed("response header"))?;
        if kind != RESPONSE {
            return Err(ProtocolError::Malformed("response type"));
        }
        progress.set_authenticated();
        let now = self.clock.unix_time();
        progress.set_skew(stamp.skew_from(now));
        timestamp::check_timestamp(stamp, now)?;
        if !ct_eq(request_salt, &self.request_salt) {
            return Err(ProtocolError::Malformed(
                "response: answers another request",
            ));
        }
        Ok(n)
    }
}

#[cfg(test)]
impl ClientSeal {
    /// Seals the first record with padding from a golden vector instead of zeros.
    pub(super) fn seal_padded(
        &mut self,
        padding: &[u8],
        record: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, ProtocolError> {
        check_overhead(self.overhead(), record, &payload)?;
        let head = self.head.take().unwrap();
        self.seal_first(&head, padding, record, payload)
    }
}
