//! Checks if a Shadowsocks server accepts this client, and finds the reason if not; and checks any server
//! step by step ([`ask_for`]).
//!
//! A server must not reveal anything to unauthenticated peers, so it reports nothing. But clients with
//! the key can find out: an adit server answers the name [`CHECK_NAME`] itself, and a server that refuses
//! the local clock accepts another one.

mod hop_steps;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use adit_config::{CarrierSettings, ServerHop};
use adit_net::system::{self, ThreadRng};
use adit_shadowsocks::{Edition, KeyChain, tcp};
use adit_stream::{BoxStream, Layered, fill_to, flush_stream};
use adit_wire::{Host, Name, Target, UnixTime};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

pub use hop_steps::{
    ProbeRequest, ProbeResult, build_hop_connector, connect_first, direct_connector,
    probe_carrier_target, probe_datagram, probe_fec_channel, request_through_hop as ask_for,
    resolve_server,
};

use crate::BoxFuture;
use crate::acceptor::CHECK_NAME;
use crate::clock_steps;
use crate::connect_pacer::ConnectPacer;
use crate::connector::Connector;
use crate::health::{HealthCheck, ProbeAnswer};

/// Time limit for one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(4);
/// Time without an answer after which other clocks are tried as well: a server that accepts the request
/// answers within one round trip. Requests are few and spaced, because a server counts what it refuses
/// and a wrong key looks like an attack.
const OTHER_CLOCKS_AFTER: Duration = Duration::from_secs(1);
/// Differences of the other clocks to the local one, in seconds. A server that has just started refuses
/// requests older than itself (SEC-R3), and a drifting clock is off by about a minute at first; each
/// request covers 30 s in both directions. Larger differences cannot be distinguished from a wrong key by
/// so few requests, and then both are reported. Clocks before a step of the local one are tried first.
const OTHER_CLOCKS: [i64; 3] = [20, -45, 65];

/// The end of the sentence about a server that closed the connection of a check.
const CLOSED: &str = "has closed the connection without an answer";

/// The start of an adit server's answer.
const GREETING: &[u8] = b"adit ";

