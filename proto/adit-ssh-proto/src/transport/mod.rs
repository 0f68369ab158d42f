//! The transport layer (RFC 4253): from the first line on the wire to payloads protected by keys.
//!
//! ```text
//!            the peer's bytes                     payloads of the layers above
//!  open_next ─▶ version ─▶ packet ─┬─▶ HandshakeProgress::Payload ─▶
//!                                  └─▶ kex, EXT_INFO, PING, …   (handled here, reported as events)
//!  take_output ◀─ packet ◀─ send, begin_payload ◀──────────────
//! ```
//!
//! A driver calls [`Transport::open_next`] with the bytes it has received until more are needed,
//! passes payloads to the layer above, sends the bytes in [`Transport::take_output`], polls
//! [`Transport::poll_event`], and calls [`Transport::handle_timeout`] at the time that
//! [`Transport::poll_timeout`] returns. After authentication, either side may start a re-key at any
//! time: what is sent meanwhile waits in a bounded queue, and what the peer sent before its own
//! KEXINIT is still delivered.
//!
//! The methods for bytes have their own names because both directions work in place, as with
//! [`Open`](adit_wire::Open) and [`Seal`](adit_wire::Seal): a packet is decrypted in the driver's
//! receive buffer, and sealed in the vector that the driver sends from.
//!
//! A server's computation for a key exchange takes milliseconds, and any client can request it. A
//! driver that serves several connections on one thread can run it elsewhere ([`KexComputation`]).
//!
//! After an error, the transport is unusable: each call returns the same error, and the output ends
//! with the DISCONNECT for the peer.

mod computation;
mod config;
mod exchange;
mod ext_info;
mod incoming;
mod outgoing;
mod timers;

use std::collections::VecDeque;
use std::sync::Arc;

use adit_wire::{Entropy, Role, Time};

pub use computation::{KexComputation, KexComputationResult};
pub use config::{StrictKex, TransportConfig};
pub use ext_info::Extensions;
pub use incoming::OpenStep;
pub use outgoing::PayloadWriter;

use crate::algorithm::{AlgorithmPreferences, Cipher, KeyAlgorithm};
use crate::error::{Disconnect, SshError};
use crate::kex::Negotiated;
use crate::key::Signer;
use crate::msg;
use crate::packet::{Opener, PayloadPosition, Sealer};
use crate::version::{Identification, IdentificationReader};
use crate::wire::SshBufMut;
use exchange::{ExchangeStage, KeyExchange};

/// Maximum number of waiting events. Beyond it, events that are only informative are dropped.
const MAX_EVENTS: usize = 64;

/// Event other than a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Client: the server has proved possession of this key. Nothing is read until you call
    /// [`Transport::accept_host_key`] or [`Transport::reject_host_key`]. Reported once; in later
    /// exchanges the key must be the same.
    HostKey {
        /// Signature algorithm.
        algorithm: KeyAlgorithm,
        /// Blob of the key or certificate.
        blob: Vec<u8>,
    },
    /// The first keys are in use in both directions.
    Ready(Negotiated),
    /// New keys are in use in both directions.
    Rekeyed(Negotiated),
    /// The peer sent its extensions.
    ExtInfo(Extensions),
    /// The answer to a PING.
    Pong(Vec<u8>),
    /// The peer's text for a log, printable characters only.
    Debug(String),
}

/// Results of the first exchange that hold for the whole connection.
#[derive(Debug)]
struct SessionInfo {
    id: Vec<u8>,
    host_key: Vec<u8>,
    /// The host's signature of `id`.
    signature: Vec<u8>,
    negotiated: Negotiated,
}

