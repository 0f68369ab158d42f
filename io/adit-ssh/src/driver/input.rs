//! Input: read in large pieces, opened in place, copied once into the channels.

use std::sync::Arc;
use std::task::{Context, Poll};

use adit_ssh_proto::connection::Handled;
use adit_ssh_proto::transport::{Event, Step};
use adit_wire::{Time, held};

use super::Driver;
use crate::computations::Whose;
use crate::error::End;
use crate::messages::Message;

/// Maximum size of input that is processed before the results are sent and the readers are woken, in
/// bytes. Less with several channels, since the first bytes may be for another channel than the rest.
pub(super) const TURN: usize = 1 << 20;
const SHARED_TURN: usize = 64 << 10;
/// Maximum size of a message that does not count as bulk data, in bytes.
const SMALL: usize = 1024;

impl Driver {
    /// Processes input as long as there is space for the results.
    pub(super) fn take_in(&mut self, cx: &mut Context<'_>, now: Time) -> Result<(), End> {
        (self.more, self.prompt) = (false, false);
        let mut taken = 0;
        let turn = if self.line.is_shared() {
            SHARED_TURN
        } else {
            TURN
        };
        loop {
            // Events that were left over, or that the last turn caused.
            if !self.happened(now) || self.line.poll_compute(cx, Whose::User)?.is_pending() {
                return Ok(());
            }
            // During a key exchange nothing can be answered, but the exchange must proceed.
            if !self.connection.wants_input() && self.line.transport.writable() {
                return Ok(());
            }
            match self.line.poll_fill(cx, self.want) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(n)) if n < self.want => return Err(End::Ended),
                Poll::Ready(done) => drop(done?),
            }
            self.alive.heard(now);
            while let Some(consumed) = self.open_one(now)? {
                taken += consumed;
                self.line.consume(consumed);
                if !self.happened(now) {
                    return Ok(());
                }
                if taken >= turn {
                    self.more = true;
                    return Ok(());
                }
            }
        }
    }

    /// Opens the next packet if it is complete and returns its size, in bytes.
    fn open_one(&mut self, now: Time) -> Result<Option<usize>, End> {
        match self.line.open_next()? {
            Step::NeedMore { total } => {
                self.want = total;
                Ok(None)
            }
            Step::Consumed { consumed } => {
                self.told(now);
                self.want = 1;
                Ok(Some(consumed))
            }
            Step::Payload { consumed, payload } => {
                let payload = self.line.payload(&payload);
                match self.connection.handle_input(now, payload)? {
                    Handled::Data {
                        channel,
                        kind,
                        range,
                    } => {
                        let bytes = held(payload, range);
                        let len = bytes.len();
                        let read = if self.messages.is_some() {
                            let message = Message::Data(kind, Arc::from(bytes));
                            self.came(channel, message, None)
                        } else {
                            let live = self.lives.get(&channel);
                            live.is_some_and(|live| live.pipe.receive(kind, bytes, &mut self.wake))
                        };
                        self.alive.moves = true;
                        // A small message whose reader waits.
                        self.prompt |= read && len <= SMALL && !self.wake.is_empty();
                        if !read {
                            self.connection.consumed(channel, len, now);
                        }
                    }
                    Handled::Done => {}
                    Handled::Unknown => self.line.transport.unimplemented()?,
                }
                self.want = 1;
                Ok(Some(consumed))
            }
            // Blocked by a computation: a client has checked the host key before the session started.
            Step::Blocked => Ok(None),
        }
    }

    /// Processes the transport's events.
    fn told(&mut self, now: Time) {
        while let Some(event) = self.line.transport.poll_event() {
            if let Event::Pong(_) = event {
                self.answered_probe(now);
            }
        }
    }
}
