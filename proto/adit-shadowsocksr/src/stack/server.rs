//! The server's side of connections.

use core::fmt;
use std::sync::Arc;

use adit_crypto::{CryptoError, Direction, StreamCipher, StreamKey, StreamKind};
use adit_wire::{
    Clock, Entropy, Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, ProtocolError,
    Target, subslice,
};

use super::{StackOpen, StackSeal, cipher_fault, header};
use crate::noise::NoiseRng;
use crate::{
    AcceptedConnection, OpenedFrame, Protocol, ProtocolKind, ProtocolServer, ReplayStore,
    ServerHandshake, ServerParam, ServerSeal,
};

/// One port of a server: cipher, protocol, users and replay store.
pub struct ServerStack {
    pub(super) cipher: StreamKey,
    pub(super) server: Arc<ProtocolServer>,
}

impl ServerStack {
    /// Creates a port. `obfs_overhead` is the number of bytes that the obfs adds to a full frame: 5
    /// for those that imitate TLS and 0 for the others. To change users, create a new stack with
    /// the same `replays`.
    ///
    /// # Errors
    ///
    /// Fails if the cipher does not accept the key.
    pub fn new(
        method: StreamKind,
        password: &[u8],
        protocol: Protocol,
        param: &ServerParam,
        obfs_overhead: u16,
        replays: Arc<ReplayStore>,
    ) -> Result<Self, CryptoError> {
        let key = method.key_from_password(password);
        let server = ProtocolServer::new(protocol, key.expose(), param, obfs_overhead, replays);
        Ok(Self {
            cipher: StreamKey::new(method, key.expose())?,
            server: Arc::new(server),
        })
    }

    /// Returns the protocol.
    #[must_use]
    pub fn kind(&self) -> ProtocolKind {
        self.server.kind()
    }

    /// Removes the users in `remove`, then adds those in `put` (id and password), or replaces their passwords. Connections
    /// that are open are not affected. A port without users stays without.
    pub fn change_users<'a>(&self, remove: &[u32], put: impl IntoIterator<Item = (u32, &'a str)>) {
        self.server.change_users(remove, put);
    }

    /// Replaces all users, as [`Self::change_users`] does with some.
    pub fn replace_users<'a>(&self, put: impl IntoIterator<Item = (u32, &'a str)>) {
        self.server.replace_users(put);
    }

    /// Creates the handshake of one connection. `mss` is its segment size in bytes, which is
    /// reported to `auth_chain` clients.
    pub fn new_handshake(
        self: &Arc<Self>,
        mss: u16,
        clock: Arc<dyn Clock>,
        entropy: &mut dyn Entropy,
    ) -> StackHandshake {
        let mut iv = vec![0; self.cipher.kind().iv_len()];
        entropy.fill(&mut iv);
        StackHandshake {
            stack: self.clone(),
            clock,
            iv,
            decrypted: 0,
            state: State::Iv {
                mss,
                noise: NoiseRng::new(entropy),
            },
            plain: Vec::new(),
        }
    }
}

impl fmt::Debug for ServerStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerStack")
            .field("cipher", &self.cipher)
            .field("server", &self.server)
            .finish()
    }
}

/// The handshake of a server, from the first byte above the obfs to the target.
///
/// It sends nothing. The caller must treat all failures alike, including the end of the stream and
/// a timeout. Bytes that are not consumed when it is done belong to the opening codec.
pub struct StackHandshake {
    stack: Arc<ServerStack>,
    clock: Arc<dyn Clock>,
    /// The IV of the answers.
    iv: Vec<u8>,
    /// Number of decrypted bytes at the front of the unconsumed bytes.
    decrypted: usize,
    state: State,
    /// Opened data: the target header and the rest of the same frames.
    plain: Vec<u8>,
}

enum State {
    Iv {
        mss: u16,
        noise: NoiseRng,
    },
    Message {
        cipher: StreamCipher,
        handshake: ServerHandshake,
    },
    Header {
        open: StackOpen,
        seal: ServerSeal,
        uid: Option<u32>,
        one_time: bool,
    },
    Over,
}

/// An accepted request.
#[derive(Debug)]
#[non_exhaustive]
pub struct StackAccepted {
    /// The target that the client requested.
    pub target: Target,
    /// True if the stream contains datagrams ([`parse_datagram`](crate::parse_datagram)); the
    /// target is then ignored.
    pub datagrams: bool,
    /// The user, if the port has users.
    pub uid: Option<u32>,
    /// Data from the same frames as the header.
    pub first: Vec<u8>,
    /// Opens the data after the request.
    pub open: StackOpen,
    /// Seals the answers. If it owes a head, clients wait for it: send it immediately.
    pub seal: StackSeal<ServerSeal>,
}

