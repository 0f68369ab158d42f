//! The rest of a forwarded exchange: the request's body and the response.
//!
//! Both are codecs on the client's stream: [`BodyOpen`] is what is read from it, [`ResponseSeal`]
//! what is written to it.

mod chunks;
mod ends;
mod open;
mod progress;
mod seal;
mod switch;

pub use ends::Ends;
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

/// The same for a client that may ask again ([`server::Request::Forward`](crate::server::Request)):
/// once [`Ends::both`] have come, its next request follows in its stream.
#[must_use]
pub fn kept(body: Framing, head_request: bool) -> (BodyOpen, ResponseSeal, Ends) {
    let ends = Ends::default();
    (
        BodyOpen::new(body).noting(ends.clone()),
        ResponseSeal::keeping(head_request, ends.clone()),
        ends,
    )
}
