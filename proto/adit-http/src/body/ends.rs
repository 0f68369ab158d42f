//! How far an exchange has come on a connection that may be used again; shared by its two directions
//! and whoever holds the connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const REQUEST: u8 = 1;
const RESPONSE: u8 = 2;

/// Which directions of an exchange have come to their end.
#[derive(Debug, Clone, Default)]
pub struct Ends(Arc<AtomicU8>);

impl Ends {
    /// Whether the request has been read to its end: what follows is the next one.
    #[must_use]
    pub fn request(&self) -> bool {
        self.0.load(Ordering::Acquire) & REQUEST != 0
    }

    /// Whether the response has been written to its end as well, and has told the client that the
    /// connection stays.
    #[must_use]
    pub fn both(&self) -> bool {
        self.0.load(Ordering::Acquire) == REQUEST | RESPONSE
    }

    pub(super) fn set_request(&self) {
        self.0.fetch_or(REQUEST, Ordering::Release);
    }

    pub(super) fn set_response(&self) {
        self.0.fetch_or(RESPONSE, Ordering::Release);
    }
}
