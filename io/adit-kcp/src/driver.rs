//! The task of a socket.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use adit_net::system;
use adit_stream::time_slice::yield_to_others;
use adit_wire::Time;
use tokio::time::{Instant, Sleep, sleep};

use super::table::SessionTable;

/// Batches before other tasks have their turn.
const MAX_BATCHES: usize = 8;
/// Pause after an error of the socket.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// Receives for all sessions of a socket, and wakes for the earliest of their timers.
///
/// Ends when there is no session and none can start.
pub(super) struct SocketDriver {
    table: SessionTable,
    sleep: Pin<Box<Sleep>>,
    /// Time for which `sleep` is set.
    sleep_until: Time,
}

impl SocketDriver {
    pub(super) fn spawn(table: SessionTable) {
        tokio::spawn(Self {
            table,
            sleep: Box::pin(sleep(Duration::ZERO)),
            sleep_until: Time(0),
        });
    }

    /// Sleeps until `at`. An earlier wake-up that is already set stays and may be spurious.
    fn poll_sleep(&mut self, cx: &mut Context<'_>, now: Time, at: Time) -> Poll<()> {
        if self.sleep_until <= now || at < self.sleep_until {
            self.sleep_until = at;
            self.sleep
                .as_mut()
                .reset(Instant::now() + at.duration_since(now));
        }
        self.sleep.as_mut().poll(cx)
    }
}

impl Future for SocketDriver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let me = self.get_mut();
        me.table.socket.lock_timers().mark_awake();
        me.table.apply_change();
        #[cfg(target_os = "linux")]
        me.table.answer_handover();
        for _ in 0..MAX_BATCHES {
            let received = me.table.poll_receive(cx, system::monotonic_now());
            let now = system::monotonic_now();
            me.table.settle_sessions(now);
            let alarm = match received {
                Poll::Ready(Ok(())) => continue,
                Poll::Ready(Err(_)) => Some(now + ERROR_PAUSE),
                Poll::Pending if me.table.is_finished() => return Poll::Ready(()),
                Poll::Pending => me.table.socket.lock_timers().register_sleep(cx.waker()),
            };
            match alarm {
                Some(at) if at <= now => {}
                Some(at) if me.poll_sleep(cx, now, at).is_ready() => {}
                _ => return Poll::Pending,
            }
            me.table.socket.lock_timers().mark_awake();
        }
        yield_to_others(cx);
        Poll::Pending
    }
}
