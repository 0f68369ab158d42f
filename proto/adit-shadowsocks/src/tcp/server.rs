//! A server's handshake: from the first byte to the target.

use core::fmt;
use std::sync::Arc;

use adit_crypto::TAG_LEN;
use adit_wire::{
    AddrError, Broken, Clock, Entropy, Handshake, Open, Opened, Rx, Step, Target, Tx, parse_addr,
};

use super::body::Body;
use super::chunk::{ChunkOpen, LENGTH_LEN};
use super::request::{FIXED_SEALED, parse_fixed, parse_variable};
use super::{FIXED_LEN, ServerSeal, max_chunk};
use crate::salt::Salt;
use crate::{Edition, Key, SaltPool, stamp};

/// Reads a request. Sends nothing, and asks for more until there is enough to judge.
///
/// Every failure is an error before anything was sent. The caller treats all of them alike
/// (SEC-P1), including the end of the stream and a deadline while this still asks for more; then
/// neither the cause nor the number of bytes waited for can be seen from outside.
pub struct ServerHandshake {
    key: Key,
    clock: Arc<dyn Clock>,
    salts: Arc<SaltPool>,
    response_salt: Salt,
    state: State,
}

enum State {
    /// Waiting for the salt and the first sealed block.
    Head,
    /// 2022: waiting for a variable header of `n` bytes.
    Variable {
        chunks: ChunkOpen,
        request_salt: Salt,
        n: usize,
    },
    /// AEAD: the address may come in pieces.
    Address {
        chunks: ChunkOpen,
        request_salt: Salt,
        plain: Vec<u8>,
    },
    Done,
}

/// An accepted request.
pub struct Accepted {
    /// Where the client wants to go.
    pub target: Target,
    /// The first payload, which came with the request; may be empty.
    pub first: Vec<u8>,
    /// Opens what follows.
    pub open: ServerOpen,
    /// Seals the answers.
    pub seal: ServerSeal,
}

impl fmt::Debug for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accepted")
            .field("target", &self.target)
            .field("first", &self.first.len())
            .finish_non_exhaustive()
    }
}

impl ServerHandshake {
    /// A handshake for one connection; `salts` is shared by all that use the key.
    pub fn new(
        key: &Key,
        clock: Arc<dyn Clock>,
        salts: Arc<SaltPool>,
        entropy: &mut dyn Entropy,
    ) -> Self {
        Self {
            key: key.clone(),
            clock,
            salts,
            response_salt: Salt::draw(key.method(), entropy),
            state: State::Head,
        }
    }

    /// Reads as far as `rx` goes; `None` once the state has moved on.
    fn advance(&mut self, rx: &mut Rx<'_>) -> Result<Option<Step<Accepted>>, Broken> {
        match &mut self.state {
            State::Head if self.key.method().edition() == Edition::None => self.raw(rx).map(Some),
            State::Head => self.head(rx),
            State::Variable {
                chunks,
                request_salt,
                n,
            } => {
                let (salt, n) = (*request_salt, *n);
                let total = n + TAG_LEN;
                if rx.bytes().len() < total {
                    return Ok(Some(Step::NeedMore { total }));
                }
                chunks.block(rx.bytes_mut(), 0..n)?;
                let header = rx.bytes().get(..n).unwrap_or_default();
                let (target, payload) = parse_variable(header)?;
                let first = header.get(payload).unwrap_or_default().to_vec();
                rx.eat(total);
                self.accept(target, first, salt).map(Some)
            }
            State::Address {
                chunks,
                request_salt,
                plain,
            } => {
                let salt = *request_salt;
                match chunks.open(rx.bytes_mut())? {
                    Opened::NeedMore { total } => return Ok(Some(Step::NeedMore { total })),
                    Opened::Record { consumed, payload } => {
                        plain.extend_from_slice(rx.bytes().get(payload).unwrap_or_default());
                        rx.eat(consumed);
                    }
                    Opened::End => return Err(Broken::Truncated("the request")),
                }
                match parse_addr(plain) {
                    Ok((target, used)) => {
                        plain.drain(..used);
                        let first = core::mem::take(plain);
                        self.accept(target, first, salt).map(Some)
                    }
                    // At most 259 bytes and one chunk are ever held.
                    Err(AddrError::Short { .. }) => Ok(None),
                    Err(_) => Err(Broken::Malformed("address")),
                }
            }
            State::Done => Err(Broken::Malformed("handshake: it is over")),
        }
    }

