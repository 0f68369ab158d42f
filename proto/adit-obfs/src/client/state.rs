//! The state that the connections of one client to one server share.

use core::fmt;
use std::sync::Arc;

use adit_crypto::{Secret, hmac_sha256};
use adit_wire::{Entropy, Target, UnixTime};

use super::{AwaitedData, ClientHandshake};
use crate::http::{HttpMethod, RequestTemplate};
use crate::quiet::{self, Browser, HelloRandom, ProofKey, TICKET_LEN};
use crate::random_head::client_head;
use crate::tls::{ClientEnd, Tagger, TlsHello, draw_ticket, sni_name};
use crate::{Codecs, ObfsKind, ObfsOpen, ObfsParam, ObfsSeal, ParamError};

/// Number of seconds after which a session ticket of `go_quiet` is replaced.
const TICKET_LIFE: u64 = 3600;

/// The settings of a client.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ClientSettings<'a> {
    /// The kind.
    pub kind: ObfsKind,
    /// Hosts to name, and the header text of HTTP kinds.
    pub param: &'a ObfsParam,
    /// The server, named if the parameter has no host.
    pub server: &'a Target,
    /// TLS kinds: the key of the stream cipher, as derived from the password with `EVP_BytesToKey`
    /// (16 bytes of it for methods without a cipher).
    pub key: &'a [u8],
    /// `go_quiet`: its key, which is the password as written.
    pub password: &'a [u8],
    /// `go_quiet`: the browser whose hello is imitated.
    pub browser: Browser,
    /// HTTP kinds: minimum number of the first bytes to put into the URL, if there are enough.
    /// ShadowsocksR uses the length of the cipher's IV plus 30; values are clamped to 30 to 256.
    pub url_bytes: usize,
}

impl<'a> ClientSettings<'a> {
    /// Creates settings without keys: those of Chrome, with at least 30 bytes in the URL.
    #[must_use]
    pub const fn new(kind: ObfsKind, param: &'a ObfsParam, server: &'a Target) -> Self {
        Self {
            kind,
            param,
            server,
            key: &[],
            password: &[],
            browser: Browser::Chrome,
            url_bytes: 30,
        }
    }
}

/// State shared by the connections to one server, for the lifetime of the process. Clones share the
/// same state.
///
/// It stores what a browser would store: its user agent, its id and its session tickets.
///
/// # Examples
///
/// ```
/// use adit_obfs::{ClientSettings, ClientState, ObfsKind, ObfsParam};
/// use adit_wire::{FixedEntropy, Handshake, HandshakeInput, Seal, HandshakeProgress, HandshakeOutput, UnixTime};
///
/// // Use the system's random numbers in a program.
/// let mut entropy = FixedEntropy::new([7; 64]);
/// let param = ObfsParam::parse("www.example.test")?;
/// let server = "192.0.2.1:8388".parse().unwrap();
/// let state = ClientState::new(&ClientSettings::new(ObfsKind::HttpSimple, &param, &server), &mut entropy)?;
///
/// // One handshake for each connection. This kind sends nothing before the first data.
/// let mut handshake = state.new_handshake(UnixTime(1_800_000_000), &mut entropy);
/// let step = handshake.step(&mut HandshakeInput::new(&mut []), &mut HandshakeOutput::new(&mut Vec::new())).unwrap();
/// let HandshakeProgress::Done(mut codecs) = step else { panic!("the handshake is complete") };
///
/// // The first record is a web request that contains the data.
/// let overhead = codecs.seal.overhead();
/// let mut record = vec![0; overhead.head];
/// record.extend_from_slice(&[0xab; 100]);
/// record.resize(record.len() + overhead.tail, 0);
/// let sealed = codecs.seal.seal(&mut record, overhead.head..overhead.head + 100).unwrap();
/// assert!(record[sealed].starts_with(b"GET /%ab%ab"));
/// # Ok::<(), adit_obfs::ParamError>(())
/// ```
#[derive(Clone)]
pub struct ClientState {
    kind: ObfsKind,
    inner: Arc<Inner>,
}

