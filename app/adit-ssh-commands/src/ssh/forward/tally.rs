//! Counter of open connections.

use std::sync::Arc;

use tokio::sync::watch;

/// A counter of open connections, shared by its clones.
#[derive(Debug, Clone)]
pub(super) struct Tally(Arc<watch::Sender<usize>>);

impl Default for Tally {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

/// A connection, counted until dropped.
#[derive(Debug)]
pub(super) struct Ticket(Tally);

impl Tally {
    /// Counts a connection.
    pub(super) fn enter(&self) -> Ticket {
        self.0.send_modify(|open| *open += 1);
        Ticket(self.clone())
    }

    /// Waits until no connection is open.
    pub(super) async fn empty(&self) {
        // `self` holds the sender, so this cannot fail.
        let _ = self.0.subscribe().wait_for(|open| *open == 0).await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.0.send_modify(|open| *open -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_empty_when_all_have_left() {
        let tally = Tally::default();
        tally.empty().await;
        let (one, two) = (tally.enter(), tally.clone().enter());
        let waiting = tokio::spawn({
            let tally = tally.clone();
            async move { tally.empty().await }
        });
        drop(one);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(two);
        waiting.await.unwrap();
    }
}
