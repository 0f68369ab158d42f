//! Public-key computations, off the threads that move bytes.
//!
//! A key exchange costs a server between a tenth of a millisecond and a few tens of milliseconds, and
//! any peer can request one. On the runtime's threads each would delay every other connection for that
//! time. They run on the threads for blocking work instead, on at most half of the processors at a
//! time. Waiting sources take turns, and each source is served in order of arrival: many connections
//! from one address delay the others by one computation. The number of waiting computations is bounded
//! by the number of unauthenticated connections, which a listener limits, also by source.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::IpAddr;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::thread::available_parallelism;

use adit_ssh_proto::SshError;
use adit_ssh_proto::auth::{ServerAuth, ServerStep};
use adit_ssh_proto::transport::{KexComputationResult, Transport};
use adit_wire::source_network;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use super::BoxFuture;

/// The kind of peer that a computation is for. Unauthenticated peers, however many, do not delay
/// authenticated users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthState {
    /// A client that has not logged in.
    Unauthenticated,
    /// A user who has logged in.
    Authenticated,
}

/// The address of the client; `None` if unknown.
type Source = Option<IpAddr>;

/// A fair queue for a limited number of slots, by source.
struct FairQueue(Mutex<QueueState>);

struct QueueState {
    /// The number of free slots.
    free: usize,
    /// Waiting tasks by source. No queue is empty.
    queues: HashMap<Source, VecDeque<oneshot::Sender<ComputePermit>>>,
    /// The waiting sources, the next one at the front.
    round: VecDeque<Source>,
}

/// The right to compute. Dropping it passes it to the next in line.
struct ComputePermit(Option<&'static FairQueue>);

impl Drop for ComputePermit {
    fn drop(&mut self) {
        if let Some(turns) = self.0.take() {
            turns.release_permit();
        }
    }
}

impl FairQueue {
    fn new(at_once: usize) -> Self {
        Self(Mutex::new(QueueState {
            free: at_once,
            queues: HashMap::new(),
            round: VecDeque::new(),
        }))
    }

    async fn acquire_permit(&'static self, source: Source) -> ComputePermit {
        let source = source.map(source_network);
        let turn = {
            let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.free > 0 {
                waiting.free -= 1;
                return ComputePermit(Some(self));
            }
            let (turn, comes) = oneshot::channel();
            let QueueState { queues, round, .. } = &mut *waiting;
            let queue = queues.entry(source).or_insert_with(|| {
                round.push_back(source);
                VecDeque::new()
            });
            // Drops the waiting tasks that were cancelled, so that they do not pile up.
            queue.retain(|other| !other.is_closed());
            queue.push_back(turn);
            comes
        };
        // No sender is dropped before it has sent, unless its receiver is gone.
        let turn = turn.await;
        debug_assert!(turn.is_ok(), "a computation's turn was lost");
        turn.unwrap_or(ComputePermit(None))
    }

    /// Passes a slot to the next in line.
    fn release_permit(&'static self) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(next) = waiting.take_next_waiter() {
            match next.send(ComputePermit(Some(self))) {
                Ok(()) => return,
                // The receiver is gone. Disarm its turn: dropping it would recurse into this function.
                Err(mut unused) => unused.0 = None,
            }
        }
        waiting.free += 1;
    }
}

impl QueueState {
    /// Removes the next waiting task of the next source and returns it.
    fn take_next_waiter(&mut self) -> Option<oneshot::Sender<ComputePermit>> {
        let source = self.round.pop_front()?;
        let queue = self.queues.get_mut(&source)?;
        let next = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&source);
        } else {
            self.round.push_back(source);
        }
        next
    }
}

struct ComputeQueues {
    unauthenticated: FairQueue,
    authenticated: FairQueue,
}

static COMPUTE_QUEUES: LazyLock<ComputeQueues> = LazyLock::new(|| ComputeQueues {
    unauthenticated: FairQueue::new(max_concurrent()),
    authenticated: FairQueue::new(max_concurrent()),
});

/// Returns the number of computations of one kind that may run at a time.
fn max_concurrent() -> usize {
    available_parallelism().map_or(1, |n| n.get().div_ceil(2))
}

/// The pending computations of one connection's transport.
#[derive(Default)]
pub struct Computations {
    /// The address of the client, by which computations take turns.
    source: Source,
    running: Option<BoxFuture<'static, Result<KexComputationResult, SshError>>>,
    completed: u32,
}

impl Computations {
    /// Creates the state for a client at `source`. All clients of unknown source (`None`) take turns as
    /// one.
    #[must_use]
    pub const fn for_source(source: Option<IpAddr>) -> Self {
        Self {
            source,
            running: None,
            completed: 0,
        }
    }

    /// Runs the computations of `transport` until none is left.
    ///
    /// # Errors
    /// The errors of [`Transport::finish_computation`].
    pub fn poll_computations(
        &mut self,
        cx: &mut Context<'_>,
        transport: &mut Transport,
        whose: AuthState,
    ) -> Poll<Result<(), SshError>> {
        loop {
            if let Some(running) = &mut self.running {
                let computed = ready!(running.as_mut().poll(cx));
                self.running = None;
                self.completed = self.completed.saturating_add(1);
                transport.finish_computation(computed?)?;
            }
            let Some(computation) = transport.take_computation() else {
                return Poll::Ready(Ok(()));
            };
            let run = run_blocking(whose, self.source, move || computation.run());
            self.running = Some(Box::pin(run));
        }
    }

