//! The calls of a node's checks: those of one millisecond share one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::Shared;
use crate::store::{SaltClaim, Store};

/// Maximum number of checks that wait for a call.
pub(super) const MAX_QUEUED: usize = 8192;
/// Maximum number of claims in one call.
const MAX_BATCH: usize = 512;
/// Time for which checks are collected while another call is open.
const BATCH_TIME: Duration = Duration::from_millis(1);
/// Maximum number of calls at a time.
const MAX_CALLS: usize = 16;
/// Time after which a call is given up.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval at which the store is asked again while it is silent and no check does.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A check that waits for a call.
pub(super) struct Check {
    /// It is new if all of these are.
    pub(super) claims: Vec<SaltClaim>,
    /// Claimed afterwards if it is new.
    pub(super) then: Option<SaltClaim>,
    /// The recipient of the answer; `None` if no session waits for it. Without an answer, it is dropped.
    pub(super) reply: Option<oneshot::Sender<bool>>,
}

/// Makes the calls, until all senders of checks are gone.
pub(super) async fn run_batches(
    store: Arc<dyn Store>,
    shared: Arc<Shared>,
    mut checks: mpsc::Receiver<Check>,
    queue: mpsc::WeakSender<Check>,
) {
    let calls = Arc::new(Semaphore::new(MAX_CALLS));
    loop {
        let first = tokio::select! {
            check = checks.recv() => check,
            () = ask_silent_store(&*store, &shared) => continue,
        };
        let Some(first) = first else {
            return;
        };
        let mut batch = Batch::default();
        batch.add(first);
        // Without an open call there is nothing to gain by waiting.
        let is_idle = calls.available_permits() == MAX_CALLS;
        let until = Instant::now() + BATCH_TIME;
        while !batch.is_full() {
            let next = match is_idle {
                true => checks.try_recv().ok(),
                false => timeout_at(until, checks.recv()).await.ok().flatten(),
            };
            match next {
                Some(check) => batch.add(check),
                None => break,
            }
        }
        let Ok(permit) = calls.clone().acquire_owned().await else {
            return;
        };
        let (store, shared, queue) = (store.clone(), shared.clone(), queue.clone());
        tokio::spawn(batch.call(store, shared, queue, permit));
    }
}

/// Asks a store that is silent until it answers; waits forever while it is not.
async fn ask_silent_store(store: &dyn Store, shared: &Shared) {
    loop {
        sleep(RETRY_INTERVAL).await;
        if !shared.is_silent() {
            continue;
        }
        let called = Instant::now();
        // A store may answer, and refuse claims because its memory is full.
        let claim = shared.test_claim();
        if let Ok(Ok(_)) = timeout(CALL_TIMEOUT, store.claim_salts(&[claim])).await {
            return shared.note_answer(called, Instant::now());
        }
    }
}

/// The checks of one call.
#[derive(Default)]
struct Batch {
    claims: Vec<SaltClaim>,
    /// The rest of each check, with the number of its claims.
    waiting: Vec<(usize, Check)>,
}

impl Batch {
    fn add(&mut self, mut check: Check) {
        let claims = std::mem::take(&mut check.claims);
        self.waiting.push((claims.len(), check));
        self.claims.extend(claims);
    }

    fn is_full(&self) -> bool {
        self.claims.len() >= MAX_BATCH
    }

    async fn call(
        self,
        store: Arc<dyn Store>,
        shared: Arc<Shared>,
        queue: mpsc::WeakSender<Check>,
        permit: OwnedSemaphorePermit,
    ) {
        let called = Instant::now();
        let answered = timeout(CALL_TIMEOUT, store.claim_salts(&self.claims)).await;
        drop(permit);
        let answers = match answered {
            Ok(Ok(answers)) if answers.len() == self.claims.len() => answers,
            Ok(Ok(_)) => return tracing::warn!("the store has answered other claims"),
            Ok(Err(why)) => return tracing::debug!("replays cannot be checked: {why}"),
            Err(_) => return tracing::debug!("replays cannot be checked: no answer"),
        };
        shared.note_answer(called, Instant::now());
        let mut answers = answers.as_slice();
        for (count, check) in self.waiting {
            let Some((own, rest)) = answers.split_at_checked(count) else {
                return;
            };
            answers = rest;
            let is_new = own.iter().all(|is_new| *is_new);
            if let Some(then) = check.then.filter(|_| is_new)
                && let Some(queue) = queue.upgrade()
            {
                // A session whose claim gets lost goes on.
                let _ = queue.try_send(Check {
                    claims: vec![then],
                    then: None,
                    reply: None,
                });
            }
            if let Some(reply) = check.reply {
                // The client may have closed its connection.
                let _ = reply.send(is_new);
            }
        }
    }
}
