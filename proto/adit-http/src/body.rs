//! The rest of a forwarded exchange: the request's body and the response.
//!
//! Both are codecs of the client's stream: [`BodyOpen`] for the bytes read from it,
//! [`ResponseSeal`] for the bytes written to it.

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

/// Creates the two codecs for a [`Request::Forward`](crate::server::Request::Forward) from its
/// fields.
///
/// With `upgrade` the two are linked: the client's bytes after its head wait until the origin has
/// answered 101, and are not forwarded if it answers anything else.
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

/// Creates the same codecs for a client that may send another request
/// ([`server::Request::Forward`](crate::server::Request)): once [`Ends::both`] is true, its next
/// request follows in its stream.
#[must_use]
pub fn kept(body: Framing, head_request: bool) -> (BodyOpen, ResponseSeal, Ends) {
    let ends = Ends::default();
    (
        BodyOpen::new(body).noting(ends.clone()),
        ResponseSeal::keeping(head_request, ends.clone()),
        ends,
    )
}
