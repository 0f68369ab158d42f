//! Base64 in key files: the standard alphabet; padding is optional when decoding.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Decodes `text`; the result has at most three quarters of its length.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    LENIENT.decode(text).ok()
}

/// Encodes with padding.
pub(super) fn encode(bytes: &[u8]) -> String {
    LENIENT.encode(bytes)
}