enum Inner {
    Plain,
    RandomHead,
    Http(RequestTemplate),
    Tls {
        tagger: Arc<Tagger>,
        /// Server names with their tickets; at least one.
        hosts: Vec<(Box<str>, Vec<u8>)>,
    },
    Quiet {
        key: Box<ProofKey>,
        name: Box<str>,
        browser: Browser,
        tickets: SessionTickets,
    },
}

impl ClientState {
    /// Creates the shared state from random numbers.
    ///
    /// # Errors
    ///
    /// Fails if the parameter is not valid for the kind, or if `go_quiet` has no key.
    pub fn new(
        settings: &ClientSettings<'_>,
        entropy: &mut dyn Entropy,
    ) -> Result<Self, ParamError> {
        let ClientSettings { kind, param, .. } = *settings;
        let requests = |verb, entropy: &mut dyn Entropy| {
            RequestTemplate::new(verb, param, settings.server, settings.url_bytes, entropy)
        };
        let inner = match kind {
            ObfsKind::Plain => Inner::Plain,
            ObfsKind::RandomHead => Inner::RandomHead,
            ObfsKind::HttpSimple => Inner::Http(requests(HttpMethod::Get, entropy)),
            ObfsKind::HttpPost => Inner::Http(requests(HttpMethod::Post, entropy)),
            ObfsKind::TicketAuth | ObfsKind::TicketFastAuth => tls_state(settings, entropy),
            ObfsKind::GoQuiet => quiet_state(settings, entropy)?,
        };
        Ok(Self {
            kind,
            inner: Arc::new(inner),
        })
    }

    /// Returns the kind.
    #[must_use]
    pub const fn kind(&self) -> ObfsKind {
        self.kind
    }

    /// Creates the handshake of a connection that starts at `now`.
    pub fn new_handshake(&self, now: UnixTime, entropy: &mut dyn Entropy) -> ClientHandshake {
        let nothing = AwaitedData::Nothing;
        let (hello, wait) = match &*self.inner {
            Inner::Plain => (Vec::new(), nothing(Codecs::new_raw())),
            Inner::RandomHead => (client_head(entropy), AwaitedData::Anything),
            Inner::Http(requests) => {
                let codecs = Codecs {
                    seal: ObfsSeal::with_request_head(requests.new_head(entropy)),
                    open: ObfsOpen::after_response_head(),
                };
                (Vec::new(), nothing(codecs))
            }
            Inner::Tls { tagger, hosts } => {
                let (name, ticket) = pick_host(hosts, entropy);
                let (mut hello_salt, mut end_salt) = ([0; 18], [0; 22]);
                entropy.fill(&mut hello_salt);
                entropy.fill(&mut end_salt);
                let hello = TlsHello {
                    time: now,
                    salt: hello_salt,
                    name,
                    ticket,
                };
                let end = ClientEnd { salt: end_salt }.encode(tagger);
                let tagger = tagger.clone();
                let hello = hello.encode(&tagger);
                if self.kind == ObfsKind::TicketFastAuth {
                    let codecs = Codecs {
                        seal: ObfsSeal::records_after(end),
                        open: ObfsOpen::after_flight(tagger),
                    };
                    (hello, nothing(codecs))
                } else {
                    (hello, AwaitedData::Flight { tagger, end })
                }
            }
            Inner::Quiet {
                key,
                name,
                browser,
                tickets,
            } => {
                let (mut iv, mut finished) = ([0; 16], [0; 40]);
                entropy.fill(&mut iv);
                let rng = HelloRandom::draw_random(entropy);
                entropy.fill(&mut finished);
                let hello = quiet::GoQuietHello {
                    browser: *browser,
                    random: key.make_proof(iv, now),
                    rng: &rng,
                    name,
                    ticket: &tickets.ticket_at(now),
                };
                let session = rng.session;
                let end = quiet::client_end(&finished);
                (hello.encode(), AwaitedData::Answer { session, end })
            }
        };
        ClientHandshake { hello, wait }
    }
}

impl fmt::Debug for ClientState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientState({})", self.kind)
    }
}

