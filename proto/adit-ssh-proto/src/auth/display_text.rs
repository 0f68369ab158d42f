//! A peer's text for a terminal, and comparison of passwords.

use adit_crypto::{ct_eq, sha256};

/// Returns a peer's text in a form that is safe to display: without control characters except line
/// feed and tab, and without characters that change the writing direction.
#[must_use]
pub fn sanitize_for_display(text: &str) -> String {
    let turns = |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .filter(|c| matches!(c, '\n' | '\t') || !(c.is_control() || turns(*c)))
        .collect()
}

/// True if two passwords are equal. The time does not depend on the position of a difference, and
/// on the length of `expected` only in blocks of 64 bytes.
///
/// A server should compare with a dummy password if the user does not exist, so that the time does
/// not reveal which users exist.
#[must_use]
pub fn passwords_equal(given: &str, expected: &str) -> bool {
    ct_eq(&sha256(given.as_bytes()), &sha256(expected.as_bytes()))
}
