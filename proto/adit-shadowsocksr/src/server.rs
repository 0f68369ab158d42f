//! The server's side: the first message of each connection, and the state that connections share.

mod accept;

use core::fmt;
use core::ops::Range;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use adit_crypto::Secret;
use adit_wire::{Entropy, HandshakeProgress, Overhead, ProtocolError, Seal, UnixTime};

use crate::field::check_overhead;
use crate::frame::{FrameOpen, FrameSeal};
use crate::noise::NoiseRng;
use crate::port::PortParams;
use crate::user_key::UserKey;
use crate::{Protocol, ProtocolKind, ReplayStore, ServerParam};

/// One port of a server: its key, its users and its replay store.
pub struct ProtocolServer {
    port: PortParams,
    compatible: bool,
    /// They can be replaced one by one while the port is in use.
    users: RwLock<BTreeMap<u32, Arc<UserKey>>>,
    /// True if only users are served, even while there are none.
    has_users: bool,
    /// The key of clients that have only the port's key; unused if there are users.
    port_user: Arc<UserKey>,
    max_clients: usize,
    replays: Arc<ReplayStore>,
}

impl ProtocolServer {
    /// Creates a port. `key` is the cipher's key (16 bytes of the same derivation for methods
    /// without a cipher). `obfs_overhead` is the number of bytes that the obfs adds to a full
    /// frame: 5 for those that imitate TLS and 0 for the others. To change users, create a new
    /// `ProtocolServer` with the same `replays`.
    #[must_use]
    pub fn new(
        protocol: Protocol,
        key: &[u8],
        param: &ServerParam,
        obfs_overhead: u16,
        replays: Arc<ReplayStore>,
    ) -> Self {
        let Protocol { kind, compatible } = protocol;
        let users = param.users.iter();
        let users = users.map(|(uid, password)| {
            let password = password.expose().as_bytes();
            let user = UserKey::from_password(kind, key, password);
            (*uid, Arc::new(user))
        });
        let has_users = param.requires_user || !param.users.is_empty();
        Self {
            port: PortParams::new(kind, key, obfs_overhead, param.interval),
            compatible: compatible && kind.has_compatible(),
            users: RwLock::new(users.collect()),
            has_users,
            port_user: Arc::new(UserKey::from_port_key(kind, key)),
            max_clients: param.max_clients,
            replays,
        }
    }

    /// Returns the protocol.
    #[must_use]
    pub const fn kind(&self) -> ProtocolKind {
        self.port.kind
    }

    /// Creates the handshake of one connection. `iv` is the cipher's IV of the request, empty if it
    /// has none; `mss` is the segment size of the connection in bytes, which is reported to
    /// `auth_chain` clients.
    pub fn new_handshake(
        self: &Arc<Self>,
        iv: &[u8],
        mss: u16,
        entropy: &mut dyn Entropy,
    ) -> ServerHandshake {
        self.new_handshake_with(iv, mss, NoiseRng::new(entropy))
    }

    pub(crate) fn new_handshake_with(
        self: &Arc<Self>,
        iv: &[u8],
        mss: u16,
        noise: NoiseRng,
    ) -> ServerHandshake {
        ServerHandshake {
            iv_key: self.port.iv_key(iv),
            server: self.clone(),
            iv: iv.into(),
            mss: if (501..=1500).contains(&mss) {
                mss
            } else {
                1460
            },
            noise: Some(noise),
        }
    }

    pub(crate) const fn port(&self) -> &PortParams {
        &self.port
    }

    /// Returns the key of a user. An unknown user has a key only if the port has no users.
    pub(crate) fn find_user(&self, uid: u32) -> Option<Arc<UserKey>> {
        if !self.has_users {
            return Some(self.port_user.clone());
        }
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        users.get(&uid).cloned()
    }

