//! A handle to the peer of a session: its identity, and control of the session's end.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use adit_ssh_proto::kex::Negotiated;
use adit_ssh_proto::transport::Transport;

use super::error::SessionEnd;
use super::shared_session::{Command, SharedSession};

/// The results of the first key exchange.
#[derive(Debug)]
pub(super) struct KeyExchangeInfo {
    negotiated: Negotiated,
    version: String,
    session_id: Vec<u8>,
    host_key: Vec<u8>,
    host_signature: Vec<u8>,
    strict: bool,
}

impl KeyExchangeInfo {
    /// Returns the results of `transport`'s key exchange, or `None` before the first keys.
    pub(super) fn from_transport(transport: &Transport) -> Option<Self> {
        let version = transport.peer_version()?.as_bytes();
        Some(Self {
            negotiated: *transport.negotiated()?,
            version: String::from_utf8_lossy(version).into_owned(),
            session_id: transport.session_id()?.to_vec(),
            host_key: transport.host_key()?.to_vec(),
            host_signature: transport.host_signature()?.to_vec(),
            strict: transport.is_strict(),
        })
    }

    /// Returns true if the peer is adit, which sends an EOF before it closes a channel.
    pub(super) fn is_adit(&self) -> bool {
        self.version.starts_with("SSH-2.0-adit_")
    }
}

/// A handle to the peer of a session. It keeps the session alive; all clones refer to the same one.
///
/// The session ends when its last handle and its last channel are dropped.
pub struct Peer {
    pub(super) shared: Arc<SharedSession>,
    key_exchange: Arc<KeyExchangeInfo>,
}

impl Peer {
    /// Creates the first handle of a session.
    pub(super) fn new(shared: Arc<SharedSession>, key_exchange: Arc<KeyExchangeInfo>) -> Self {
        Self {
            shared,
            key_exchange,
        }
    }

    /// Returns the algorithms of the first key exchange.
    #[must_use]
    pub fn negotiated(&self) -> &Negotiated {
        &self.key_exchange.negotiated
    }

    /// Returns the peer's identification, such as `SSH-2.0-OpenSSH_9.2p1`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.key_exchange.version
    }

    /// Returns the session identifier (RFC 4253 section 7.2).
    #[must_use]
    pub fn session_id(&self) -> &[u8] {
        &self.key_exchange.session_id
    }

    /// Returns the server's host key blob.
    #[must_use]
    pub fn host_key(&self) -> &[u8] {
        &self.key_exchange.host_key
    }

    /// Returns the host's signature of the session identifier, with its algorithm name.
    #[must_use]
    pub fn host_signature(&self) -> &[u8] {
        &self.key_exchange.host_signature
    }

    /// Returns true if both sides use strict key exchange.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.key_exchange.strict
    }

    /// Returns the shortest measured round-trip time, or `None` before the first measurement.
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        self.shared.rtt()
    }

    /// Sends a keepalive request to the peer and returns the time until its answer.
    ///
    /// # Errors
    /// Returns the reason if the session is over.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the request may have been sent. Its answer is discarded.
    pub async fn ping(&self) -> Result<Duration, SessionEnd> {
        self.shared.call_driver(Command::Ping).await
    }

    /// Starts a key re-exchange.
    ///
    /// # Errors
    /// Returns the reason if the session is over.
    pub fn rekey(&self) -> Result<(), SessionEnd> {
        self.shared.send_command(Command::Rekey)
    }

    /// Ends the session immediately; `text` is for the peer's log. Unsent data is lost.
    pub fn disconnect(&self, text: impl Into<String>) {
        // Nothing to do if the session is over already.
        let _ = self
            .shared
            .send_command(Command::Disconnect { text: text.into() });
    }

    /// Waits until the session ends and returns the reason.
    ///
    /// # Cancel safety
    /// This method is cancel-safe.
    pub async fn wait_closed(&self) -> SessionEnd {
        self.shared.wait_end().await
    }

    /// Returns the reason why the session is over, or `None` if it is not.
    #[must_use]
    pub fn end_reason(&self) -> Option<SessionEnd> {
        self.shared.end_reason()
    }
}

impl Clone for Peer {
    fn clone(&self) -> Self {
        self.shared.add_handle();
        Self {
            shared: Arc::clone(&self.shared),
            key_exchange: Arc::clone(&self.key_exchange),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.shared.remove_handle();
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer")
            .field("version", &self.key_exchange.version)
            .field("negotiated", &self.key_exchange.negotiated)
            .field("end", &self.end_reason())
            .finish_non_exhaustive()
    }
}