    /// Authenticates the first block, then its time, then its salt: in this order, so that only
    /// holders of the key can fill the pool (SEC-R1).
    fn head(&mut self, rx: &mut Rx<'_>) -> Result<Option<Step<Accepted>>, Broken> {
        let method = self.key.method();
        let is_2022 = method.edition() == Edition::Aead2022;
        let block = if is_2022 { FIXED_SEALED } else { LENGTH_LEN };
        let total = method.key_len() + block;
        if rx.bytes().len() < total {
            return Ok(Some(Step::NeedMore { total }));
        }
        let short = Broken::Truncated("the request header");
        let request_salt = Salt::read(method, rx.bytes()).ok_or(short)?;
        let mut chunks = ChunkOpen::new(self.key.session(&request_salt)?, max_chunk(method));
        rx.eat(request_salt.len());
        let now = self.clock.unix();
        self.state = if is_2022 {
            chunks.block(rx.bytes_mut(), 0..FIXED_LEN)?;
            let (stamp, n) = parse_fixed(rx.bytes().get(..FIXED_LEN).ok_or(short)?)?;
            stamp::check(stamp, now)?;
            self.salts.insert(&request_salt, Some(stamp), now)?;
            rx.eat(FIXED_SEALED);
            State::Variable {
                chunks,
                request_salt,
                n,
            }
        } else {
            chunks.length(rx.bytes_mut(), 0)?;
            self.salts.insert(&request_salt, None, now)?;
            State::Address {
                chunks,
                request_salt,
                plain: Vec::new(),
            }
        };
        Ok(None)
    }

    /// Method `none`: an address, then data that stays in `rx`.
    fn raw(&mut self, rx: &mut Rx<'_>) -> Result<Step<Accepted>, Broken> {
        let (target, used) = match parse_addr(rx.bytes()) {
            Ok(found) => found,
            Err(AddrError::Short { total }) => return Ok(Step::NeedMore { total }),
            Err(_) => return Err(Broken::Malformed("address")),
        };
        rx.eat(used);
        self.state = State::Done;
        Ok(Step::Done(Accepted {
            target,
            first: Vec::new(),
            open: ServerOpen(Body::Raw),
            seal: ServerSeal::raw(),
        }))
    }

    fn accept(
        &mut self,
        target: Target,
        first: Vec<u8>,
        request_salt: Salt,
    ) -> Result<Step<Accepted>, Broken> {
        let (State::Variable { chunks, .. } | State::Address { chunks, .. }) =
            core::mem::replace(&mut self.state, State::Done)
        else {
            return Err(Broken::Malformed("handshake: it is over"));
        };
        let now = self.clock.unix();
        if self.key.method().edition() == Edition::Aead {
            // SEC-R6: our answer, sent back to us, would open: there is no type byte.
            self.salts.insert(&self.response_salt, None, now)?;
        }
        let clock = self.clock.clone();
        Ok(Step::Done(Accepted {
            target,
            first,
            open: ServerOpen(Body::Chunks(chunks)),
            seal: ServerSeal::new(&self.key, self.response_salt, request_salt, clock)?,
        }))
    }
}

impl Handshake for ServerHandshake {
    type Output = Accepted;
    type Error = Broken;

    fn step(&mut self, rx: &mut Rx<'_>, _tx: &mut Tx<'_>) -> Result<Step<Accepted>, Broken> {
        loop {
            match self.advance(rx) {
                Ok(Some(step)) => return Ok(step),
                Ok(None) => {}
                Err(why) => {
                    self.state = State::Done;
                    return Err(why);
                }
            }
        }
    }
}

/// Opens what a client sends behind its request.
pub struct ServerOpen(Body);

impl Open for ServerOpen {
    fn open(&mut self, wire: &mut [u8]) -> Result<Opened, Broken> {
        self.0.open(wire)
    }

    fn at_boundary(&self, unread: usize) -> bool {
        self.0.at_boundary(unread)
    }
}
