//! What comes: read at once, opened in place, copied once into the channels.

use std::sync::Arc;
use std::task::{Context, Poll};

use adit_ssh_proto::connection::Handled;
use adit_ssh_proto::transport::{Event, Step};
use adit_wire::{Time, subslice};

use super::Driver;
use crate::computations::Whose;
use crate::error::End;
use crate::messages::Message;

/// Octets that are taken in before what they lead to is sent, and before those who wait for them
/// are woken: with several channels fewer, since the first may be for another than the rest.
pub(super) const TURN: usize = 1 << 20;
const SHARED_TURN: usize = 64 << 10;
/// Octets of a message, or fewer, that are no bulk.
const SMALL: usize = 1024;

impl Driver {
    /// Takes in what came, as long as there is room for what it leads to.
    pub(super) fn take_in(&mut self, cx: &mut Context<'_>, now: Time) -> Result<(), End> {
        (self.more, self.prompt) = (false, false);
        let mut taken = 0;
        let turn = if self.line.is_shared() {
            SHARED_TURN
        } else {
            TURN
        };
        loop {
            // What was left over, or has come of what was done here.
            if !self.happened(now) || self.line.poll_compute(cx, Whose::User)?.is_pending() {
                return Ok(());
            }
            // While keys are made nothing can be answered, but the exchange has to go on.
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

    /// Opens the next packet, if it is there whole; gives its octets.
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
                        let bytes = subslice(payload, range);
                        let len = bytes.len();
                        let read = if self.messages.is_some() {
                            let message = Message::Data(kind, Arc::from(bytes));
                            self.came(channel, message, None)
                        } else {
                            let live = self.lives.get(&channel);
                            live.is_some_and(|live| live.pipe.receive(kind, bytes, &mut self.wake))
                        };
                        self.alive.moves = true;
                        // Small, and somebody waits for it.
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
            // By a computation: a client has judged the host key long since.
            Step::Blocked => Ok(None),
        }
    }

    /// What the transport has to tell.
    fn told(&mut self, now: Time) {
        while let Some(event) = self.line.transport.poll_event() {
            if let Event::Pong(_) = event {
                self.answered_probe(now);
            }
        }
    }
}
