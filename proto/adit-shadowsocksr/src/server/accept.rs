//! From a first message to codecs: checks the MACs, then the time, then the replay store, in this
//! order, so that only owners of a key can fill the store.

use std::sync::Arc;

use adit_wire::{HandshakeProgress, ProtocolError, UnixTime};

use super::{AcceptedConnection, ServerHandshake, ServerSeal};
use crate::clock_tolerance;
use crate::field::range_ref;
use crate::frame::{
    AdlerKind, FrameOpen, FrameOpener, FrameSeal, ONE_TIME_TAG, OneTimeOpen, TaggedCodec,
    open_one_time,
};
use crate::head::{VerifiedHead, aes, chain, sha1, simple};
use crate::hello::Hello;
use crate::protocol_kind::ProtocolFamily;
use crate::replay::MessageId;
use crate::user_key::UserKey;

/// Number of seconds after which a client counts as gone.
const IDLE: u64 = 180;

/// The same for `auth_chain`.
const IDLE_CHAIN: u64 = 600;

type Codecs = (FrameSeal, FrameOpener);

impl ServerHandshake {
    pub(super) fn read_message(
        &mut self,
        plain: &mut [u8],
        now: UnixTime,
    ) -> Result<HandshakeProgress<AcceptedConnection>, ProtocolError> {
        let iv_key = self.iv_key.expose();
        let server = &self.server;
        match server.port().kind.family() {
            ProtocolFamily::Origin => self.accept_without_head((FrameSeal::Raw, FrameOpener::Raw)),
            ProtocolFamily::Crc { auth: false } => {
                self.accept_without_head((FrameSeal::Crc, FrameOpener::Crc))
            }
            ProtocolFamily::Deflate => {
                self.accept_without_head((FrameSeal::Deflate(None), FrameOpener::Deflate(None)))
            }
            ProtocolFamily::OneTime => match open_one_time(plain, iv_key)? {
                HandshakeProgress::NeedMore { total } => Ok(HandshakeProgress::NeedMore { total }),
                HandshakeProgress::Done(payload) => {
                    let open = FrameOpener::OneTime(OneTimeOpen::new(&self.iv));
                    let consumed = payload.end + ONE_TIME_TAG;
                    let accepted = self.take_codecs((FrameSeal::Raw, open), false)?;
                    Ok(HandshakeProgress::Done(AcceptedConnection {
                        consumed,
                        payload,
                        ..accepted
                    }))
                }
            },
            ProtocolFamily::Crc { auth: true } => match simple::read_message(plain)? {
                HandshakeProgress::NeedMore { total } => Ok(HandshakeProgress::NeedMore { total }),
                HandshakeProgress::Done(found) => {
                    self.check_replay(&found, None, plain, now)?;
                    self.accept_head(&found, None, (FrameSeal::Crc, FrameOpener::Crc))
                }
            },
            ProtocolFamily::Adler(kind) => {
                let head = sha1::Sha1Head {
                    kind,
                    name: server.port().kind.name(),
                    key: server.port().key(),
                    iv: &self.iv,
                };
                match head.read_message(plain)? {
                    HandshakeProgress::NeedMore { total } => {
                        Ok(HandshakeProgress::NeedMore { total })
                    }
                    HandshakeProgress::Done(found) => {
                        self.check_replay(&found, None, plain, now)?;
                        let codecs = (FrameSeal::Adler(kind), FrameOpener::Adler(kind));
                        self.accept_head(&found, None, codecs)
                    }
                }
            }
            ProtocolFamily::Mac(kind) => {
                let head = aes::AesHead { kind, iv_key };
                let timely = |time| self.check_time(time, now).is_ok();
                match head.read_message(plain, |uid| server.find_user(uid), timely)? {
                    HandshakeProgress::NeedMore { total } => {
                        Ok(HandshakeProgress::NeedMore { total })
                    }
                    HandshakeProgress::Done((found, uid)) => {
                        self.check_replay(&found, Some(uid), plain, now)?;
                        let user = self.user_key(uid)?;
                        let frames = || TaggedCodec::new(kind, user.key());
                        let codecs = (FrameSeal::Tagged(frames()), FrameOpener::Tagged(frames()));
                        self.accept_head(&found, Some(uid), codecs)
                    }
                }
            }
            ProtocolFamily::Chain(kind) => {
                match chain::read_message(iv_key, plain, |uid| server.find_user(uid))? {
                    HandshakeProgress::NeedMore { total } => {
                        Ok(HandshakeProgress::NeedMore { total })
                    }
                    HandshakeProgress::Done((found, uid, start)) => {
                        self.check_replay(&found, Some(uid), plain, now)?;
                        let user = self.user_key(uid)?;
                        let sizes = server
                            .port()
                            .padding_sizes(kind, full_time(&found.hello, now));
                        let seal = start
                            .answer_codec(sizes.clone(), &user)
                            .reporting_mss(self.mss);
                        let open = start.request_codec(sizes, &user);
                        let seal = FrameSeal::Chained(Box::new(seal));
                        let codecs = (seal, FrameOpener::Chained(Box::new(open)));
                        self.accept_head(&found, Some(uid), codecs)
                    }
                }
            }
        }
    }

