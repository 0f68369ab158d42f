//! Public-key computations, off the threads that move bytes.
//!
//! A key exchange costs a server from a tenth of a millisecond to a few tens of them, and anybody
//! can ask for one. On the threads of the runtime each of them would hold up every other connection
//! for that time; here they take turns on the threads for blocking work, and no more than half of
//! the processors are at it at once. The sources that wait take turns, and those of one source are
//! served in the order in which they came: many connections of one address cost the others one
//! computation. How many wait is the number of connections that have not logged in, which a
//! listener limits, also by source.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::IpAddr;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::thread::available_parallelism;

use adit_ssh_proto::SshError;
use adit_ssh_proto::auth::{ServerAuth, ServerStep};
use adit_ssh_proto::transport::{Computed, Transport};
use adit_wire::source_network;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use super::BoxFuture;

/// Who computations are for. A crowd of strangers does not hold up those who are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// A client that has not logged in.
    Stranger,
    /// A user who is in.
    User,
}

/// Where a computation's client is; `None` where nobody knows.
type Source = Option<IpAddr>;

/// Turns of sources at what is scarce.
struct Turns(Mutex<Waiting>);

struct Waiting {
    /// What may begin at once.
    free: usize,
    /// Those who wait, by source. None is without an entry.
    queues: HashMap<Source, VecDeque<oneshot::Sender<Turn>>>,
    /// The sources that wait, the next one in front.
    round: VecDeque<Source>,
}

/// The right to compute. The next one has it when it is dropped.
struct Turn(Option<&'static Turns>);

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = self.0.take() {
            turns.pass_on();
        }
    }
}

impl Turns {
    fn new(at_once: usize) -> Self {
        Self(Mutex::new(Waiting {
            free: at_once,
            queues: HashMap::new(),
            round: VecDeque::new(),
        }))
    }

    async fn turn(&'static self, source: Source) -> Turn {
        let source = source.map(source_network);
        let turn = {
            let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.free > 0 {
                waiting.free -= 1;
                return Turn(Some(self));
            }
            let (turn, comes) = oneshot::channel();
            let Waiting { queues, round, .. } = &mut *waiting;
            let queue = queues.entry(source).or_insert_with(|| {
                round.push_back(source);
                VecDeque::new()
            });
            // Those who have left are not kept until it is their turn.
            queue.retain(|other| !other.is_closed());
            queue.push_back(turn);
            comes
        };
        // No sender is dropped before it has sent, unless its receiver is gone.
        let turn = turn.await;
        debug_assert!(turn.is_ok(), "a computation's turn was lost");
        turn.unwrap_or(Turn(None))
    }

    /// Lets the next one begin.
    fn pass_on(&'static self) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(next) = waiting.next() {
            match next.send(Turn(Some(self))) {
                Ok(()) => return,
                // That one has left. Its turn is not dropped as it is: this goes on with the next.
                Err(mut unused) => unused.0 = None,
            }
        }
        waiting.free += 1;
    }
}

impl Waiting {
    /// Who is next.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
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

struct All {
    strangers: Turns,
    users: Turns,
}

static ALL: LazyLock<All> = LazyLock::new(|| All {
    strangers: Turns::new(at_once()),
    users: Turns::new(at_once()),
});

/// Computations of one kind at a time.
fn at_once() -> usize {
    available_parallelism().map_or(1, |n| n.get().div_ceil(2))
}

/// What the transport of one connection has to compute.
#[derive(Default)]
pub struct Computations {
    /// Where the client is, so that they take turns by source.
    source: Source,
    running: Option<BoxFuture<'static, Result<Computed, SshError>>>,
    done: u32,
}

impl Computations {
    /// For a client from there; `None` if nobody knows, and all of these take turns as one.
    #[must_use]
    pub const fn of(source: Option<IpAddr>) -> Self {
        Self {
            source,
            running: None,
            done: 0,
        }
    }

    /// Goes on with what `transport` has to compute, until there is nothing.
    ///
    /// # Errors
    /// As [`Transport::finish_computation`].
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        transport: &mut Transport,
        whose: Whose,
    ) -> Poll<Result<(), SshError>> {
        loop {
            if let Some(running) = &mut self.running {
                let computed = ready!(running.as_mut().poll(cx));
                self.running = None;
                self.done = self.done.saturating_add(1);
                transport.finish_computation(computed?)?;
            }
            let Some(computation) = transport.take_computation() else {
                return Poll::Ready(Ok(()));
            };
            let run = apart(whose, self.source, move || computation.run());
            self.running = Some(Box::pin(run));
        }
    }

    /// Has `auth` handle a message of the client; in another thread if a signature has to be
    /// verified for that.
    ///
    /// # Errors
    /// The runtime ends. What [`ServerAuth::handle_input`] returns stands beside `auth`.
    pub fn authenticate(
        &self,
        mut auth: ServerAuth,
        payload: Vec<u8>,
    ) -> impl Future<Output = Result<(ServerAuth, Result<ServerStep, SshError>), SshError>> + use<>
    {
        let source = self.source;
        let signed = ServerAuth::tried(&payload).is_some_and(|tried| tried.signed);
        let handle = move || {
            let step = auth.handle_input(&payload);
            (auth, step)
        };
        async move {
            if signed {
                apart(Whose::Stranger, source, handle).await
            } else {
                Ok(handle())
            }
        }
    }

    /// How many have come to their end.
    #[must_use]
    pub const fn done(&self) -> u32 {
        self.done
    }
}

impl fmt::Debug for Computations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Computations")
            .field("source", &self.source)
            .field("running", &self.running.is_some())
            .field("done", &self.done)
            .finish()
    }
}

/// Runs `work` on another thread, when the turn of its source has come.
pub(super) async fn apart<T: Send + 'static>(
    whose: Whose,
    source: Source,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SshError> {
    let turns = match whose {
        Whose::Stranger => &ALL.strangers,
        Whose::User => &ALL.users,
    };
    let turn = turns.turn(source).await;
    let done = spawn_blocking(move || {
        let done = work();
        // Held by the work and not by those who wait for it, who may be gone by now.
        drop(turn);
        done
    });
    done.await
        .map_err(|_| SshError::Crypto("a computation was cut off"))
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
        let tasks: Vec<_> = (0..4 * at_once() + 4)
            .map(|_| tokio::spawn(apart(Whose::Stranger, None, work)))
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        assert_eq!(MOST.load(Ordering::SeqCst), at_once());
    }

    fn one_at_a_time() -> &'static Turns {
        Box::leak(Box::new(Turns::new(1)))
    }

    /// A task that waits for its turn, and says when it has it.
    async fn waiter(
        turns: &'static Turns,
        from: &str,
        name: &'static str,
        served: &'static Mutex<Vec<&'static str>>,
    ) -> JoinHandle<()> {
        let from = Some(from.parse().unwrap());
        let waiter = tokio::spawn(async move {
            let turn = turns.turn(from).await;
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
        let first = turns.turn(None).await;
        let mut waiters = Vec::new();
        for _ in 0..20 {
            // Of one network of IPv6, which has as many addresses as it likes.
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
        let first = turns.turn(None).await;
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
