//! Input: read in large pieces, opened in place, copied once into the channels.

use std::sync::Arc;
use std::task::{Context, Poll};

use adit_ssh_proto::connection::HandledInput;
use adit_ssh_proto::transport::{Event, OpenStep};
use adit_wire::{Time, subslice};

use super::Driver;
use crate::computations::AuthState;
use crate::error::SessionEnd;
use crate::messages::Message;

/// Maximum size of input that is processed before the results are sent and the readers are woken, in
/// bytes. Less with several channels, since the first bytes may be for another channel than the rest.
pub(super) const MAX_TURN_INPUT: usize = 1 << 20;
const MAX_SHARED_TURN_INPUT: usize = 64 << 10;
/// Maximum size of a message that does not count as bulk data, in bytes.
const MAX_SMALL_MESSAGE: usize = 1024;

impl Driver {
    /// Processes input as long as there is space for the results.
    pub(super) fn process_input(
        &mut self,
        cx: &mut Context<'_>,
        now: Time,
    ) -> Result<(), SessionEnd> {
        (self.has_more_input, self.yield_to_reader) = (false, false);
        let mut taken = 0;
        let turn = if self.line.is_shared() {
            MAX_SHARED_TURN_INPUT
        } else {
            MAX_TURN_INPUT
        };
        loop {
            // Events that were left over, or that the last turn caused.
            if !self.process_events(now)
                || self
                    .line
                    .poll_compute(cx, AuthState::Authenticated)?
                    .is_pending()
            {
                return Ok(());
            }
            // During a key exchange nothing can be answered, but the exchange must proceed.
            if !self.connection.wants_input() && self.line.transport.is_writable() {
                return Ok(());
            }
            match self.line.poll_fill(cx, self.needed) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(n)) if n < self.needed => return Err(SessionEnd::PeerClosed),
                Poll::Ready(done) => drop(done?),
            }
            self.alive.record_heard(now);
            while let Some(consumed) = self.open_packet(now)? {
                taken += consumed;
                self.line.consume(consumed);
                if !self.process_events(now) {
                    return Ok(());
                }
                if taken >= turn {
                    self.has_more_input = true;
                    return Ok(());
                }
            }
        }
    }

    /// Opens the next packet if it is complete and returns its size, in bytes.
    fn open_packet(&mut self, now: Time) -> Result<Option<usize>, SessionEnd> {
        match self.line.open_next_packet()? {
            OpenStep::NeedMore { total } => {
                self.needed = total;
                Ok(None)
            }
            OpenStep::Consumed { consumed } => {
                self.process_transport_events(now);
                self.needed = 1;
                Ok(Some(consumed))
            }
            OpenStep::Payload { consumed, payload } => {
                let payload = self.line.payload_bytes(&payload);
                match self.connection.handle_input(now, payload)? {
                    HandledInput::Data {
                        channel,
                        kind,
                        range,
                    } => {
                        let bytes = subslice(payload, range);
                        let len = bytes.len();
                        let read = if self.messages.is_some() {
                            let message = Message::Data(kind, Arc::from(bytes));
                            self.deliver_message(channel, message, None)
                        } else {
                            let live = self.channels.get(&channel);
                            live.is_some_and(|live| {
                                live.pipe.push_received(kind, bytes, &mut self.wake)
                            })
                        };
                        self.alive.has_traffic = true;
                        // A small message whose reader waits.
                        self.yield_to_reader |=
                            read && len <= MAX_SMALL_MESSAGE && !self.wake.is_empty();
                        if !read {
                            self.connection.consume_data(channel, len, now);
                        }
                    }
                    HandledInput::Done => {}
                    HandledInput::Unknown => self.line.transport.send_unimplemented()?,
                }
                self.needed = 1;
                Ok(Some(consumed))
            }
            // Blocked by a computation: a client has checked the host key before the session started.
            OpenStep::Blocked => Ok(None),
        }
    }

    /// Processes the transport's events.
    fn process_transport_events(&mut self, now: Time) {
        while let Some(event) = self.line.transport.poll_event() {
            if let Event::Pong(_) = event {
                self.handle_keepalive_answer(now);
            }
        }
    }
}
