//! Words of the peer for a terminal, and passwords.

use adit_crypto::{ct_eq, sha256};

/// Text of a peer as it may be shown: without control characters but the end of a line and the
/// tabulator, and without marks that turn the direction of writing.
#[must_use]
pub fn visible(text: &str) -> String {
    let turns = |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .filter(|c| matches!(c, '\n' | '\t') || !(c.is_control() || turns(*c)))
        .collect()
}

/// Whether two passwords are equal, in a time that tells nothing of where they differ, and nothing
/// of the expected one's length but its blocks of 64 octets.
///
/// A server that knows no such user compares with something else nevertheless, so that the time
/// does not tell who exists.
#[must_use]
pub fn password_eq(given: &str, expected: &str) -> bool {
    ct_eq(&sha256(given.as_bytes()), &sha256(expected.as_bytes()))
}
