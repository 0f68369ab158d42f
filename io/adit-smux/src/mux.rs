//! The application's interface to a session.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use adit_crypto::packet::qpp::PermutationPads;
use adit_net::system;
use adit_smux_proto::{Config, ConfigError, OpenError, Session};
use adit_stream::BoxStream;

use super::EndReason;
use super::driver::SessionDriver;
use super::framing::Framing;
use super::shared::SharedSession;
use super::stream::{Link, SmuxStream};

/// Settings of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Settings of smux; the version must be equal at both ends.
    pub config: Config,
    /// True for Snappy around all frames. Must be equal at both ends.
    pub compress: bool,
    /// kcptun's QPP over the data of each stream. Must be equal at both ends.
    pub pads: Option<Arc<PermutationPads>>,
}

impl Settings {
    /// Creates settings without compression and pads.
    #[must_use]
    pub const fn new(config: Config) -> Self {
        Self {
            config,
            compress: false,
            pads: None,
        }
    }
}

/// One end of a connection with many streams.
///
/// Clones are handles to the same session. After the last one is dropped, the session ends with its
/// last stream.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use adit_smux::{Mux, Settings};
/// use adit_smux_proto::{Config, Role, Version};
/// use adit_stream::Tcp;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use tokio::net::{TcpListener, TcpStream};
///
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let near = TcpStream::connect(listener.local_addr()?).await?;
/// let (far, _) = listener.accept().await?;
/// let settings = |role| Settings::new(Config::new(Version::V2, role));
/// let client = Mux::new(Box::new(Tcp::new(near)), settings(Role::Client))?;
/// let server = Mux::new(Box::new(Tcp::new(far)), settings(Role::Server))?;
///
/// let mut stream = client.open()?;
/// stream.write_all(b"hello").await?;
/// stream.shutdown().await?;
/// let mut text = String::new();
/// server.accept().await?.read_to_string(&mut text).await?;
/// assert_eq!(text, "hello");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Mux {
    shared: Arc<SharedSession>,
}

impl Mux {
    /// Starts a session over a new connection, and immediately sends a keep-alive to the peer.
    ///
    /// # Errors
    ///
    /// See [`ConfigError`].
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn new(below: BoxStream, settings: Settings) -> Result<Self, ConfigError> {
        let Settings {
            config,
            compress,
            pads,
        } = settings;
        // With a start one interval ago, the session's first keep-alive is due now.
        let ahead = config.keepalive.unwrap_or(Duration::ZERO);
        let framing = Framing::new(config.version.number(), compress);
        let shared = Arc::new(SharedSession::new(
            Session::new(config, system::monotonic_now())?,
            pads,
        ));
        SessionDriver::spawn(Arc::clone(&shared), below, framing, ahead);
        Ok(Self { shared })
    }

    /// Opens a stream. You can write to it immediately.
    ///
    /// # Errors
    ///
    /// The session has reached its maximum number of streams, has used all stream numbers, or is
    /// over.
    pub fn open(&self) -> Result<SmuxStream, OpenError> {
        let mut state = self.shared.lock();
        if state.end.is_some() {
            return Err(OpenError::SessionFailed);
        }
        let id = state.core.open()?;
        let stream = Link::new_stream(&self.shared, &mut state, id);
        let waker = state.driver_to_wake();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        Ok(stream)
    }

    /// Waits for the next stream that the peer opens. Only for one task at a time.
    ///
    /// # Errors
    ///
    /// The session is over.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn accept(&self) -> Result<SmuxStream, EndReason> {
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            let Some(id) = state.core.accept() else {
                if let Some(end) = &state.end {
                    return Poll::Ready(Err(end.clone()));
                }
                state.wait_for_stream_open(cx);
                return Poll::Pending;
            };
            let stream = Link::new_stream(&self.shared, &mut state, id);
            let waker = state.driver_to_wake();
            drop(state);
            waker.into_iter().for_each(Waker::wake);
            Poll::Ready(Ok(stream))
        })
        .await
    }

    /// Returns the number of streams that are open, or that still have something to send.
    #[must_use]
    pub fn stream_count(&self) -> usize {
        self.shared.lock().core.stream_count()
    }

    /// Ends the session now; its streams fail. The peer is not informed.
    pub fn close(&self) {
        let mut state = self.shared.lock();
        state.end.get_or_insert(EndReason::Closed);
        let waker = state.driver_to_wake();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Returns the reason for the end of the session, if it is over.
    #[must_use]
    pub fn end_reason(&self) -> Option<EndReason> {
        self.shared.lock().end.clone()
    }

    /// Waits for the end of the session.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn wait_end(&self) -> EndReason {
        self.new_watch().wait_end().await
    }

    /// Returns a handle to wait for the session's end that does not keep it open.
    #[must_use]
    pub fn new_watch(&self) -> MuxWatch {
        MuxWatch(Arc::clone(&self.shared))
    }
}

/// A handle to wait for a session's end. Does not keep the session open.
#[derive(Debug, Clone)]
pub struct MuxWatch(Arc<SharedSession>);

impl MuxWatch {
    /// True if the peer has sent a valid frame.
    #[must_use]
    pub fn has_valid_input(&self) -> bool {
        self.0.lock().has_valid_input
    }

    /// Sends a keep-alive, which the peer ignores.
    pub fn send_keepalive(&self) {
        let mut state = self.0.lock();
        state.core.send_keepalive();
        let waker = state.driver_to_wake();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Waits for the end of the session.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn wait_end(&self) -> EndReason {
        loop {
            // Created before the check, so that an end between the two is not missed.
            let over = self.0.ended.notified();
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
