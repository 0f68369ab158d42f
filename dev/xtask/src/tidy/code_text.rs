//! Rust source code without its comments, strings and characters.

/// Returns `source` with every comment, string and character literal blanked; lines stay lines.
pub(super) fn blank_literals(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let len = literal_len(rest, before).unwrap_or(0);
        if len == 0 {
            out.push(first);
            before = first;
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        } else {
            let (gone, left) = rest.split_at_checked(len).unwrap_or((rest, ""));
            out.extend(gone.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            before = ' ';
            rest = left;
        }
    }
    out
}

/// Returns the length of the comment or literal at the front, if there is one.
fn literal_len(rest: &str, before: char) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(block_comment_len(rest));
    }
    if rest.starts_with('"') {
        return Some(quoted_literal_len(rest, '"'));
    }
    if rest.starts_with('\'') {
        // A lifetime has no second quote right after one character.
        let mut chars = rest.chars().skip(1);
        let first = chars.next()?;
        let is_char = first == '\\' || chars.next() == Some('\'');
        return is_char.then(|| quoted_literal_len(rest, '\''));
    }
    if before.is_alphanumeric() || before == '_' {
        return None;
    }
    let raw = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    let body = raw.get(hashes..)?.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let len = body.find(&end).map_or(body.len(), |at| at + end.len());
    Some(rest.len() - body.len() + len)
}

/// Returns the length of a block comment; block comments nest.
fn block_comment_len(rest: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0usize);
    while let Some(tail) = rest.get(at..) {
        if tail.is_empty() {
            break;
        }
        if tail.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if tail.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += tail.chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

fn quoted_literal_len(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return at + 1;
        }
    }
    rest.len()
}

/// Returns true if `needle` occurs in `line` as a word, not as part of a longer one.
pub(super) fn has_word(line: &str, needle: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(needle).any(|(at, _)| {
        let before = line.get(..at).and_then(|head| head.chars().next_back());
        let after = line
            .get(at + needle.len()..)
            .and_then(|tail| tail.chars().next());
        !before.is_some_and(part_of_word) && !after.is_some_and(part_of_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked() {
        let source =
            "a(\"x // b\") // c\nlet d = 'e'; /* f /* g */ h */ i<'j> r#\"k\"l\"# m b'\\'' n";
        let code = blank_literals(source);
        assert_eq!(code.len(), source.len());
        for gone in ["x", "b\"", "c", "e'", "f", "g", "h", "k", "l\""] {
            assert!(!code.contains(gone), "{gone} in {code}");
        }
        for kept in ["a(", "let d =", "i<'j>", " m ", " n"] {
            assert!(code.contains(kept), "{kept} in {code}");
        }
        assert_eq!(code.lines().count(), source.lines().count());
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("use rand::Rng;", "rand"));
        assert!(!has_word("let operand = 1;", "rand"));
        assert!(!has_word("forbid(unsafe_code)", "unsafe"));
        assert!(has_word("Instant::now()", "Instant::now"));
    }
}
