//! Output: control messages, then the channels in turn, many packets per write.

use std::sync::Arc;
use std::task::{Context, Poll};

use adit_ssh_proto::connection::{ChannelCallError, ChannelId};
use adit_stream::pool::SIZES;
use adit_wire::Time;

use super::Driver;
use crate::error::SessionEnd;
use crate::shared_channel::{NextAction, SharedChannel};

/// Maximum size of sealed bytes that wait to be written: the size of a channel's largest buffer, so
/// that one read is sent by one write. One packet may exceed it.
const MAX_BATCH: usize = SIZES[SIZES.len() - 1];
/// The same with several channels, where input may be for another channel. Sealing 256 KiB for each of
/// four channels before looking at the input made an echo beside them take 6 ms instead of 2 ms.
const MAX_SHARED_BATCH: usize = 64 << 10;

impl Driver {
    /// Processes all channels whose handles have changed something.
    pub(super) fn process_channels(&mut self, now: Time) {
        let mut dirty = core::mem::take(&mut self.dirty);
        dirty.append(&mut self.later);
        for pipe in dirty.drain(..) {
            self.process_channel(&pipe, now);
        }
        self.dirty = dirty;
    }

    /// Processes the changes of one channel's handles.
    pub(super) fn process_channel(&mut self, pipe: &Arc<SharedChannel>, now: Time) {
        pipe.dirty.clear_flag();
        let mut consumed = pipe.lock().take_consumed();
        while consumed > 0 {
            self.connection.consume_data(pipe.id, consumed, now);
            consumed = pipe.set_report_threshold(self.connection.min_consume_len(pipe.id));
        }
        while self.run_next_action(pipe) {}
    }

    /// Performs the next action for this end of the channel; returns true if there may be another.
    fn run_next_action(&mut self, pipe: &Arc<SharedChannel>) -> bool {
        let mut state = pipe.lock();
        let next = state.next_action();
        self.wake.extend(state.take_writers());
        drop(state);
        match next {
            NextAction::Nothing => {}
            NextAction::Write => self.connection.queue_writer(pipe.id),
            NextAction::Abort => self.connection.close_channel(pipe.id),
            NextAction::Tell(request, want) => {
                match self.connection.send_request(pipe.id, &request, want) {
                    Err(ChannelCallError::Full | ChannelCallError::TooMany) => {
                        pipe.lock().put_back(request, want);
                        self.later.push(Arc::clone(pipe));
                    }
                    // A closed channel needs no request.
                    _ => return true,
                }
            }
            NextAction::End => {
                let _ = self.connection.send_eof(pipe.id);
                return true;
            }
            NextAction::Finish { close } => {
                // EOF is sent only once, and a closed channel needs none.
                let _ = self.connection.send_eof(pipe.id);
                if close {
                    self.connection.close_channel(pipe.id);
                }
            }
        }
        false
    }

    /// Seals and writes until nothing is left or the underlying stream is full. With several channels
    /// it writes one batch, and sets [`unsealed`](Driver::unsealed) if there may be more.
    pub(super) fn send_output(&mut self, cx: &mut Context<'_>) -> Result<(), SessionEnd> {
        let shared = self.line.is_shared();
        let batch = if shared { MAX_SHARED_BATCH } else { MAX_BATCH };
        self.unsealed = false;
        loop {
            self.seal_output(batch)?;
            let before = self.line.unsent_bytes();
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
    fn seal_output(&mut self, batch: usize) -> Result<(), SessionEnd> {
        while self.line.unsent_bytes() < batch {
            let Some(mut writer) = self.line.transport.begin_payload() else {
                return Ok(());
            };
            if self.connection.poll_output(writer.buf_mut()) {
                writer.seal_payload()?;
                continue;
            }
            let Some(id) = self.connection.next_writer() else {
                return Ok(());
            };
            let Some(live) = self.channels.get(&id) else {
                continue;
            };
            let pipe = Arc::clone(&live.pipe);
            let room = self.connection.send_capacity(id);
            let mut state = pipe.lock();
            let (kind, waiting) = state.next_bytes();
            let n = waiting.min(room);
            if n == 0 {
                continue;
            }
            if self
                .connection
                .begin_data(id, kind, n, writer.buf_mut())
                .is_err()
            {
                continue;
            }
            let bytes = state.output_queue(kind);
            bytes.move_to(n, writer.buf_mut(), &self.mail.spares);
            let sent = state.mark_sent(n);
            self.alive.has_traffic = true;
            self.wake.extend(state.take_writers());
            drop(state);
            writer.seal_payload()?;
            self.continue_channel(id, &pipe, sent);
        }
        Ok(())
    }

    /// Queues a channel behind the others after it has sent a message, or processes its next action.
    fn continue_channel(&mut self, id: ChannelId, pipe: &Arc<SharedChannel>, sent: bool) {
        if sent {
            self.process_channel(pipe, adit_net::system::monotonic_now());
        } else {
            self.connection.queue_writer(id);
        }
    }
}
