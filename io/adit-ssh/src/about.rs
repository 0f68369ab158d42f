//! A handle to the peer of a session: its identity, and control of the session's end.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use adit_ssh_proto::kex::Negotiated;
use adit_ssh_proto::transport::Transport;

use super::error::End;
use super::mail::{Command, Mail};

/// The results of the first key exchange.
#[derive(Debug)]
pub(super) struct About {
    negotiated: Negotiated,
    version: String,
    session_id: Vec<u8>,
    host_key: Vec<u8>,
    host_signature: Vec<u8>,
    strict: bool,
}

impl About {
    /// Returns the results of `transport`'s key exchange, or `None` before the first keys.
    pub(super) fn of(transport: &Transport) -> Option<Self> {
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
    pub(super) mail: Arc<Mail>,
    about: Arc<About>,
}

impl Peer {
    /// Creates the first handle of a session.
    pub(super) fn new(mail: Arc<Mail>, about: Arc<About>) -> Self {
        Self { mail, about }
    }

    /// Returns the algorithms of the first key exchange.
    #[must_use]
    pub fn negotiated(&self) -> &Negotiated {
        &self.about.negotiated
    }

    /// Returns the peer's identification, such as `SSH-2.0-OpenSSH_9.2p1`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.about.version
    }

    /// Returns the session identifier (RFC 4253 section 7.2).
    #[must_use]
    pub fn session_id(&self) -> &[u8] {
        &self.about.session_id
    }

    /// Returns the server's host key blob.
    #[must_use]
    pub fn host_key(&self) -> &[u8] {
        &self.about.host_key
    }

    /// Returns the host's signature of the session identifier, with its algorithm name.
    #[must_use]
    pub fn host_signature(&self) -> &[u8] {
        &self.about.host_signature
    }

    /// Returns true if both sides use strict key exchange.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.about.strict
    }

    /// Returns the shortest measured round-trip time, or `None` before the first measurement.
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        self.mail.rtt()
    }

    /// Sends a keepalive request to the peer and returns the time until its answer.
    ///
    /// # Errors
    /// Returns the reason if the session is over.
    pub async fn ping(&self) -> Result<Duration, End> {
        self.mail.ask(Command::Ping).await
    }

    /// Starts a key re-exchange.
    ///
    /// # Errors
    /// Returns the reason if the session is over.
    pub fn rekey(&self) -> Result<(), End> {
        self.mail.send(Command::Rekey)
    }

    /// Ends the session immediately; `text` is for the peer's log. Unsent data is lost.
    pub fn disconnect(&self, text: impl Into<String>) {
        // Nothing to do if the session is over already.
        let _ = self.mail.send(Command::Disconnect { text: text.into() });
    }

    /// Waits until the session ends and returns the reason.
    pub async fn closed(&self) -> End {
        self.mail.ended().await
    }

    /// Returns the reason why the session is over, or `None` if it is not.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.mail.end()
    }
}

impl Clone for Peer {
    fn clone(&self) -> Self {
        self.mail.hold();
        Self {
            mail: Arc::clone(&self.mail),
            about: Arc::clone(&self.about),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.mail.release();
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer")
            .field("version", &self.about.version)
            .field("negotiated", &self.about.negotiated)
            .field("end", &self.end())
            .finish_non_exhaustive()
    }
}
