//! Splits a command line into words.
//!
//! Words are separated by blanks, unless quoted by `"…"`, `'…'` or a backslash. Quoted characters are not part of
//! a pattern: those with a special meaning are escaped by a backslash, as [`expand_pattern`] and [`unescape`] expect.
//!
//! [`expand_pattern`]: crate::copy::expand_pattern
//! [`unescape`]: crate::copy::unescape

/// Splits a line into words; a `#` at the start of a word starts a comment.
///
/// # Errors
/// A quote is not closed, or a backslash ends the line.
pub(super) fn split_words(line: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<Vec<u8>>, None);
    let mut bytes = line.iter().copied();
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (Some(end), _) if byte == end => quote = None,
            (None, b'"' | b'\'') => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (None, b' ' | b'\t' | b'\r' | b'\n') => all.extend(word.take()),
            (None, b'#') if word.is_none() => break,
            (None | Some(b'"'), b'\\') => {
                let next = bytes.next().ok_or("a backslash at the end of the line")?;
                let word = word.get_or_insert_default();
                match quote {
                    // In double quotes, a backslash escapes only double quotes and itself.
                    Some(_) if !matches!(next, b'"' | b'\\') => {
                        push_literal(word, b'\\');
                        push_literal(word, next);
                    }
                    _ => push_literal(word, next),
                }
            }
            (Some(_), _) => push_literal(word.get_or_insert_default(), byte),
            (None, _) => word.get_or_insert_default().push(byte),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed");
    }
    all.extend(word);
    Ok(all)
}

/// Appends a byte that is not part of a pattern.
fn push_literal(word: &mut Vec<u8>, byte: u8) {
    if matches!(byte, b'*' | b'?' | b'[' | b'\\') {
        word.push(b'\\');
    }
    word.push(byte);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut() {
        let cut = |line: &str| {
            split_words(line.as_bytes()).map(|words| {
                let text = |word: &Vec<u8>| String::from_utf8(word.clone()).unwrap();
                words.iter().map(text).collect::<Vec<_>>()
            })
        };
        for (line, wanted) in [
            ("", vec![]),
            ("  # all", vec![]),
            ("get a#b c # d", vec!["get", "a#b", "c"]),
            (r#"put "a b" 'c "d'"#, vec!["put", "a b", "c \"d"]),
            (r"a\ b *.c '*.c'", vec!["a b", "*.c", r"\*.c"]),
            (r#""a\"b\c""#, vec![r#"a"b\\c"#]),
            ("''", vec![""]),
        ] {
            assert_eq!(cut(line).unwrap(), wanted, "{line}");
        }
        cut("'a").unwrap_err();
        cut("a\\").unwrap_err();
    }
}
