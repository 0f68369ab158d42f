//! A server's handshake: from the first byte to the target.

mod stream;

use core::fmt;
use std::sync::Arc;

use adit_crypto::TAG_LEN;
use adit_wire::{
    AddrError, Clock, Entropy, Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, Open,
    Opened, ProtocolError, Target, parse_addr, subslice,
};

use self::stream::StreamRequest;
use super::body::{BodyOpen, BodySeal};
use super::chunk::{ChunkOpen, ChunkSeal, LENGTH_LEN};
use super::request::{FIXED_SEALED, parse_fixed, parse_variable};
use super::{FIXED_LEN, ServerSeal, max_chunk};
use crate::identity::{IDENTITY_LEN, IdentityHash};
use crate::salt::Salt;
use crate::{Edition, SaltPool, UserId, UserRef, Users, timestamp};

/// Reads a request. It sends nothing, and waits for more bytes until it can accept or refuse.
///
/// All failures are errors that occur before anything was sent. The caller must treat all of them
/// alike (SEC-P1), including the end of the stream and a timeout while the handshake still waits
/// for more bytes; then an observer sees neither the cause nor the number of bytes waited for.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use adit_shadowsocks::tcp::{ServerHandshake, client_codecs};
/// use adit_shadowsocks::{KeyChain, Method, RestartPolicy, SaltPool, Users};
/// use adit_wire::{FixedEntropy, Handshake, HandshakeInput, Seal, HandshakeProgress, Target, HandshakeOutput, UnixTime};
///
/// let now = UnixTime(1_800_000_000); // the system's clock in a program
/// let keys = KeyChain::parse(Method::Aes256Gcm, "a password")?;
/// let target: Target = "example.test:443".parse().unwrap();
///
/// // A client seals its request and the first bytes in place.
/// let (mut seal, _) = client_codecs(&keys, &target, Arc::new(now), &mut FixedEntropy::new([7; 32])).unwrap();
/// let space = seal.overhead();
/// let mut wire = vec![0; space.head];
/// wire.extend_from_slice(b"hello");
/// wire.resize(wire.len() + space.tail, 0);
/// let sealed = seal.seal(&mut wire, space.head..space.head + 5).unwrap();
///
/// // The server reads them. It remembers the salt: a second connection with the same bytes is a replay.
/// let users = Users::with_single_key(keys.user_key().clone());
/// let salts = Arc::new(SaltPool::new([1; 16], now, RestartPolicy::Lenient));
/// let mut serve = |mut bytes: Vec<u8>| {
///     ServerHandshake::new(&users, Arc::new(now), salts.clone(), &mut FixedEntropy::new([8; 32]))
///         .step(&mut HandshakeInput::new(&mut bytes), &mut HandshakeOutput::new(&mut Vec::new()))
/// };
/// let request = wire[sealed].to_vec();
/// let Ok(HandshakeProgress::Done(accepted)) = serve(request.clone()) else { panic!("the request is complete") };
/// assert_eq!(accepted.target, target);
/// assert!(serve(request).is_err());
/// # Ok::<(), adit_shadowsocks::KeyError>(())
/// ```
pub struct ServerHandshake {
    users: Arc<Users>,
    /// The most likely user, if users are found by trial.
    hint: Option<UserId>,
    clock: Arc<dyn Clock>,
    salts: Arc<SaltPool>,
    response_salt: Salt,
    state: State,
}

enum State {
    /// Waits for the salt, an identity header if the users have one, and the first sealed block.
    Head,
    /// 2022: waits for a variable header of `n` bytes.
    Variable {
        known: AuthenticatedRequest,
        n: usize,
    },
    /// AEAD: the address may arrive in several chunks.
    Address {
        known: AuthenticatedRequest,
        plain: Vec<u8>,
    },
    /// Legacy: after the IV.
    Stream {
        request: StreamRequest,
        request_iv: Salt,
    },
    Done,
}

/// The result of the first sealed block.
struct AuthenticatedRequest {
    chunks: ChunkOpen,
    request_salt: Salt,
    /// The user's index.
    place: usize,
}

/// An accepted request.
#[non_exhaustive]
pub struct AcceptedRequest {
    /// The client's user; `None` if there is a single key.
    pub user: Option<UserRef>,
    /// The target that the client requested.
    pub target: Target,
    /// The first payload, received with the request; may be empty.
    pub first: Vec<u8>,
    /// Opens the data after the request.
    pub open: ServerOpen,
    /// Seals the answers.
    pub seal: ServerSeal,
}

impl fmt::Debug for AcceptedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accepted")
            .field("user", &self.user)
            .field("target", &self.target)
            .field("first", &self.first.len())
            .finish_non_exhaustive()
    }
}

