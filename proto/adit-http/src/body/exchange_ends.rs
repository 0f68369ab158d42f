//! Progress of an exchange on a connection that may be reused, shared by its two directions and the
//! owner of the connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const REQUEST: u8 = 1;
const RESPONSE: u8 = 2;

/// The directions of an exchange that have ended.
#[derive(Debug, Clone, Default)]
pub struct ExchangeEnds(Arc<AtomicU8>);

impl ExchangeEnds {
    /// True if the request has been read to its end, so that the next request follows.
    #[must_use]
    pub fn request_ended(&self) -> bool {
        self.0.load(Ordering::Acquire) & REQUEST != 0
    }

    /// True if the response has also been written to its end, and has told the client that the
    /// connection stays open.
    #[must_use]
    pub fn both_ended(&self) -> bool {
        self.0.load(Ordering::Acquire) == REQUEST | RESPONSE
    }

    pub(super) fn set_request(&self) {
        self.0.fetch_or(REQUEST, Ordering::Release);
    }

    pub(super) fn set_response(&self) {
        self.0.fetch_or(RESPONSE, Ordering::Release);
    }
}
