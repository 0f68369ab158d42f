//! Downloads in a build without the feature `management`: they fail.

use std::str::FromStr;
use std::time::Duration;

use adit_config::{Family, LeftOut};
pub use adit_dns_client::tls::TrustedRoots;
use adit_engine::NameResolver;

/// Fetches documents up to a maximum size.
#[derive(Debug)]
pub(crate) struct Fetcher {
    _roots: TrustedRoots,
}

/// The URL of a document.
pub(crate) enum Source {}

impl FromStr for Source {
    type Err = LeftOut;

    fn from_str(_: &str) -> Result<Self, LeftOut> {
        Err(LeftOut(Family::Admin))
    }
}

impl Fetcher {
    pub(crate) const fn new(roots: TrustedRoots, _: usize) -> Self {
        Self { _roots: roots }
    }

    pub(crate) const fn with_time_limit(self, _: Duration) -> Self {
        self
    }

    pub(crate) async fn get_bytes(
        &self,
        source: &Source,
        _: &NameResolver,
    ) -> Result<Vec<u8>, LeftOut> {
        match *source {}
    }
}

/// Returns the wait unchanged: nothing is fetched.
pub(crate) const fn scattered(wait: Duration) -> Duration {
    wait
}