fn tls_state(settings: &ClientSettings<'_>, entropy: &mut dyn Entropy) -> Inner {
    let mut id = [0; 32];
    entropy.fill(&mut id);
    let server = settings.server.host.to_string();
    let hosts: Vec<&str> = match settings.param.hosts() {
        [] => vec![&server],
        hosts => hosts.iter().map(|host| &**host).collect(),
    };
    let hosts = hosts
        .into_iter()
        .map(|host| (sni_name(host).into(), draw_ticket(entropy)));
    Inner::Tls {
        hosts: hosts.collect(),
        tagger: Arc::new(Tagger::new(settings.key, id)),
    }
}

fn pick_host<'a>(
    hosts: &'a [(Box<str>, Vec<u8>)],
    entropy: &mut dyn Entropy,
) -> (&'a str, &'a [u8]) {
    let at = match u16::try_from(hosts.len().saturating_sub(1)) {
        Ok(0) | Err(_) => 0,
        Ok(last) => entropy.in_range(0, last),
    };
    let host = hosts.get(usize::from(at));
    host.map_or(("", &[]), |(name, ticket)| (name, ticket))
}

fn quiet_state(
    settings: &ClientSettings<'_>,
    entropy: &mut dyn Entropy,
) -> Result<Inner, ParamError> {
    let server = settings.server.host.to_string();
    let name = match settings.param.hosts() {
        [] => sni_name(&server),
        [name, ..] => name,
    };
    let limit = settings.browser.max_name();
    if name.len() > limit {
        return Err(ParamError::HostTooLong { limit });
    }
    Ok(Inner::Quiet {
        key: quiet::proof_key(settings.password)?,
        name: name.into(),
        browser: settings.browser,
        tickets: SessionTickets::draw_seed(entropy),
    })
}

/// Session tickets that last for an hour, without a clock or a lock: the ticket of an hour is
/// derived from a secret.
struct SessionTickets {
    seed: Secret<[u8; 32]>,
    /// Offset in seconds, so that tickets do not change on the hour.
    phase_secs: u64,
}

impl SessionTickets {
    fn draw_seed(entropy: &mut dyn Entropy) -> Self {
        let mut seed = [0; 32];
        entropy.fill(&mut seed);
        let phase_secs = u64::from(entropy.in_range(0, 3599));
        Self {
            seed: seed.into(),
            phase_secs,
        }
    }

    fn ticket_at(&self, now: UnixTime) -> [u8; TICKET_LEN] {
        let turn = (now.0.saturating_add(self.phase_secs) / TICKET_LIFE).to_be_bytes();
        let mut ticket = [0; TICKET_LEN];
        for (i, block) in (0u8..).zip(ticket.chunks_mut(32)) {
            let drawn = hmac_sha256(self.seed.expose(), &[&turn, &[i]]);
            block.copy_from_slice(&drawn);
        }
        ticket
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_wire::FixedEntropy;

    #[test]
    fn tickets_last_for_an_hour() {
        let tickets = SessionTickets::draw_seed(&mut FixedEntropy::default());
        let at = |now| tickets.ticket_at(UnixTime(now));
        assert_eq!(at(7200), at(7200 + 3599));
        assert_ne!(at(7200), at(7199));
        assert_ne!(at(7200)[..32], at(7200)[32..64]);
    }

    #[test]
    fn names_must_fit_the_hello() {
        let server = "192.0.2.1:443".parse().unwrap();
        let state = |name: &str, password, browser| {
            let param = ObfsParam::parse(name).unwrap();
            let settings = ClientSettings {
                kind: ObfsKind::GoQuiet,
                param: &param,
                server: &server,
                key: &[],
                password,
                browser,
                url_bytes: 30,
            };
            ClientState::new(&settings, &mut FixedEntropy::default()).map(|state| state.kind())
        };
        for (browser, limit) in [(Browser::Chrome, 101), (Browser::Firefox, 112)] {
            assert!(state(&"a".repeat(limit), b"k", browser).is_ok());
            let why = Err(ParamError::HostTooLong { limit });
            assert_eq!(state(&"a".repeat(limit + 1), b"k", browser), why);
        }
        assert_eq!(state("", b"", Browser::Chrome), Err(ParamError::NoKey));
        assert_eq!(state("", b"k", Browser::Chrome), Ok(ObfsKind::GoQuiet));
    }
}
