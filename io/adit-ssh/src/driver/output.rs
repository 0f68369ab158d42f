//! What leaves: control messages, then the channels by turns, many packets for each write.

use std::sync::Arc;
use std::task::{Context, Poll};

use adit_ssh_proto::connection::{CallError, ChannelId};
use adit_stream::pool::SIZES;
use adit_wire::Time;

use super::Driver;
use crate::error::End;
use crate::pipe::{Next, Pipe};

/// Sealed octets that wait to be written, what the largest buffer of a channel holds, so that what
/// was read at once leaves at once; one packet may go beyond.
const BATCH: usize = SIZES[SIZES.len() - 1];
/// The same with several channels, where what comes meanwhile may be for another: sealing 256 KiB
/// for each of four channels before a look at the input made an echo beside them wait for 6 ms
/// instead of 2.
const SHARED_BATCH: usize = 64 << 10;

impl Driver {
    /// Looks at the channels whose handles have done something.
    pub(super) fn attend_all(&mut self, now: Time) {
        let mut dirty = core::mem::take(&mut self.dirty);
        dirty.append(&mut self.later);
        for pipe in dirty.drain(..) {
            self.attend(&pipe, now);
        }
        self.dirty = dirty;
    }

    /// Looks at what a channel's handles have done.
    pub(super) fn attend(&mut self, pipe: &Arc<Pipe>, now: Time) {
        pipe.listed.clear();
        let mut consumed = pipe.lock().take_consumed();
        while consumed > 0 {
            self.connection.consumed(pipe.id, consumed, now);
            consumed = pipe.set_worth(self.connection.worth(pipe.id));
        }
        while self.act(pipe) {}
    }

    /// Does the next thing about a channel's own side; whether there is another.
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
                    // A channel that is gone needs none.
                    _ => return true,
                }
            }
            Next::End => {
                let _ = self.connection.eof(pipe.id);
                return true;
            }
            Next::Finish { close } => {
                // Once is enough, and a channel that is gone needs none.
                let _ = self.connection.eof(pipe.id);
                if close {
                    self.connection.close(pipe.id);
                }
            }
        }
        false
    }

    /// Seals and writes until there is nothing, or the stream below takes nothing now; with several
    /// channels one batch, and [`unsealed`](Driver::unsealed) says whether there is more.
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

    /// Seals what may be sent, up to a batch.
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

    /// A channel has written a message: it stands behind the others, or has come to its end.
    fn go_on(&mut self, id: ChannelId, pipe: &Arc<Pipe>, sent: bool) {
        if sent {
            self.attend(pipe, adit_net::system::monotonic_now());
        } else {
            self.connection.want_write(id);
        }
    }
}
