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

use adit_net::ambient::{self, Chance};
use adit_shadowsocks::{Edition, KeyChain, tcp};
use adit_stream::{BoxStream, Layered, fill, flush};
use adit_wire::{Host, Name, Target, Unix};
use tokio::task::JoinSet;
use tokio::time::timeout;

pub use way::{Heard, Question, ask as ask_for, connector, datagram, reach, resolve};

use crate::acceptor::CHECK_NAME;
use crate::connector::Connector;

/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(4);
/// After this long without an answer other clocks are tried as well: a server that accepts us
/// answers within one round trip.
const DOUBT: Duration = Duration::from_millis(1200);

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
    /// The server takes the connection and stays silent: wrong key or method.
    Silent,
    /// The server closes at once: wrong key or method, or a server that is not adit and holds
    /// the key but does not know the name.
    Closed,
}

/// Asks `server` directly. Takes one round trip if all is well, else about five seconds.
pub async fn ask(server: Target, keys: KeyChain) -> Finding {
    let via = crate::chain::free();
    let first = question(&via, &server, &keys, 0);
    let mut first = std::pin::pin!(first);
    let early = timeout(DOUBT, &mut first).await;
    match early {
        Ok(Ok(Answer::Authentic(skew))) => return Finding::Accepted { skew },
        Ok(Err(e)) => return Finding::Unreachable(e),
        _ => {}
    }
    let dated = keys.method().edition() == Edition::Aead2022;
    let others = async {
        if dated {
            search(&via, &server, &keys).await
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

enum Answer {
    Authentic(Option<i64>),
    Closed,
    Silent,
}

/// A clock that is off on purpose.
struct Shifted(i64);

impl adit_wire::Clock for Shifted {
    fn unix(&self) -> Unix {
        Unix(ambient::unix().0.saturating_add_signed(self.0))
    }
}

async fn question(
    via: &Arc<dyn Connector>,
    server: &Target,
    keys: &KeyChain,
    shift: i64,
) -> io::Result<Answer> {
    let below = via.connect(server, &[]).await.map_err(|e| e.source)?;
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

/// Offsets that clocks are usually wrong by: whole and half hours of time zones, minutes of
/// drift. Each question covers 30 s to both sides.
fn offsets() -> impl Iterator<Item = i64> {
    // A server that has just started refuses what is older than itself (SEC-R3): small steps
    // forward find that case.
    let fresh = [15, 30, 45].into_iter();
    let minutes = (1..=15).flat_map(|m| [m * 60, -m * 60]);
    let zones = (1..=28).flat_map(|h| [h * 1800, -h * 1800]);
    let days = [86_400, -86_400, 365 * 86_400, -365 * 86_400].into_iter();
    fresh.chain(minutes).chain(zones).chain(days)
}

/// Finds how far off our clock is; nothing if no offset is accepted.
async fn search(via: &Arc<dyn Connector>, server: &Target, keys: &KeyChain) -> Option<i64> {
    let mut running: JoinSet<Option<i64>> = JoinSet::new();
    for shift in offsets() {
        let (via, server, keys) = (via.clone(), server.clone(), keys.clone());
        running.spawn(async move {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_few_and_cover_the_usual() {
        let all: Vec<i64> = offsets().collect();
        assert!(all.len() < 100);
        for usual in [3600, -3600, 7200, 19_800, 45, -75, 600] {
            assert!(all.iter().any(|o| (o - usual).abs() <= 30), "{usual}");
        }
    }
}
