//! Files with a key on each line: which lines count, and what is told of those that cannot be read.

use std::sync::Arc;

use super::error::{KeyError, Place, Problem};

/// Gives each line that is neither empty nor a comment to `take`, with where it stands; what it
/// refuses is told.
///
/// # Errors
/// [`KeyError::TooMuch`] for a text of more than `limit` octets, of which nothing is read.
pub(super) fn read(
    (file, what): (&str, &'static str),
    text: &[u8],
    limit: usize,
    mut take: impl FnMut(&str, &Place) -> Result<(), &'static str>,
) -> Result<Vec<Problem>, KeyError> {
    if text.len() > limit {
        return Err(KeyError::TooMuch { what, limit });
    }
    let file: Arc<str> = file.into();
    let mut problems = Vec::new();
    for (at, line) in text.split(|b| *b == b'\n').enumerate() {
        let place = Place {
            file: Arc::clone(&file),
            line: at + 1,
        };
        let line = String::from_utf8_lossy(line);
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Err(why) = take(line, &place) {
            problems.push(Problem { place, why });
        }
    }
    Ok(problems)
}
