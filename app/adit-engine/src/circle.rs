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

use adit_wire::unmap;
use tokio::net::TcpStream;

use crate::Peer;

/// Maximum number of times that a request may come back. Intentional chains of listeners are shorter.
pub(crate) const MOST: u8 = 8;
/// Maximum number of connections to this process that are remembered until they are accepted.
const REMEMBERED: usize = 1024;

tokio::task_local! {
    /// Number of times that the request of the current task has come back.
    static ROUNDS: u8;
}

/// A bit for each port that this process listens on, or has listened on. Connections to other ports do
/// not come back: most connections need neither the lock nor the local address.
static PORTS: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

static MADE: Mutex<Option<Made>> = Mutex::new(None);
/// Number of connections in [`MADE`], readable without its lock.
static PENDING: AtomicUsize = AtomicUsize::new(0);

/// Connections of this process to this machine, by their local address.
#[derive(Default)]
struct Made {
    rounds: HashMap<SocketAddr, u8>,
    order: VecDeque<SocketAddr>,
}

/// Runs `work` for a request that has come back `rounds` times.
pub(crate) fn scope<F: Future>(rounds: u8, work: F) -> impl Future<Output = F::Output> {
    ROUNDS.scope(rounds, work)
}

/// Records that this process listens on `port`.
pub(crate) fn listens_on(port: u16) {
    let (word, bit) = place(port);
    word.fetch_or(bit, Ordering::Relaxed);
}

/// Records that this process accepts connections to any port (`REDIRECT`).
pub(crate) fn listens_on_all() {
    for word in &PORTS {
        word.store(u64::MAX, Ordering::Relaxed);
    }
}

fn place(port: u16) -> (&'static AtomicU64, u64) {
    (&PORTS[usize::from(port >> 6)], 1 << (port & 63))
}

/// Records a connection to one of `candidates`, if it is a listener of this process.
pub(crate) fn made(connection: &TcpStream, candidates: &[SocketAddr]) {
    let is_ours = |to: &SocketAddr| {
        let (word, bit) = place(to.port());
        word.load(Ordering::Relaxed) & bit != 0
    };
    if !candidates.iter().any(is_ours) {
        return;
    }
    let Ok(local) = connection.local_addr() else {
        return;
    };
    let ip = unmap(local.ip());
    if !candidates.iter().any(|to| unmap(to.ip()) == ip) {
        return;
    }
    let rounds = ROUNDS.try_with(|rounds| *rounds).unwrap_or(0);
    let local = SocketAddr::new(ip, local.port());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let made = made.get_or_insert_default();
    if made.rounds.insert(local, rounds).is_none() {
        made.order.push_back(local);
    }
    if made.order.len() > REMEMBERED
        && let Some(oldest) = made.order.pop_front()
    {
        made.rounds.remove(&oldest);
    }
    PENDING.store(made.rounds.len(), Ordering::Release);
}

/// Returns how often the request of an accepted connection has come back: 0 if another process made it.
pub(crate) fn rounds(peer: &Peer) -> u8 {
    let ip = unmap(peer.remote.ip());
    if ip != unmap(peer.local.ip()) || PENDING.load(Ordering::Acquire) == 0 {
        return 0;
    }
    let remote = SocketAddr::new(ip, peer.remote.port());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(made) = made.as_mut() else {
        return 0;
    };
    let found = made.rounds.remove(&remote);
    PENDING.store(made.rounds.len(), Ordering::Release);
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
                listens_on(at.port());
            }
            let (near, accepted) = tokio::join!(tcp::connect(at), listener.accept());
            let (far, remote) = accepted.unwrap();
            let local = far.local_addr().unwrap();
            scope(3, async { made(&near.unwrap(), &[at]) }).await;
            let peer = Peer { remote, local };
            assert_eq!(rounds(&peer), if ours { 4 } else { 0 });
            assert_eq!(rounds(&peer), 0, "it is accepted once");
        }
    }
}
