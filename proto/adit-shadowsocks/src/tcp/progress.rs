//! What a client's opening side has learned, readable after it was moved into a stream.

use core::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// Shared by a [`super::ClientOpen`] and whoever reports on its connection.
#[derive(Debug)]
pub struct Progress {
    authenticated: AtomicBool,
    /// [`UNKNOWN`] before the server's clock was read.
    skew: AtomicI64,
}

/// No skew has this value: it saturates at `-i64::MAX`.
const UNKNOWN: i64 = i64::MIN;

impl Default for Progress {
    fn default() -> Self {
        Self {
            authenticated: AtomicBool::new(false),
            skew: AtomicI64::new(UNKNOWN),
        }
    }
}

impl Progress {
    /// Whether the server has proven that it holds the key: a stream that ends before that points
    /// at a wrong key, method or clock. Method `none` and the legacy ones prove nothing; there a byte is
    /// enough.
    #[must_use]
    pub fn authenticated(&self) -> bool {
        self.authenticated.load(Ordering::Relaxed)
    }

    /// The server's clock minus ours in seconds, known once a response header of the 2022 edition
    /// was authenticated, even if it was then refused for its time.
    #[must_use]
    pub fn skew(&self) -> Option<i64> {
        match self.skew.load(Ordering::Relaxed) {
            UNKNOWN => None,
            skew => Some(skew),
        }
    }

    pub(super) fn set_authenticated(&self) {
        self.authenticated.store(true, Ordering::Relaxed);
    }

    pub(super) fn set_skew(&self, skew: i64) {
        self.skew.store(skew, Ordering::Relaxed);
    }
}
