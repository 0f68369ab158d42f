//! The schemes: a closed set. Each has a file with its definition ([`Scheme`]) and the code that builds
//! a typed value.
//!
//! Dependencies: `typed`, `definition` and `builder` are the lowest, the schemes use them, `table`
//! lists all schemes, and `names` and `secret_mask` look names up in it.

pub(crate) mod builder;
mod definition;
mod ends;
mod fec;
mod forward;
mod http;
mod kcp;
mod kcptun;
pub(crate) mod keyring;
pub(crate) mod keys;
mod mixed;
mod names;
pub(crate) mod secret_mask;
pub(crate) mod share;
mod socks5;
mod ss;
mod ssh;
mod ssr;
mod table;
mod transparent;
pub(crate) mod typed;

use crate::grammar::Endpoint;
use crate::schema::EndpointRole;
use crate::scheme::builder::KeyTable;
use crate::scheme::typed::{Hop, Listen};
use crate::text::{Diagnostics, Excerpt, Lookup};

pub(crate) use definition::Written;
pub use definition::{Carrier, Scheme};
pub(crate) use kcp::mode_name;
pub(crate) use names::{twice, unknown_key, written};
pub(crate) use table::{CARRIERS, dialect};
pub use table::{UnknownScheme, schemes};

/// Builds a listener from an endpoint. Returns `None` if it is not a valid one, with the reasons in the
/// diagnostics. `table` contains keys that a file has beside the URL.
pub(crate) fn listen(
    diagnostics: &mut Diagnostics,
    lookup: Lookup<'_>,
    endpoint: &Endpoint,
    excerpt: Excerpt<'_>,
    table: Option<KeyTable>,
) -> Option<Listen> {
    let builder = names::builder(
        diagnostics,
        lookup,
        endpoint,
        excerpt,
        EndpointRole::Listener,
    )?;
    let mut builder = builder.with_table(table);
    let listen = (builder.scheme().listen)(&mut builder)?;
    match builder.carrier() {
        None => Some(listen),
        Some(carrier) => (carrier.listen)(&mut builder, listen),
    }
}

/// Builds a hop from an endpoint. Returns `None` if it is not a valid one, with the reasons in the
/// diagnostics.
pub(crate) fn hop(
    diagnostics: &mut Diagnostics,
    lookup: Lookup<'_>,
    endpoint: &Endpoint,
    excerpt: Excerpt<'_>,
) -> Option<Hop> {
    let mut builder = names::builder(diagnostics, lookup, endpoint, excerpt, EndpointRole::Hop)?;
    match ((builder.scheme().hop)(&mut builder)?, builder.carrier()) {
        (Hop::Server(server), Some(carrier)) => (carrier.hop)(&mut builder, server),
        (hop, _) => Some(hop),
    }
}
