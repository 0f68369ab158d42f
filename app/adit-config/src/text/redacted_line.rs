//! Lines as they are shown: without their secrets, and cut to a window around the place.

use adit_wire::substr;

use crate::text::Span;

/// The replacement of a secret.
const REPLACEMENT: &str = "***";
/// Maximum number of characters of a line that are shown.
const WIDTH: usize = 120;
/// Number of characters kept before the caret when a line is cut.
const LEAD: usize = 60;

/// Number of bytes before and after a place that are enough for a window, without secrets: characters have up to 4.
const WINDOW_BYTES: usize = 4 * WIDTH;

/// Returns a line without its secrets, cut around the range `meant` of it, which is returned in characters of the result.
pub(super) fn show_line(line: &str, meant: Span, secrets: &[Span]) -> (String, (usize, usize)) {
    cut_to_window(redact_line(line, meant, secrets), (false, false))
}

/// Does the same as [`show_line`], and reads only the part of the line that is shown.
pub(super) fn show_line_part(
    line: &str,
    meant: Span,
    secrets: &[Span],
) -> (String, (usize, usize)) {
    let start = start_of_part(line, meant.start, secrets);
    let end = end_of_part(line, meant.start, secrets);
    let first = secrets.partition_point(|secret| secret.end <= start);
    let inside = secrets
        .iter()
        .skip(first)
        .take_while(|secret| secret.start < end);
    let inside: Vec<Span> = inside.map(|secret| secret.shifted_back(start)).collect();
    let meant = Span::new(meant.start, meant.end.min(end)).shifted_back(start);
    let shown = redact_line(substr(line, start..end), meant, &inside);
    cut_to_window(shown, (start > 0, end < line.len()))
}

/// Returns the start of a part that has a whole window before `at`, and starts with no part of a secret.
fn start_of_part(line: &str, at: usize, secrets: &[Span]) -> usize {
    let (mut start, mut missing) = (at, WINDOW_BYTES);
    let before = secrets.partition_point(|secret| secret.start < at);
    for secret in secrets.iter().take(before).rev() {
        let gap = start.saturating_sub(secret.end);
        if gap >= missing {
            break;
        }
        missing -= gap;
        start = secret.start;
        // A secret is shown as its replacement.
        missing = missing.saturating_sub(REPLACEMENT.len());
    }
    let mut start = start.saturating_sub(missing);
    while !line.is_char_boundary(start) {
        start -= 1;
    }
    start
}

/// Returns the end of a part that has a whole window after `at`, and ends with no part of a secret.
fn end_of_part(line: &str, at: usize, secrets: &[Span]) -> usize {
    let (mut end, mut missing) = (at, WINDOW_BYTES);
    let first = secrets.partition_point(|secret| secret.end <= at);
    for secret in secrets.iter().skip(first) {
        let gap = secret.start.saturating_sub(end);
        if gap >= missing {
            break;
        }
        missing -= gap;
        end = secret.end;
        missing = missing.saturating_sub(REPLACEMENT.len());
    }
    let mut end = (end + missing).min(line.len());
    while !line.is_char_boundary(end) {
        end += 1;
    }
    end
}

/// Returns a line with its secrets redacted, and the range `meant` in characters of the result. `secrets` are ranges of
/// the line: in order, not adjacent.
pub(crate) fn redact_line(line: &str, meant: Span, secrets: &[Span]) -> (String, (usize, usize)) {
    let mut shown = String::new();
    let mut copied = 0;
    let (mut start, mut end) = (None, None);
    for hidden in secrets {
        let part = substr(line, copied..hidden.start);
        locate_ends(&mut start, &mut end, meant, copied, part, &shown);
        shown.push_str(part);
        let at = shown.chars().count();
        if start.is_none() && meant.start < hidden.end {
            start = Some(at);
        }
        shown.push_str(REPLACEMENT);
        if end.is_none() && meant.end <= hidden.end {
            end = Some(at + REPLACEMENT.len());
        }
        copied = hidden.end;
    }
    let part = substr(line, copied..);
    locate_ends(&mut start, &mut end, meant, copied, part, &shown);
    shown.push_str(part);
    let total = shown.chars().count();
    let start = start.unwrap_or(total);
    let end = end.unwrap_or(total).max(start);
    (shown, (start, end - start))
}

/// Records the ends of `meant` that are in `part`, which begins at byte `at`.
fn locate_ends(
    start: &mut Option<usize>,
    end: &mut Option<usize>,
    meant: Span,
    at: usize,
    part: &str,
    shown: &str,
) {
    let before = shown.chars().count();
    let chars_to = |byte: usize| {
        let inside = byte.checked_sub(at)?;
        Some(before + part.get(..inside)?.chars().count())
    };
    if start.is_none() && meant.start < at + part.len() {
        *start = chars_to(meant.start);
    }
    if end.is_none() {
        *end = chars_to(meant.end);
    }
}

/// Cuts a long line to a window around the caret, and moves the caret accordingly. `is_cut` is true if the line has more
/// text before its start, and after its end.
fn cut_to_window(
    (line, (start, len)): (String, (usize, usize)),
    is_cut: (bool, bool),
) -> (String, (usize, usize)) {
    let total = line.chars().count();
    if total <= WIDTH && is_cut == (false, false) {
        return (line, (start, len));
    }
    let from = start.saturating_sub(LEAD).min(total.saturating_sub(WIDTH));
    let mut shown: String = line.chars().skip(from).take(WIDTH).collect();
    let mut caret = start - from;
    if from > 0 || is_cut.0 {
        shown.insert(0, '…');
        caret += 1;
    }
    if from + WIDTH < total || is_cut.1 {
        shown.push('…');
    }
    let room = shown.chars().count().saturating_sub(caret);
    (shown, (caret, len.min(room)))
}
