//! Counter of open connections.

use std::sync::Arc;

use tokio::sync::watch;

/// A counter of open connections, shared by its clones.
#[derive(Debug, Clone)]
pub(super) struct ConnectionCounter(Arc<watch::Sender<usize>>);

impl Default for ConnectionCounter {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

/// A connection, counted until dropped.
#[derive(Debug)]
pub(super) struct CountedConnection(ConnectionCounter);

impl ConnectionCounter {
    /// Counts a connection.
    pub(super) fn count_connection(&self) -> CountedConnection {
        self.0.send_modify(|open| *open += 1);
        CountedConnection(self.clone())
    }

    /// Waits until no connection is open.
    pub(super) async fn wait_until_empty(&self) {
        // `self` holds the sender, so this cannot fail.
        let _ = self.0.subscribe().wait_for(|open| *open == 0).await;
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.0.send_modify(|open| *open -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_empty_when_all_have_left() {
        let tally = ConnectionCounter::default();
        tally.wait_until_empty().await;
        let (one, two) = (tally.count_connection(), tally.clone().count_connection());
        let waiting = tokio::spawn({
            let tally = tally.clone();
            async move { tally.wait_until_empty().await }
        });
        drop(one);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(two);
        waiting.await.unwrap();
    }
}