impl ServerHandshake {
    /// Creates the handshake of one connection; `salts` is shared by all connections of these
    /// users.
    pub fn new(
        users: &Arc<Users>,
        clock: Arc<dyn Clock>,
        salts: Arc<SaltPool>,
        entropy: &mut dyn Entropy,
    ) -> Self {
        Self {
            users: users.clone(),
            hint: None,
            clock,
            salts,
            response_salt: Salt::draw_random(users.method(), entropy),
            state: State::Head,
        }
    }

    /// Sets the user last seen at the client's address. If users are found by trial
    /// ([`Users::with_trial_keys`]), this user is tried first; otherwise the hint has no effect.
    #[must_use]
    pub fn with_hint(mut self, user: Option<UserId>) -> Self {
        self.hint = user;
        self
    }

    /// Advances as far as `rx` allows; returns `None` when the state has changed.
    fn advance_state(
        &mut self,
        rx: &mut HandshakeInput<'_>,
    ) -> Result<Option<HandshakeProgress<AcceptedRequest>>, ProtocolError> {
        match &mut self.state {
            State::Head => match self.users.method().edition() {
                Edition::None => self.accept_raw(rx).map(Some),
                Edition::Stream => self.read_iv(rx),
                Edition::Aead | Edition::Aead2022 => self.read_head(rx),
            },
            State::Stream { request, .. } => match request.read_target(rx)? {
                Ok(target) => self.accept_stream_request(target).map(Some),
                Err(total) => Ok(Some(HandshakeProgress::NeedMore { total })),
            },
            State::Variable { known, n } => {
                let n = *n;
                let total = n + TAG_LEN;
                if rx.bytes().len() < total {
                    return Ok(Some(HandshakeProgress::NeedMore { total }));
                }
                known.chunks.open_block(rx.bytes_mut(), 0..n)?;
                let header = subslice(rx.bytes(), ..n);
                let (target, payload) = parse_variable(header)?;
                let first = subslice(header, payload).to_vec();
                rx.consume(total);
                self.accept_request(target, first).map(Some)
            }
            State::Address { known, plain } => {
                match known.chunks.open_chunk(rx.bytes_mut())? {
                    Opened::NeedMore { total } => {
                        return Ok(Some(HandshakeProgress::NeedMore { total }));
                    }
                    Opened::Record { consumed, payload } => {
                        plain.extend_from_slice(subslice(rx.bytes(), payload));
                        rx.consume(consumed);
                    }
                    Opened::End => return Err(ProtocolError::Truncated("the request")),
                }
                match parse_addr(plain) {
                    Ok((target, used)) => {
                        plain.drain(..used);
                        let first = core::mem::take(plain);
                        self.accept_request(target, first).map(Some)
                    }
                    // At most 259 bytes and one chunk are ever stored.
                    Err(AddrError::Incomplete { .. }) => Ok(None),
                    Err(_) => Err(ProtocolError::Malformed("address")),
                }
            }
            State::Done => Err(ProtocolError::Malformed("handshake: already finished")),
        }
    }

    /// Authenticates the first block, then checks its time, then inserts its salt: in this order,
    /// so that only owners of a key can fill the pool (SEC-R1).
    fn read_head(
        &mut self,
        rx: &mut HandshakeInput<'_>,
    ) -> Result<Option<HandshakeProgress<AcceptedRequest>>, ProtocolError> {
        let method = self.users.method();
        let is_2022 = method.edition() == Edition::Aead2022;
        let block = if is_2022 { FIXED_SEALED } else { LENGTH_LEN };
        let identity = self.users.identity_key().map_or(0, |_| IDENTITY_LEN);
        let total = method.key_len() + identity + block;
        if rx.bytes().len() < total {
            return Ok(Some(HandshakeProgress::NeedMore { total }));
        }
        let short = ProtocolError::Truncated("the request header");
        let request_salt = Salt::read_from(method, rx.bytes()).ok_or(short)?;
        rx.consume(request_salt.len());
        let now = self.clock.unix_time();
        self.state = if is_2022 {
            let mut known = self.identify_user(rx, request_salt)?;
            known.chunks.open_block(rx.bytes_mut(), 0..FIXED_LEN)?;
            let (stamp, n) = parse_fixed(rx.bytes().get(..FIXED_LEN).ok_or(short)?)?;
            timestamp::check_timestamp(stamp, now)?;
            self.salts.insert_salt(&request_salt, Some(stamp), now)?;
            rx.consume(FIXED_SEALED);
            State::Variable { known, n }
        } else {
            let length = rx.bytes().first_chunk().ok_or(short)?;
            let known = self.try_all_keys(length, request_salt)?;
            self.salts.insert_salt(&request_salt, None, now)?;
            let plain = Vec::new();
            State::Address { known, plain }
        };
        Ok(None)
    }

