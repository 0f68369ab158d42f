//! The originator of a lookup.

use std::future::Future;
use std::net::IpAddr;

/// The originator that a lookup is counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LookupOrigin {
    /// No client: the names of a configuration or of a command line.
    Configuration,
    /// A client of a listener.
    Client {
        /// The identity of the user within one listener; 0 if users are not identified.
        user: u64,
        /// An IPv4 address, or the first address of an IPv6 /64.
        source: IpAddr,
    },
}

tokio::task_local! {
    /// A task-local rather than an argument: the chains of hops between a request and its lookup have
    /// nothing to do with it.
    static CURRENT: LookupOrigin;
}

impl LookupOrigin {
    /// Runs `work` with this originator. Tasks that it spawns do not inherit it.
    pub fn scope<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, work)
    }

    /// Returns the originator of the current task's work; [`LookupOrigin::Configuration`] if none was set.
    #[must_use]
    pub fn current() -> Self {
        CURRENT
            .try_with(|origin| *origin)
            .unwrap_or(Self::Configuration)
    }
}
