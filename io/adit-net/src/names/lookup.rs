//! The lookup of one name according to a configuration: search domains, servers, families.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adit_dns::RecordType;
use adit_wire::{narrow_int, usize_from};
use tokio::time::{Instant, timeout};

use super::address_order;
use super::config::ResolverConfig;
use super::lookup_result::{LookupResult, RESOLVE_DEADLINE};
use super::query::{Answer, QueryOptions, query_server};

/// Maximum time to wait for the second family after the first has answered with addresses: some servers never
/// answer for IPv6.
const OTHER_FAMILY: Duration = Duration::from_secs(1);
/// Time to live of the addresses of one family, in seconds, if the other one did not answer.
const HALF_TTL: u32 = 10;

/// Looks up `text`.
pub(super) async fn look_up(config: &ResolverConfig, text: &str) -> io::Result<LookupResult> {
    let mut nothing: Option<(bool, u32)> = None;
    for name in config.candidates(text)? {
        match look_up_families(config, &name).await? {
            Answer::Found(mut addrs, ttl) => {
                address_order::sort_by_family(&mut addrs);
                return Ok(LookupResult::Addresses(addrs.into(), ttl));
            }
            Answer::NoAddress { exists, ttl } => {
                let (known, least) = nothing.unwrap_or((false, ttl));
                nothing = Some((known || exists, least.min(ttl)));
            }
        }
    }
    let (exists, ttl) = nothing.unwrap_or_default();
    Ok(LookupResult::NoAddress { exists, ttl })
}

/// Looks up both families of a name.
async fn look_up_families(config: &ResolverConfig, name: &str) -> io::Result<Answer> {
    let v4 = query_servers(config, name, RecordType::A);
    if !config.ask_v6 {
        return v4.await;
    }
    let (mut v4, mut v6) = (
        pin!(v4),
        pin!(query_servers(config, name, RecordType::AAAA)),
    );
    let (first, second) = tokio::select! {
        first = &mut v4 => {
            let second = wait_for_other_family(&first, v6).await;
            (second, Some(first))
        }
        first = &mut v6 => {
            let second = wait_for_other_family(&first, v4).await;
            (Some(first), second)
        }
    };
    let is_half = first.is_none() || second.is_none();
    let mut both = [first, second].into_iter().flatten();
    let (Some(one), other) = (both.next(), both.next()) else {
        return Err(super::no_address("no server was asked"));
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
            Ok(Answer::NoAddress { exists, ttl }),
            Some(Ok(Answer::NoAddress {
                exists: also,
                ttl: other,
            })),
        ) => Answer::NoAddress {
            exists: exists || also,
            ttl: ttl.min(other),
        },
    })
}

/// Waits for the second answer, for a limited time if the first one has addresses.
async fn wait_for_other_family(
    first: &io::Result<Answer>,
    second: impl Future<Output = io::Result<Answer>>,
) -> Option<io::Result<Answer>> {
    match first {
        Ok(Answer::Found(..)) => timeout(OTHER_FAMILY, second).await.ok(),
        // A name that does not exist has no addresses of the other family either.
        Ok(Answer::NoAddress { exists: false, .. }) => None,
        _ => Some(second.await),
    }
}

/// Sends a query to one server after the other until one answers.
async fn query_servers(
    config: &ResolverConfig,
    name: &str,
    kind: RecordType,
) -> io::Result<Answer> {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    let all = config.servers.len().max(1);
    let first = match config.rotate {
        true => TURN.fetch_add(1, Ordering::Relaxed) % all,
        false => 0,
    };
    let rounds = usize_from(config.attempts);
    // Every server gets its turn before the lookup's deadline.
    let share = RESOLVE_DEADLINE / narrow_int::<u32>(all * rounds);
    let each = config.timeout.min(share.max(Duration::from_secs(1)));
    let how = QueryOptions {
        // With a single server, wait for an answer as long as all queries together may take.
        timeout: match all {
            1 => each * config.attempts.max(1),
            _ => each,
        },
        resend_after: each,
        edns: config.edns,
        tcp_only: config.tcp_only,
    };
    let mut why: Vec<String> = Vec::new();
    let begun = Instant::now();
    for _ in 0..rounds {
        // The first query to the only server has used the time of all of them.
        if all == 1 && begun.elapsed() >= how.timeout {
            break;
        }
        for place in 0..all {
            let Some(server) = config.servers.get((first + place) % all) else {
                break;
            };
            match query_server(*server, name, kind, how).await {
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
    let mut why = why.join(", ");
    if let Some(reason) = &config.no_servers {
        why = format!("{why}; {reason}");
    }
    Err(super::no_address(why))
}

/// Returns an error message for a lookup that none of the servers has answered.
pub(super) fn no_answer_message(servers: &[SocketAddr]) -> String {
    let servers: Vec<String> = servers.iter().map(ToString::to_string).collect();
    format!("no answer from {}", servers.join(", "))
}
