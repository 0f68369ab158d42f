//! The other end of a session: who it is, and whether it is still there.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use adit_ssh_proto::kex::Negotiated;
use adit_ssh_proto::transport::Transport;

use super::error::End;
use super::mail::{Command, Mail};

/// What the key exchange has settled.
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
    /// `None` before the first keys.
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

    /// Whether the peer is of our kind: it ends what it sends before it closes a channel.
    pub(super) fn is_adit(&self) -> bool {
        self.version.starts_with("SSH-2.0-adit_")
    }
}

/// The other end of a session. It keeps the session alive, and all clones are of the same one.
///
/// When the last handle and the last channel of a session are dropped it ends.
pub struct Peer {
    pub(super) mail: Arc<Mail>,
    about: Arc<About>,
}

impl Peer {
    /// The first handle of a session.
    pub(super) fn new(mail: Arc<Mail>, about: Arc<About>) -> Self {
        Self { mail, about }
    }

    /// The algorithms of the first key exchange.
    #[must_use]
    pub fn negotiated(&self) -> &Negotiated {
        &self.about.negotiated
    }

    /// The peer's identification, such as `SSH-2.0-OpenSSH_9.2p1`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.about.version
    }

    /// The session's identifier (RFC 4253 section 7.2).
    #[must_use]
    pub fn session_id(&self) -> &[u8] {
        &self.about.session_id
    }

    /// The server's host key, as its blob.
    #[must_use]
    pub fn host_key(&self) -> &[u8] {
        &self.about.host_key
    }

    /// The host's signature of the session's identifier, with its name.
    #[must_use]
    pub fn host_signature(&self) -> &[u8] {
        &self.about.host_signature
    }

    /// Whether both sides do strict key exchange.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.about.strict
    }

    /// The shortest round trip that was measured; `None` before the first.
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        self.mail.rtt()
    }

    /// Asks the peer for a sign of life; gives the time it took.
    ///
    /// # Errors
    /// The session is over.
    pub async fn ping(&self) -> Result<Duration, End> {
        self.mail.ask(Command::Ping).await
    }

    /// Makes new keys now.
    ///
    /// # Errors
    /// The session is over.
    pub fn rekey(&self) -> Result<(), End> {
        self.mail.send(Command::Rekey)
    }

    /// Ends the session at once; `text` is for the peer's log. What was not sent is lost.
    pub fn disconnect(&self, text: impl Into<String>) {
        // Over already is as good.
        let _ = self.mail.send(Command::Disconnect { text: text.into() });
    }

    /// Waits for the session's end.
    pub async fn closed(&self) -> End {
        self.mail.ended().await
    }

    /// Why the session is over, if it is.
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
