//! The C library's resolver, for names that come from where only it can ask.

use std::io;
use std::net::ToSocketAddrs;
use std::thread;

use tokio::sync::oneshot;

use super::found::{Found, no_address};
use super::shares::Running;

/// What such a lookup weighs beside one of ours: it has a thread, for as long as it likes.
pub(super) const WEIGHT: u32 = 8;
/// Modules of the C library want some.
const STACK: usize = 512 << 10;

/// Asks in a thread of its own, which keeps its share until the C library returns: it cannot be
/// called off. Threads of the runtime's pool are for files.
pub(super) async fn look_up(name: String, share: Running) -> io::Result<Found> {
    let (answer, answered) = oneshot::channel();
    thread::Builder::new()
        .name("resolver".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            let found = (name.as_str(), 0).to_socket_addrs();
            drop(share);
            // Nobody may be waiting any more.
            let _ = answer.send(found.map(Iterator::collect::<Vec<_>>));
        })?;
    let found = answered.await.map_err(io::Error::other)?;
    let found = found.map_err(|e| no_address(e.to_string()))?;
    // It says nothing of how long that holds.
    Ok(Found::Addresses(found.into(), 0))
}
