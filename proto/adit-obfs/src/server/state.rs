//! The state that the connections of one listener share.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use adit_crypto::{DecisionLog, Secret, SnapshotError};
use adit_wire::{Clock, Entropy, ProtocolError, UnixTime};

use super::{ServerHandshake, State};
use crate::http::RequestReader;
use crate::obfs_param::DEFAULT_TIME_WINDOW;
use crate::quiet::{self, ProofKey, REMEMBER_SECS, ServerAnswer};
use crate::random_head::server_head;
use crate::seen_hellos::SeenHellos;
use crate::tls::{ServerFlight, TimeWindow};
use crate::{ObfsKind, ObfsParam, ParamError, UnrecognizedPolicy};

/// The settings of a server.
#[derive(Clone)]
#[non_exhaustive]
pub struct ServerSettings<'a> {
    /// The kind.
    pub kind: ObfsKind,
    /// The policy for clients that do not use the kind.
    pub unrecognized: UnrecognizedPolicy,
    /// HTTP kinds: the hosts to accept, all if there are none. TLS kinds: if it is a number, the
    /// maximum clock skew of a client in seconds (86,400 by default; 0 accepts all).
    pub param: &'a ObfsParam,
    /// TLS kinds: the key of the stream cipher, as for [`crate::ClientSettings`].
    pub key: &'a [u8],
    /// `go_quiet`: its key, which is the password as written.
    pub password: &'a [u8],
    /// Checks the times of hellos and dates the answers.
    pub clock: Arc<dyn Clock>,
    /// The start of the process; hellos seen before it are unknown.
    pub started: UnixTime,
}

impl<'a> ServerSettings<'a> {
    /// Creates settings without keys, which refuse clients that do not use the kind. The process starts now.
    #[must_use]
    pub fn new(kind: ObfsKind, param: &'a ObfsParam, clock: Arc<dyn Clock>) -> Self {
        Self {
            kind,
            unrecognized: UnrecognizedPolicy::Refuse,
            param,
            key: &[],
            password: &[],
            started: clock.unix_time(),
            clock,
        }
    }
}

/// State shared by the connections of one listener. Clones share the same state.
///
/// It remembers the accepted hellos, because a repeated hello is a recorded one. The memory is
/// bounded: of more than 450,000 hellos the oldest are forgotten.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use adit_obfs::{ObfsKind, ObfsParam, ServerSettings, ServerState};
/// use adit_wire::{FixedEntropy, Handshake, HandshakeInput, HandshakeProgress, HandshakeOutput, UnixTime};
///
/// let clock = Arc::new(UnixTime(1_800_000_000)); // the system's clock in a program
/// let mut entropy = FixedEntropy::new([7; 64]);
/// let param = ObfsParam::default();
/// let state = ServerState::new(&ServerSettings::new(ObfsKind::HttpSimple, &param, clock), &mut entropy)?;
///
/// // A client that does not use the kind is refused.
/// let mut bytes = *b"SSH-2.0-client\r\n\r\n";
/// let mut handshake = state.new_handshake(&mut entropy);
/// let refused = handshake.step(&mut HandshakeInput::new(&mut bytes), &mut HandshakeOutput::new(&mut Vec::new()));
/// assert!(refused.is_err());
/// # Ok::<(), adit_obfs::ParamError>(())
/// ```
#[derive(Clone)]
pub struct ServerState(Arc<SharedState>);

pub(super) struct SharedState {
    kind: ObfsKind,
    pub(super) unrecognized: UnrecognizedPolicy,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) recognition: Recognition,
}

/// The way a client is recognized.
pub(super) enum Recognition {
    Nothing,
    Hosts(Vec<Box<str>>),
    Tag {
        key: Secret<Vec<u8>>,
        window: TimeWindow,
        seen: SeenHellos,
    },
    Proof {
        key: Box<ProofKey>,
        seen: SeenHellos,
    },
}

/// The reason a state cannot continue the snapshot of another one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HelloRestoreError {
    /// The settings are invalid.
    #[error(transparent)]
    Settings(#[from] ParamError),
    /// The bytes are not a snapshot of hellos, or of those of another state.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The kind has no hellos.
    #[error("the kind of obfs has no hellos to remember")]
    Unused,
}

impl SharedState {
    fn seen_hellos(&self) -> Option<&SeenHellos> {
        match &self.recognition {
            Recognition::Tag { seen, .. } | Recognition::Proof { seen, .. } => Some(seen),
            Recognition::Nothing | Recognition::Hosts(_) => None,
        }
    }
}

