//! The stream edition: an IV, then an address of which no byte too many is decrypted.

use adit_crypto::Direction;
use adit_wire::{
    AddrError, HandshakeInput, HandshakeProgress, ProtocolError, Target, parse_addr, subslice,
};

use super::super::ServerSeal;
use super::super::body::{BodyOpen, BodySeal};
use super::{AcceptedRequest, ServerHandshake, ServerOpen, State};
use crate::Key;
use crate::salt::Salt;
use crate::stream_cipher::StreamCipher;

impl ServerHandshake {
    /// Legacy: reads the IV; any value is valid.
    pub(super) fn read_iv(
        &mut self,
        rx: &mut HandshakeInput<'_>,
    ) -> Result<Option<HandshakeProgress<AcceptedRequest>>, ProtocolError> {
        let method = self.users.method();
        let Some(request_iv) = Salt::read_from(method, rx.bytes()) else {
            let total = method.salt_len();
            return Ok(Some(HandshakeProgress::NeedMore { total }));
        };
        rx.consume(request_iv.len());
        let cipher = self
            .stream_key()?
            .start_cipher(&request_iv, Direction::Decrypt)?;
        self.state = State::Stream {
            request: StreamRequest::new(cipher),
            request_iv,
        };
        Ok(None)
    }

    /// Legacy: accepts a request. Anything with a valid address is one, since nothing more can be
    /// verified. The IVs are then inserted into the pool, for both directions (SEC-R6): this is the
    /// only protection against an attacker who replays a stream with their own address in place of
    /// the original one.
    pub(super) fn accept_stream_request(
        &mut self,
        target: Target,
    ) -> Result<HandshakeProgress<AcceptedRequest>, ProtocolError> {
        let State::Stream {
            request,
            request_iv,
        } = core::mem::replace(&mut self.state, State::Done)
        else {
            return Err(ProtocolError::Malformed("handshake: already finished"));
        };
        let now = self.clock.unix_time();
        for iv in [&request_iv, &self.response_salt] {
            // The oldest ciphers have no IV; their replays cannot be detected.
            if !iv.is_empty() {
                self.salts.insert_salt(iv, None, now)?;
            }
        }
        let answers = self.stream_key()?;
        let answers = answers.start_cipher(&self.response_salt, Direction::Encrypt)?;
        Ok(HandshakeProgress::Done(AcceptedRequest {
            user: None,
            target,
            first: Vec::new(),
            open: ServerOpen(BodyOpen::Stream {
                cipher: request.cipher,
                iv: 0,
            }),
            seal: ServerSeal::new(
                self.users.method(),
                BodySeal::Stream(Box::new(answers)),
                self.response_salt,
                request_iv,
                self.clock.clone(),
            ),
        }))
    }

    /// Returns the single key of the stream edition.
    fn stream_key(&self) -> Result<&Key, ProtocolError> {
        self.users.outer_key().ok_or(ProtocolError::Unauthentic)
    }
}

/// An address after the IV that is being read.
pub(super) struct StreamRequest {
    cipher: Box<StreamCipher>,
    /// Number of bytes at the front of the received data that are already plaintext.
    opened: usize,
}

impl StreamRequest {
    fn new(cipher: StreamCipher) -> Self {
        Self {
            cipher: Box::new(cipher),
            opened: 0,
        }
    }

    /// Reads the target and consumes its bytes, or returns the number of bytes needed. Data after
    /// the address is left encrypted, as the cipher continues there.
    pub(super) fn read_target(
        &mut self,
        rx: &mut HandshakeInput<'_>,
    ) -> Result<Result<Target, usize>, ProtocolError> {
        loop {
            let total = match parse_addr(subslice(rx.bytes(), ..self.opened)) {
                Ok((target, used)) => {
                    rx.consume(used);
                    return Ok(Ok(target));
                }
                Err(AddrError::Incomplete { total }) => total,
                Err(_) => return Err(ProtocolError::Malformed("address")),
            };
            // `total` exceeds what is open and is bounded by the longest address, so the loop ends.
            let Some(sealed) = rx.bytes_mut().get_mut(self.opened..total) else {
                return Ok(Err(total));
            };
            self.cipher.apply(sealed);
            self.opened = total;
        }
    }
}
