//! From a first message to codecs: checks the MACs, then the time, then the replay store, in this
//! order, so that only owners of a key can fill the store.

use adit_wire::{ProtocolError, Step, UnixTime};

use super::{Accepted, ServerHandshake, ServerSeal};
use crate::field::view;
use crate::frame::{
    AdlerKind, FrameOpen, FrameSeal, ONE_TIME_TAG, OneTimeOpen, Opener, Tagged, open_one_time,
};
use crate::head::{Found, aes, chain, sha1, simple};
use crate::hello::Hello;
use crate::kind::Family;
use crate::replay::Arrival;
use crate::stamp;
use crate::user::UserKey;

/// Number of seconds after which a client counts as gone.
const IDLE: u64 = 180;

/// The same for `auth_chain`.
const IDLE_CHAIN: u64 = 600;

type Codecs = (FrameSeal, Opener);

impl ServerHandshake {
    pub(super) fn read(
        &mut self,
        plain: &mut [u8],
        now: UnixTime,
    ) -> Result<Step<Accepted>, ProtocolError> {
        let iv_key = self.iv_key.expose();
        let server = &self.server;
        match server.port().kind.family() {
            Family::Origin => self.begin((FrameSeal::Raw, Opener::Raw)),
            Family::Crc { auth: false } => self.begin((FrameSeal::Crc, Opener::Crc)),
            Family::Deflate => self.begin((FrameSeal::Deflate(None), Opener::Deflate(None))),
            Family::OneTime => match open_one_time(plain, iv_key)? {
                Step::NeedMore { total } => Ok(Step::NeedMore { total }),
                Step::Done(payload) => {
                    let open = Opener::OneTime(OneTimeOpen::new(&self.iv));
                    let consumed = payload.end + ONE_TIME_TAG;
                    let accepted = self.codecs((FrameSeal::Raw, open), false)?;
                    Ok(Step::Done(Accepted {
                        consumed,
                        payload,
                        ..accepted
                    }))
                }
            },
            Family::Crc { auth: true } => match simple::read(plain)? {
                Step::NeedMore { total } => Ok(Step::NeedMore { total }),
                Step::Done(found) => {
                    self.admit(&found, None, plain, now)?;
                    self.finish(&found, None, (FrameSeal::Crc, Opener::Crc))
                }
            },
            Family::Adler(kind) => {
                let head = sha1::Sha1Head {
                    kind,
                    name: server.port().kind.name(),
                    key: server.port().key(),
                    iv: &self.iv,
                };
                match head.read(plain)? {
                    Step::NeedMore { total } => Ok(Step::NeedMore { total }),
                    Step::Done(found) => {
                        self.admit(&found, None, plain, now)?;
                        let codecs = (FrameSeal::Adler(kind), Opener::Adler(kind));
                        self.finish(&found, None, codecs)
                    }
                }
            }
            Family::Mac(kind) => {
                let head = aes::AesHead { kind, iv_key };
                let timely = |time| self.check_time(time, now).is_ok();
                match head.read(plain, |uid| server.find(uid), timely)? {
                    Step::NeedMore { total } => Ok(Step::NeedMore { total }),
                    Step::Done((found, uid)) => {
                        self.admit(&found, Some(uid), plain, now)?;
                        let user = self.user(uid)?;
                        let frames = || Tagged::new(kind, user.key());
                        let codecs = (FrameSeal::Tagged(frames()), Opener::Tagged(frames()));
                        self.finish(&found, Some(uid), codecs)
                    }
                }
            }
            Family::Chain(kind) => match chain::read(iv_key, plain, |uid| server.find(uid))? {
                Step::NeedMore { total } => Ok(Step::NeedMore { total }),
                Step::Done((found, uid, start)) => {
                    self.admit(&found, Some(uid), plain, now)?;
                    let user = self.user(uid)?;
                    let sizes = server.port().sizes(kind, whole(&found.hello, now));
                    let seal = start.answers(sizes.clone(), user).telling(self.mss);
                    let open = start.requests(sizes, user);
                    let seal = FrameSeal::Chained(Box::new(seal));
                    let codecs = (seal, Opener::Chained(Box::new(open)));
                    self.finish(&found, Some(uid), codecs)
                }
            },
        }
    }

    /// Continues as `origin`, with all received bytes.
    pub(super) fn fall_back(&mut self) -> Result<Step<Accepted>, ProtocolError> {
        let mut accepted = self.codecs((FrameSeal::Raw, Opener::Raw), false)?;
        accepted.fell_back = true;
        Ok(Step::Done(accepted))
    }

    fn user(&self, uid: u32) -> Result<&UserKey, ProtocolError> {
        self.server.find(uid).ok_or(ProtocolError::Unauthentic)
    }

    fn check_time(&self, time: u32, now: UnixTime) -> Result<(), ProtocolError> {
        match stamp::window(self.server.port().kind.family()) {
            Some(window) => window.check(time, now, self.server.replays.started()),
            None => Ok(()),
        }
    }

    /// Checks time and ids.
    fn admit(
        &self,
        found: &Found,
        uid: Option<u32>,
        plain: &[u8],
        now: UnixTime,
    ) -> Result<(), ProtocolError> {
        let server = &self.server;
        let family = server.port().kind.family();
        self.check_time(found.hello.time, now)?;
        let arrival = Arrival {
            uid: uid.and_then(|uid| server.known(uid)).unwrap_or(0),
            client: found.hello.client,
            connection: found.hello.connection,
            proof: view(plain, found.proof.clone())?,
            max_clients: server.max_clients,
            idle: match family {
                Family::Chain(_) => IDLE_CHAIN,
                _ => IDLE,
            },
        };
        server.replays.admit(&arrival, now)
    }

    /// Returns the codecs of a protocol without a first message.
    fn begin(&mut self, codecs: Codecs) -> Result<Step<Accepted>, ProtocolError> {
        Ok(Step::Done(self.codecs(codecs, false)?))
    }

    fn finish(
        &mut self,
        found: &Found,
        uid: Option<u32>,
        codecs: Codecs,
    ) -> Result<Step<Accepted>, ProtocolError> {
        let owes = !matches!(
            self.server.port().kind.family(),
            Family::Crc { .. } | Family::Adler(AdlerKind::V1)
        );
        let accepted = self.codecs(codecs, owes)?;
        Ok(Step::Done(Accepted {
            consumed: found.consumed,
            payload: found.payload.clone(),
            uid: uid.and_then(|uid| self.server.known(uid)),
            ..accepted
        }))
    }

    fn codecs(&mut self, (frames, open): Codecs, owes: bool) -> Result<Accepted, ProtocolError> {
        let over = ProtocolError::Malformed("handshake: already finished");
        let noise = self.noise.take().ok_or(over)?;
        Ok(Accepted {
            consumed: 0,
            payload: 0..0,
            uid: None,
            fell_back: false,
            open: FrameOpen(open),
            seal: ServerSeal {
                frames,
                owes,
                noise,
            },
        })
    }
}

/// Returns a message's time with upper bits, chosen so that it is closest to our time.
fn whole(hello: &Hello, now: UnixTime) -> UnixTime {
    let skew = hello
        .time
        .wrapping_sub(crate::hello::seconds(now))
        .cast_signed();
    UnixTime(now.0.saturating_add_signed(skew.into()))
}
