//! The task of a session: moves bytes between the core and the stream below, and handles timers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use adit_net::system;
use adit_stream::BoxStream;
use adit_stream::slice::give_way;
use adit_wire::Time;
use tokio::time::{Instant, Sleep, sleep};

use super::End;
use super::framing::Framing;
use super::shared::Shared;

/// Turns before other tasks have theirs.
const ROUNDS: usize = 16;

/// Moves the bytes of a session until its end.
pub(super) struct Driver {
    shared: Arc<Shared>,
    below: BoxStream,
    framing: Framing,
    /// Offset of this session's clock from the system's.
    ahead: Duration,
    sleep: Pin<Box<Sleep>>,
    until: Option<Time>,
    wake: Vec<Waker>,
}

impl Driver {
    pub(super) fn spawn(shared: Arc<Shared>, below: BoxStream, framing: Framing, ahead: Duration) {
        tokio::spawn(Self {
            shared,
            below,
            framing,
            ahead,
            sleep: Box::pin(sleep(Duration::ZERO)),
            until: None,
            wake: Vec::new(),
        });
    }

    fn now(&self) -> Time {
        system::monotonic_now() + self.ahead
    }

    /// Handles received bytes, as long as the core accepts them.
    fn poll_input(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        match self.framing.poll_fill(cx, &mut self.below) {
            Poll::Ready(Ok(())) => {}
            other => {
                self.shared.lock().blocked = false;
                return other;
            }
        }
        let now = self.now();
        let mut state = self.shared.lock();
        let all = self.framing.take_in(&mut self.below, &mut state, now)?;
        state.blocked = !all;
        state.collect(&mut self.wake);
        if all {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }

    /// Writes output, as long as the stream below accepts it.
    fn output(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        loop {
            if !self.shared.lock().core.wants_output() {
                return Ok(());
            }
            match self.below.poll_slot(cx, self.framing.room()) {
                Poll::Ready(Ok(0)) => return Err(End::Ended),
                Poll::Ready(done) => done?,
                Poll::Pending => {
                    self.shared.lock().stuck = true;
                    return Ok(());
                }
            };
            let mut state = self.shared.lock();
            state.stuck = false;
            let some = self.framing.give_out(&mut self.below, &mut state)?;
            state.collect(&mut self.wake);
            if !some {
                return Ok(());
            }
        }
    }

    /// Does one turn. Ready when the session has ended.
    fn turn(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        let now = self.now();
        let silent = self.shared.lock().core.handle_timeout(now);
        silent.map_err(|silent| End::Silent(silent.0))?;
        // The greeting is sent before received bytes can cause an error.
        self.output(cx)?;
        for round in 0..ROUNDS {
            match self.poll_input(cx) {
                Poll::Ready(done) => done?,
                Poll::Pending => break,
            }
            if round + 1 == ROUNDS {
                give_way(cx);
            }
        }
        self.output(cx)?;
        let flushed = self.below.poll_flush(cx)?.is_ready();
        let state = self.shared.lock();
        if let Some(end) = &state.end {
            return Poll::Ready(Err(end.clone()));
        }
        if flushed && state.is_deserted() && !state.core.wants_output() {
            return Poll::Ready(Ok(()));
        }
        Poll::Pending
    }

    /// Sleeps, unless there is already something to do.
    fn rest(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let until = {
            let mut state = self.shared.lock();
            if state.wants_driver() && !state.is_deserted() {
                return Poll::Ready(());
            }
            state.driver = Some(cx.waker().clone());
            state.core.poll_timeout()
        };
        let Some(until) = until else {
            return Poll::Pending;
        };
        if self.until != Some(until) {
            self.until = Some(until);
            let wait = until.duration_since(self.now());
            self.sleep.as_mut().reset(Instant::now() + wait);
        }
        let slept = self.sleep.as_mut().poll(cx);
        if slept.is_ready() {
            self.until = None;
        }
        slept
    }

    fn wake_all(&mut self) {
        self.wake.drain(..).for_each(Waker::wake);
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let me = self.get_mut();
        for _ in 0..ROUNDS {
            let turned = me.turn(cx);
            me.wake_all();
            if let Poll::Ready(done) = turned {
                let why = done.err().unwrap_or(End::Closed);
                // Send as much as possible: it may show the peer the reason.
                let _ = me.below.poll_flush(cx);
                me.shared.lock().end(why, &mut me.wake);
                me.wake_all();
                me.shared.over.notify_waiters();
                return Poll::Ready(());
            }
            if me.rest(cx).is_pending() {
                return Poll::Pending;
            }
        }
        give_way(cx);
        Poll::Pending
    }
}