impl StackHandshake {
    /// Advances by one state. Returns the request, or the number of bytes needed.
    fn advance_state(
        &mut self,
        rx: &mut HandshakeInput<'_>,
    ) -> Result<Option<HandshakeProgress<StackAccepted>>, ProtocolError> {
        let more = |total| Ok(Some(HandshakeProgress::NeedMore { total }));
        let over = ProtocolError::Malformed("handshake: already finished");
        self.state = match core::mem::replace(&mut self.state, State::Over) {
            State::Over => return Err(over),
            State::Iv { mss, noise } => {
                let key = &self.stack.cipher;
                let total = key.kind().iv_len();
                let Some(iv) = rx.bytes().get(..total) else {
                    self.state = State::Iv { mss, noise };
                    return more(total);
                };
                let cipher = key
                    .start_stream(iv, Direction::Decrypt)
                    .map_err(cipher_fault)?;
                let handshake = self.stack.server.new_handshake_with(iv, mss, noise);
                rx.consume(total);
                State::Message { cipher, handshake }
            }
            State::Message {
                mut cipher,
                mut handshake,
            } => {
                let fresh = rx.bytes_mut().get_mut(self.decrypted..);
                cipher.apply(fresh.unwrap_or_default());
                self.decrypted = rx.bytes().len();
                let now = self.clock.unix_time();
                let accepted = match handshake.step(rx.bytes_mut(), now)? {
                    HandshakeProgress::Done(accepted) => accepted,
                    HandshakeProgress::NeedMore { total } => {
                        self.state = State::Message { cipher, handshake };
                        return more(total);
                    }
                };
                let AcceptedConnection {
                    consumed,
                    payload,
                    uid,
                    fell_back,
                    open,
                    seal,
                } = accepted;
                let data = subslice(rx.bytes(), payload);
                self.plain.extend_from_slice(data);
                rx.consume(consumed);
                self.decrypted = self.decrypted.saturating_sub(consumed);
                State::Header {
                    open: StackOpen::with_cipher(cipher, self.decrypted, open),
                    seal,
                    uid,
                    one_time: self.stack.kind() == ProtocolKind::VerifySha1 && !fell_back,
                }
            }
            State::Header {
                mut open,
                seal,
                uid,
                one_time,
            } => match header::read_header(&self.plain, one_time)? {
                HandshakeProgress::Done((header, len)) => {
                    self.plain.drain(..len);
                    return Ok(Some(HandshakeProgress::Done(StackAccepted {
                        target: header.target,
                        datagrams: header.datagrams,
                        uid,
                        first: core::mem::take(&mut self.plain),
                        open,
                        seal: self.answer_seal(seal)?,
                    })));
                }
                HandshakeProgress::NeedMore { .. } => {
                    match open.open_frame(rx.bytes_mut())? {
                        OpenedFrame::NeedMore { total } => {
                            self.state = State::Header {
                                open,
                                seal,
                                uid,
                                one_time,
                            };
                            return more(total);
                        }
                        OpenedFrame::Plain { consumed, payload } => {
                            let data = subslice(rx.bytes(), payload);
                            self.plain.extend_from_slice(data);
                            rx.consume(consumed);
                        }
                        OpenedFrame::Inflated { consumed } => {
                            self.plain.extend_from_slice(open.inflated());
                            rx.consume(consumed);
                        }
                    }
                    State::Header {
                        open,
                        seal,
                        uid,
                        one_time,
                    }
                }
            },
        };
        Ok(None)
    }

    fn answer_seal(&mut self, frames: ServerSeal) -> Result<StackSeal<ServerSeal>, ProtocolError> {
        let iv = core::mem::take(&mut self.iv);
        let cipher = self.stack.cipher.start_stream(&iv, Direction::Encrypt);
        let cipher = cipher.map_err(cipher_fault)?;
        Ok(StackSeal::new(frames, cipher, iv, Vec::new()))
    }
}

impl Handshake for StackHandshake {
    type Output = StackAccepted;
    type Error = ProtocolError;

    fn step(
        &mut self,
        rx: &mut HandshakeInput<'_>,
        _: &mut HandshakeOutput<'_>,
    ) -> Result<HandshakeProgress<StackAccepted>, ProtocolError> {
        loop {
            if let Some(step) = self.advance_state(rx)? {
                return Ok(step);
            }
        }
    }
}

impl fmt::Debug for StackHandshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StackHandshake")
            .field("stack", &self.stack)
            .finish_non_exhaustive()
    }
}
