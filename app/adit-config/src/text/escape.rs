//! Percent-encoding of the parts of a URL.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Bytes encoded in users, secrets and names: all but the unreserved characters of RFC 3986, section
/// 2.3. So `+ / = :` of a 2022 key are encoded, as SIP002 requires.
const PART: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// Bytes encoded in the path of an `@file` secret.
const PATH: &AsciiSet = &PART.remove(b'/');
/// Bytes encoded in values. Lists of networks and addresses stay readable. `@` is encoded because after
/// `?` it could be the end of a secret; the writer adds the `@` of a file itself. `;` and `=` are encoded
/// because SIP002 encodes them in `plugin`.
const VALUE: &AsciiSet = &PATH.remove(b':').remove(b',').remove(b'[').remove(b']');

/// Encodes a user, secret or name.
#[must_use]
pub fn encode_part(text: &str) -> String {
    utf8_percent_encode(text, PART).to_string()
}

/// Encodes the path of an `@file` secret.
#[must_use]
pub fn encode_path(text: &str) -> String {
    utf8_percent_encode(text, PATH).to_string()
}

/// Encodes a key or value of the query.
#[must_use]
pub fn encode_value(text: &str) -> String {
    utf8_percent_encode(text, VALUE).to_string()
}

/// Decodes percent-encoding. Returns `None` if the result is not UTF-8. `+` stays `+`.
#[must_use]
pub fn decode(text: &str) -> Option<String> {
    Some(percent_decode_str(text).decode_utf8().ok()?.into_owned())
}

/// Like `decode_text`, with replacement characters for what is not UTF-8: old links have names in
/// other encodings.
#[must_use]
pub fn decode_lossy(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
