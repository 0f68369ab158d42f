//! Payloads on their way out: sealed at once, or queued while keys are made.

use adit_wire::Role;

use super::Transport;
use crate::error::SshError;
use crate::msg;
use crate::wire::Put;

/// What a queued payload costs beside its octets.
const QUEUE_COST: usize = 64;

impl Transport {
    /// Sends a payload, the message number in front, now or when the key exchange is over.
    ///
    /// # Errors
    /// [`SshError::TooMuch`] for a payload or a queue above its bound; the connection goes on.
    /// The error that ended the connection, once there was one.
    pub fn send(&mut self, payload: &[u8]) -> Result<(), SshError> {
        self.check_open()?;
        if self.writable() {
            return self.seal(payload);
        }
        let queued = self
            .queued
            .saturating_add(payload.len())
            .saturating_add(QUEUE_COST);
        if queued > self.config.max_queue {
            return Err(SshError::TooMuch {
                what: "output that waits for a key exchange",
                limit: self.config.max_queue,
            });
        }
        self.queued = queued;
        self.queue.push_back(payload.to_vec());
        Ok(())
    }

    /// Begins a payload in place, so that data is read straight into the output. `None` when the
    /// transport is not [`writable`](Transport::writable).
    pub fn begin_payload(&mut self) -> Option<PayloadWriter<'_>> {
        if !self.writable() {
            return None;
        }
        let start = self.sealer.begin(&mut self.out);
        Some(PayloadWriter {
            payload_at: self.out.len(),
            start,
            transport: self,
            finished: false,
        })
    }

    /// The bytes to send. Whoever sends them takes them out of the front.
    pub const fn take_output(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Asks the peer for a sign of life, with `data` to come back as [`Event::Pong`]; whether it
    /// said that it can ([`Extensions::ping`]). OpenSSH's `PROTOCOL`, 1.8.
    ///
    /// # Errors
    /// As [`Transport::send`].
    ///
    /// [`Event::Pong`]: super::Event::Pong
    /// [`Extensions::ping`]: super::Extensions::ping
    pub fn ping(&mut self, data: &[u8]) -> Result<bool, SshError> {
        if !self.extensions.ping {
            return Ok(false);
        }
        let mut payload = vec![msg::PING];
        payload.put_string(data);
        self.send(&payload).map(|()| true)
    }

    /// Tells the peer that the message of the last packet is not known (RFC 4253 section 11.4).
    ///
    /// # Errors
    /// [`SshError::TooMuch`] if the peer takes no output.
    pub fn unimplemented(&mut self) -> Result<(), SshError> {
        self.check_unsent()?;
        let mut payload = vec![msg::UNIMPLEMENTED];
        payload.put_u32(self.opener.sequence().wrapping_sub(1));
        // Allowed during a key exchange too.
        self.sealer.seal(&payload, &mut self.out)
    }

    /// Seals what may be sent now, whatever the state.
    pub(super) fn seal(&mut self, payload: &[u8]) -> Result<(), SshError> {
        self.sealer.seal(payload, &mut self.out)?;
        self.sealed(payload.first().copied())
    }

    fn sealed(&mut self, number: Option<u8>) -> Result<(), SshError> {
        if number == Some(msg::USERAUTH_SUCCESS) && self.role == Role::Server {
            self.user_is_in();
        }
        self.rekey_if_due()
    }

    /// From here on `zlib@openssh.com` compresses, in both directions (OpenSSH's `PROTOCOL`, 1.2).
    pub(super) fn user_is_in(&mut self) {
        if !self.authenticated {
            self.authenticated = true;
            self.sealer.start_compression();
            self.opener.start_compression();
        }
    }

    /// Sends what has waited, as far as it goes: new keys may become due on the way.
    pub(super) fn flush_queue(&mut self) -> Result<(), SshError> {
        while self.writable() {
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

    /// Answers are given to a peer only as long as it takes them.
    pub(super) fn check_unsent(&self) -> Result<(), SshError> {
        if self.out.len().saturating_add(self.queued) > self.config.max_unsent {
            return Err(SshError::TooMuch {
                what: "answers that the peer does not take",
                limit: self.config.max_unsent,
            });
        }
        Ok(())
    }
}

/// A payload that is being written in place. Dropped without
/// [`finish`](PayloadWriter::finish), it is taken back.
#[derive(Debug)]
pub struct PayloadWriter<'t> {
    transport: &'t mut Transport,
    start: usize,
    payload_at: usize,
    finished: bool,
}

impl PayloadWriter<'_> {
    /// Where the payload is to be appended; what stands there already must stay.
    pub const fn buf(&mut self) -> &mut Vec<u8> {
        &mut self.transport.out
    }

    /// Where the payload begins in [`PayloadWriter::buf`].
    #[must_use]
    pub const fn payload_at(&self) -> usize {
        self.payload_at
    }

    /// Seals it.
    ///
    /// # Errors
    /// [`SshError::Malformed`] if nothing was appended, [`SshError::TooMuch`] if too much; it is
    /// taken back then.
    pub fn finish(mut self) -> Result<(), SshError> {
        self.finished = true;
        let number = self.transport.out.get(self.payload_at).copied();
        let transport = &mut *self.transport;
        transport.sealer.finish(self.start, &mut transport.out)?;
        transport.sealed(number)
    }
}

impl Drop for PayloadWriter<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.transport.out.truncate(self.start);
        }
    }
}
