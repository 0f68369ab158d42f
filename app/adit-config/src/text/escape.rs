//! Percent-encoding: which bytes each part of a URL spells out.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// User, secret, name: all but the unreserved characters of RFC 3986, section 2.3. So `+ / = :`
/// of a 2022 key are encoded, as SIP002 asks.
const PART: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// Path of an `@file` secret.
const PATH: &AsciiSet = &PART.remove(b'/');
/// Values: lists of networks and addresses stay readable. `@` is encoded, since behind `?` it could
/// be the end of a secret; where it opens a file the writer puts it itself. `;` and `=` are encoded since
/// SIP002 has them so in `plugin`.
const VALUE: &AsciiSet = &PATH.remove(b':').remove(b',').remove(b'[').remove(b']');

/// A user, secret or name.
#[must_use]
pub fn part(text: &str) -> String {
    utf8_percent_encode(text, PART).to_string()
}

/// The path of an `@file` secret.
#[must_use]
pub fn path(text: &str) -> String {
    utf8_percent_encode(text, PATH).to_string()
}

/// A key or value of the query.
#[must_use]
pub fn value(text: &str) -> String {
    utf8_percent_encode(text, VALUE).to_string()
}

/// The text behind percent-encoding, `None` if it is not UTF-8. `+` stays `+`.
#[must_use]
pub fn decode(text: &str) -> Option<String> {
    Some(percent_decode_str(text).decode_utf8().ok()?.into_owned())
}

/// As [`decode`], with a replacement character for what is not UTF-8: old links carry names in
/// other encodings.
#[must_use]
pub fn decode_lossy(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
