//! Outgoing payloads: sealed immediately, or queued during a key exchange.

use adit_wire::Role;

use super::Transport;
use crate::error::SshError;
use crate::msg;
use crate::wire::SshBufMut;

/// Cost of a queued payload in addition to its bytes.
const QUEUE_COST: usize = 64;

impl Transport {
    /// Sends a payload that starts with its message number, immediately or after the key exchange.
    ///
    /// # Errors
    /// [`SshError::TooMuch`] if the payload or the queue exceeds its limit; the connection stays
    /// usable. After an error ended the connection, that error.
    pub fn send(&mut self, payload: &[u8]) -> Result<(), SshError> {
        self.check_open()?;
        if self.is_writable() {
            return self.seal(payload);
        }
        let queued = self
            .queued
            .saturating_add(payload.len())
            .saturating_add(QUEUE_COST);
        if queued > self.config.max_queue {
            return Err(SshError::TooMuch {
                what: "output queued during a key exchange",
                limit: self.config.max_queue,
            });
        }
        self.queued = queued;
        self.queue.push_back(payload.to_vec());
        Ok(())
    }

    /// Starts a payload in place, so that data can be read directly into the output. Returns `None`
    /// if the transport is not [`is_writable`](Transport::is_writable).
    pub fn begin_payload(&mut self) -> Option<PayloadWriter<'_>> {
        if !self.is_writable() {
            return None;
        }
        let start = self.sealer.begin_packet(&mut self.out);
        Some(PayloadWriter {
            payload_at: self.out.len(),
            start,
            transport: self,
            finished: false,
        })
    }

    /// Returns the bytes to send. The caller removes those that it has sent from the front.
    pub const fn take_output(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Sends a PING with `data`, which comes back as [`Event::Pong`]. Returns false without sending
    /// if the peer did not announce support ([`Extensions::send_ping`]). See OpenSSH's `PROTOCOL`, 1.8.
    ///
    /// # Errors
    /// The same as for [`Transport::send`].
    ///
    /// [`Event::Pong`]: super::Event::Pong
    /// [`Extensions::send_ping`]: super::Extensions::ping
    pub fn send_ping(&mut self, data: &[u8]) -> Result<bool, SshError> {
        if !self.extensions.ping {
            return Ok(false);
        }
        let mut payload = vec![msg::PING];
        payload.put_string(data);
        self.send(&payload).map(|()| true)
    }

    /// Reports to the peer that the last packet's message is unknown (RFC 4253 section 11.4).
    ///
    /// # Errors
    /// [`SshError::TooMuch`] if the peer does not read the output.
    pub fn send_unimplemented(&mut self) -> Result<(), SshError> {
        self.check_unsent_limit()?;
        let mut payload = vec![msg::UNIMPLEMENTED];
        payload.put_u32(self.opener.sequence().wrapping_sub(1));
        // Allowed during a key exchange, too.
        self.sealer.seal(&payload, &mut self.out)
    }

    /// Seals a payload that may be sent now, regardless of the state.
    pub(super) fn seal(&mut self, payload: &[u8]) -> Result<(), SshError> {
        self.sealer.seal(payload, &mut self.out)?;
        self.on_sealed(payload.first().copied())
    }

    fn on_sealed(&mut self, number: Option<u8>) -> Result<(), SshError> {
        if number == Some(msg::USERAUTH_SUCCESS) && self.role == Role::Server {
            self.on_authenticated();
        }
        self.rekey_if_due()
    }

    /// Enables `zlib@openssh.com` compression in both directions (OpenSSH's `PROTOCOL`, 1.2).
    pub(super) fn on_authenticated(&mut self) {
        if !self.authenticated {
            self.authenticated = true;
            self.sealer.start_compression();
            self.opener.start_compression();
        }
    }

    /// Sends queued payloads until the queue is empty or a re-key becomes due.
    pub(super) fn flush_queue(&mut self) -> Result<(), SshError> {
        while self.is_writable() {
            let Some(payload) = self.queue.pop_front() else {
                break;
            };
            self.queued = self
                .queued
                .saturating_sub(payload.len().saturating_add(QUEUE_COST));
            self.seal(&payload)?;
        }
        Ok(())
    }

    /// Checks that the peer reads its output; answers must not accumulate without limit.
    pub(super) fn check_unsent_limit(&self) -> Result<(), SshError> {
        if self.out.len().saturating_add(self.queued) > self.config.max_unsent {
            return Err(SshError::TooMuch {
                what: "size of the answers that the peer has not read",
                limit: self.config.max_unsent,
            });
        }
        Ok(())
    }
}

/// A payload that is being written in place. If dropped without [`finish`](PayloadWriter::seal_payload),
/// the payload is discarded.
#[derive(Debug)]
pub struct PayloadWriter<'t> {
    transport: &'t mut Transport,
    start: usize,
    payload_at: usize,
    finished: bool,
}

impl PayloadWriter<'_> {
    /// Returns the buffer to append the payload to. Do not change the bytes that it already
    /// contains.
    pub const fn buf_mut(&mut self) -> &mut Vec<u8> {
        &mut self.transport.out
    }

    /// Returns the payload's start in [`PayloadWriter::buf_mut`].
    #[must_use]
    pub const fn payload_at(&self) -> usize {
        self.payload_at
    }

    /// Seals the payload.
    ///
    /// # Errors
    /// [`SshError::Malformed`] if nothing was appended, [`SshError::TooMuch`] if the payload is too
    /// long. The payload is discarded then.
    pub fn seal_payload(mut self) -> Result<(), SshError> {
        self.finished = true;
        let number = self.transport.out.get(self.payload_at).copied();
        let transport = &mut *self.transport;
        transport
            .sealer
            .seal_begun(self.start, &mut transport.out)?;
        transport.on_sealed(number)
    }
}

impl Drop for PayloadWriter<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.transport.out.truncate(self.start);
        }
    }
}
