//! Detection of requests that come back to this process through its own hops.
//!
//! Plans with an obvious loop are refused before they run. This module finds the others, caused by names,
//! by addresses that belong to this machine, and by changes at run time: a connection of this process to
//! itself is remembered, so that the listener that accepts it can count how often the request has come
//! back.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use adit_wire::unmap_ipv4;
use tokio::net::TcpStream;

use crate::ConnectionAddrs;

/// Maximum number of times that a request may come back. Intentional chains of listeners are shorter.
pub(crate) const MAX_ROUNDS: u8 = 8;
/// Maximum number of connections to this process that are remembered until they are accepted.
const MAX_REMEMBERED: usize = 1024;

tokio::task_local! {
    /// Number of times that the request of the current task has come back.
    static ROUNDS: u8;
}

/// A bit for each port that this process listens on, or has listened on. Connections to other ports do
/// not come back: most connections need neither the lock nor the local address.
static PORTS: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

static OWN_CONNECTIONS: Mutex<Option<OwnConnections>> = Mutex::new(None);
/// Number of connections in [`OWN_CONNECTIONS`], readable without its lock.
static OWN_CONNECTION_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Connections of this process to this machine, by their local address.
#[derive(Default)]
struct OwnConnections {
    rounds: HashMap<SocketAddr, u8>,
    order: VecDeque<SocketAddr>,
}

/// Runs `work` for a request that has come back `rounds` times.
pub(crate) fn with_rounds<F: Future>(rounds: u8, work: F) -> impl Future<Output = F::Output> {
    ROUNDS.scope(rounds, work)
}

/// Returns how often the request of the current task has come back.
pub(crate) fn current_rounds() -> u8 {
    ROUNDS.try_with(|rounds| *rounds).unwrap_or(0)
}

/// Runs `work`, which may move to another task, for the request of the current task.
pub(crate) fn with_current_rounds<F: Future>(work: F) -> impl Future<Output = F::Output> {
    with_rounds(current_rounds(), work)
}

/// Records that this process listens on `port`.
pub(crate) fn register_port(port: u16) {
    let (word, bit) = port_bit(port);
    word.fetch_or(bit, Ordering::Relaxed);
}

/// Records that this process accepts connections to any port (`REDIRECT`).
pub(crate) fn register_all_ports() {
    for word in &PORTS {
        word.store(u64::MAX, Ordering::Relaxed);
    }
}

fn port_bit(port: u16) -> (&'static AtomicU64, u64) {
    (&PORTS[usize::from(port >> 6)], 1 << (port & 63))
}

/// Records a connection to one of `candidates`, if it is a listener of this process.
pub(crate) fn record_own_connection(connection: &TcpStream, candidates: &[SocketAddr]) {
    let is_ours = |to: &SocketAddr| {
        let (word, bit) = port_bit(to.port());
        word.load(Ordering::Relaxed) & bit != 0
    };
    if !candidates.iter().any(is_ours) {
        return;
    }
    let Ok(local) = connection.local_addr() else {
        return;
    };
    let ip = unmap_ipv4(local.ip());
    if !candidates.iter().any(|to| unmap_ipv4(to.ip()) == ip) {
        return;
    }
    let rounds = current_rounds();
    let local = SocketAddr::new(ip, local.port());
    let mut made = OWN_CONNECTIONS
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let made = made.get_or_insert_default();
    if made.rounds.insert(local, rounds).is_none() {
        made.order.push_back(local);
    }
    if made.order.len() > MAX_REMEMBERED
        && let Some(oldest) = made.order.pop_front()
    {
        made.rounds.remove(&oldest);
    }
    OWN_CONNECTION_COUNT.store(made.rounds.len(), Ordering::Release);
}

/// Returns how often the request of an accepted connection has come back: 0 if another process made it.
pub(crate) fn rounds_of(peer: &ConnectionAddrs) -> u8 {
    let ip = unmap_ipv4(peer.remote.ip());
    if ip != unmap_ipv4(peer.local.ip()) || OWN_CONNECTION_COUNT.load(Ordering::Acquire) == 0 {
        return 0;
    }
    let remote = SocketAddr::new(ip, peer.remote.port());
    let mut made = OWN_CONNECTIONS
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let Some(made) = made.as_mut() else {
        return 0;
    };
    let found = made.rounds.remove(&remote);
    OWN_CONNECTION_COUNT.store(made.rounds.len(), Ordering::Release);
    found.map_or(0, |rounds| rounds.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use adit_net::tcp;

    use super::*;

    #[tokio::test]
    async fn only_what_goes_to_a_listener_of_ours_is_remembered() {
        for ours in [false, true] {
            let listener = tcp::listen("127.0.0.1:0".parse().unwrap()).unwrap();
            let at = listener.local_addr().unwrap();
            if ours {
                register_port(at.port());
            }
            let (near, accepted) = tokio::join!(tcp::connect(at), listener.accept());
            let (far, remote) = accepted.unwrap();
            let local = far.local_addr().unwrap();
            with_rounds(3, async { record_own_connection(&near.unwrap(), &[at]) }).await;
            let peer = ConnectionAddrs { remote, local };
            assert_eq!(rounds_of(&peer), if ours { 4 } else { 0 });
            assert_eq!(rounds_of(&peer), 0, "it is accepted once");
        }
    }
}
