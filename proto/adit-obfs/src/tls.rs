//! `tls1.2_ticket_auth` and `tls1.2_ticket_fastauth`: a TLS 1.2 session that seems to be resumed.
//!
//! The parts that look random in a real session hold an HMAC under the key of the connection:
//! that is how each side knows the other. The data that follows stands in application-data
//! records as it came from above; there is no encryption and no authentication of it here.

use adit_wire::narrow_int;

mod end;
mod flight;
mod hello;
mod parse;
mod record;
mod tag;

pub(crate) use end::{ClientEnd, parse_end, read_end};
pub(crate) use flight::{Flight, read_flight};
pub(crate) use hello::{Hello, Window, read_hello, server_name, sni, ticket};
pub(crate) use parse::parse_client_hello;
pub(crate) use record::{CHANGE_CIPHER_SPEC, RECORD_HEAD, Records, head_of, record_head};
pub(crate) use tag::Tagger;

/// The longest record payload this side sends (RFC 5246, section 6.2.1).
pub(crate) const MAX_RECORD: usize = 16_384;
/// The most records of that length that are sealed as one payload: eight frames of 8 KiB, which are
/// authenticated together, fill them.
pub(crate) const JOINED: usize = 4;

/// A length as TLS writes it. Callers bound what they write, so nothing is cut.
pub(crate) fn be16(len: usize) -> [u8; 2] {
    narrow_int::<u16>(len).to_be_bytes()
}
