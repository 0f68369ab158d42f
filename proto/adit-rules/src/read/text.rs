//! Lines of texts.

use super::limits::{NoteKind, Place};
use super::tally::Tally;

/// Returns the number and the text of each line that is UTF-8, without whitespace around it; the others are
/// noted when their turn comes.
pub(super) fn lines(document: &[u8]) -> impl Iterator<Item = (Place, Option<&str>)> {
    let document = document.strip_prefix(b"\xef\xbb\xbf").unwrap_or(document);
    let lines = document.split(|byte| *byte == b'\n');
    lines.enumerate().map(|(at, line)| {
        let text = core::str::from_utf8(line).ok();
        (Place::Line(at + 1), text.map(str::trim_end))
    })
}

/// Notes a line that is not UTF-8.
pub(super) fn note_encoding(tally: &mut Tally<'_>, place: Place) {
    tally.note(place, NoteKind::Encoding);
}