/// The result of a check.
#[derive(Debug)]
pub enum ProbeFinding {
    /// The server proved that it has the key.
    Accepted {
        /// Server's clock minus the local one in seconds, where the edition reports it.
        skew: Option<i64>,
    },
    /// The server has the key, but the clocks differ.
    WrongClock {
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
pub async fn probe_hop(hop: &ServerHop, keys: KeyChain) -> ProbeFinding {
    let id = keys.user_key().id().to_string();
    let pacer = crate::health::pacer_of_key(&hop.display_name(), id);
    let finding = match &hop.carrier {
        Some(CarrierSettings::Kcp(carried)) => {
            match crate::chain_builder::build_carrier(
                hop,
                carried,
                Arc::default(),
                crate::dns::NameResolver::system(),
            ) {
                Ok(via) => probe_through_carrier(hop, via, &keys, &pacer).await,
                Err(why) => return ProbeFinding::Unreachable(io::Error::other(why)),
            }
        }
        _ => probe_directly(hop.server.clone(), keys, &pacer).await,
    };
    match &finding {
        ProbeFinding::Accepted { .. } => pacer.record_proof(),
        ProbeFinding::WrongClock { .. } => pacer.record_failure("refuses the local clock"),
        ProbeFinding::Closed => pacer.record_failure(CLOSED),
        // Some servers look up the name for longer.
        ProbeFinding::Silent | ProbeFinding::Unreachable(_) => {}
    }
    finding
}

/// Checks the server of `hop` through its carrier.
async fn probe_through_carrier(
    hop: &ServerHop,
    via: Arc<dyn Connector>,
    keys: &KeyChain,
    pacer: &Arc<ConnectPacer>,
) -> ProbeFinding {
    // Other clocks are tried only after the first request: each of them would open a further session of the
    // carrier.
    pacer.admit_check().await;
    match send_probe(&via, &hop.server, keys, 0).await {
        Ok(ProbeAnswer::Authentic(skew)) => ProbeFinding::Accepted { skew },
        Err(e) => ProbeFinding::Unreachable(e),
        Ok(other) => {
            let found = match has_time_stamps(keys) {
                true => find_clock_skew(Instant::now(), &via, &hop.server, keys, Some(pacer)).await,
                false => None,
            };
            match (found, other) {
                (Some(skew), _) => ProbeFinding::WrongClock { skew },
                (None, ProbeAnswer::Closed) => ProbeFinding::Closed,
                (None, _) => ProbeFinding::Silent,
            }
        }
    }
}

/// Checks `server` directly. Takes one connection and one round trip if it accepts the request, otherwise
/// up to four connections and about seven seconds.
async fn probe_directly(server: Target, keys: KeyChain, pacer: &Arc<ConnectPacer>) -> ProbeFinding {
    let via = crate::chain_builder::unrestricted_connector();
    probe_through(&via, server, &keys, REQUEST_TIMEOUT * 2, Some(pacer)).await
}

/// Does the same through `via`. Other clocks are tried for at most `clocks_within`. The checks of
/// groups have no `pacer`: they have pauses of their own.
async fn probe_through(
    via: &Arc<dyn Connector>,
    server: Target,
    keys: &KeyChain,
    clocks_within: Duration,
    pacer: Option<&Arc<ConnectPacer>>,
) -> ProbeFinding {
    if let Some(pacer) = pacer {
        pacer.admit_check().await;
    }
    let start = Instant::now();
    let first = send_probe(via, &server, keys, 0);
    let mut first = std::pin::pin!(first);
    let early = timeout(OTHER_CLOCKS_AFTER, &mut first).await;
    match early {
        Ok(Ok(ProbeAnswer::Authentic(skew))) => return ProbeFinding::Accepted { skew },
        Ok(Err(e)) => return ProbeFinding::Unreachable(e),
        Ok(Ok(ProbeAnswer::Closed)) => {
            if let Some(pacer) = pacer {
                pacer.record_failure(CLOSED);
            }
        }
        Ok(Ok(_)) | Err(_) => {}
    }
    let others = async {
        if has_time_stamps(keys) && !clocks_within.is_zero() {
            let found = find_clock_skew(start, via, &server, keys, pacer);
            timeout_at(start + clocks_within, found).await.ok()?
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
        (Ok(ProbeAnswer::Authentic(skew)), _) => ProbeFinding::Accepted { skew },
        (_, Some(skew)) => ProbeFinding::WrongClock { skew },
        (Ok(ProbeAnswer::WrongClock(skew)), None) => ProbeFinding::WrongClock { skew },
        (Ok(ProbeAnswer::Silent), None) => ProbeFinding::Silent,
        (Ok(ProbeAnswer::Closed), None) => ProbeFinding::Closed,
        (Err(e), None) => ProbeFinding::Unreachable(e),
    }
}

/// Returns true if servers check the clock for these keys, so that a wrong clock looks like a wrong key.
#[must_use]
pub fn has_time_stamps(keys: &KeyChain) -> bool {
    keys.method().edition() == Edition::Aead2022
}

/// The question that a server which is adit itself is asked before it is blamed.
pub(crate) struct Check {
    /// The connector that leads to the server.
    pub(crate) via: Arc<dyn Connector>,
    /// The server.
    pub(crate) server: Target,
    /// The plugin in front of the server.
    pub(crate) plugin: Option<Arc<crate::plugin::PluginHost>>,
    /// The keys that the server should hold.
    pub(crate) keys: KeyChain,
}

impl HealthCheck for Check {
    fn ask<'a>(
        &'a self,
        tries_clocks: bool,
        pacer: Option<&'a Arc<ConnectPacer>>,
    ) -> BoxFuture<'a, io::Result<ProbeAnswer>> {
        Box::pin(async move {
            let server = match &self.plugin {
                Some(host) if host.mode().carries_tcp() => host.local_addr().into(),
                _ => self.server.clone(),
            };
            let clocks = match tries_clocks {
                true => REQUEST_TIMEOUT,
                false => Duration::ZERO,
            };
            Ok(
                match probe_through(&self.via, server, &self.keys, clocks, pacer).await {
                    ProbeFinding::Accepted { skew } => ProbeAnswer::Authentic(skew),
                    ProbeFinding::WrongClock { skew } => ProbeAnswer::WrongClock(skew),
                    ProbeFinding::Unreachable(why) => return Err(why),
                    ProbeFinding::Silent => ProbeAnswer::Silent,
                    ProbeFinding::Closed => ProbeAnswer::Closed,
                },
            )
        })
    }
}

/// A clock that is shifted by a number of seconds.
struct ShiftedClock(i64);

impl adit_wire::Clock for ShiftedClock {
    fn unix_time(&self) -> UnixTime {
        UnixTime(system::unix_now().0.saturating_add_signed(self.0))
    }
}

/// Sends one request, with a clock shifted by this number of seconds.
async fn send_probe(
    via: &Arc<dyn Connector>,
    server: &Target,
    keys: &KeyChain,
    shift: i64,
) -> io::Result<ProbeAnswer> {
    let below = via.connect(server, &[]).await.map_err(|e| e.source_error)?;
    let name = Name::new(CHECK_NAME).map_err(io::Error::other)?;
    let target = Target::new(Host::Name(name), 1);
    let (seal, open) =
        tcp::client_codecs(keys, &target, Arc::new(ShiftedClock(shift)), &mut ThreadRng)
            .map_err(io::Error::other)?;
    // A legacy cipher decrypts anything: only the contents prove the key.
    let legacy = keys.method().is_legacy();
    let want = if legacy { GREETING.len() } else { 1 };
    let progress = open.progress();
    let mut io: BoxStream = Box::new(Layered::new(below.io, seal, open));
    let talk = async {
        flush_stream(&mut io).await?;
        fill_to(&mut io, want).await
    };
    let silent = timeout(REQUEST_TIMEOUT, talk).await.is_err();
    let answered = !legacy || io.filled().starts_with(GREETING);
    Ok(if answered && progress.is_authenticated() {
        ProbeAnswer::Authentic(progress.clock_skew())
    } else if silent {
        ProbeAnswer::Silent
    } else {
        ProbeAnswer::Closed
    })
}

/// Finds the clock difference by requests that follow the one at `start`. Returns `None` if no other clock
/// is accepted.
async fn find_clock_skew(
    start: Instant,
    via: &Arc<dyn Connector>,
    server: &Target,
    keys: &KeyChain,
    pacer: Option<&Arc<ConnectPacer>>,
) -> Option<i64> {
    let mut running: JoinSet<Option<i64>> = JoinSet::new();
    let earlier = clock_steps::earlier_clocks().into_iter();
    let shifts = earlier.chain(OTHER_CLOCKS).take(OTHER_CLOCKS.len());
    for (place, shift) in (1..).zip(shifts) {
        let (via, server, keys) = (via.clone(), server.clone(), keys.clone());
        let pacer = pacer.cloned();
        running.spawn(async move {
            sleep_until(start + OTHER_CLOCKS_AFTER * place).await;
            if let Some(pacer) = pacer {
                pacer.admit_check().await;
            }
            match send_probe(&via, &server, &keys, shift).await {
                // The time stamp of the answer reveals the difference to the second.
                Ok(ProbeAnswer::Authentic(skew)) => Some(shift + skew.unwrap_or(0)),
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
