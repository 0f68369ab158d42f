//! Splits a line into a keyword and arguments.

use core::ops::Range;

/// A line that is neither empty nor a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfigLine<'a> {
    /// The line as written.
    pub(super) text: &'a str,
    /// The keyword, and its position.
    pub(super) keyword: &'a str,
    pub(super) keyword_at: Range<usize>,
    /// The text after the keyword, as written.
    pub(super) rest: &'a str,
    pub(super) rest_at: Range<usize>,
}

impl<'a> ConfigLine<'a> {
    /// Parses a line. Returns `None` for an empty line or a comment.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let start = text.find(|c: char| !is_blank(c))?;
        let after = text.get(start..)?;
        if after.starts_with('#') {
            return None;
        }
        let len = after
            .find(|c: char| is_blank(c) || c == '=')
            .unwrap_or(after.len());
        let (keyword, tail) = after.split_at_checked(len)?;
        // Blanks, with at most one `=` among them.
        let trimmed = tail.trim_start_matches(is_blank);
        let trimmed = trimmed.strip_prefix('=').unwrap_or(trimmed);
        let rest = trimmed.trim_matches(is_blank);
        let lead = trimmed.len() - trimmed.trim_start_matches(is_blank).len();
        let rest_start = text.len() - trimmed.len() + lead;
        Some(Self {
            text,
            keyword,
            keyword_at: start..start + len,
            rest,
            rest_at: rest_start..rest_start + rest.len(),
        })
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\x0c')
}

/// Splits arguments at blanks, unless quoted. A backslash escapes a quote, a backslash and, outside of
/// quotes, a blank. A word that starts with `#` starts a comment.
pub(super) fn split_arguments(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(|c| is_blank(*c)).is_some() {}
        match chars.peek() {
            None | Some('#') => return Ok(words),
            Some(_) => {}
        }
        let (mut word, mut quote) = (String::new(), None);
        while let Some(c) = chars.next() {
            match (c, quote) {
                ('\\', _) => {
                    let plain =
                        |c: &char| matches!(c, '"' | '\'' | '\\') || (*c == ' ' && quote.is_none());
                    word.push(chars.next_if(plain).unwrap_or(c));
                }
                ('"' | '\'', None) => quote = Some(c),
                (c, Some(open)) if c == open => quote = None,
                (c, None) if is_blank(c) => break,
                (c, _) => word.push(c),
            }
        }
        if quote.is_some() {
            return Err("a quote is not closed");
        }
        words.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_are_a_keyword_and_arguments() {
        for (text, keyword, rest) in [
            ("Port 22", "Port", "22"),
            ("  Port=22  ", "Port", "22"),
            ("Port = 22", "Port", "22"),
            ("\tUser\t= a b ", "User", "a b"),
            ("User==x", "User", "=x"),
            ("Host", "Host", ""),
        ] {
            let line = ConfigLine::parse(text).unwrap();
            assert_eq!((line.keyword, line.rest), (keyword, rest), "{text}");
            assert_eq!(&text[line.keyword_at], keyword);
            assert_eq!(&text[line.rest_at], rest);
        }
        assert_eq!(ConfigLine::parse(" # Port 22"), None);
        assert_eq!(ConfigLine::parse(" \t"), None);
    }

    #[test]
    fn arguments_may_be_quoted() {
        for (text, words) in [
            ("a b", &["a", "b"][..]),
            ("\"a b\" c # d", &["a b", "c"]),
            ("a#b #c", &["a#b"]),
            ("x\"y z\"w", &["xy zw"]),
            (
                r#"'it''s' \"q\" a\ b "a\ b""#,
                &["its", "\"q\"", "a b", "a\\ b"],
            ),
            ("\"\"", &[""]),
        ] {
            assert_eq!(split_arguments(text).unwrap(), words, "{text}");
        }
        assert!(split_arguments("\"a").is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            if let Some(line) = ConfigLine::parse(&text) {
                prop_assert_eq!(&text[line.rest_at.clone()], line.rest);
                prop_assert_eq!(&text[line.keyword_at.clone()], line.keyword);
            }
            let _ = split_arguments(&text);
        }
    }
}
