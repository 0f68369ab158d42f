//! The rate of a user in one direction, which all of their sessions share.
//!
//! Sessions that find too few tokens wait in a queue. While there are any, one task sleeps until the next of them
//! may continue, and wakes no more of them than there are tokens for.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use adit_wire::narrow_int;
use tokio::time::{Instant, sleep};

/// The bucket holds the bytes of 1/`BURST_PART` of a second.
const BURST_PART: u64 = 10;
/// A session whose turn it is may move the bytes of 1/`TURN_PART` of a second.
const TURN_PART: u64 = 50;
/// Bounds of the bytes of a turn.
const TURN_RANGE: (u64, u64) = (512, 64 << 10);
/// Minimum time between two turns of the task.
const MIN_SLEEP: Duration = Duration::from_millis(2);

/// A token bucket with a queue.
#[derive(Debug)]
pub(super) struct TokenBucket(Mutex<BucketState>);

#[derive(Debug)]
struct BucketState {
    /// Bytes per second.
    rate: u64,
    /// Bytes that may be moved now; negative after a session has moved more than it was allowed.
    tokens: i64,
    /// The time up to which tokens were added.
    filled: Instant,
    queue: VecDeque<Waker>,
    /// The number of the last ticket that has left the queue.
    served: u64,
    /// True while a task wakes those that wait.
    is_watched: bool,
}

/// The place of a session in the queue: 0, or the number of its ticket.
#[derive(Debug, Default)]
pub(crate) struct QueueTicket(AtomicU64);

impl TokenBucket {
    /// Creates a full bucket.
    pub(super) fn new(rate: u64) -> Self {
        let mut state = BucketState {
            rate: 0,
            tokens: 0,
            filled: Instant::now(),
            queue: VecDeque::new(),
            served: 0,
            is_watched: false,
        };
        state.set_rate(rate);
        state.tokens = state.burst();
        Self(Mutex::new(state))
    }

    /// Changes the rate, also for those that wait.
    pub(super) fn set_rate(&self, rate: u64) {
        self.lock().set_rate(rate);
    }

