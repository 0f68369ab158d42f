//! The rest of a forwarded exchange: the request's body and the response.
//!
//! Both are codecs on the client's stream: [`BodyOpen`] is what is read from it, [`ResponseSeal`]
//! what is written to it.

mod chunks;
mod open;
mod progress;
mod seal;
mod switch;

pub use open::BodyOpen;
pub use seal::ResponseSeal;

use crate::Framing;
use switch::Switch;

/// The two codecs for a [`Request::Forward`](crate::server::Request::Forward), by its fields.
///
/// With `upgrade` they share one secret: the client's bytes behind its head wait until the origin
/// has answered 101, and are nobody's if it has not.
#[must_use]
pub fn exchange(body: Framing, upgrade: bool, head_request: bool) -> (BodyOpen, ResponseSeal) {
    if !upgrade {
        return (BodyOpen::new(body), ResponseSeal::new(head_request));
    }
    let switch = Switch::default();
    (
        BodyOpen::behind(switch.clone()),
        ResponseSeal::turning(switch),
    )
}
