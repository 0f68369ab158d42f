//! Fields that concern one connection and must not be forwarded (RFC 9110 section 7.6.1).

use super::Fields;
use super::fields::Field;

/// A list of more options is no client's.
const MAX_OPTIONS: usize = 64;

/// Never forwarded, named in `Connection` or not. `TE` could stay as `trailers`, but is of no use
/// to anybody on a connection that is closed after one exchange.
const ALWAYS: [&str; 7] = [
    "Connection",
    "Proxy-Connection",
    "Keep-Alive",
    "TE",
    "Upgrade",
    "Proxy-Authorization",
    "Proxy-Authenticate",
];

/// What one head says about its own connection.
#[derive(Debug)]
pub(crate) struct HopByHop<'a> {
    named: Vec<&'a [u8]>,
}

impl<'a> HopByHop<'a> {
    /// Reads the `Connection` fields.
    ///
    /// Naming a framing field there would make us strip it and shift the border of the message.
    pub(crate) fn of(fields: &Fields<'a>) -> Result<Self, &'static str> {
        let named: Vec<_> = fields.list("Connection").take(MAX_OPTIONS + 1).collect();
        let framing = named.iter().any(|name| {
            name.eq_ignore_ascii_case(b"Content-Length")
                || name.eq_ignore_ascii_case(b"Transfer-Encoding")
        });
        if framing || named.len() > MAX_OPTIONS {
            return Err("Connection");
        }
        Ok(Self { named })
    }

    /// Whether the field ends at this hop.
    pub(crate) fn holds(&self, field: &Field<'_>) -> bool {
        ALWAYS.iter().any(|name| field.is(name))
            || self
                .named
                .iter()
                .any(|name| field.name.eq_ignore_ascii_case(name))
    }
}