    /// Continues as `origin`, with all received bytes.
    pub(super) fn accept_origin(
        &mut self,
    ) -> Result<HandshakeProgress<AcceptedConnection>, ProtocolError> {
        let mut accepted = self.take_codecs((FrameSeal::Raw, FrameOpener::Raw), false)?;
        accepted.fell_back = true;
        Ok(HandshakeProgress::Done(accepted))
    }

    fn user_key(&self, uid: u32) -> Result<Arc<UserKey>, ProtocolError> {
        self.server.find_user(uid).ok_or(ProtocolError::Unauthentic)
    }

    fn check_time(&self, time: u32, now: UnixTime) -> Result<(), ProtocolError> {
        match clock_tolerance::time_window(self.server.port().kind.family()) {
            Some(window) => window.check_time(time, now, self.server.replays.start_time()),
            None => Ok(()),
        }
    }

    /// Checks time and ids.
    fn check_replay(
        &self,
        found: &VerifiedHead,
        uid: Option<u32>,
        plain: &[u8],
        now: UnixTime,
    ) -> Result<(), ProtocolError> {
        let server = &self.server;
        let family = server.port().kind.family();
        self.check_time(found.hello.time, now)?;
        let arrival = MessageId {
            uid: uid.and_then(|uid| server.accounted_uid(uid)).unwrap_or(0),
            client: found.hello.client,
            connection: found.hello.connection,
            proof: range_ref(plain, found.proof.clone())?,
            max_clients: server.max_clients,
            idle: match family {
                ProtocolFamily::Chain(_) => IDLE_CHAIN,
                _ => IDLE,
            },
        };
        server.replays.admit_message(&arrival, now)
    }

    /// Returns the codecs of a protocol without a first message.
    fn accept_without_head(
        &mut self,
        codecs: Codecs,
    ) -> Result<HandshakeProgress<AcceptedConnection>, ProtocolError> {
        Ok(HandshakeProgress::Done(self.take_codecs(codecs, false)?))
    }

    fn accept_head(
        &mut self,
        found: &VerifiedHead,
        uid: Option<u32>,
        codecs: Codecs,
    ) -> Result<HandshakeProgress<AcceptedConnection>, ProtocolError> {
        let owes = !matches!(
            self.server.port().kind.family(),
            ProtocolFamily::Crc { .. } | ProtocolFamily::Adler(AdlerKind::V1)
        );
        let accepted = self.take_codecs(codecs, owes)?;
        Ok(HandshakeProgress::Done(AcceptedConnection {
            consumed: found.consumed,
            payload: found.payload.clone(),
            uid: uid.and_then(|uid| self.server.accounted_uid(uid)),
            ..accepted
        }))
    }

    fn take_codecs(
        &mut self,
        (frames, open): Codecs,
        owes: bool,
    ) -> Result<AcceptedConnection, ProtocolError> {
        let over = ProtocolError::Malformed("handshake: already finished");
        let noise = self.noise.take().ok_or(over)?;
        Ok(AcceptedConnection {
            consumed: 0,
            payload: 0..0,
            uid: None,
            fell_back: false,
            open: FrameOpen(open),
            seal: ServerSeal {
                frames,
                owes_first: owes,
                noise,
            },
        })
    }
}

/// Returns a message's time with upper bits, chosen so that it is closest to our time.
fn full_time(hello: &Hello, now: UnixTime) -> UnixTime {
    let skew = hello
        .time
        .wrapping_sub(crate::hello::seconds_field(now))
        .cast_signed();
    UnixTime(now.0.saturating_add_signed(skew.into()))
}
