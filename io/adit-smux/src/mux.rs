//! A session as its owner sees it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use adit_crypto::packet::qpp::PermutationPads;
use adit_net::system;
use adit_smux_proto::{Config, ConfigError, OpenError, Session};
use adit_stream::BoxStream;

use super::End;
use super::driver::Driver;
use super::framing::Framing;
use super::shared::Shared;
use super::stream::{Link, SmuxStream};

/// What both ends must agree on, and what each decides for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// smux; the version must be the peer's.
    pub config: Config,
    /// Snappy around all frames. Must be as the peer has it.
    pub compress: bool,
    /// kcptun's QPP over what each stream carries. Must be as the peer has it.
    pub pads: Option<Arc<PermutationPads>>,
}

/// One end of a connection with many streams.
///
/// Clones are handles to the same session. When the last one is dropped, the session ends with its
/// last stream.
#[derive(Debug)]
pub struct Mux {
    shared: Arc<Shared>,
}

impl Mux {
    /// Begins a session over a fresh connection, and tells the peer at once that it is there.
    ///
    /// # Errors
    /// Settings that make no session.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new(below: BoxStream, settings: Settings) -> Result<Self, ConfigError> {
        let Settings {
            config,
            compress,
            pads,
        } = settings;
        // Born one interval ago, the session owes its first sign of life now.
        let ahead = config.keepalive.unwrap_or(Duration::ZERO);
        let framing = Framing::new(config.version.number(), compress);
        let shared = Arc::new(Shared::new(
            Session::new(config, system::monotonic_now())?,
            pads,
        ));
        Driver::spawn(Arc::clone(&shared), below, framing, ahead);
        Ok(Self { shared })
    }

    /// Opens a stream. It can be written to at once.
    ///
    /// # Errors
    /// The session has as many streams as it may, has used all numbers, or is over.
    pub fn open(&self) -> Result<SmuxStream, OpenError> {
        let mut state = self.shared.lock();
        if state.end.is_some() {
            return Err(OpenError::Broken);
        }
        let id = state.core.open()?;
        let stream = Link::stream(&self.shared, &mut state, id);
        let waker = state.driver_to_wake();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        Ok(stream)
    }

    /// Waits for the next stream that the peer opens. For one task at a time; cancel-safe.
    ///
    /// # Errors
    /// The session is over.
    pub async fn accept(&self) -> Result<SmuxStream, End> {
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            let Some(id) = state.core.accept() else {
                if let Some(end) = &state.end {
                    return Poll::Ready(Err(end.clone()));
                }
                state.wait_accept(cx);
                return Poll::Pending;
            };
            let stream = Link::stream(&self.shared, &mut state, id);
            let waker = state.driver_to_wake();
            drop(state);
            waker.into_iter().for_each(Waker::wake);
            Poll::Ready(Ok(stream))
        })
        .await
    }

    /// Streams that are open, or have something to send yet.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.shared.lock().core.streams()
    }

    /// Ends the session now; its streams fail. The peer is not told.
    pub fn close(&self) {
        let mut state = self.shared.lock();
        state.end.get_or_insert(End::Closed);
        let waker = state.driver_to_wake();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Why the session is over, if it is.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.shared.lock().end.clone()
    }

    /// Waits for the session's end.
    pub async fn ended(&self) -> End {
        self.watch().ended().await
    }

    /// A way to hear of the session's end without holding it.
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch(Arc::clone(&self.shared))
    }
}

/// Hears of a session's end. Does not keep it alive.
#[derive(Debug, Clone)]
pub struct Watch(Arc<Shared>);

impl Watch {
    /// Whether the peer has sent something that was understood.
    #[must_use]
    pub fn is_understood(&self) -> bool {
        self.0.lock().understood
    }

    /// Sends a sign of life, of which a peer that understands it takes no notice.
    pub fn greet(&self) {
        let mut state = self.0.lock();
        state.core.greet();
        let waker = state.driver_to_wake();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Waits for the session's end.
    pub async fn ended(&self) -> End {
        loop {
            // Made before the look, so that no end is missed between the two.
            let over = self.0.over.notified();
            if let Some(end) = &self.0.lock().end {
                return end.clone();
            }
            over.await;
        }
    }
}

impl Clone for Mux {
    fn clone(&self) -> Self {
        self.shared.lock().handles += 1;
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl Drop for Mux {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.handles -= 1;
        let waker = state.driver_to_wake();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}
