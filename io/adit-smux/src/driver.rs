//! The task of a session: moves bytes between the core and the stream below, and handles timers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use adit_net::system;
use adit_stream::BoxStream;
use adit_stream::time_slice::yield_to_others;
use adit_wire::Time;
use tokio::time::{Instant, Sleep, sleep};

use super::EndReason;
use super::framing::Framing;
use super::shared::SharedSession;

/// Turns before other tasks have theirs.
const MAX_TURNS: usize = 16;

/// Moves the bytes of a session until its end.
pub(super) struct SessionDriver {
    shared: Arc<SharedSession>,
    below: BoxStream,
    framing: Framing,
    /// Offset of this session's clock from the system's.
    clock_offset: Duration,
    sleep: Pin<Box<Sleep>>,
    sleep_until: Option<Time>,
    wakers: Vec<Waker>,
}

impl SessionDriver {
    pub(super) fn spawn(
        shared: Arc<SharedSession>,
        below: BoxStream,
        framing: Framing,
        ahead: Duration,
    ) {
        tokio::spawn(Self {
            shared,
            below,
            framing,
            clock_offset: ahead,
            sleep: Box::pin(sleep(Duration::ZERO)),
            sleep_until: None,
            wakers: Vec::new(),
        });
    }

    fn now(&self) -> Time {
        system::monotonic_now() + self.clock_offset
    }

    /// Handles received bytes, as long as the core accepts them.
    fn poll_input(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), EndReason>> {
        match self.framing.poll_fill(cx, &mut self.below) {
            Poll::Ready(Ok(())) => {}
            other => {
                self.shared.lock().input_blocked = false;
                return other;
            }
        }
        let now = self.now();
        let mut state = self.shared.lock();
        let all = self
            .framing
            .handle_input(&mut self.below, &mut state, now)?;
        state.input_blocked = !all;
        state.collect_wakers(&mut self.wakers);
        if all {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }

    /// Writes output, as long as the stream below accepts it.
    fn write_output(&mut self, cx: &mut Context<'_>) -> Result<(), EndReason> {
        loop {
            if !self.shared.lock().core.wants_output() {
                return Ok(());
            }
            match self.below.poll_slot(cx, self.framing.output_space()) {
                Poll::Ready(Ok(0)) => return Err(EndReason::Ended),
                Poll::Ready(done) => done?,
                Poll::Pending => {
                    self.shared.lock().output_blocked = true;
                    return Ok(());
                }
            };
            let mut state = self.shared.lock();
            state.output_blocked = false;
            let some = self.framing.write_output(&mut self.below, &mut state)?;
            state.collect_wakers(&mut self.wakers);
            if !some {
                return Ok(());
            }
        }
    }

    /// Does one turn. Ready when the session has ended.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), EndReason>> {
        let now = self.now();
        let silent = self.shared.lock().core.handle_timeout(now);
        silent.map_err(|silent| EndReason::Silent(silent.0))?;
        // The greeting is sent before received bytes can cause an error.
        self.write_output(cx)?;
        for round in 0..MAX_TURNS {
            match self.poll_input(cx) {
                Poll::Ready(done) => done?,
                Poll::Pending => break,
            }
            if round + 1 == MAX_TURNS {
                yield_to_others(cx);
            }
        }
        self.write_output(cx)?;
        let flushed = self.below.poll_flush(cx)?.is_ready();
        let state = self.shared.lock();
        if let Some(end) = &state.end {
            return Poll::Ready(Err(end.clone()));
        }
        if flushed && state.is_unused() && !state.core.wants_output() {
            return Poll::Ready(Ok(()));
        }
        Poll::Pending
    }

    /// Sleeps, unless there is already something to do.
    fn poll_sleep(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let until = {
            let mut state = self.shared.lock();
            if state.wants_driver() && !state.is_unused() {
                return Poll::Ready(());
            }
            state.driver = Some(cx.waker().clone());
            state.core.poll_timeout()
        };
        let Some(until) = until else {
            return Poll::Pending;
        };
        if self.sleep_until != Some(until) {
            self.sleep_until = Some(until);
            let wait = until.duration_since(self.now());
            self.sleep.as_mut().reset(Instant::now() + wait);
        }
        let slept = self.sleep.as_mut().poll(cx);
        if slept.is_ready() {
            self.sleep_until = None;
        }
        slept
    }

    fn wake_all(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }
}

impl Future for SessionDriver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let me = self.get_mut();
        for _ in 0..MAX_TURNS {
            let turned = me.poll_turn(cx);
            me.wake_all();
            if let Poll::Ready(done) = turned {
                let why = done.err().unwrap_or(EndReason::Closed);
                // Send as much as possible: it may show the peer the reason.
                let _ = me.below.poll_flush(cx);
                me.shared.lock().end_session(why, &mut me.wakers);
                me.wake_all();
                me.shared.ended.notify_waiters();
                return Poll::Ready(());
            }
            if me.poll_sleep(cx).is_pending() {
                return Poll::Pending;
            }
        }
        yield_to_others(cx);
        Poll::Pending
    }
}
