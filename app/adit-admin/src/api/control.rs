//! The handover of the listener's socket to another process.

use std::future::pending;
use std::io;
#[cfg(unix)]
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
#[cfg(unix)]
use std::sync::Mutex;
#[cfg(unix)]
use std::sync::PoisonError;

use tokio::sync::watch;

use super::listener::Socket;

/// Hands over the socket of a listener; clones belong to the same one.
#[derive(Debug, Clone)]
pub struct ApiListenerControl(Arc<ControlState>);

#[derive(Debug)]
struct ControlState {
    address: String,
    /// True once a successor has the socket.
    has_successor: watch::Sender<bool>,
    /// A further descriptor of the socket, until then.
    #[cfg(unix)]
    handle: Mutex<Option<OwnedFd>>,
}

impl ApiListenerControl {
    pub(super) fn new(socket: &Socket) -> io::Result<Self> {
        #[cfg(unix)]
        let handle = match socket {
            Socket::Tcp(listener, _) => listener.as_fd().try_clone_to_owned()?,
            Socket::Local(listener) => listener.as_fd().try_clone_to_owned()?,
        };
        Ok(Self(Arc::new(ControlState {
            address: socket.to_string(),
            has_successor: watch::Sender::new(false),
            #[cfg(unix)]
            handle: Mutex::new(Some(handle)),
        })))
    }

    /// Returns the address: a path, or `ADDRESS:PORT`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.0.address
    }

    /// Returns a further descriptor of the socket; `None` after [`Self::leave_to_successor`].
    ///
    /// # Errors
    /// The system refuses another descriptor.
    #[cfg(unix)]
    pub fn export(&self) -> io::Result<Option<OwnedFd>> {
        let handle = self.0.handle.lock().unwrap_or_else(PoisonError::into_inner);
        handle.as_ref().map(OwnedFd::try_clone).transpose()
    }

    /// Closes the socket, which a successor has. The file of a Unix socket stays. Open connections end with the
    /// response to their current request.
    pub fn leave_to_successor(&self) {
        #[cfg(unix)]
        {
            let handle = self.0.handle.lock();
            handle.unwrap_or_else(PoisonError::into_inner).take();
        }
        self.0.has_successor.send_replace(true);
    }

    /// Returns true once a successor has the socket.
    #[must_use]
    pub fn has_successor(&self) -> bool {
        *self.0.has_successor.borrow()
    }

    pub(super) fn successor(&self) -> SuccessorWatch {
        SuccessorWatch(self.0.has_successor.subscribe())
    }
}

/// Observes whether a successor has the socket.
pub(super) struct SuccessorWatch(watch::Receiver<bool>);

impl SuccessorWatch {
    /// Waits until a successor has the socket.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub(super) async fn wait(&mut self) {
        if self.0.wait_for(|left| *left).await.is_err() {
            pending::<()>().await;
        }
    }
}
