//! One name, by all that a configuration says: `hosts`, search domains, servers, families.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adit_wire::{narrow, usize_from};
use hickory_proto::rr::{Name, RecordType};
use tokio::time::{Instant, timeout};

use super::config::Config;
use super::found::{Found, RESOLVE_DEADLINE};
use super::preference;
use super::query::{Answer, How, ask};

/// How long the second family is waited for once the first has answered with addresses: there are
/// servers that are silent about IPv6.
const OTHER_FAMILY: Duration = Duration::from_secs(1);
/// For how long half of the addresses are kept.
const HALF_TTL: u32 = 10;

/// Asks for `text`.
pub(super) async fn look_up(config: &Config, text: &str) -> io::Result<Found> {
    let mut nothing: Option<(bool, u32)> = None;
    for name in config.candidates(text)? {
        match both(config, &name).await? {
            Answer::Found(mut addrs, ttl) => {
                preference::sort(&mut addrs);
                return Ok(Found::Addresses(addrs.into(), ttl));
            }
            Answer::Nothing { exists, ttl } => {
                let (known, least) = nothing.unwrap_or((false, ttl));
                nothing = Some((known || exists, least.min(ttl)));
            }
        }
    }
    let (exists, ttl) = nothing.unwrap_or_default();
    Ok(Found::Nothing { exists, ttl })
}

/// Both families of one name.
async fn both(config: &Config, name: &Name) -> io::Result<Answer> {
    let v4 = servers(config, name, RecordType::A);
    if !config.ask_v6 {
        return v4.await;
    }
    let (mut v4, mut v6) = (pin!(v4), pin!(servers(config, name, RecordType::AAAA)));
    let (first, second) = tokio::select! {
        first = &mut v4 => {
            let second = wait(&first, v6).await;
            (second, Some(first))
        }
        first = &mut v6 => {
            let second = wait(&first, v4).await;
            (Some(first), second)
        }
    };
    let is_half = first.is_none() || second.is_none();
    let mut both = [first, second].into_iter().flatten();
    let (Some(one), other) = (both.next(), both.next()) else {
        return Err(super::no_address("nobody was asked"));
    };
    Ok(match (one, other) {
        (Ok(Answer::Found(mut addrs, a)), Some(Ok(Answer::Found(more, b)))) => {
            addrs.extend(more);
            Answer::Found(addrs, a.min(b))
        }
        (Ok(Answer::Found(addrs, ttl)), None | Some(Err(_)))
        | (Err(_), Some(Ok(Answer::Found(addrs, ttl)))) => Answer::Found(addrs, ttl.min(HALF_TTL)),
        (Ok(Answer::Found(addrs, ttl)), _) | (_, Some(Ok(Answer::Found(addrs, ttl)))) => {
            let ttl = if is_half { ttl.min(HALF_TTL) } else { ttl };
            Answer::Found(addrs, ttl)
        }
        (Err(why), _) | (_, Some(Err(why))) => return Err(why),
        (Ok(one), None) => one,
        (
            Ok(Answer::Nothing { exists, ttl }),
            Some(Ok(Answer::Nothing {
                exists: also,
                ttl: other,
            })),
        ) => Answer::Nothing {
            exists: exists || also,
            ttl: ttl.min(other),
        },
    })
}

/// The second answer; not for ever if the first has addresses.
async fn wait(
    first: &io::Result<Answer>,
    second: impl Future<Output = io::Result<Answer>>,
) -> Option<io::Result<Answer>> {
    match first {
        Ok(Answer::Found(..)) => timeout(OTHER_FAMILY, second).await.ok(),
        // A name that does not exist has no other family.
        Ok(Answer::Nothing { exists: false, .. }) => None,
        _ => Some(second.await),
    }
}

/// One question to one server after the other, until one knows.
async fn servers(config: &Config, name: &Name, kind: RecordType) -> io::Result<Answer> {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    let all = config.servers.len().max(1);
    let first = match config.rotate {
        true => TURN.fetch_add(1, Ordering::Relaxed) % all,
        false => 0,
    };
    let rounds = usize_from(config.attempts);
    // Every server gets its turn before the lookup is over.
    let share = RESOLVE_DEADLINE / narrow::<u32>(all * rounds);
    let each = config.timeout.min(share.max(Duration::from_secs(1)));
    let how = How {
        // With nobody else to ask, an answer is waited for as long as all questions may take.
        timeout: match all {
            1 => each * config.attempts.max(1),
            _ => each,
        },
        again: each,
        edns: config.edns,
        tcp_only: config.tcp_only,
    };
    let mut why: Vec<String> = Vec::new();
    let begun = Instant::now();
    for _ in 0..rounds {
        // The time of all questions to the only server went into the first.
        if all == 1 && begun.elapsed() >= how.timeout {
            break;
        }
        for place in 0..all {
            let Some(server) = config.servers.get((first + place) % all) else {
                break;
            };
            match ask(*server, name, kind, how).await {
                Ok(answer) => return Ok(answer),
                Err(e) => {
                    let e = e.to_string();
                    if !why.contains(&e) {
                        why.push(e);
                    }
                }
            }
        }
    }
    Err(super::no_address(why.join(", ")))
}

/// Who would be asked, for a message about nobody having answered.
pub(super) fn silent(servers: &[SocketAddr]) -> String {
    let servers: Vec<String> = servers.iter().map(ToString::to_string).collect();
    format!("no answer from {}", servers.join(", "))
}
