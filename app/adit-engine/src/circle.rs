//! Requests that come back to this process through its own hops.
//!
//! A plan that says so is refused before it runs. Names, addresses that turn out to be ours and
//! plans that are changed while they run are found here: a connection that this process makes to
//! itself is remembered, so that the listener that accepts it knows how often the request has
//! been here.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use adit_wire::unmap;

use crate::Peer;

/// How often a request may come back. Listeners that lead to each other on purpose are fewer.
pub(crate) const MOST: u8 = 8;
/// Connections to this machine that are remembered until they are accepted; most are to other
/// programs, and never are.
const REMEMBERED: usize = 1024;

tokio::task_local! {
    /// How often the request that a task works for has come back.
    static ROUNDS: u8;
}

static MADE: Mutex<Option<Made>> = Mutex::new(None);

/// Connections of this process to this machine, by their own address.
#[derive(Default)]
struct Made {
    rounds: HashMap<SocketAddr, u8>,
    order: VecDeque<SocketAddr>,
}

/// Does `work` for a request that has come back as often.
pub(crate) fn scope<F: Future>(rounds: u8, work: F) -> impl Future<Output = F::Output> {
    ROUNDS.scope(rounds, work)
}

/// Notes a connection from `local` to one of `candidates`, if that is this machine.
pub(crate) fn made(local: SocketAddr, candidates: &[SocketAddr]) {
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
}

/// How often the request of a connection that was accepted has come back: 0 if others made it.
pub(crate) fn rounds(peer: &Peer) -> u8 {
    let ip = unmap(peer.remote.ip());
    if ip != unmap(peer.local.ip()) {
        return 0;
    }
    let remote = SocketAddr::new(ip, peer.remote.port());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let found = made.as_mut().and_then(|made| made.rounds.remove(&remote));
    found.map_or(0, |rounds| rounds.saturating_add(1))
}
