//! Hop-by-hop fields, which must not be forwarded (RFC 9110 section 7.6.1).

use super::Fields;
use super::fields::Field;

/// Maximum number of connection options; legitimate clients send far fewer.
const MAX_OPTIONS: usize = 64;

/// Fields that are never forwarded, listed in `Connection` or not. `TE: trailers` would be allowed,
/// but is useless on a connection that is closed after one exchange.
const ALWAYS: [&str; 7] = [
    "Connection",
    "Proxy-Connection",
    "Keep-Alive",
    "TE",
    "Upgrade",
    "Proxy-Authorization",
    "Proxy-Authenticate",
];

/// The hop-by-hop fields of one head.
#[derive(Debug)]
pub(crate) struct HopByHop<'a> {
    named: Vec<&'a [u8]>,
}

impl<'a> HopByHop<'a> {
    /// Reads the `Connection` fields.
    ///
    /// A framing field named there is an error: stripping it would shift the boundary of the
    /// message.
    pub(crate) fn from_fields(fields: &Fields<'a>) -> Result<Self, &'static str> {
        let named: Vec<_> = fields
            .list_members("Connection")
            .take(MAX_OPTIONS + 1)
            .collect();
        let framing = named.iter().any(|name| {
            name.eq_ignore_ascii_case(b"Content-Length")
                || name.eq_ignore_ascii_case(b"Transfer-Encoding")
        });
        if framing || named.len() > MAX_OPTIONS {
            return Err("Connection");
        }
        Ok(Self { named })
    }

    /// True if the field must not be forwarded.
    pub(crate) fn contains(&self, field: &Field<'_>) -> bool {
        ALWAYS.iter().any(|name| field.is_named(name))
            || self
                .named
                .iter()
                .any(|name| field.name.eq_ignore_ascii_case(name))
    }
}
