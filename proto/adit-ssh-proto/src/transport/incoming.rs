//! Incoming packets: payloads are passed on, the transport's own messages are handled.

use adit_wire::Role;

use super::{Event, MAX_EVENTS, Transport};
use crate::error::SshError;
use crate::msg;
use crate::packet::{Opened, PayloadPosition};
use crate::version::IdentificationStep;
use crate::wire::{MessageReader, SshBufMut, to_printable};

/// Maximum number of packets before the first keys: far below a wrap of the sequence number.
const MAX_FIRST_PACKETS: u64 = 256;
/// Maximum number of PINGs and EXT_INFOs before the peer's user is authenticated.
const MAX_EARLY: u32 = 32;
/// Maximum number of bytes kept of a peer's text.
const MAX_TEXT: usize = 1024;

/// Result of [`Transport::open_next`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenStep {
    /// More bytes are needed. Call again with the same bytes and more after them, at least `total`.
    NeedMore {
        /// Number of bytes needed, including those already there.
        total: usize,
    },
    /// The first bytes were processed; drop them.
    Consumed {
        /// Number of bytes.
        consumed: usize,
    },
    /// A message of a service, of authentication or of the connection layer.
    Payload {
        /// Length of the packet in bytes; drop it after reading the payload.
        consumed: usize,
        /// Position of the payload; see [`Transport::payload`].
        payload: PayloadPosition,
    },
    /// Nothing is read until the host key is accepted, or the result of the computation is
    /// returned.
    Blocked,
}

impl Transport {
    /// Opens the packet (initially the line) at the front of `wire`, in place.
    ///
    /// # Errors
    /// The error that ended the connection; [`SshError::Disconnected`] if the peer ended it.
    pub fn open_next(&mut self, wire: &mut [u8]) -> Result<OpenStep, SshError> {
        self.check_open()?;
        self.open_next_step(wire).map_err(|why| self.fail_with(why))
    }

    fn open_next_step(&mut self, wire: &mut [u8]) -> Result<OpenStep, SshError> {
        if self.is_checking_host_key() || self.is_computing() {
            return Ok(OpenStep::Blocked);
        }
        if self.theirs.is_none() {
            return self.read_version(wire);
        }
        let (consumed, payload) = match self.opener.open(wire)? {
            Opened::NeedMore { total } => return Ok(OpenStep::NeedMore { total }),
            Opened::Packet { consumed, payload } => (consumed, payload),
        };
        let message = self.opener.payload(wire, &payload);
        debug_assert!(!message.is_empty(), "the opener rejects empty payloads");
        let number = message.first().copied().unwrap_or_default();
        if matches!(
            number,
            msg::SERVICE_REQUEST | msg::SERVICE_ACCEPT | 50..=127
        ) {
            self.check_peer_may_send(number)?;
            if number == msg::USERAUTH_SUCCESS && self.role == Role::Client {
                self.on_authenticated();
            }
            self.rekey_if_due()?;
            return Ok(OpenStep::Payload { consumed, payload });
        }
        let message = message.to_vec();
        self.handle_message(number, &message)?;
        Ok(OpenStep::Consumed { consumed })
    }

    fn read_version(&mut self, wire: &[u8]) -> Result<OpenStep, SshError> {
        match self.version_reader.next_step(wire)? {
            IdentificationStep::NeedMore => Ok(OpenStep::NeedMore {
                total: wire.len().saturating_add(1),
            }),
            IdentificationStep::Skipped { consumed } => Ok(OpenStep::Consumed { consumed }),
            IdentificationStep::Done { consumed, version } => {
                self.theirs = Some(version);
                self.restart_exchange_timeout();
                Ok(OpenStep::Consumed { consumed })
            }
        }
    }

