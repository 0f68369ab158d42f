//! The C library's resolver, for names from sources that only it supports.

use std::io;
use std::net::ToSocketAddrs;
use std::thread;

use tokio::sync::oneshot;

use super::lookup_limiter::LookupPermit;
use super::lookup_result::{LookupResult, no_address};

/// The weight of such a lookup compared to an ordinary one: it occupies a thread for any length of time.
pub(super) const WEIGHT: u32 = 8;
/// Stack size of the thread, in bytes; modules of the C library need some.
const STACK: usize = 512 << 10;

/// Looks up a name in a separate thread, which holds its permit until the C library returns: the call
/// cannot be aborted. The threads of the runtime's pool are for files.
pub(super) async fn look_up(name: String, share: LookupPermit) -> io::Result<LookupResult> {
    let (answer, answered) = oneshot::channel();
    thread::Builder::new()
        .name("resolver".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            let found = (name.as_str(), 0).to_socket_addrs();
            drop(share);
            // The waiter may have gone.
            let _ = answer.send(found.map(Iterator::collect::<Vec<_>>));
        })?;
    let found = answered.await.map_err(io::Error::other)?;
    let found = found.map_err(|e| no_address(e.to_string()))?;
    // The C library does not report a time to live.
    Ok(LookupResult::Addresses(found.into(), 0))
}
