//! Patterns with wildcards.

use core::fmt;

/// Maximum length of a pattern, in bytes.
const MAX_GLOB: usize = 255;

/// A pattern for a whole name: `*` is any number of characters of one label, `**` any number of any
/// characters, and `?` one character of a label. In lower case.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Glob {
    text: Box<str>,
    tokens: Box<[Token]>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Token {
    Byte(u8),
    /// `?`
    One,
    /// `*`
    Label,
    /// `**`
    Any,
}

impl Glob {
    /// Parses a pattern. It is compared with names in ASCII (`xn--…`), in lower case.
    ///
    /// Returns `None` if the pattern is empty, longer than 255 bytes, or has a character other than ASCII
    /// letters, digits, `-`, `_`, `.`, `*` and `?`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let good = |c: char| c.is_ascii_alphanumeric() || "-_.*?".contains(c);
        if text.is_empty() || text.len() > MAX_GLOB || !text.chars().all(good) {
            return None;
        }
        let text = text.to_ascii_lowercase();
        let mut tokens = Vec::with_capacity(text.len());
        for byte in text.bytes() {
            let token = match byte {
                b'*' => Token::Label,
                b'?' => Token::One,
                byte => Token::Byte(byte),
            };
            match (tokens.last_mut(), token) {
                (Some(last @ (Token::Label | Token::Any)), Token::Label) => *last = Token::Any,
                _ => tokens.push(token),
            }
        }
        Some(Self {
            text: text.into(),
            tokens: tokens.into(),
        })
    }

    /// Returns the pattern.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// True if the pattern matches the whole name, which is in lower-case ASCII. The time is bounded by the
    /// product of both lengths.
    #[must_use]
    pub fn matches(&self, name: &[u8]) -> bool {
        // Most names differ at their end already.
        let tail = self.tokens.iter().rev().zip(name.iter().rev());
        for (token, byte) in tail {
            match token {
                Token::Byte(own) if own != byte => return false,
                Token::One if *byte == b'.' => return false,
                Token::Byte(_) | Token::One => {}
                Token::Label | Token::Any => return self.runs(name),
            }
        }
        self.tokens.len() == name.len() || self.runs(name)
    }

    /// Follows all ways through the pattern at the same time.
    fn runs(&self, name: &[u8]) -> bool {
        // `states[i]`: the first `i` tokens match the bytes so far.
        let mut states = [false; MAX_GLOB + 1];
        let tokens = self.tokens.iter();
        let wild = |token: &Token| matches!(token, Token::Label | Token::Any);
        let lead = tokens.clone().take_while(|token| wild(token)).count();
        for state in states.iter_mut().take(lead + 1) {
            *state = true;
        }
        for byte in name {
            let mut before = false;
            let mut alive = false;
            let mut entered = false;
            // Position 0 is left with the first byte.
            for (at, state) in states.iter_mut().take(self.tokens.len() + 1).enumerate() {
                let token = at.checked_sub(1).and_then(|at| self.tokens.get(at));
                let was = *state;
                *state = match token {
                    None => false,
                    Some(Token::Byte(own)) => before && own == byte,
                    Some(Token::One) => before && *byte != b'.',
                    Some(Token::Label) => entered || (was && *byte != b'.'),
                    Some(Token::Any) => entered || was,
                };
                // A wildcard that is reached may also be empty.
                (before, entered) = (was, *state);
                alive |= *state;
            }
            if !alive {
                return false;
            }
        }
        states.get(self.tokens.len()).copied().unwrap_or_default()
    }

    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + self.text.len() + size_of_val(&*self.tokens)
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Glob").field(&self.text).finish()
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wildcards_match() {
        for (glob, name, expected) in [
            ("*.example", "a.example", true),
            ("*.example", "a.b.example", false),
            ("*.example", "example", false),
            ("**.example", "a.b.example", true),
            ("**example", "example", true),
            ("ads*.example", "ads.example", true),
            ("ads*.example", "ads7.example", true),
            ("ads*.example", "ads.x.example", false),
            ("a.*.c", "a.b.c", true),
            ("a.*.c", "a.b.b.c", false),
            ("a?c", "abc", true),
            ("a?c", "a.c", false),
            ("a?c", "ac", false),
            ("A*", "abc", true),
            ("*", "abc", true),
            ("*", "a.c", false),
            ("***", "a.c", true),
            ("a**b*c", "a.x.bc", true),
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("bcd", "abcd", false),
            ("abcd", "bcd", false),
        ] {
            let parsed = Glob::parse(glob).unwrap();
            assert_eq!(parsed.matches(name.as_bytes()), expected, "{glob} {name}");
        }
        for bad in ["", "a b", "ü", "[a]"] {
            assert!(Glob::parse(bad).is_none(), "{bad}");
        }
    }

    fn expected(tokens: &[Token], name: &[u8]) -> bool {
        match (tokens, name) {
            ([], []) => true,
            ([Token::Byte(own), tokens @ ..], [byte, name @ ..]) => {
                own == byte && expected(tokens, name)
            }
            ([Token::One, tokens @ ..], [byte, name @ ..]) => {
                *byte != b'.' && expected(tokens, name)
            }
            ([first @ (Token::Label | Token::Any), rest @ ..], name) => {
                expected(rest, name)
                    || match name {
                        [byte, name @ ..] => {
                            (*first == Token::Any || *byte != b'.') && expected(tokens, name)
                        }
                        [] => false,
                    }
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn a_pattern_answers_as_its_definition(
            glob in "[ab.*?]{1,8}", name in "[ab.]{0,9}",
        ) {
            let glob = Glob::parse(&glob).unwrap();
            prop_assert_eq!(glob.matches(name.as_bytes()), expected(&glob.tokens, name.as_bytes()));
        }
    }
}