/// One side of a connection's transport.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use adit_ssh_proto::algorithm::{AlgorithmPreferences, CpuFeatures, Kex};
/// use adit_ssh_proto::key::{KeySet, KeyType, PrivateKey};
/// use adit_ssh_proto::transport::{Event, OpenStep, Transport, TransportConfig};
/// use adit_wire::FixedEntropy;
///
/// let mut preferred = AlgorithmPreferences::for_machine(CpuFeatures { aes: true, clmul: true });
/// preferred.kex = vec![Kex::Curve25519];
/// let config = Arc::new(TransportConfig::new(preferred));
/// let key = PrivateKey::generate(KeyType::Ed25519, &mut FixedEntropy::new([7; 64]))?;
///
/// // Use the system's random numbers in a program.
/// let random = |seed| Box::new(FixedEntropy::new([seed; 4096]));
/// let mut client = Transport::new_client(config.clone(), random(1))?;
/// let mut server = Transport::new_server(config, Arc::new(KeySet::from(vec![key])), random(2))?;
///
/// /// Passes what `from` sends to `to`.
/// fn carry(from: &mut Transport, to: &mut Transport, wire: &mut Vec<u8>) {
///     wire.append(from.take_output());
///     while let Ok(OpenStep::Consumed { consumed }) = to.open_next(wire) {
///         wire.drain(..consumed);
///     }
/// }
///
/// let (mut up, mut down) = (Vec::new(), Vec::new());
/// let mut ready = None;
/// for _ in 0..10 {
///     carry(&mut client, &mut server, &mut up);
///     carry(&mut server, &mut client, &mut down);
///     while let Some(event) = client.poll_event() {
///         match event {
///             // Compare the key with the known one here.
///             Event::HostKey { .. } => client.accept_host_key()?,
///             Event::Ready(negotiated) => ready = Some(negotiated),
///             _ => {}
///         }
///     }
/// }
/// assert_eq!(ready.unwrap().kex, Kex::Curve25519);
/// assert!(client.is_writable());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Transport {
    role: Role,
    config: Arc<TransportConfig>,
    /// Host keys of a server.
    signer: Option<Arc<dyn Signer>>,
    /// `None` while a computation uses it.
    entropy: Option<Box<dyn Entropy + Send>>,
    /// True if computations are handed to the driver; `computation` is the one waiting to be taken.
    defers_computations: bool,
    computation: Option<Box<KexComputation>>,
    ours: Identification,
    theirs: Option<Identification>,
    version_reader: IdentificationReader,
    /// Algorithms that local KEXINITs offer.
    offered: AlgorithmPreferences,
    sealer: Sealer,
    opener: Opener,
    out: Vec<u8>,
    queue: VecDeque<Vec<u8>>,
    /// Bytes in `queue`.
    queued: usize,
    exchange: Option<KeyExchange>,
    session: Option<SessionInfo>,
    /// Strict key exchange is active; set by the peer's first KEXINIT.
    strict: bool,
    /// The first keys are in use in both directions.
    ready: bool,
    /// The peer accepts EXT_INFO.
    wants_extensions: bool,
    /// The user is authenticated: delayed compression is active.
    authenticated: bool,
    /// Number of PINGs and EXT_INFOs received before authentication.
    early_messages: u32,
    /// Bytes in each direction after which a re-key is due: sent, received.
    rekey_due_bytes: (u64, u64),
    keys_in_use_since: Option<Time>,
    extensions: Extensions,
    events: VecDeque<Event>,
    closed: Option<SshError>,
}

impl Transport {
    /// Creates a client's transport. Its identification and KEXINIT are in the output immediately.
    ///
    /// # Errors
    /// [`SshError::Malformed`] if the software name is not valid in an identification.
    pub fn new_client(
        config: Arc<TransportConfig>,
        entropy: Box<dyn Entropy + Send>,
    ) -> Result<Self, SshError> {
        let offered = config.preferred.clone();
        let mut new = Self::new(Role::Client, config, offered, None, entropy)?;
        new.start_exchange()?;
        Ok(new)
    }

    /// Creates a server's transport. Its identification is in the output immediately. So is its
    /// KEXINIT, unless that depends on the client's support for strict key exchange.
    ///
    /// # Errors
    /// The same as for [`Transport::new_client`].
    pub fn new_server(
        config: Arc<TransportConfig>,
        signer: Arc<dyn Signer>,
        entropy: Box<dyn Entropy + Send>,
    ) -> Result<Self, SshError> {
        let mut offered = config.preferred.clone();
        let able = signer.algorithms();
        offered
            .host_key
            .retain(|algorithm| able.contains(algorithm));
        let exposed = config.strict == StrictKex::WhenExposed
            && offered.cipher.contains(&Cipher::ChaCha20Poly1305);
        let mut new = Self::new(Role::Server, config, offered, Some(signer), entropy)?;
        if exposed {
            new.exchange = Some(KeyExchange::awaiting_peer_init());
        } else {
            new.start_exchange()?;
        }
        Ok(new)
    }

