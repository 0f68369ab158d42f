//! The transport (RFC 4253): from the first line on the wire to payloads that flow under keys.
//!
//! ```text
//!            bytes of the peer                    payloads of the layers above
//!  open_next ─▶ version ─▶ packet ─┬─▶ Step::Payload ─▶
//!                                  └─▶ kex, EXT_INFO, PING, …   (handled here, seen as events)
//!  take_output ◀─ packet ◀─ send, begin_payload ◀──────────────
//! ```
//!
//! A driver calls [`Transport::open_next`] with what it has received until it says that more is
//! needed, hands payloads upwards, sends what stands in [`Transport::take_output`], polls
//! [`Transport::poll_event`], and calls [`Transport::handle_timeout`] when
//! [`Transport::poll_timeout`] says so. Once the user is in, new keys are made in the midst of
//! that, at either side's wish; what is sent meanwhile waits in a bounded queue, what the peer sent
//! before its own KEXINIT goes on flowing.
//!
//! Its bytes have verbs of their own, because they go both ways in place, as with
//! [`Open`](adit_wire::Open) and [`Seal`](adit_wire::Seal): a packet is decrypted where it lies in
//! the driver's buffer, and sealed in the vector from which the driver sends.
//!
//! What a server computes for a key exchange takes milliseconds, and anybody can ask for it. A
//! driver that serves others on the same thread has it handed out ([`Computation`]).
//!
//! After an error nothing goes on: the error is given again by each call, and the output ends in
//! the DISCONNECT that tells the peer.

mod computation;
mod config;
mod exchange;
mod ext;
mod incoming;
mod outgoing;
mod timers;

use std::collections::VecDeque;
use std::sync::Arc;

use adit_wire::{Entropy, Role, Time};

pub use computation::{Computation, Computed};
pub use config::{Config, StrictKex};
pub use ext::Extensions;
pub use incoming::Step;
pub use outgoing::PayloadWriter;

use crate::algorithm::{Cipher, KeyAlgorithm, Preferred};
use crate::error::{Disconnect, SshError};
use crate::kex::Negotiated;
use crate::key::Signer;
use crate::msg;
use crate::packet::{Opener, Payload, Sealer};
use crate::version::{Version, VersionReader};
use crate::wire::Put;
use exchange::{Exchange, Stage};

/// How many events may wait; beyond it those that only inform are dropped.
const MAX_EVENTS: usize = 64;

/// What happened beside payloads.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Client: the server has proved that it owns this key. Nothing goes on before
    /// [`Transport::accept_host_key`] or [`Transport::reject_host_key`] is called. Asked once;
    /// at later exchanges the key must be the same.
    HostKey {
        /// The algorithm it signed with.
        algorithm: KeyAlgorithm,
        /// The key's or certificate's blob.
        blob: Vec<u8>,
    },
    /// The first keys are in use in both directions.
    Ready(Negotiated),
    /// New keys are in use in both directions.
    Rekeyed(Negotiated),
    /// The peer told its extensions.
    ExtInfo(Extensions),
    /// A PING of ours came back.
    Pong(Vec<u8>),
    /// Words of the peer for a log, printable characters only.
    Debug(String),
}

/// What the first exchange has settled for the whole connection.
#[derive(Debug)]
struct Session {
    id: Vec<u8>,
    host_key: Vec<u8>,
    /// The host's, over `id`.
    signature: Vec<u8>,
    negotiated: Negotiated,
}

/// One side of a connection's transport.
pub struct Transport {
    role: Role,
    config: Arc<Config>,
    /// A server's host keys.
    signer: Option<Arc<dyn Signer>>,
    /// Away while a computation has it.
    entropy: Option<Box<dyn Entropy + Send>>,
    /// Whether computations are handed out, and the one that waits to be taken.
    hands_out: bool,
    computation: Option<Box<Computation>>,
    ours: Version,
    theirs: Option<Version>,
    lines: VersionReader,
    /// What our KEXINITs offer.
    offered: Preferred,
    sealer: Sealer,
    opener: Opener,
    out: Vec<u8>,
    queue: VecDeque<Vec<u8>>,
    /// Octets in `queue`.
    queued: usize,
    exchange: Option<Exchange>,
    session: Option<Session>,
    /// Strict key exchange, from the peer's first KEXINIT on.
    strict: bool,
    /// The first keys are in use in both directions.
    ready: bool,
    /// The peer takes EXT_INFO.
    wants_extensions: bool,
    /// The user is in: compression that was delayed runs.
    authenticated: bool,
    /// PINGs and EXT_INFOs of a peer that is not authenticated yet.
    early: u32,
    /// Octets of each direction after which new keys are due: sent, received.
    due: (u64, u64),
    keys_since: Option<Time>,
    extensions: Extensions,
    events: VecDeque<Event>,
    closed: Option<SshError>,
}

