//! The YAML of rule providers: a key `payload` with a list of texts.

use super::limits::{NoteKind, Place};
use super::tally::{Tally, shorten};

/// True if a line opens the list.
pub(super) fn opens_payload(line: &str) -> bool {
    let rest = line.strip_prefix("payload:");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// Returns the texts of a list in brackets on the line that opens the payload.
pub(super) fn flow_items(line: &str) -> Vec<String> {
    let list = line.strip_prefix("payload:").map(str::trim);
    let list = list.and_then(|list| list.strip_prefix('[')?.strip_suffix(']'));
    let items = list.unwrap_or_default().split(',').map(str::trim);
    items
        .filter(|item| !item.is_empty())
        .filter_map(scalar)
        .collect()
}

/// Returns the text of an item `- text`, or `None` after a note. Lines that are not items are `None`, too:
/// the caller has passed comments and the line that opens the list.
pub(super) fn item(line: &str, place: Place, tally: &mut Tally<'_>) -> Option<String> {
    let rest = line.trim_start().strip_prefix('-');
    let rest = rest.filter(|rest| rest.starts_with([' ', '\t']));
    let text = rest.and_then(|rest| scalar(rest.trim()));
    if text.is_none() {
        tally.note(place, NoteKind::Syntax(shorten(line.trim())));
    }
    text
}

/// Returns the text of a scalar in quotes or without.
fn scalar(text: &str) -> Option<String> {
    let behind = |rest: &str| {
        let rest = rest.trim_start();
        rest.is_empty() || rest.starts_with('#')
    };
    if let Some(rest) = text.strip_prefix('\'') {
        // Two quotes are one.
        let mut out = String::new();
        let mut rest = rest;
        loop {
            let (part, after) = rest.split_once('\'')?;
            out.push_str(part);
            match after.strip_prefix('\'') {
                Some(more) => {
                    out.push('\'');
                    rest = more;
                }
                None => return behind(after).then_some(out),
            }
        }
    }
    if let Some(rest) = text.strip_prefix('"') {
        let mut out = String::new();
        let mut chars = rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => return behind(rest.get(at + 1..)?).then_some(out),
                '\\' => match chars.next()?.1 {
                    c @ ('"' | '\\' | '/') => out.push(c),
                    't' => out.push('\t'),
                    'n' => out.push('\n'),
                    _ => return None,
                },
                c => out.push(c),
            }
        }
        return None;
    }
    let plain = text.split_once(" #").map_or(text, |(text, _)| text).trim();
    let good =
        !plain.is_empty() && !plain.starts_with(['[', '{', '&', '!', '|', '>', '#', '@', '`', '%']);
    good.then(|| plain.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_read() {
        for (text, expected) in [
            ("a.b", Some("a.b")),
            ("a.b # c", Some("a.b")),
            ("'+.a.b' # c", Some("+.a.b")),
            ("'it''s'", Some("it's")),
            (r#""a\\b\"""#, Some("a\\b\"")),
            ("'open", None),
            ("\"open", None),
            (r#""a"b"#, None),
            ("[a]", None),
            ("*.a", Some("*.a")),
        ] {
            assert_eq!(scalar(text).as_deref(), expected, "{text}");
        }
        assert_eq!(flow_items("payload: ['a', b]"), ["a", "b"]);
        assert!(opens_payload("payload:") && !opens_payload("payloads:"));
    }
}
