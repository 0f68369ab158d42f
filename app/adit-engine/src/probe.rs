//! Asks a Shadowsocks server whether it accepts us, and if not, why; and any server, step by step
//! ([`ask_for`]).
//!
//! A server must not tell a stranger anything, so it tells nothing at all. But whoever holds the
//! key can find out: an adit server answers the name [`CHECK_NAME`] by itself, and a server that
//! refuses our clock accepts another one.

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

/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(4);
/// After this long without an answer another clock is tried as well: a server that accepts us
/// answers within one round trip. A server counts what it refuses, so that the questions are few
/// and spaced: a wrong key looks like an attack.
const DOUBT: Duration = Duration::from_secs(1);
/// How the clocks that are tried after our own differ from it, in seconds. A server that has just
/// started refuses what is older than itself (SEC-R3), and a clock that drifts is wrong by a minute
/// at first; each question covers 30 s to both sides. A clock that is further off cannot be told
/// from a wrong key by so few questions, and both are named then.
const OTHERS: [i64; 3] = [20, -45, 65];

/// What the answer of an adit server begins with.
const GREETING: &[u8] = b"adit ";

/// What was found out.
#[derive(Debug)]
pub enum Finding {
    /// The server proved that it holds the key. `skew` is its clock minus ours, in seconds,
    /// where the edition carries one.
    Accepted {
        /// Server's clock minus ours in seconds.
        skew: Option<i64>,
    },
    /// The server holds the key, but our clock is off by this much.
    Clock {
        /// Server's clock minus ours in seconds.
        skew: i64,
    },
    /// No connection to the server.
    Unreachable(io::Error),
    /// The server takes the connection and stays silent: wrong key or method, or, in the 2022
    /// edition, a clock that is off by more than those that were tried.
    Silent,
    /// The server closes at once: the same, or a server that is not adit and holds the key but does
    /// not know the name.
    Closed,
}

/// Asks the server of `hop` with `keys`, through the hop's carrier if it has one.
pub async fn ask_hop(hop: &ServerHop, keys: KeyChain) -> Finding {
    let Some(Carried::Kcp(carried)) = &hop.carried else {
        return ask(hop.server.clone(), keys).await;
    };
    let via: Arc<dyn Connector> = match crate::chain::carrier(hop, carried, Arc::default()) {
        Ok(via) => via,
        Err(why) => return Finding::Unreachable(io::Error::other(why)),
    };
    // Other clocks are tried once it is known that the carrier works: a session for each of them
    // would be asked for otherwise.
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

/// Asks `server` directly: one connection and one round trip if all is well, else at most four and
/// about seven seconds.
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

/// Whether servers judge the clock of these keys' owner, so that a wrong one looks like a wrong key.
#[must_use]
pub fn is_dated(keys: &KeyChain) -> bool {
    keys.method().edition() == Edition::Aead2022
}

/// How a server is asked that is an adit itself, before it is blamed.
pub(crate) struct Check {
    /// What leads to the server.
    pub(crate) via: Arc<dyn Connector>,
    /// The server.
    pub(crate) server: Target,
    /// The program between us and the server.
    pub(crate) plugin: Option<Arc<crate::plugin::Host>>,
    /// What it should hold.
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

/// A clock that is off on purpose.
struct Shifted(i64);

impl adit_wire::Clock for Shifted {
    fn unix(&self) -> Unix {
        Unix(ambient::unix().0.saturating_add_signed(self.0))
    }
}

/// Asks once, with a clock that is shifted by so many seconds.
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
    // A legacy cipher decrypts anything: only what is said can tell.
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

/// Finds how far off our clock is, by questions that follow the one at `start`; nothing if none of
/// the other clocks is accepted.
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
                // The answer's own time stamp says how far off we are to the second.
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