    /// Removes the users in `remove`, then adds those in `put` (id and password), or replaces their passwords. Connections
    /// that are open are not affected. A port without users stays without.
    pub fn change_users<'a>(&self, remove: &[u32], put: impl IntoIterator<Item = (u32, &'a str)>) {
        let (kind, port_key) = (self.port.kind, self.port.key());
        let key = |password: &str| UserKey::from_password(kind, port_key, password.as_bytes());
        let put: Vec<_> = put
            .into_iter()
            .map(|(uid, password)| (uid, Arc::new(key(password))))
            .collect();
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        for uid in remove {
            users.remove(uid);
        }
        if self.has_users {
            users.extend(put);
        }
    }

    /// Replaces all users, as [`Self::change_users`] does with some.
    pub fn replace_users<'a>(&self, put: impl IntoIterator<Item = (u32, &'a str)>) {
        let gone: Vec<u32> = {
            let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
            users.keys().copied().collect()
        };
        let put: Vec<_> = put.into_iter().collect();
        let stays: std::collections::BTreeSet<u32> = put.iter().map(|(uid, _)| *uid).collect();
        let gone: Vec<u32> = gone
            .into_iter()
            .filter(|uid| !stays.contains(uid))
            .collect();
        self.change_users(&gone, put);
    }

    /// Returns the id for accounting.
    pub(crate) fn accounted_uid(&self, uid: u32) -> Option<u32> {
        self.has_users.then_some(uid)
    }
}

impl fmt::Debug for ProtocolServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("kind", &self.port.kind)
            .field("compatible", &self.compatible)
            .field("has_users", &self.has_users)
            .finish_non_exhaustive()
    }
}

/// Reads the first message of a connection.
///
/// All failures are errors that occur before anything is sent. The caller must treat all of them
/// alike, including the end of the stream and a timeout while the handshake still waits for more
/// bytes.
pub struct ServerHandshake {
    server: Arc<ProtocolServer>,
    iv: Box<[u8]>,
    iv_key: Secret<Vec<u8>>,
    mss: u16,
    /// `None` once the codecs were created.
    noise: Option<NoiseRng>,
}

/// An accepted connection.
#[derive(Debug)]
#[non_exhaustive]
pub struct AcceptedConnection {
    /// Number of bytes in the first message; 0 if the protocol has none.
    pub consumed: usize,
    /// The range of the message's data; may be empty. The target header begins here, and may
    /// continue in the frames after it.
    pub payload: Range<usize>,
    /// The user, if the port has users.
    pub uid: Option<u32>,
    /// True if the client does not use the protocol and is treated as a client of `origin`
    /// (`_compatible`).
    pub fell_back: bool,
    /// Opens the data after the first message.
    pub open: FrameOpen,
    /// Seals the answers.
    pub seal: ServerSeal,
}

impl ServerHandshake {
    /// Reads the decrypted bytes from the start of the connection; after [`HandshakeProgress::NeedMore`] the
    /// next call must begin with the same bytes. The bytes are not changed before [`HandshakeProgress::Done`].
    ///
    /// # Errors
    ///
    /// Fails if the message is malformed, forged, replayed or too old, and after the handshake has
    /// finished.
    pub fn step(
        &mut self,
        plain: &mut [u8],
        now: UnixTime,
    ) -> Result<HandshakeProgress<AcceptedConnection>, ProtocolError> {
        match self.read_message(plain, now) {
            Err(_) if self.server.compatible && self.noise.is_some() => self.accept_origin(),
            step => step,
        }
    }
}

impl fmt::Debug for ServerHandshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerHandshake")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// Seals the data that a server sends.
///
/// Clients wait for a first frame, which may be empty: [`Seal::must_send_head`] is true until one was
/// sealed, for the protocols from `auth_sha1_v2` on.
pub struct ServerSeal {
    frames: FrameSeal,
    owes_first: bool,
    noise: NoiseRng,
}

impl Seal for ServerSeal {
    /// The first record has the larger head.
    fn has_steady_overhead(&self) -> bool {
        true
    }

    fn overhead(&self) -> Overhead {
        self.frames.seal_overhead()
    }

    /// Seals a payload. An empty one results in an empty range, unless a head is owed.
    fn seal(
        &mut self,
        record: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, ProtocolError> {
        check_overhead(self.overhead(), record, &payload)?;
        if payload.is_empty() && !self.owes_first {
            return Ok(payload);
        }
        self.owes_first = false;
        self.frames.seal_frame(record, payload, &mut self.noise)
    }

    fn wants_seal_ahead(&self) -> bool {
        self.frames.looks_ahead()
    }

    fn seal_ahead(&mut self, slot: &mut [u8], payloads: &[Range<usize>]) {
        self.frames.seal_ahead(slot, payloads);
    }

    fn must_send_head(&self) -> bool {
        self.owes_first
    }
}

impl fmt::Debug for ServerSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSeal")
            .field("owes_head", &self.owes_first)
            .finish_non_exhaustive()
    }
}