impl Transport {
    /// A client's side. Its identification and its lists stand in the output at once.
    ///
    /// # Errors
    /// [`SshError::Malformed`] for a software name that cannot stand in an identification.
    pub fn client(config: Arc<Config>, entropy: Box<dyn Entropy + Send>) -> Result<Self, SshError> {
        let offered = config.preferred.clone();
        let mut new = Self::new(Role::Client, config, offered, None, entropy)?;
        new.start_exchange()?;
        Ok(new)
    }

    /// A server's side. Its identification stands in the output at once, its lists too unless
    /// they depend on whether the client can do strict key exchange.
    ///
    /// # Errors
    /// As [`Transport::client`].
    pub fn server(
        config: Arc<Config>,
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
            new.exchange = Some(Exchange::held());
        } else {
            new.start_exchange()?;
        }
        Ok(new)
    }

    fn new(
        role: Role,
        config: Arc<Config>,
        offered: Preferred,
        signer: Option<Arc<dyn Signer>>,
        entropy: Box<dyn Entropy + Send>,
    ) -> Result<Self, SshError> {
        let ours = Version::ours(&config.software)?;
        let mut out = Vec::new();
        ours.write(&mut out);
        Ok(Self {
            role,
            signer,
            entropy: Some(entropy),
            hands_out: false,
            computation: None,
            theirs: None,
            lines: VersionReader::new(role.peer()),
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
            early: 0,
            due: (u64::MAX, u64::MAX),
            keys_since: None,
            extensions: Extensions::default(),
            events: VecDeque::new(),
            closed: None,
            config,
        })
    }

    /// The identifier of the session; `None` before the first exchange has come so far.
    #[must_use]
    pub fn session_id(&self) -> Option<&[u8]> {
        self.session.as_ref().map(|session| &*session.id)
    }

    /// The server's host key, as it was proved.
    #[must_use]
    pub fn host_key(&self) -> Option<&[u8]> {
        self.session.as_ref().map(|session| &*session.host_key)
    }

    /// The host's signature of the session's identifier, with its name: what agents are shown, see
    /// [`put_session_bind`](crate::key::agent::put_session_bind).
    #[must_use]
    pub fn host_signature(&self) -> Option<&[u8]> {
        self.session.as_ref().map(|session| &*session.signature)
    }

    /// What was agreed on at the last exchange, for logs.
    #[must_use]
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.session.as_ref().map(|session| &session.negotiated)
    }

    /// Whether both sides do strict key exchange.
    #[must_use]
    pub const fn is_strict(&self) -> bool {
        self.strict
    }

    /// The peer's identification.
    #[must_use]
    pub const fn peer_version(&self) -> Option<&Version> {
        self.theirs.as_ref()
    }

    /// What the peer said it can do.
    #[must_use]
    pub const fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether payloads are sealed at once: keys are there, and no exchange is under way.
    #[must_use]
    pub fn writable(&self) -> bool {
        let settled = match &self.exchange {
            None => true,
            Some(exchange) => matches!(exchange.stage, Stage::Switching { .. }),
        };
        settled && self.session.is_some() && self.closed.is_none()
    }

    /// The octets of the last payload that [`Transport::open_next`] found in the same `wire`.
    #[must_use]
    pub fn payload<'a>(&'a self, wire: &'a [u8], payload: &Payload) -> &'a [u8] {
        self.opener.payload(wire, payload)
    }

    /// Ends the connection; `text` is for the peer's log. Calls behind it fail.
    pub fn disconnect(&mut self, reason: Disconnect, text: &str) {
        if self.closed.is_none() {
            self.put_disconnect(reason, text);
            self.closed = Some(SshError::Policy("the connection was ended by us"));
        }
    }

    /// Ends the connection because of `why`, and gives it back.
    fn fail(&mut self, why: SshError) -> SshError {
        if let Some(reason) = why.disconnect() {
            self.put_disconnect(reason, &why.to_string());
        }
        self.closed = Some(why.clone());
        why
    }

    fn put_disconnect(&mut self, reason: Disconnect, text: &str) {
        // Before it has said who it is, the peer may not even speak SSH.
        if self.theirs.is_none() {
            return;
        }
        let mut payload = vec![msg::DISCONNECT];
        payload.put_u32(reason as u32);
        payload.put_nested(|out| out.extend(text.bytes().take(512)));
        payload.put_string(b"");
        // If even that cannot be sealed, the end of the stream has to do.
        let _ = self.sealer.seal(&payload, &mut self.out);
    }

    /// An event that only informs.
    fn inform(&mut self, event: Event) {
        if self.events.len() < MAX_EVENTS {
            self.events.push_back(event);
        }
    }

    fn entropy(&mut self) -> Result<&mut (dyn Entropy + 'static), SshError> {
        let away = SshError::Crypto("a computation was not given back");
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
