//! Positions in a text, in bytes.

/// A range of bytes in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

/// A value with its position in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// The position of the value.
    pub span: Span,
}

impl Span {
    /// Creates a span from `start` up to, not including, `end`.
    #[must_use]
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// Returns the span of `part`, which starts at byte `start`.
    #[must_use]
    pub const fn of_part(start: usize, part: &str) -> Self {
        Self::new(start, start + part.len())
    }

    /// Returns the smallest span that contains both.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self::new(self.start.min(other.start), self.end.max(other.end))
    }

    /// Returns the same span in a text that starts `by` bytes earlier.
    #[must_use]
    pub const fn shifted_by(self, by: usize) -> Self {
        Self::new(self.start + by, self.end + by)
    }
}

impl Span {
    /// Returns the same span in a text that starts `by` bytes later, which is not after the start of the span.
    #[must_use]
    pub const fn shifted_back(self, by: usize) -> Self {
        Self::new(self.start - by, self.end - by)
    }
}

impl<T> Spanned<T> {
    /// Creates a value with its position.
    pub const fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }
}