    fn new(
        role: Role,
        config: Arc<TransportConfig>,
        offered: AlgorithmPreferences,
        signer: Option<Arc<dyn Signer>>,
        entropy: Box<dyn Entropy + Send>,
    ) -> Result<Self, SshError> {
        let ours = Identification::from_software_name(&config.software)?;
        let mut out = Vec::new();
        ours.write_line(&mut out);
        Ok(Self {
            role,
            signer,
            entropy: Some(entropy),
            defers_computations: false,
            computation: None,
            theirs: None,
            version_reader: IdentificationReader::new(role.peer()),
            ours,
            offered,
            sealer: Sealer::new(),
            opener: Opener::new(),
            out,
            queue: VecDeque::new(),
            queued: 0,
            exchange: None,
            session: None,
            strict: false,
            ready: false,
            wants_extensions: false,
            authenticated: false,
            early_messages: 0,
            rekey_due_bytes: (u64::MAX, u64::MAX),
            keys_in_use_since: None,
            extensions: Extensions::default(),
            events: VecDeque::new(),
            closed: None,
            config,
        })
    }

    /// Returns the session identifier; `None` until the first exchange has determined it.
    #[must_use]
    pub fn session_id(&self) -> Option<&[u8]> {
        self.session.as_ref().map(|session| &*session.id)
    }

    /// Returns the server's host key, whose possession was proved.
    #[must_use]
    pub fn host_key(&self) -> Option<&[u8]> {
        self.session.as_ref().map(|session| &*session.host_key)
    }

    /// Returns the host's signature of the session identifier, with its algorithm name. Agents
    /// receive it, see [`put_session_bind`](crate::key::agent::put_session_bind).
    #[must_use]
    pub fn host_signature(&self) -> Option<&[u8]> {
        self.session.as_ref().map(|session| &*session.signature)
    }

    /// Returns the algorithms of the last exchange, for logs.
    #[must_use]
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.session.as_ref().map(|session| &session.negotiated)
    }

    /// True if both sides use strict key exchange.
    #[must_use]
    pub const fn is_strict(&self) -> bool {
        self.strict
    }

    /// Returns the peer's identification.
    #[must_use]
    pub const fn peer_version(&self) -> Option<&Identification> {
        self.theirs.as_ref()
    }

    /// Returns the extensions that the peer supports.
    #[must_use]
    pub const fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// True if payloads are sealed immediately: keys are in use, and no exchange is running.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        let settled = match &self.exchange {
            None => true,
            Some(exchange) => matches!(exchange.stage, ExchangeStage::Switching { .. }),
        };
        settled && self.session.is_some() && self.closed.is_none()
    }

    /// Returns the bytes of the last payload that [`Transport::open_next`] found in the same
    /// `wire`.
    #[must_use]
    pub fn payload<'a>(&'a self, wire: &'a [u8], payload: &PayloadPosition) -> &'a [u8] {
        self.opener.payload(wire, payload)
    }

    /// Ends the connection; `text` is for the peer's log. Later calls fail.
    pub fn disconnect(&mut self, reason: Disconnect, text: &str) {
        if self.closed.is_none() {
            self.put_disconnect(reason, text);
            self.closed = Some(SshError::Policy("the connection is closed"));
        }
    }

    /// Ends the connection because of `why`, and returns it.
    fn fail_with(&mut self, why: SshError) -> SshError {
        if let Some(reason) = why.disconnect() {
            self.put_disconnect(reason, &why.to_string());
        }
        self.closed = Some(why.clone());
        why
    }

    fn put_disconnect(&mut self, reason: Disconnect, text: &str) {
        // Before its identification has arrived, the peer may not even be an SSH implementation.
        if self.theirs.is_none() {
            return;
        }
        let mut payload = vec![msg::DISCONNECT];
        payload.put_u32(reason as u32);
        payload.put_nested(|out| out.extend(text.bytes().take(512)));
        payload.put_string(b"");
        // If even that cannot be sealed, the end of the stream has to suffice.
        let _ = self.sealer.seal(&payload, &mut self.out);
    }

    /// Queues an event that is only informative; drops it if the queue is full.
    fn push_optional_event(&mut self, event: Event) {
        if self.events.len() < MAX_EVENTS {
            self.events.push_back(event);
        }
    }

    fn rng_mut(&mut self) -> Result<&mut (dyn Entropy + 'static), SshError> {
        let away = SshError::Crypto("the result of a computation was not returned");
        Ok(&mut **self.entropy.as_mut().ok_or(away)?)
    }

    fn check_open(&self) -> Result<(), SshError> {
        self.closed.clone().map_or(Ok(()), Err)
    }
}

impl core::fmt::Debug for Transport {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Transport")
            .field("role", &self.role)
            .field("negotiated", &self.negotiated())
            .field("exchange", &self.exchange)
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
