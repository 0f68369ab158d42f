//! Base64 as key files have it: the standard alphabet, padding optional when read.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The octets that `text` stands for; three quarters of its length at most.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    LENIENT.decode(text).ok()
}

/// With padding.
pub(super) fn encode(bytes: &[u8]) -> String {
    LENIENT.encode(bytes)
}
