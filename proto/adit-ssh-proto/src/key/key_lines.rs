//! Files with one key per line: the lines to parse, and reports of the malformed ones.

use std::sync::Arc;

use super::error::{KeyError, LinePosition, SkippedLine};

/// Passes each line that is neither empty nor a comment to `take`, with its position. Returns the
/// lines for which `take` failed.
///
/// # Errors
/// [`KeyError::TooMuch`] if the text has more than `limit` bytes; nothing is read then.
pub(super) fn parse_lines(
    (file, what): (&str, &'static str),
    text: &[u8],
    limit: usize,
    mut take: impl FnMut(&str, &LinePosition) -> Result<(), &'static str>,
) -> Result<Vec<SkippedLine>, KeyError> {
    if text.len() > limit {
        return Err(KeyError::TooMuch { what, limit });
    }
    let file: Arc<str> = file.into();
    let mut problems = Vec::new();
    for (at, line) in text.split(|b| *b == b'\n').enumerate() {
        let place = LinePosition {
            file: Arc::clone(&file),
            line: at + 1,
        };
        let line = String::from_utf8_lossy(line);
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Err(why) = take(line, &place) {
            problems.push(SkippedLine { place, why });
        }
    }
    Ok(problems)
}
