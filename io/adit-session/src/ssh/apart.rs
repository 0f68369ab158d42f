//! Public-key computations, off the threads that move bytes.
//!
//! A key exchange costs a server from a tenth of a millisecond to a few tens of them, and anybody
//! can ask for one. On the threads of the runtime each of them would hold up every other connection
//! for so long; here they take turns on the threads for blocking work, and no more than half of the
//! processors are at it at once. Those who wait are served in the order in which they came. Their
//! number is that of connections that have not logged in, which a listener limits, also by source.

use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;

use adit_ssh::SshError;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Who computations are for. A crowd of strangers does not hold up those who are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// A client that has not logged in.
    Stranger,
    /// A user who is in.
    User,
}

struct Turns {
    strangers: Arc<Semaphore>,
    users: Arc<Semaphore>,
}

static TURNS: LazyLock<Turns> = LazyLock::new(|| {
    let turns = || Arc::new(Semaphore::new(at_once()));
    Turns {
        strangers: turns(),
        users: turns(),
    }
});

/// Computations of one kind at a time.
fn at_once() -> usize {
    available_parallelism().map_or(1, |n| n.get().div_ceil(2))
}

/// Runs `work` on another thread, when its turn has come.
pub(super) async fn apart<T: Send + 'static>(
    whose: Whose,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SshError> {
    const CUT: SshError = SshError::Crypto("a computation was cut off");
    let turns = match whose {
        Whose::Stranger => &TURNS.strangers,
        Whose::User => &TURNS.users,
    };
    let turn = Arc::clone(turns).acquire_owned().await.map_err(|_| CUT)?;
    let done = spawn_blocking(move || {
        let done = work();
        // Held by the work and not by those who wait for it, who may be gone by now.
        drop(turn);
        done
    });
    done.await.map_err(|_| CUT)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

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
            .map(|_| tokio::spawn(apart(Whose::Stranger, work)))
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        assert_eq!(MOST.load(Ordering::SeqCst), at_once());
    }
}
