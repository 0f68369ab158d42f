//! Output: control messages, then the channels in turn, many packets per write.

use std::sync::Arc;
use std::task::{Context, Poll};

use adit_ssh_proto::connection::{CallError, ChannelId};
use adit_stream::pool::SIZES;
use adit_wire::Time;

use super::Driver;
use crate::error::End;
use crate::pipe::{Next, Pipe};

/// Maximum size of sealed bytes that wait to be written: the size of a channel's largest buffer, so
/// that one read is sent by one write. One packet may exceed it.
const BATCH: usize = SIZES[SIZES.len() - 1];
/// The same with several channels, where input may be for another channel. Sealing 256 KiB for each of
/// four channels before looking at the input made an echo beside them take 6 ms instead of 2 ms.
const SHARED_BATCH: usize = 64 << 10;

impl Driver {
    /// Processes all channels whose handles have changed something.
    pub(super) fn attend_all(&mut self, now: Time) {
        let mut dirty = core::mem::take(&mut self.dirty);
        dirty.append(&mut self.later);
        for pipe in dirty.drain(..) {
            self.attend(&pipe, now);
        }
        self.dirty = dirty;
    }

    /// Processes the changes of one channel's handles.
    pub(super) fn attend(&mut self, pipe: &Arc<Pipe>, now: Time) {
        pipe.listed.clear();
        let mut consumed = pipe.lock().take_consumed();
        while consumed > 0 {
            self.connection.consumed(pipe.id, consumed, now);
            consumed = pipe.set_worth(self.connection.worth(pipe.id));
        }
        while self.act(pipe) {}
    }

    /// Performs the next action for this end of the channel; returns true if there may be another.
    fn act(&mut self, pipe: &Arc<Pipe>) -> bool {
        let mut state = pipe.lock();
        let next = state.next();
        self.wake.extend(state.take_writers());
        drop(state);
        match next {
            Next::Nothing => {}
            Next::Write => self.connection.want_write(pipe.id),
            Next::Abort => self.connection.close(pipe.id),
            Next::Tell(request, want) => {
                match self.connection.request(pipe.id, &request, want) {
                    Err(CallError::Full | CallError::TooMany) => {
                        pipe.lock().put_back(request, want);
                        self.later.push(Arc::clone(pipe));
                    }
                    // A closed channel needs no request.
                    _ => return true,
                }
            }
            Next::End => {
                let _ = self.connection.eof(pipe.id);
                return true;
            }
            Next::Finish { close } => {
                // EOF is sent only once, and a closed channel needs none.
                let _ = self.connection.eof(pipe.id);
                if close {
                    self.connection.close(pipe.id);
                }
            }
        }
        false
    }

    /// Seals and writes until nothing is left or the underlying stream is full. With several channels
    /// it writes one batch, and sets [`unsealed`](Driver::unsealed) if there may be more.
    pub(super) fn give_out(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        let shared = self.line.is_shared();
        let batch = if shared { SHARED_BATCH } else { BATCH };
        self.unsealed = false;
        loop {
            self.seal(batch)?;
            let before = self.line.unsent();
            match self.line.poll_flush(cx) {
                Poll::Ready(done) => done?,
                Poll::Pending => return Ok(()),
            }
            if before < batch {
                return Ok(());
            }
            if shared {
                self.unsealed = true;
                return Ok(());
            }
        }
    }

    /// Seals what may be sent, up to one batch.
    fn seal(&mut self, batch: usize) -> Result<(), End> {
        while self.line.unsent() < batch {
            let Some(mut writer) = self.line.transport.begin_payload() else {
                return Ok(());
            };
            if self.connection.poll_output(writer.buf()) {
                writer.finish()?;
                continue;
            }
            let Some(id) = self.connection.next_writer() else {
                return Ok(());
            };
            let Some(live) = self.lives.get(&id) else {
                continue;
            };
            let pipe = Arc::clone(&live.pipe);
            let room = self.connection.room(id);
            let mut state = pipe.lock();
            let (kind, waiting) = state.next_bytes();
            let n = waiting.min(room);
            if n == 0 {
                continue;
            }
            if self
                .connection
                .data_header(id, kind, n, writer.buf())
                .is_err()
            {
                continue;
            }
            let bytes = state.outlet(kind);
            bytes.move_to(n, writer.buf(), &self.mail.spares);
            let sent = state.sent(n);
            self.alive.moves = true;
            self.wake.extend(state.take_writers());
            drop(state);
            writer.finish()?;
            self.go_on(id, &pipe, sent);
        }
        Ok(())
    }

    /// Queues a channel behind the others after it has sent a message, or processes its next action.
    fn go_on(&mut self, id: ChannelId, pipe: &Arc<Pipe>, sent: bool) {
        if sent {
            self.attend(pipe, adit_net::ambient::now());
        } else {
            self.connection.want_write(id);
        }
    }
}
