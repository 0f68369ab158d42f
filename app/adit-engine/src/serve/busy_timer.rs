//! A timer that is due soon while a listener accepts many connections.
//!
//! tokio wakes the thread that waits for sockets for each timer that is earlier than all others: a write to an `eventfd`,
//! and a wakeup with nothing to do. A connection has several time limits, one after the other, and each was the earliest
//! one. Measured with one short connection after the other through a Shadowsocks client and its server: with this timer
//! before those limits, there are no writes, instead of 2.4 and 2.9 per connection.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// Interval of the timer. Shorter than the time limits of a connection, so that they come after it.
const INTERVAL: Duration = Duration::from_millis(100);
/// Number of connections within [`INTERVAL`] from which on the timer runs: fewer cost less than its wakeups.
const BUSY_COUNT: u32 = 8;

/// The timer of one accept loop.
pub(super) struct BusyTimer {
    sleep: Pin<Box<Sleep>>,
    is_running: bool,
    /// Number of connections since `since`.
    count: u32,
    since: Instant,
}

impl BusyTimer {
    pub(super) fn new() -> Self {
        Self {
            sleep: Box::pin(sleep(Duration::ZERO)),
            is_running: false,
            count: 0,
            since: Instant::now(),
        }
    }

    /// Returns true if [`Self::wait`] is to be awaited.
    pub(super) const fn is_running(&self) -> bool {
        self.is_running
    }

    /// Counts a connection, and starts the timer if there are many.
    pub(super) fn count_connection(&mut self) {
        self.count += 1;
        // The clock is read for every eighth connection.
        if self.is_running || self.count < BUSY_COUNT {
            return;
        }
        let now = Instant::now();
        self.is_running = now - self.since < INTERVAL;
        self.restart(now);
    }

    /// Waits until the timer is due, and starts it again if there were many connections meanwhile.
    pub(super) async fn wait(&mut self) {
        self.sleep.as_mut().await;
        self.is_running = self.count >= BUSY_COUNT;
        self.restart(Instant::now());
    }

    fn restart(&mut self, now: Instant) {
        (self.count, self.since) = (0, now);
        if self.is_running {
            self.sleep.as_mut().reset(now + INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn count(timer: &mut BusyTimer, connections: u32) {
        for _ in 0..connections {
            timer.count_connection();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_timer_runs_while_there_are_many_connections() {
        let mut timer = BusyTimer::new();
        for _ in 0..10 {
            count(&mut timer, BUSY_COUNT - 1);
            advance(INTERVAL).await;
        }
        assert!(!timer.is_running(), "few connections");
        count(&mut timer, 2 * BUSY_COUNT);
        assert!(timer.is_running());
        for _ in 0..3 {
            let since = Instant::now();
            count(&mut timer, BUSY_COUNT);
            timer.wait().await;
            assert!(since.elapsed() >= INTERVAL && timer.is_running());
        }
        count(&mut timer, BUSY_COUNT - 1);
        timer.wait().await;
        assert!(!timer.is_running(), "fewer than before");
    }
}