    /// Makes `auth` handle a client's message, on another thread if this requires verifying a
    /// signature.
    ///
    /// # Errors
    /// Fails if the runtime shuts down. The result of [`ServerAuth::handle_input`] is returned beside
    /// `auth`.
    pub fn handle_auth_message(
        &self,
        mut auth: ServerAuth,
        payload: Vec<u8>,
    ) -> impl Future<Output = Result<(ServerAuth, Result<ServerStep, SshError>), SshError>> + use<>
    {
        let source = self.source;
        let signed = ServerAuth::peek_attempt(&payload).is_some_and(|tried| tried.signed);
        let handle = move || {
            let step = auth.handle_input(&payload);
            (auth, step)
        };
        async move {
            if signed {
                run_blocking(AuthState::Unauthenticated, source, handle).await
            } else {
                Ok(handle())
            }
        }
    }

    /// Returns the number of completed computations.
    #[must_use]
    pub const fn completed_count(&self) -> u32 {
        self.completed
    }
}

impl fmt::Debug for Computations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Computations")
            .field("source", &self.source)
            .field("running", &self.running.is_some())
            .field("done", &self.completed)
            .finish()
    }
}

/// Runs `work` on a blocking thread when it is the turn of its source.
pub(super) async fn run_blocking<T: Send + 'static>(
    whose: AuthState,
    source: Source,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SshError> {
    let turns = match whose {
        AuthState::Unauthenticated => &COMPUTE_QUEUES.unauthenticated,
        AuthState::Authenticated => &COMPUTE_QUEUES.authenticated,
    };
    let turn = turns.acquire_permit(source).await;
    let done = spawn_blocking(move || {
        let done = work();
        // The work holds the turn, not the task that waits for it: that task may be gone by now.
        drop(turn);
        done
    });
    done.await
        .map_err(|_| SshError::Crypto("the runtime shut down during a computation"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use tokio::task::JoinHandle;

    use super::*;

    #[tokio::test]
    async fn no_more_than_half_of_the_processors_compute() {
        static NOW: AtomicUsize = AtomicUsize::new(0);
        static MOST: AtomicUsize = AtomicUsize::new(0);
        let work = || {
            MOST.fetch_max(NOW.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(5));
            NOW.fetch_sub(1, Ordering::SeqCst);
        };
        let tasks: Vec<_> = (0..4 * max_concurrent() + 4)
            .map(|_| tokio::spawn(run_blocking(AuthState::Unauthenticated, None, work)))
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        assert_eq!(MOST.load(Ordering::SeqCst), max_concurrent());
    }

    fn one_at_a_time() -> &'static FairQueue {
        Box::leak(Box::new(FairQueue::new(1)))
    }

    /// Spawns a task that waits for its turn and records when it has it.
    async fn waiter(
        turns: &'static FairQueue,
        from: &str,
        name: &'static str,
        served: &'static Mutex<Vec<&'static str>>,
    ) -> JoinHandle<()> {
        let from = Some(from.parse().unwrap());
        let waiter = tokio::spawn(async move {
            let turn = turns.acquire_permit(from).await;
            served.lock().unwrap().push(name);
            drop(turn);
        });
        tokio::task::yield_now().await;
        waiter
    }

    #[tokio::test]
    async fn a_source_with_many_connections_costs_the_others_one_turn() {
        static SERVED: Mutex<Vec<&str>> = Mutex::new(Vec::new());
        let turns = one_at_a_time();
        let first = turns.acquire_permit(None).await;
        let mut waiters = Vec::new();
        for _ in 0..20 {
            // Both are in one IPv6 /64, which counts as one source.
            waiters.push(waiter(turns, "2001:db8::1", "crowd", &SERVED).await);
            waiters.push(waiter(turns, "2001:db8::2", "crowd", &SERVED).await);
        }
        waiters.push(waiter(turns, "192.0.2.1", "other", &SERVED).await);
        waiters.push(waiter(turns, "192.0.2.2", "third", &SERVED).await);
        drop(first);
        for waiter in waiters {
            waiter.await.unwrap();
        }
        let served = SERVED.lock().unwrap();
        assert_eq!(served[..4], ["crowd", "other", "third", "crowd"]);
        assert_eq!(served.len(), 42);
    }

    #[tokio::test]
    async fn who_leaves_takes_no_turn_away() {
        static SERVED: Mutex<Vec<&str>> = Mutex::new(Vec::new());
        let turns = one_at_a_time();
        let first = turns.acquire_permit(None).await;
        let gone = waiter(turns, "192.0.2.1", "gone", &SERVED).await;
        let stays = waiter(turns, "192.0.2.1", "stays", &SERVED).await;
        let unseen = waiter(turns, "192.0.2.2", "gone", &SERVED).await;
        for gone in [gone, unseen] {
            gone.abort();
            assert!(gone.await.unwrap_err().is_cancelled());
        }
        drop(first);
        stays.await.unwrap();
        assert_eq!(*SERVED.lock().unwrap(), ["stays"]);
        let waiting = turns.0.lock().unwrap();
        assert_eq!((waiting.free, waiting.queues.len()), (1, 0));
    }
}
