//! Checks if a Shadowsocks server accepts this client, and finds the reason if not; and checks any server
//! step by step ([`ask_for`]).
//!
//! A server must not reveal anything to unauthenticated peers, so it reports nothing. But clients with
//! the key can find out: an adit server answers the name [`CHECK_NAME`] itself, and a server that refuses
//! the local clock accepts another one.

mod way;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use adit_config::{Carried, ServerHop};
use adit_net::ambient::{self, Chance};
use adit_shadowsocks::{Edition, KeyChain, tcp};
use adit_stream::{BoxStream, Layered, fill, flush};
use adit_wire::{Host, Name, Target, Unix};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

pub use way::{Heard, Question, ask as ask_for, connector, datagram, far, lane, reach, resolve};

use crate::BoxFuture;
use crate::acceptor::CHECK_NAME;
use crate::connector::Connector;
use crate::health::{Answer, ServerCheck};

/// Time limit for one request.
const PATIENCE: Duration = Duration::from_secs(4);
/// Time without an answer after which other clocks are tried as well: a server that accepts the request
/// answers within one round trip. Requests are few and spaced, because a server counts what it refuses
/// and a wrong key looks like an attack.
const DOUBT: Duration = Duration::from_secs(1);
/// Differences of the other clocks to the local one, in seconds. A server that has just started refuses
/// requests older than itself (SEC-R3), and a drifting clock is off by about a minute at first; each
/// request covers 30 s in both directions. Larger differences cannot be distinguished from a wrong key by
/// so few requests, and then both are reported.
const OTHERS: [i64; 3] = [20, -45, 65];

/// The start of an adit server's answer.
const GREETING: &[u8] = b"adit ";

/// The result of a check.
#[derive(Debug)]
pub enum Finding {
    /// The server proved that it has the key.
    Accepted {
        /// Server's clock minus the local one in seconds, where the edition reports it.
        skew: Option<i64>,
    },
    /// The server has the key, but the clocks differ.
    Clock {
        /// Server's clock minus the local one in seconds.
        skew: i64,
    },
    /// The server cannot be connected to.
    Unreachable(io::Error),
    /// The server accepts the connection and stays silent: a wrong key or method or, in the 2022 edition,
    /// a clock that differs by more than the ones tried.
    Silent,
    /// The server closes the connection immediately: the same causes, or a server that is not adit, which
    /// has the key but cannot resolve the name.
    Closed,
}

/// Checks the server of `hop` with `keys`, through the hop's carrier if it has one.
pub async fn ask_hop(hop: &ServerHop, keys: KeyChain) -> Finding {
    let Some(Carried::Kcp(carried)) = &hop.carried else {
        return ask(hop.server.clone(), keys).await;
    };
    let via: Arc<dyn Connector> = match crate::chain::carrier(hop, carried, Arc::default()) {
        Ok(via) => via,
        Err(why) => return Finding::Unreachable(io::Error::other(why)),
    };
    // Other clocks are tried only after the first request: each of them would open a further session of the
    // carrier.
    match question(&via, &hop.server, &keys, 0).await {
        Ok(Answer::Authentic(skew)) => Finding::Accepted { skew },
        Err(e) => Finding::Unreachable(e),
        Ok(other) => {
            let found = match is_dated(&keys) {
                true => search(Instant::now(), &via, &hop.server, &keys).await,
                false => None,
            };
            match (found, other) {
                (Some(skew), _) => Finding::Clock { skew },
                (None, Answer::Closed) => Finding::Closed,
                (None, _) => Finding::Silent,
            }
        }
    }
}

