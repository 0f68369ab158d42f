//! The schemes: a closed set. Each has a file with its definition ([`Scheme`]) and the code that builds
//! a typed value.
//!
//! Dependencies: `endpoint_types`, `definition` and `builder` are the lowest; `shared_keys` has the keys
//! and defaults that several schemes share (time limits among them); the schemes use these,
//! `scheme_table` lists all schemes, and `name_lookup` and `secret_redaction` look names up in it.

pub(crate) mod builder;
mod carrier_table;
mod chain_ends;
mod definition;
mod dns;
pub(crate) mod endpoint_types;
mod fec_carrier;
mod forward;
mod http;
mod kcp;
mod kcptun;
pub(crate) mod key_files;
mod mixed_proxy;
mod name_lookup;
pub(crate) mod password_file;
mod scheme_table;
pub(crate) mod secret_redaction;
pub(crate) mod shared_keys;
mod socks5;
mod ss;
pub(crate) mod ss_share_link;
mod ssh;
mod ssr;
mod transparent;

use crate::grammar::Endpoint;
use crate::schema::EndpointRole;
use crate::scheme::builder::KeyTable;
use crate::scheme::endpoint_types::{Hop, ListenerConfig};
use crate::text::{Diagnostics, SecretLookup, UrlSnippet};

pub(crate) use carrier_table::CARRIERS;
pub(crate) use definition::SchemeWithCarrier;
pub use definition::{Carrier, Scheme};
pub(crate) use kcp::mode_name;
pub(crate) use name_lookup::{duplicate_key, parse_scheme, unknown_key_error};
pub(crate) use scheme_table::find_dialect;
pub use scheme_table::{UnknownScheme, schemes};
pub use ssh::DEFAULT_SSH_AGENT;

/// Builds a listener from an endpoint. Returns `None` if it is not a valid one, with the reasons in the
/// diagnostics. `table` contains keys that a file has beside the URL.
pub(crate) fn build_listener(
    diagnostics: &mut Diagnostics,
    lookup: SecretLookup<'_>,
    endpoint: &Endpoint,
    excerpt: UrlSnippet<'_>,
    table: Option<KeyTable>,
) -> Option<ListenerConfig> {
    let builder = name_lookup::checked_builder(
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
pub(crate) fn build_hop(
    diagnostics: &mut Diagnostics,
    lookup: SecretLookup<'_>,
    endpoint: &Endpoint,
    excerpt: UrlSnippet<'_>,
) -> Option<Hop> {
    let mut builder =
        name_lookup::checked_builder(diagnostics, lookup, endpoint, excerpt, EndpointRole::Hop)?;
    match ((builder.scheme().hop)(&mut builder)?, builder.carrier()) {
        (Hop::Server(server), Some(carrier)) => (carrier.hop)(&mut builder, server),
        (hop, _) => Some(hop),
    }
}
