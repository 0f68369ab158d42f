//! Values inside the text they came from: maps byte ranges of a value to places that a user can find.

use adit_wire::substr;

use crate::text::{ConfigError, Origin, Problem, SourceLocation, Span};

/// Redacts the secrets of a line, and returns the redacted line with the position of the range in it:
/// first character and number of characters. The last argument is the heading of the line's table.
pub(crate) type RedactLine = fn(&str, Span, &str) -> (String, (usize, usize));

/// A text, its origin, and the function that redacts its secrets. Each argument is a separate text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Document<'a> {
    /// The origin of the text.
    pub(crate) origin: &'a Origin,
    /// The whole text.
    pub(crate) text: &'a str,
    /// Redacts the secrets of a line.
    pub(crate) redact: RedactLine,
}

/// Maximum number of characters of a line that are shown.
const WIDTH: usize = 120;
/// Number of characters kept before the caret when a line is cut.
const LEAD: usize = 60;

/// A URL with its position in a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UrlSnippet<'a> {
    document: Document<'a>,
    at: UrlPosition,
}

/// The position of a URL in a document.
#[derive(Debug, Clone, Copy)]
enum UrlPosition {
    /// The document contains the bytes of the URL unchanged, from this offset on.
    Verbatim(usize),
    /// The document spells the URL with escapes: only the whole value can be shown.
    Escaped(Span),
    /// There is no URL: positions count from the start of the document.
    NoUrl,
}

impl<'a> Document<'a> {
    /// Returns the whole document as one URL.
    pub(crate) const fn as_url(self) -> UrlSnippet<'a> {
        self.url_at(UrlPosition::Verbatim(0))
    }

    /// Returns a position without a URL, for values that are not URLs.
    pub(crate) const fn without_url(self) -> UrlSnippet<'a> {
        self.url_at(UrlPosition::NoUrl)
    }

    /// Returns the value `text` of a file, written at `span` (which includes its quotation marks).
    pub(crate) fn url_value(self, span: Span, text: &str) -> UrlSnippet<'a> {
        let written = substr(self.text, span.start..span.end);
        let inner = written.get(1..written.len().saturating_sub(1));
        self.url_at(if inner == Some(text) && !text.is_empty() {
            UrlPosition::Verbatim(span.start + 1)
        } else {
            UrlPosition::Escaped(span)
        })
    }

    /// Returns a value of a file that is written at `span` in another form than its URL.
    pub(crate) const fn whole_value(self, span: Span) -> UrlSnippet<'a> {
        self.url_at(UrlPosition::Escaped(span))
    }

    /// Returns a URL at a position in this document.
    const fn url_at(self, at: UrlPosition) -> UrlSnippet<'a> {
        let document = self;
        UrlSnippet { document, at }
    }

    /// Returns the place of a range. A range over several lines is cut after the first.
    pub(crate) fn place_of(self, span: Span) -> SourceLocation {
        let document = self.text;
        let at = floor_boundary(document, span.start);
        let before = substr(document, ..at);
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let rest = substr(document, line_start..);
        let line = rest.split('\n').next().unwrap_or_default();
        let line = line.strip_suffix('\r').unwrap_or(line);
        let column = substr(before, line_start..);
        let end = span.end.saturating_sub(line_start).min(line.len());
        let meant = Span::new((at - line_start).min(line.len()), end);
        let heading = substr(document, ..line_start);
        let mut headings = heading.lines().rev().map(str::trim_start);
        let heading = headings
            .find(|line| line.starts_with('['))
            .unwrap_or_default();
        let (quoted, caret) = cut_to_window((self.redact)(line, meant, heading));
        SourceLocation {
            origin: self.origin.clone(),
            line: before.matches('\n').count() + 1,
            column: column.chars().count() + 1,
            snippet: quoted,
            caret,
        }
    }
}

impl UrlSnippet<'_> {
    /// True if this is a URL, in which characters can be percent-encoded.
    pub(crate) const fn is_url(&self) -> bool {
        !matches!(self.at, UrlPosition::NoUrl)
    }

    /// True if the document is a command line argument.
    pub(crate) const fn is_argument(&self) -> bool {
        matches!(self.document.origin, Origin::Argument(_))
    }

    /// Converts an error in the URL into a problem with a place.
    pub(crate) fn locate_error(&self, flaw: ConfigError) -> Problem {
        let place = self.place_of(flaw.span);
        flaw.into_problem(place)
    }

    /// Returns the place of a range of the document.
    pub(crate) fn place_in_document(&self, span: Span) -> SourceLocation {
        self.document.place_of(span)
    }

    /// Returns the place of a range of the URL.
    pub(crate) fn place_of(&self, span: Span) -> SourceLocation {
        let span = match self.at {
            UrlPosition::Verbatim(start) => span.shifted_by(start),
            UrlPosition::Escaped(whole) => whole,
            UrlPosition::NoUrl => span,
        };
        self.document.place_of(span)
    }
}

/// Returns the last character boundary that is not after `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Cuts a long line to a window around the caret, and moves the caret accordingly.
fn cut_to_window((line, (start, len)): (String, (usize, usize))) -> (String, (usize, usize)) {
    let total = line.chars().count();
    if total <= WIDTH {
        return (line, (start, len));
    }
    let from = start.saturating_sub(LEAD).min(total - WIDTH);
    let mut shown: String = line.chars().skip(from).take(WIDTH).collect();
    let mut caret = start - from;
    if from > 0 {
        shown.insert(0, '…');
        caret += 1;
    }
    if from + WIDTH < total {
        shown.push('…');
    }
    let room = shown.chars().count().saturating_sub(caret);
    (shown, (caret, len.min(room)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place in a text without secrets.
    fn place(origin: &Origin, text: &str, span: Span) -> SourceLocation {
        let mask = |line: &str, at: Span, _: &str| {
            let start = line[..at.start].chars().count();
            (line.to_owned(), (start, at.end - at.start))
        };
        let document = Document {
            origin,
            text,
            redact: mask,
        };
        document.place_of(span)
    }

    #[test]
    fn finds_line_and_column_in_characters() {
        let origin = Origin::File("a.toml".into());
        let place = place(&origin, "via = 1\r\n# ä 2\r\n", Span::new(14, 15));
        assert_eq!((place.line, place.column), (2, 5));
        assert_eq!(place.snippet, "# ä 2");
        assert_eq!(place.caret, (4, 1));
    }

    #[test]
    fn the_end_of_a_document_is_a_place() {
        let place = place(&Origin::Text, "ab", Span::new(9, 12));
        assert_eq!((place.column, place.caret), (3, (2, 0)));
    }

    #[test]
    fn long_lines_are_cut_around_the_caret() {
        let text = format!("{}X{}", "a".repeat(500), "b".repeat(500));
        let place = place(&Origin::Text, &text, Span::new(500, 501));
        assert_eq!(place.snippet.chars().count(), WIDTH + 2);
        assert_eq!(place.snippet.chars().nth(place.caret.0), Some('X'));
        assert_eq!(place.column, 501);
    }
}