/// Checks `server` directly. Takes one connection and one round trip if it accepts the request, otherwise
/// up to four connections and about seven seconds.
pub async fn ask(server: Target, keys: KeyChain) -> Finding {
    let via = crate::chain::free();
    let start = Instant::now();
    let first = question(&via, &server, &keys, 0);
    let mut first = std::pin::pin!(first);
    let early = timeout(DOUBT, &mut first).await;
    match early {
        Ok(Ok(Answer::Authentic(skew))) => return Finding::Accepted { skew },
        Ok(Err(e)) => return Finding::Unreachable(e),
        _ => {}
    }
    let others = async {
        if is_dated(&keys) {
            search(start, &via, &server, &keys).await
        } else {
            None
        }
    };
    let rest = async {
        match early {
            Ok(answer) => answer,
            Err(_) => first.await,
        }
    };
    match tokio::join!(rest, others) {
        (Ok(Answer::Authentic(skew)), _) => Finding::Accepted { skew },
        (_, Some(skew)) => Finding::Clock { skew },
        (Ok(Answer::Silent), None) => Finding::Silent,
        (Ok(Answer::Closed), None) => Finding::Closed,
        (Err(e), None) => Finding::Unreachable(e),
    }
}

/// Returns true if servers check the clock for these keys, so that a wrong clock looks like a wrong key.
#[must_use]
pub fn is_dated(keys: &KeyChain) -> bool {
    keys.method().edition() == Edition::Aead2022
}

/// The question that a server which is adit itself is asked before it is blamed.
pub(crate) struct Check {
    /// The connector that leads to the server.
    pub(crate) via: Arc<dyn Connector>,
    /// The server.
    pub(crate) server: Target,
    /// The plugin in front of the server.
    pub(crate) plugin: Option<Arc<crate::plugin::Host>>,
    /// The keys that the server should hold.
    pub(crate) keys: KeyChain,
}

impl ServerCheck for Check {
    fn ask(&self) -> BoxFuture<'_, io::Result<Answer>> {
        Box::pin(async {
            let server = match &self.plugin {
                Some(host) if host.mode().tcp() => host.local().into(),
                _ => self.server.clone(),
            };
            question(&self.via, &server, &self.keys, 0).await
        })
    }
}

/// A clock that is shifted by a number of seconds.
struct Shifted(i64);

impl adit_wire::Clock for Shifted {
    fn unix(&self) -> Unix {
        Unix(ambient::unix().0.saturating_add_signed(self.0))
    }
}

/// Sends one request, with a clock shifted by this number of seconds.
async fn question(
    via: &Arc<dyn Connector>,
    server: &Target,
    keys: &KeyChain,
    shift: i64,
) -> io::Result<Answer> {
    let below = via.connect(server, &[]).await.map_err(|e| e.why)?;
    let name = Name::new(CHECK_NAME).map_err(io::Error::other)?;
    let target = Target::new(Host::Name(name), 1);
    let (seal, open) = tcp::client(keys, &target, Arc::new(Shifted(shift)), &mut Chance)
        .map_err(io::Error::other)?;
    // A legacy cipher decrypts anything: only the contents prove the key.
    let legacy = keys.method().is_legacy();
    let want = if legacy { GREETING.len() } else { 1 };
    let progress = open.progress();
    let mut io: BoxStream = Box::new(Layered::new(below.io, seal, open));
    let talk = async {
        flush(&mut io).await?;
        fill(&mut io, want).await
    };
    let silent = timeout(PATIENCE, talk).await.is_err();
    let answered = !legacy || io.filled().starts_with(GREETING);
    Ok(if answered && progress.authenticated() {
        Answer::Authentic(progress.skew())
    } else if silent {
        Answer::Silent
    } else {
        Answer::Closed
    })
}

/// Finds the clock difference by requests that follow the one at `start`. Returns `None` if no other clock
/// is accepted.
async fn search(
    start: Instant,
    via: &Arc<dyn Connector>,
    server: &Target,
    keys: &KeyChain,
) -> Option<i64> {
    let mut running: JoinSet<Option<i64>> = JoinSet::new();
    for (place, shift) in (1..).zip(OTHERS) {
        let (via, server, keys) = (via.clone(), server.clone(), keys.clone());
        running.spawn(async move {
            sleep_until(start + DOUBT * place).await;
            match question(&via, &server, &keys, shift).await {
                // The time stamp of the answer reveals the difference to the second.
                Ok(Answer::Authentic(skew)) => Some(shift + skew.unwrap_or(0)),
                _ => None,
            }
        });
    }
    while let Some(answer) = running.join_next().await {
        if let Ok(Some(skew)) = answer {
            return Some(skew);
        }
    }
    None
}
