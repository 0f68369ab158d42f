//! The rest of a forwarded exchange: the request's body and the response.
//!
//! Both are codecs of the client's stream: [`BodyOpen`] for the bytes read from it,
//! [`ResponseSeal`] for the bytes written to it.

mod chunks;
mod exchange_ends;
mod open;
mod progress;
mod seal;
mod upgrade_state;

pub use exchange_ends::ExchangeEnds;
pub use open::BodyOpen;
pub use seal::ResponseSeal;

use crate::Framing;
use upgrade_state::UpgradeSwitch;

/// Creates the two codecs for a [`Request::Forward`](crate::server::Request::Forward) from its
/// fields.
///
/// With `upgrade` the two are linked: the client's bytes after its head wait until the origin has
/// answered 101, and are not forwarded if it answers anything else.
#[must_use]
pub fn exchange_codecs(
    body: Framing,
    upgrade: bool,
    head_request: bool,
) -> (BodyOpen, ResponseSeal) {
    if !upgrade {
        return (BodyOpen::new(body), ResponseSeal::new(head_request));
    }
    let switch = UpgradeSwitch::default();
    (
        BodyOpen::after_upgrade(switch.clone()),
        ResponseSeal::with_upgrade(switch),
    )
}

/// Creates the same codecs for a client that may send another request
/// ([`server::Request::Forward`](crate::server::Request)): once [`ExchangeEnds::both_ended`] is true, its next
/// request follows in its stream.
#[must_use]
pub fn keep_alive_codecs(
    body: Framing,
    head_request: bool,
) -> (BodyOpen, ResponseSeal, ExchangeEnds) {
    let ends = ExchangeEnds::default();
    (
        BodyOpen::new(body).with_ends(ends.clone()),
        ResponseSeal::with_keep_alive(head_request, ends.clone()),
        ends,
    )
}
