//! The stream edition: an IV, and an address that is opened no further than it goes.

use adit_crypto::{Direction, StreamCipher};
use adit_wire::{AddrError, ProtocolError, Rx, Step, Target, parse_addr, subslice};

use super::super::ServerSeal;
use super::super::body::{BodyOpen, BodySeal};
use super::{Accepted, ServerHandshake, ServerOpen, State};
use crate::Key;
use crate::salt::Salt;

impl ServerHandshake {
    /// Legacy: the IV, whatever it is.
    pub(super) fn iv(&mut self, rx: &mut Rx<'_>) -> Result<Option<Step<Accepted>>, ProtocolError> {
        let method = self.users.method();
        let Some(request_iv) = Salt::read(method, rx.bytes()) else {
            let total = method.salt_len();
            return Ok(Some(Step::NeedMore { total }));
        };
        rx.consume(request_iv.len());
        let cipher = self.stream_key()?.start(&request_iv, Direction::Decrypt)?;
        self.state = State::Stream {
            request: StreamRequest::new(cipher),
            request_iv,
        };
        Ok(None)
    }

    /// Legacy: what has an address is a request, since nothing more can be known. The IVs are then
    /// remembered, both ways (SEC-R6): it is all there is against who sends a stream again, under
    /// his own address in place of the first.
    pub(super) fn accept_stream(
        &mut self,
        target: Target,
    ) -> Result<Step<Accepted>, ProtocolError> {
        let State::Stream {
            request,
            request_iv,
        } = core::mem::replace(&mut self.state, State::Done)
        else {
            return Err(ProtocolError::Malformed("handshake: it is over"));
        };
        let now = self.clock.unix_time();
        for iv in [&request_iv, &self.response_salt] {
            // The oldest ciphers have none: there a replay is like the first.
            if !iv.is_empty() {
                self.salts.insert(iv, None, now)?;
            }
        }
        let answers = self.stream_key()?;
        let answers = answers.start(&self.response_salt, Direction::Encrypt)?;
        Ok(Step::Done(Accepted {
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

    /// The one key there is in the stream edition.
    fn stream_key(&self) -> Result<&Key, ProtocolError> {
        self.users.outer().ok_or(ProtocolError::Unauthentic)
    }
}

/// An address that is being read, behind the IV.
pub(super) struct StreamRequest {
    cipher: Box<StreamCipher>,
    /// Bytes at the front of what was received that are plaintext already.
    opened: usize,
}

impl StreamRequest {
    fn new(cipher: StreamCipher) -> Self {
        Self {
            cipher: Box::new(cipher),
            opened: 0,
        }
    }

    /// The target, whose bytes are then eaten, or how many bytes it takes to know more. What
    /// stands behind an address stays as it came: the cipher goes on there.
    pub(super) fn read(&mut self, rx: &mut Rx<'_>) -> Result<Result<Target, usize>, ProtocolError> {
        loop {
            let total = match parse_addr(subslice(rx.bytes(), ..self.opened)) {
                Ok((target, used)) => {
                    rx.consume(used);
                    return Ok(Ok(target));
                }
                Err(AddrError::Incomplete { total }) => total,
                Err(_) => return Err(ProtocolError::Malformed("address")),
            };
            // More than is open, at most an address: this ends.
            let Some(sealed) = rx.bytes_mut().get_mut(self.opened..total) else {
                return Ok(Err(total));
            };
            self.cipher.apply(sealed);
            self.opened = total;
        }
    }
}
