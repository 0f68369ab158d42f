//! Settings that could not be carried over.

use core::fmt;

use adit_config::text::sanitize_for_terminal;

/// Something that was left out or guessed, and why. It holds no secret, and no character that
/// could move a cursor or end a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The field, as `servers[0].timeout`; empty if the whole document is meant.
    pub path: String,
    /// The result.
    pub text: String,
}

impl Note {
    pub(super) fn new(path: String, text: String) -> Self {
        Self {
            path: sanitize_for_terminal(&path),
            text: sanitize_for_terminal(&text),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            write!(f, "note: {}", self.text)
        } else {
            write!(f, "note: `{}`: {}", self.path, self.text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_stays_on_its_line() {
        let note = Note::new("a\n[route.x]".into(), "b\u{202e}".into());
        assert_eq!(note.to_string(), "note: `a\u{fffd}[route.x]`: b\u{fffd}");
    }
}