    /// Handles the transport's own messages.
    fn handle_message(&mut self, number: u8, message: &[u8]) -> Result<(), SshError> {
        if self.session.is_none() && self.opener.packets() > MAX_FIRST_PACKETS {
            return Err(SshError::TooMuch {
                what: "number of packets before the first keys",
                limit: 256,
            });
        }
        match number {
            msg::DISCONNECT => Err(parse_disconnect(message)),
            msg::IGNORE | msg::DEBUG | msg::UNIMPLEMENTED => {
                // Strict key exchange: the first exchange allows only the method's messages.
                if self.strict && self.in_first_exchange() {
                    return Err(SshError::Unexpected(number));
                }
                if number == msg::DEBUG {
                    self.on_debug(message)?;
                }
                Ok(())
            }
            msg::KEXINIT => self.on_kexinit(message),
            msg::NEWKEYS => self.on_newkeys(message),
            30..=49 => self.on_method(message),
            msg::EXT_INFO => {
                self.check_peer_may_send(number)?;
                self.count_early_message()?;
                self.extensions.apply_ext_info(message)?;
                self.push_optional_event(Event::ExtInfo(self.extensions.clone()));
                Ok(())
            }
            msg::PING => {
                self.check_peer_may_send(number)?;
                self.count_early_message()?;
                self.answer_ping(message)
            }
            msg::PONG => {
                self.check_peer_may_send(number)?;
                let mut r = MessageReader::new(message, "PONG");
                r.read_u8()?;
                let data = r.read_string()?.iter().copied().take(MAX_TEXT).collect();
                self.push_optional_event(Event::Pong(data));
                Ok(())
            }
            _ if self.in_first_exchange() => Err(SshError::Unexpected(number)),
            _ => self.send_unimplemented(),
        }
    }

    /// Answers a PING with the same data, in order with everything else that is sent.
    fn answer_ping(&mut self, message: &[u8]) -> Result<(), SshError> {
        self.check_unsent_limit()?;
        let mut r = MessageReader::new(message, "PING");
        r.read_u8()?;
        let data = r.read_string()?;
        r.expect_end()?;
        let mut answer = Vec::with_capacity(message.len());
        answer.put_u8(msg::PONG);
        answer.put_string(data);
        self.send(&answer)
    }

    fn on_debug(&mut self, message: &[u8]) -> Result<(), SshError> {
        let mut r = MessageReader::new(message, "DEBUG");
        r.read_u8()?;
        r.read_bool()?;
        if self.events.len() < MAX_EVENTS {
            let text = to_printable(r.read_string()?, MAX_TEXT);
            self.push_optional_event(Event::Debug(text));
        }
        Ok(())
    }

    fn count_early_message(&mut self) -> Result<(), SshError> {
        if self.authenticated {
            return Ok(());
        }
        self.early_messages += 1;
        if self.early_messages > MAX_EARLY {
            return Err(SshError::TooMuch {
                what: "number of messages other than authentication",
                limit: 32,
            });
        }
        Ok(())
    }

    /// Checks that the peer may send this message. Before the first exchange, and between its own
    /// KEXINIT and NEWKEYS, a peer may only send key exchange messages and the transport's generic
    /// ones (RFC 4253 section 7.1).
    fn check_peer_may_send(&self, number: u8) -> Result<(), SshError> {
        let exchanging = self.exchange.as_ref().is_some_and(|x| !x.theirs.is_empty());
        if exchanging || self.session.is_none() {
            return Err(SshError::Unexpected(number));
        }
        Ok(())
    }
}

fn parse_disconnect(message: &[u8]) -> SshError {
    let mut r = MessageReader::new(message, "DISCONNECT");
    let read = (|| {
        r.read_u8()?;
        Ok::<_, SshError>((r.read_u32()?, r.read_string()?))
    })();
    // Even a malformed DISCONNECT ends the connection.
    let (reason, text) = read.unwrap_or_default();
    SshError::Disconnected {
        reason,
        text: to_printable(text, MAX_TEXT),
    }
}