    /// 2022: selects the single key, or the one that the identity header names.
    fn identify_user(
        &self,
        rx: &mut HandshakeInput<'_>,
        request_salt: Salt,
    ) -> Result<AuthenticatedRequest, ProtocolError> {
        let mut place = 0;
        if let Some(identity) = self.users.identity_key() {
            let header = rx.bytes().first_chunk();
            let header = header.ok_or(ProtocolError::Truncated("the identity header"))?;
            let hash = IdentityHash::open_stream(identity, &request_salt, *header)?;
            // An unknown user is treated like a wrong key.
            place = self
                .users
                .find_by_hash(hash)
                .ok_or(ProtocolError::Unauthentic)?;
            rx.consume(IDENTITY_LEN);
        }
        self.start_chunks(place, request_salt)
    }

    /// AEAD: finds the key that opens the first length. Tries each user once, the hinted one first.
    fn try_all_keys(
        &self,
        sealed: &[u8; LENGTH_LEN],
        request_salt: Salt,
    ) -> Result<AuthenticatedRequest, ProtocolError> {
        for place in self.users.trial_order(self.hint) {
            let mut known = self.start_chunks(place, request_salt)?;
            // A wrong key destroys its input, so it gets a copy. The right one stores the length.
            match known.chunks.open_length(&mut sealed.clone(), 0) {
                Ok(()) => return Ok(known),
                Err(ProtocolError::Unauthentic) => {}
                Err(why) => return Err(why),
            }
        }
        Err(ProtocolError::Unauthentic)
    }

    fn start_chunks(
        &self,
        place: usize,
        request_salt: Salt,
    ) -> Result<AuthenticatedRequest, ProtocolError> {
        let material = self.users.material_at(place)?;
        let chunks = ChunkOpen::new(
            material.derive_session_key(&request_salt)?,
            max_chunk(material.method()),
        );
        Ok(AuthenticatedRequest {
            chunks,
            request_salt,
            place,
        })
    }

    /// Method `none`: reads the address; the data after it stays in `rx`.
    fn accept_raw(
        &mut self,
        rx: &mut HandshakeInput<'_>,
    ) -> Result<HandshakeProgress<AcceptedRequest>, ProtocolError> {
        let (target, used) = match parse_addr(rx.bytes()) {
            Ok(found) => found,
            Err(AddrError::Incomplete { total }) => {
                return Ok(HandshakeProgress::NeedMore { total });
            }
            Err(_) => return Err(ProtocolError::Malformed("address")),
        };
        rx.consume(used);
        self.state = State::Done;
        Ok(HandshakeProgress::Done(AcceptedRequest {
            user: None,
            target,
            first: Vec::new(),
            open: ServerOpen(BodyOpen::Raw),
            seal: ServerSeal::new_raw(),
        }))
    }

    fn accept_request(
        &mut self,
        target: Target,
        first: Vec<u8>,
    ) -> Result<HandshakeProgress<AcceptedRequest>, ProtocolError> {
        let (State::Variable { known, .. } | State::Address { known, .. }) =
            core::mem::replace(&mut self.state, State::Done)
        else {
            return Err(ProtocolError::Malformed("handshake: already finished"));
        };
        let material = self.users.material_at(known.place)?;
        if material.method().edition() == Edition::Aead {
            // SEC-R6: our reflected answer would open as a request, as there is no type byte.
            let now = self.clock.unix_time();
            self.salts.insert_salt(&self.response_salt, None, now)?;
        }
        Ok(HandshakeProgress::Done(AcceptedRequest {
            user: self.users.user_at(known.place),
            target,
            first,
            open: ServerOpen(BodyOpen::Chunks(known.chunks)),
            seal: ServerSeal::new(
                material.method(),
                BodySeal::Chunks(ChunkSeal::new(
                    material.derive_session_key(&self.response_salt)?,
                )),
                self.response_salt,
                known.request_salt,
                self.clock.clone(),
            ),
        }))
    }
}

impl Handshake for ServerHandshake {
    type Output = AcceptedRequest;
    type Error = ProtocolError;

    fn step(
        &mut self,
        rx: &mut HandshakeInput<'_>,
        _tx: &mut HandshakeOutput<'_>,
    ) -> Result<HandshakeProgress<AcceptedRequest>, ProtocolError> {
        loop {
            match self.advance_state(rx) {
                Ok(Some(step)) => return Ok(step),
                Ok(None) => {}
                Err(why) => {
                    self.state = State::Done;
                    return Err(why);
                }
            }
        }
    }
}

/// Opens the data that a client sends after its request.
pub struct ServerOpen(BodyOpen);

impl Open for ServerOpen {
    fn open(&mut self, wire: &mut [u8]) -> Result<Opened, ProtocolError> {
        self.0.open(wire)
    }

    fn is_at_boundary(&self, unread: usize) -> bool {
        self.0.at_boundary(unread)
    }
}
