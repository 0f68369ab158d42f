//! The switch between accepting and not accepting, for a listener whose socket is handed over.

use tokio::sync::watch;

/// The state of a listener's accept loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AcceptMode {
    Open,
    /// New connections wait in the kernel's backlog.
    Paused,
    /// The socket is closed.
    Closed,
}

/// Pauses and closes an accept loop. Connections that were accepted are served further.
pub(crate) struct AcceptSwitch {
    wanted: watch::Sender<AcceptMode>,
    seen: watch::Receiver<AcceptMode>,
}

/// The accept loop's end of an [`AcceptSwitch`].
pub(crate) struct AcceptPermit {
    wanted: watch::Receiver<AcceptMode>,
    seen: watch::Sender<AcceptMode>,
}

impl AcceptSwitch {
    /// Creates the switch of a loop that accepts, and the loop's end of it.
    pub(crate) fn new() -> (Self, AcceptPermit) {
        let (sender, wanted) = watch::channel(AcceptMode::Open);
        let (seen, receiver) = watch::channel(AcceptMode::Open);
        let switch = Self {
            wanted: sender,
            seen: receiver,
        };
        (switch, AcceptPermit { wanted, seen })
    }

    /// Pauses the loop; when this returns, it accepts nothing more.
    pub(crate) fn pause(&self) -> impl Future<Output = ()> + Send + use<> {
        self.set(AcceptMode::Paused)
    }

    /// Continues a paused loop.
    pub(crate) fn resume(&self) {
        self.wanted.send_replace(AcceptMode::Open);
    }

    /// Ends the loop; when this returns, its socket is closed.
    pub(crate) fn close(&self) -> impl Future<Output = ()> + Send + use<> {
        self.set(AcceptMode::Closed)
    }

    fn set(&self, mode: AcceptMode) -> impl Future<Output = ()> + Send + use<> {
        self.wanted.send_replace(mode);
        let mut seen = self.seen.clone();
        async move {
            // The error means that the loop has ended.
            let _ = seen.wait_for(|seen| *seen == mode).await;
        }
    }
}

impl AcceptPermit {
    /// Returns true if the loop may accept. Costs less than a poll of [`Self::is_paused_or_closed`].
    pub(crate) fn is_open(&self) -> bool {
        *self.wanted.borrow() == AcceptMode::Open
    }

    /// Waits until the loop must not accept.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub(crate) async fn is_paused_or_closed(&mut self) {
        let changed = self.wanted.wait_for(|mode| *mode != AcceptMode::Open);
        if changed.await.is_err() {
            // Without its switch a loop accepts until it is aborted.
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the loop may accept again. Returns false if it has to end, which closes its socket.
    pub(crate) async fn wait_until_open(&mut self) -> bool {
        loop {
            let mode = *self.wanted.borrow_and_update();
            match mode {
                AcceptMode::Open => {
                    self.seen.send_replace(mode);
                    return true;
                }
                // The drop of the permit shows that the socket is closed.
                AcceptMode::Closed => return false,
                AcceptMode::Paused => {
                    self.seen.send_replace(mode);
                    if self.wanted.changed().await.is_err() {
                        return false;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_loop_pauses_continues_and_ends() {
        let (switch, mut permit) = AcceptSwitch::new();
        let accepting = tokio::spawn(async move {
            let mut pauses = 0;
            loop {
                permit.is_paused_or_closed().await;
                pauses += 1;
                if !permit.wait_until_open().await {
                    return pauses;
                }
            }
        });
        switch.pause().await;
        switch.resume();
        switch.pause().await;
        switch.close().await;
        let pauses = accepting.await.unwrap();
        assert!((1..=2).contains(&pauses), "{pauses}");
        // The loop has ended.
        switch.pause().await;
    }
}
