//! The server's side: the first message of each connection, and the state that connections share.

mod accept;

use core::fmt;
use core::ops::Range;
use std::collections::BTreeMap;
use std::sync::Arc;

use adit_crypto::Secret;
use adit_wire::{Broken, Entropy, Room, Seal, Step, Unix};

use crate::field::check_room;
use crate::frame::{FrameOpen, FrameSeal};
use crate::noise::Noise;
use crate::port::Port;
use crate::user::UserKey;
use crate::{Protocol, ProtocolKind, ReplayStore, ServerParam};

/// One port of a server: its key, its users and its replay store.
pub struct Server {
    port: Port,
    compatible: bool,
    users: BTreeMap<u32, UserKey>,
    /// The key of clients that have only the port's key; unused if there are users.
    nobody: UserKey,
    max_clients: usize,
    replays: Arc<ReplayStore>,
}

impl Server {
    /// Creates a port. `key` is the cipher's key (16 bytes of the same derivation for methods
    /// without a cipher). `obfs_overhead` is the number of bytes that the obfs adds to a full
    /// frame: 5 for those that imitate TLS and 0 for the others. To change users, create a new
    /// `Server` with the same `replays`.
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
            (*uid, UserKey::of_password(kind, key, password))
        });
        Self {
            port: Port::new(kind, key, obfs_overhead, param.interval),
            compatible: compatible && kind.has_compatible(),
            users: users.collect(),
            nobody: UserKey::of_port(kind, key),
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
    pub fn accept(
        self: &Arc<Self>,
        iv: &[u8],
        mss: u16,
        entropy: &mut dyn Entropy,
    ) -> ServerHandshake {
        self.accept_with(iv, mss, Noise::new(entropy))
    }

    pub(crate) fn accept_with(
        self: &Arc<Self>,
        iv: &[u8],
        mss: u16,
        noise: Noise,
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

    pub(crate) const fn port(&self) -> &Port {
        &self.port
    }

    /// Returns the key of a user. An unknown user has a key only if the port has no users.
    pub(crate) fn find(&self, uid: u32) -> Option<&UserKey> {
        if self.users.is_empty() {
            return Some(&self.nobody);
        }
        self.users.get(&uid)
    }

    /// Returns the id for accounting.
    pub(crate) fn known(&self, uid: u32) -> Option<u32> {
        (!self.users.is_empty()).then_some(uid)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("kind", &self.port.kind)
            .field("compatible", &self.compatible)
            .field("users", &self.users.len())
            .finish_non_exhaustive()
    }
}

/// Reads the first message of a connection.
///
/// All failures are errors that occur before anything is sent. The caller must treat all of them
/// alike, including the end of the stream and a timeout while the handshake still waits for more
/// bytes.
pub struct ServerHandshake {
    server: Arc<Server>,
    iv: Box<[u8]>,
    iv_key: Secret<Vec<u8>>,
    mss: u16,
    /// `None` once the codecs were created.
    noise: Option<Noise>,
}

/// An accepted connection.
#[derive(Debug)]
pub struct Accepted {
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
    /// Reads the decrypted bytes from the start of the connection; after [`Step::NeedMore`] the
    /// next call must begin with the same bytes. The bytes are not changed before [`Step::Done`].
    ///
    /// # Errors
    ///
    /// Fails if the message is malformed, forged, replayed or too old, and after the handshake has
    /// finished.
    pub fn step(&mut self, plain: &mut [u8], now: Unix) -> Result<Step<Accepted>, Broken> {
        match self.read(plain, now) {
            Err(_) if self.server.compatible && self.noise.is_some() => self.fall_back(),
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
/// Clients wait for a first frame, which may be empty: [`Seal::owes_head`] is true until one was
/// sealed, for the protocols from `auth_sha1_v2` on.
pub struct ServerSeal {
    frames: FrameSeal,
    owes: bool,
    noise: Noise,
}

impl Seal for ServerSeal {
    /// The first record has the larger head.
    fn steady(&self) -> bool {
        true
    }

    fn room(&self) -> Room {
        self.frames.room()
    }

    /// Seals a payload. An empty one results in an empty range, unless a head is owed.
    fn seal(&mut self, record: &mut [u8], payload: Range<usize>) -> Result<Range<usize>, Broken> {
        check_room(self.room(), record, &payload)?;
        if payload.is_empty() && !self.owes {
            return Ok(payload);
        }
        self.owes = false;
        self.frames.seal(record, payload, &mut self.noise)
    }

    fn looks_ahead(&self) -> bool {
        self.frames.looks_ahead()
    }

    fn seal_ahead(&mut self, slot: &mut [u8], payloads: &[Range<usize>]) {
        self.frames.seal_ahead(slot, payloads);
    }

    fn owes_head(&self) -> bool {
        self.owes
    }
}

impl fmt::Debug for ServerSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSeal")
            .field("owes_head", &self.owes)
            .finish_non_exhaustive()
    }
}