    /// Wakes all that wait.
    pub(super) fn release_all(&self) {
        let waiting = {
            let mut state = self.lock();
            state.served += state.queue.len() as u64;
            std::mem::take(&mut state.queue)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Takes the tokens of a datagram; returns false if there are none.
    pub(super) fn try_take(&self, n: usize) -> bool {
        let mut state = self.lock();
        state.refill();
        // The last datagram may be larger than what is left: its bytes are owed.
        let granted = state.tokens > 0;
        if granted {
            state.take(n);
        }
        granted
    }

    /// Takes the tokens of bytes that were moved.
    pub(super) fn take(&self, n: usize) {
        self.lock().take(n);
    }

    /// Returns the number of bytes that may be moved now; otherwise enters the queue, and wakes the task of `cx` when
    /// it is its turn.
    pub(super) fn poll_turn(
        self: &Arc<Self>,
        cx: &Context<'_>,
        ticket: &QueueTicket,
    ) -> Poll<usize> {
        let mut state = self.lock();
        let number = ticket.0.load(Ordering::Relaxed);
        let waits = number > state.served;
        if waits {
            // The session may run in another task by now.
            let at = narrow_int::<usize>(number - state.served - 1);
            if let Some(waker) = state.queue.get_mut(at) {
                waker.clone_from(cx.waker());
            }
            return Poll::Pending;
        }
        state.refill();
        let has_turn = number != 0 || state.queue.is_empty();
        if has_turn && state.tokens >= state.turn() {
            ticket.0.store(0, Ordering::Relaxed);
            return Poll::Ready(usize::try_from(state.turn()).unwrap_or(usize::MAX));
        }
        state.queue.push_back(cx.waker().clone());
        let number = state.served + state.queue.len() as u64;
        ticket.0.store(number, Ordering::Relaxed);
        if !std::mem::replace(&mut state.is_watched, true) {
            tokio::spawn(watch_queue(self.clone()));
        }
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, BucketState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes those that wait, in their order, until there are none.
async fn watch_queue(bucket: Arc<TokenBucket>) {
    loop {
        let wait = {
            let mut state = bucket.lock();
            if state.queue.is_empty() {
                state.is_watched = false;
                return;
            }
            state.refill();
            state.time_to_turn()
        };
        sleep(wait.max(MIN_SLEEP)).await;
        let woken: Vec<Waker> = {
            let mut state = bucket.lock();
            state.refill();
            let turns = usize::try_from(state.tokens / state.turn()).unwrap_or_default();
            let count = turns.min(state.queue.len());
            state.served += count as u64;
            state.queue.drain(..count).collect()
        };
        woken.into_iter().for_each(Waker::wake);
    }
}

impl BucketState {
    fn set_rate(&mut self, rate: u64) {
        self.refill();
        self.rate = rate.clamp(1, i64::MAX.unsigned_abs() / 2);
    }

    /// Returns the maximum number of tokens.
    fn burst(&self) -> i64 {
        let burst = (self.rate / BURST_PART).max(1);
        i64::try_from(burst).unwrap_or(i64::MAX).max(self.turn())
    }

    /// Returns the number of tokens for a turn.
    fn turn(&self) -> i64 {
        let (min, max) = TURN_RANGE;
        i64::try_from((self.rate / TURN_PART).clamp(min, max)).unwrap_or(i64::MAX)
    }

    fn take(&mut self, n: usize) {
        self.tokens = self
            .tokens
            .saturating_sub(i64::try_from(n).unwrap_or(i64::MAX));
    }

    /// Adds the tokens since the last time.
    fn refill(&mut self) {
        let now = Instant::now();
        let spent = now.saturating_duration_since(self.filled);
        let added = spent.as_nanos().saturating_mul(self.rate.into()) / 1_000_000_000;
        // Time that is too short for a token counts later.
        if added == 0 {
            return;
        }
        self.filled = now;
        let added = i64::try_from(added).unwrap_or(i64::MAX);
        self.tokens = self.tokens.saturating_add(added).min(self.burst());
    }

    /// Returns the time until there are tokens for a turn.
    fn time_to_turn(&self) -> Duration {
        let missing = self.turn().saturating_sub(self.tokens).max(0);
        let nanos = u128::from(missing.unsigned_abs()) * 1_000_000_000 / u128::from(self.rate);
        // A rate can be changed meanwhile.
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// Moves bytes in chunks of `chunk` for `time`, and returns their number.
    async fn move_bytes(bucket: &Arc<TokenBucket>, chunk: usize, time: Duration) -> u64 {
        let (until, ticket) = (Instant::now() + time, QueueTicket::default());
        let mut moved = 0;
        while Instant::now() < until {
            let allowed = poll_fn(|cx| bucket.poll_turn(cx, &ticket)).await;
            let n = allowed.min(chunk);
            bucket.take(n);
            moved += n as u64;
        }
        moved
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_share_the_rate_evenly() {
        const RATE: u64 = 1_000_000;
        let bucket = Arc::new(TokenBucket::new(RATE));
        let time = Duration::from_secs(10);
        let each: Vec<_> = [700, 1500, 16 << 10, 1 << 20]
            .map(|chunk| {
                let bucket = bucket.clone();
                tokio::spawn(async move { move_bytes(&bucket, chunk, time).await })
            })
            .into_iter()
            .collect();
        let mut sums = Vec::new();
        for session in each {
            sums.push(session.await.unwrap());
        }
        let sum: u64 = sums.iter().sum();
        let expected = RATE * 10;
        assert!(sum > expected * 95 / 100, "{sums:?}");
        assert!(sum < expected * 105 / 100, "{sums:?}");
        assert!(sums.iter().all(|sum| *sum > 0), "{sums:?}");
        assert!(!bucket.lock().is_watched || bucket.lock().queue.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn datagrams_above_the_rate_are_refused() {
        let bucket = TokenBucket::new(100_000);
        let mut passed = 0;
        for _ in 0..1000 {
            tokio::time::advance(Duration::from_millis(10)).await;
            // Four times the rate.
            passed += u64::from(bucket.try_take(4000)) * 4000;
        }
        assert!((950_000..1_050_000).contains(&passed), "{passed}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_ends_in_the_queue_holds_nobody_up() {
        let bucket = Arc::new(TokenBucket::new(10_000));
        bucket.take(2000);
        for _ in 0..5 {
            // Tickets whose sessions are gone.
            let cx = Context::from_waker(Waker::noop());
            assert!(bucket.poll_turn(&cx, &QueueTicket::default()).is_pending());
        }
        let moved = move_bytes(&bucket, 1 << 20, Duration::from_secs(20)).await;
        assert!(moved > 150_000, "{moved}");
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_wait_are_released() {
        let bucket = Arc::new(TokenBucket::new(1));
        bucket.take(1 << 30);
        let waiting = tokio::spawn({
            let bucket = bucket.clone();
            async move {
                let ticket = QueueTicket::default();
                let mut polls = 0;
                poll_fn(|cx| {
                    polls += 1;
                    match bucket.poll_turn(cx, &ticket) {
                        Poll::Pending if polls == 1 => Poll::Pending,
                        _ => Poll::Ready(()),
                    }
                })
                .await;
            }
        });
        sleep(Duration::from_secs(1)).await;
        assert!(!waiting.is_finished());
        bucket.release_all();
        waiting.await.unwrap();
    }
}