impl ServerState {
    /// Creates the state of a listener.
    ///
    /// # Errors
    ///
    /// Fails if `go_quiet` has no key.
    pub fn new(
        settings: &ServerSettings<'_>,
        entropy: &mut dyn Entropy,
    ) -> Result<Self, ParamError> {
        let mut seed = [0; 16];
        entropy.fill(&mut seed);
        let kind = settings.kind;
        let judge = match kind {
            ObfsKind::Plain | ObfsKind::RandomHead => Recognition::Nothing,
            ObfsKind::HttpSimple | ObfsKind::HttpPost => {
                Recognition::Hosts(settings.param.hosts().to_vec())
            }
            ObfsKind::TicketAuth | ObfsKind::TicketFastAuth => {
                let span = settings.param.time_window().unwrap_or(DEFAULT_TIME_WINDOW);
                let window = TimeWindow {
                    span,
                    started: settings.started,
                };
                // A hello can be replayed for as long as its time is accepted.
                let remembered = match u64::from(span) {
                    0 => u64::MAX,
                    span => 2 * span,
                };
                Recognition::Tag {
                    key: settings.key.to_vec().into(),
                    window,
                    seen: SeenHellos::new(seed, remembered),
                }
            }
            ObfsKind::GoQuiet => Recognition::Proof {
                key: quiet::proof_key(settings.password)?,
                seen: SeenHellos::new(seed, REMEMBER_SECS),
            },
        };
        Ok(Self(Arc::new(SharedState {
            kind,
            unrecognized: settings.unrecognized,
            clock: settings.clock.clone(),
            recognition: judge,
        })))
    }

    /// Returns the hellos that the state remembers, at most 7.2 MB; `None` for kinds without hellos. Keep them as secret as
    /// a key: a peer who has the seed can make the state slow.
    #[must_use]
    pub fn snapshot(&self) -> Option<Secret<Vec<u8>>> {
        self.0.seen_hellos().map(SeenHellos::snapshot)
    }

    /// Creates the state of a listener from the [`snapshot`](Self::snapshot) of a listener of the same kind in another
    /// process. `settings.started` is the start of that process.
    ///
    /// # Errors
    ///
    /// Fails if `go_quiet` has no key, if the kind has no hellos, and if the bytes are not a snapshot or are damaged.
    pub fn from_snapshot(
        settings: &ServerSettings<'_>,
        bytes: &[u8],
        entropy: &mut dyn Entropy,
    ) -> Result<Self, HelloRestoreError> {
        let Self(mut shared) = Self::new(settings, entropy)?;
        let now = settings.clock.unix_time();
        let recognition = Arc::get_mut(&mut shared).map(|shared| &mut shared.recognition);
        match recognition {
            Some(Recognition::Tag { seen, .. } | Recognition::Proof { seen, .. }) => {
                *seen = SeenHellos::from_snapshot(bytes, seen.span(), now)?;
            }
            _ => return Err(HelloRestoreError::Unused),
        }
        Ok(Self(shared))
    }

    /// Adds the hellos of a later [`snapshot`](Self::snapshot) of the process from whose snapshot the state was created.
    ///
    /// # Errors
    ///
    /// Fails if the kind has no hellos, and if the bytes are not a snapshot, are damaged, or are of another state.
    pub fn merge_snapshot(&self, bytes: &[u8]) -> Result<(), HelloRestoreError> {
        let seen = self.0.seen_hellos().ok_or(HelloRestoreError::Unused)?;
        Ok(seen.merge_snapshot(bytes, self.0.clock.unix_time())?)
    }

    /// Returns the log of the hellos that were accepted; `None` for kinds without hellos.
    #[must_use]
    pub fn decision_log(&self) -> Option<&DecisionLog> {
        self.0.seen_hellos().map(SeenHellos::decision_log)
    }

    /// Remembers a hello that the state from whose [`snapshot`](Self::snapshot) this one was created has accepted and
    /// [logged](Self::decision_log).
    ///
    /// # Errors
    ///
    /// Returns [`ProtocolError::Replayed`] if the hello was seen before, and [`ProtocolError::Malformed`] if `entry` is
    /// not of such a log, or the kind has no hellos.
    pub fn insert_logged(&self, entry: &[u8]) -> Result<(), ProtocolError> {
        let none = ProtocolError::Malformed("an entry of a log of hellos");
        let seen = self.0.seen_hellos().ok_or(none)?;
        seen.insert_logged(entry, self.0.clock.unix_time())
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> ObfsKind {
        self.0.kind
    }

    /// Returns the maximum time for a client's hello after its first byte, if the format has such a
    /// rule. Call [`ServerHandshake::handle_timeout`] after it.
    #[must_use]
    pub fn hello_timeout(&self) -> Option<Duration> {
        match self.0.kind {
            ObfsKind::RandomHead => Some(Duration::from_secs(1)),
            ObfsKind::GoQuiet => Some(Duration::from_secs(3)),
            _ => None,
        }
    }

    /// Creates the handshake of one connection.
    pub fn new_handshake(&self, entropy: &mut dyn Entropy) -> ServerHandshake {
        let state = match self.0.kind {
            ObfsKind::Plain => State::Plain,
            ObfsKind::HttpSimple | ObfsKind::HttpPost => State::Request(RequestReader::default()),
            ObfsKind::RandomHead => State::RandomHead(server_head(entropy)),
            ObfsKind::TicketAuth | ObfsKind::TicketFastAuth => {
                State::TlsHello(Box::new(ServerFlight::draw_random(entropy)))
            }
            ObfsKind::GoQuiet => State::GoQuietHello(Box::new(ServerAnswer::draw_random(entropy))),
        };
        ServerHandshake {
            shared: self.0.clone(),
            state,
            answered: false,
        }
    }
}

impl fmt::Debug for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerState({})", self.0.kind)
    }
}
