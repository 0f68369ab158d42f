//! Base64 as found in practice: padding may be missing, and links mix both alphabets.

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::DecodePaddingMode::Indifferent;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, NO_PAD};
use zeroize::Zeroizing;

const STRICT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(Indifferent),
);
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(Indifferent)
        .with_decode_allow_trailing_bits(true),
);
const URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, NO_PAD);

/// Decodes a key: standard alphabet, padding optional. Returns `None` if the text is not base64.
#[must_use]
pub fn decode_key(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    STRICT.decode(text).ok().map(Zeroizing::new)
}

/// Decodes the text of a share link: either alphabet, padding optional, percent-encoding tolerated.
/// Returns `None` if it is not base64 of UTF-8.
#[must_use]
pub fn decode_link(text: &str) -> Option<Zeroizing<String>> {
    let plain = Zeroizing::new(crate::text::escape::decode(text)?);
    let standard: Zeroizing<String> = Zeroizing::new(
        plain
            .trim_end_matches('=')
            .chars()
            .map(|c| match c {
                '-' => '+',
                '_' => '/',
                other => other,
            })
            .collect(),
    );
    let bytes = LENIENT.decode(standard.as_bytes()).ok()?;
    match String::from_utf8(bytes) {
        Ok(text) => Some(Zeroizing::new(text)),
        Err(error) => {
            drop(Zeroizing::new(error.into_bytes()));
            None
        }
    }
}

/// Encodes a text for a share link: base64url without padding.
#[must_use]
pub fn encode_link(text: &str) -> String {
    URL.encode(text)
}
