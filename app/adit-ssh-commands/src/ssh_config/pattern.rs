//! Patterns with `*` and `?`, and pattern lists.

/// Returns true if `pattern` matches `text`. Takes time proportional to the product of the lengths at most,
/// for any pattern.
pub(super) fn matches_pattern(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Position after the last star, and the start of the text that it has not consumed yet.
    let mut star: Option<(usize, usize)> = None;
    while let Some(byte) = text.get(t) {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(one) if *one == b'?' || one == byte => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((after, swallowed)) = star else {
                    return false;
                };
                star = Some((after, swallowed + 1));
                p = after;
                t = swallowed + 1;
            }
        }
    }
    pattern.iter().skip(p).all(|byte| *byte == b'*')
}

/// Returns true if one of the patterns matches `text` and no pattern with a leading `!` does.
pub(super) fn matches_any<'p>(patterns: impl IntoIterator<Item = &'p str>, text: &str) -> bool {
    let mut found = false;
    for pattern in patterns {
        match pattern.strip_prefix('!') {
            Some(pattern) if matches_pattern(pattern, text) => return false,
            Some(_) => {}
            None => found |= matches_pattern(pattern, text),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stars_and_marks() {
        for (pattern, text, wanted) in [
            ("*", "", true),
            ("?", "", false),
            ("a?c", "abc", true),
            ("*.example.com", "www.example.com", true),
            ("*.example.com", "example.com", false),
            ("192.168.0.?", "192.168.0.17", false),
            ("*a*b*", "xxaxxbxx", true),
            ("a**", "a", true),
            ("A", "a", false),
        ] {
            assert_eq!(matches_pattern(pattern, text), wanted, "{pattern} {text}");
        }
        assert!(matches_any(["!b", "*"], "a"));
        assert!(!matches_any(["*", "!a"], "a"));
        assert!(
            !matches_any(["!b"], "a"),
            "a negation alone matches nothing"
        );
    }

    /// The definition, which takes exponential time.
    fn slow(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|n| slow(rest, &text[n..])),
            Some((one, rest)) => text
                .split_first()
                .is_some_and(|(byte, text)| (*one == b'?' || one == byte) && slow(rest, text)),
        }
    }

    proptest! {
        #[test]
        fn equals_the_definition(pattern in "[ab*?]{0,7}", text in "[ab]{0,8}") {
            prop_assert_eq!(matches_pattern(&pattern, &text), slow(pattern.as_bytes(), text.as_bytes()));
        }
    }
}
