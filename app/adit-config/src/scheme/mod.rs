//! The schemes: a closed set. Each has a file with its definition ([`Scheme`]) and its way to a
//! typed value.
//!
//! Arrows inside go up from `typed`, `definition` and `draft` over the schemes to `table`, which
//! knows all of them, and to what looks names up in it: `names` and `mask`.

mod definition;
pub(crate) mod draft;
mod ends;
mod fec;
mod forward;
mod http;
mod kcp;
mod kcptun;
pub(crate) mod keyring;
pub(crate) mod keys;
pub(crate) mod mask;
mod mixed;
mod names;
pub(crate) mod share;
mod socks5;
mod ss;
mod ssh;
mod ssr;
mod table;
mod transparent;
pub(crate) mod typed;

use crate::grammar::Endpoint;
use crate::schema::Role;
use crate::scheme::draft::KeyTable;
use crate::scheme::typed::{Hop, Listen};
use crate::text::{Desk, Lookup, Quote};

pub(crate) use definition::Written;
pub use definition::{Carrier, Scheme};
pub(crate) use kcp::mode_name;
pub(crate) use names::{unknown_key, written};
pub(crate) use table::{CARRIERS, dialect};
pub use table::{UnknownScheme, schemes};

/// The endpoint as a listener; `None` if it is none, with the reasons on the desk. `table` holds
/// keys that stand beside the URL.
pub(crate) fn listen(
    desk: &mut Desk,
    lookup: Lookup<'_>,
    endpoint: &Endpoint,
    quote: Quote<'_>,
    table: Option<KeyTable>,
) -> Option<Listen> {
    let draft = names::draft(desk, lookup, endpoint, quote, Role::Listener)?;
    let mut draft = draft.with_table(table);
    let listen = (draft.scheme().listen)(&mut draft)?;
    match draft.carrier() {
        None => Some(listen),
        Some(carrier) => (carrier.listen)(&mut draft, listen),
    }
}

/// The endpoint as a hop.
pub(crate) fn hop(
    desk: &mut Desk,
    lookup: Lookup<'_>,
    endpoint: &Endpoint,
    quote: Quote<'_>,
) -> Option<Hop> {
    let mut draft = names::draft(desk, lookup, endpoint, quote, Role::Hop)?;
    match ((draft.scheme().hop)(&mut draft)?, draft.carrier()) {
        (Hop::Server(server), Some(carrier)) => (carrier.hop)(&mut draft, server),
        (hop, _) => Some(hop),
    }
}
