//! Regular expressions for names.

use regex_lite::{Regex, RegexBuilder};

use crate::AddError;

/// Maximum memory of an expression, in bytes.
const PATTERN_SIZE: usize = 256 * 1024;

/// A regular expression for names, in the syntax of the crate `regex-lite`. Matching ignores case and takes
/// time linear in the length of the name. The name is in ASCII and has no dot at its end.
#[derive(Debug, Clone)]
pub struct NamePattern(Regex);

impl NamePattern {
    /// Parses an expression whose compiled form takes up to 256 KiB.
    ///
    /// # Errors
    ///
    /// [`AddError::Pattern`] says why the expression is wrong or too large.
    pub fn parse(text: &str) -> Result<Self, AddError> {
        Self::with_limit(text, PATTERN_SIZE)
    }

    /// Parses an expression whose compiled form takes up to `bytes` bytes.
    ///
    /// # Errors
    ///
    /// [`AddError::Pattern`] says why the expression is wrong or too large.
    pub fn with_limit(text: &str, bytes: usize) -> Result<Self, AddError> {
        let built = RegexBuilder::new(text)
            .case_insensitive(true)
            .size_limit(bytes.min(PATTERN_SIZE))
            .build();
        built
            .map(Self)
            .map_err(|why| AddError::Pattern(why.to_string()))
    }

    /// Returns the expression.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// True if the name contains a match.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

impl PartialEq for NamePattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for NamePattern {}
