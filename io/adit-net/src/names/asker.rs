//! Who asks for names.

use std::future::Future;
use std::net::IpAddr;

/// The party that a lookup is counted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Asker {
    /// Nobody outside: the names of a configuration or of a command line.
    Configuration,
    /// A client of a listener.
    Client {
        /// What tells users of one listener apart; 0 where nothing does.
        user: u64,
        /// An IPv4 address, or the first address of an IPv6 /64.
        source: IpAddr,
    },
}

tokio::task_local! {
    /// A task's and not an argument: between a request and the lookup that it leads to lie chains
    /// of hops that have nothing to do with it.
    static CURRENT: Asker;
}

impl Asker {
    /// Does `work` for this party. Tasks that it spawns are nobody's.
    pub fn scope<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, work)
    }

    /// The party that the current task works for.
    #[must_use]
    pub fn current() -> Self {
        CURRENT
            .try_with(|asker| *asker)
            .unwrap_or(Self::Configuration)
    }
}
