//! `tls1.2_ticket_auth` and `tls1.2_ticket_fastauth`: an apparently resumed TLS 1.2 session.
//!
//! The parts that look random in a real session contain an HMAC keyed with the key of the
//! connection, by which the sides recognize each other. The application-data records that follow
//! contain the data of the layer above unchanged; this layer does not encrypt or authenticate it.

use adit_wire::narrow_int;

mod client_end;
mod client_hello;
mod flight;
mod hello;
mod record;
mod tag;

pub(crate) use client_end::{ClientEnd, parse_end, read_end};
pub(crate) use client_hello::parse_client_hello;
pub(crate) use flight::{ServerFlight, read_flight};
pub(crate) use hello::{
    TimeWindow, TlsHello, draw_ticket, read_hello, server_name_extension, sni_name,
};
pub(crate) use record::{
    CHANGE_CIPHER_SPEC, RECORD_HEAD, RecordReader, parse_record_head, record_head,
};
pub(crate) use tag::Tagger;

/// Maximum length of a record payload that this side sends, in bytes (RFC 5246, section 6.2.1).
pub(crate) const MAX_RECORD: usize = 16_384;
/// Maximum number of records of that length that are sealed as one payload: they fit eight frames
/// of 8 KiB, which are authenticated together.
pub(crate) const JOINED: usize = 4;

/// Encodes a length as in TLS. Callers limit their lengths, so nothing is truncated.
pub(crate) fn be16(len: usize) -> [u8; 2] {
    narrow_int::<u16>(len).to_be_bytes()
}
