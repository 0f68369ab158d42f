//! The progress of a client's opening codec, readable after the codec was moved into a stream.

use core::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// State shared by a [`super::ClientOpen`] and the code that reports on its connection.
#[derive(Debug)]
pub struct ClientProgress {
    authenticated: AtomicBool,
    /// [`UNKNOWN`] until the server's clock is known.
    skew: AtomicI64,
}

/// Not a valid skew: skews saturate at `-i64::MAX`.
const UNKNOWN: i64 = i64::MIN;

impl Default for ClientProgress {
    fn default() -> Self {
        Self {
            authenticated: AtomicBool::new(false),
            skew: AtomicI64::new(UNKNOWN),
        }
    }
}

impl ClientProgress {
    /// True if the server has proved that it has the key. A stream that ends before that suggests a
    /// wrong key, method or clock. Method `none` and the legacy methods prove nothing; for them any
    /// received byte suffices.
    #[must_use]
    pub fn is_authenticated(&self) -> bool {
        self.authenticated.load(Ordering::Relaxed)
    }

    /// Returns the server's clock minus ours in seconds. Known once a response header of the 2022
    /// edition was authenticated, even if it was then refused because of its time.
    #[must_use]
    pub fn clock_skew(&self) -> Option<i64> {
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
