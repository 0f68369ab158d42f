//! Attempts to open a stream or a path through several members.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::time::timeout;

use super::group_member::GroupMember;
use crate::DialError;

/// Time for which an attempt that has lost the race continues, to find out if its member works.
pub(super) const CONFIRM_WITHIN: Duration = Duration::from_secs(3);

/// The future of an attempt, which records its own result.
pub(super) type Opening<T> = Pin<Box<dyn Future<Output = Result<T, DialError>> + Send>>;

/// Attempts that run. When they are dropped, those that were late continue for a while in the background.
pub(super) struct PendingOpens<T: Send + 'static>(Vec<PendingOpen<T>>);

struct PendingOpen<T> {
    member: Arc<GroupMember>,
    since: Instant,
    is_late: bool,
    opening: Opening<T>,
}

impl<T: Send + 'static> Default for PendingOpens<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Send + 'static> PendingOpens<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds an attempt through `member`.
    pub(super) fn add(&mut self, member: Arc<GroupMember>, opening: Opening<T>) {
        self.0.push(PendingOpen {
            member,
            since: Instant::now(),
            is_late: false,
            opening,
        });
    }

    /// Records that all attempts so far have taken longer than usual.
    pub(super) fn mark_late(&mut self) {
        for open in &mut self.0 {
            open.is_late = true;
            if let Some(health) = open.member.health() {
                health.record_late();
            }
        }
    }

    /// Returns the result of the first attempt that ends.
    pub(super) fn poll_any(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, DialError>> {
        for at in 0..self.0.len() {
            let ended = self
                .0
                .get_mut(at)
                .map(|open| open.opening.as_mut().poll(cx));
            if let Some(Poll::Ready(result)) = ended {
                self.0.remove(at);
                return Poll::Ready(result);
            }
        }
        Poll::Pending
    }
}

impl<T: Send + 'static> Drop for PendingOpens<T> {
    fn drop(&mut self) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        for open in self.0.drain(..).filter(|open| open.is_late) {
            runtime.spawn(async move {
                if timeout(CONFIRM_WITHIN, open.opening).await.is_err() {
                    let waited = open.since.elapsed().as_secs_f32();
                    let why = format!("no connection in {waited:.1} s");
                    open.member.record_failure(open.since, "timed-out", &why);
                }
            });
        }
    }
}
