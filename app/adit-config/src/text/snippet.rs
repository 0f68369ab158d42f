//! Values inside the text they came from: maps byte ranges of a value to places that a user can find.

use adit_wire::substr;

use super::line_index::{LineIndex, LinePosition, LongLine};
use super::redacted_line;
use crate::text::{ConfigError, Origin, Problem, SourceLocation, Span};

/// Maximum length of the parts of a line before and after a place, in bytes, for which the line is read for each place.
const SHORT_LINE: usize = 2048;

/// Returns the ranges of a line that are secret: in order, not adjacent. The last argument is the heading of the line's
/// table.
pub(crate) type FindSecrets = fn(&str, &str) -> Vec<Span>;

/// A text, its origin, and the function that finds its secrets. Each argument is a separate text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Document<'a> {
    /// The origin of the text.
    pub(crate) origin: &'a Origin,
    /// The whole text.
    pub(crate) text: &'a str,
    /// The lines of the text.
    pub(crate) lines: &'a LineIndex,
    /// Finds the secrets of a line.
    pub(crate) secrets: FindSecrets,
}

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
        let at = floor_boundary(self.text, span.start);
        let position = self.lines.locate(self.text, at);
        let line_start = position.line_start;
        let meant = |line: Span| {
            let start = at.min(line.end);
            Span::new(start, span.end.clamp(start, line.end)).shifted_back(line.start)
        };
        let (snippet, caret) = match self.short_line(position) {
            Some(line) => {
                let secrets = (self.secrets)(self.part(line), self.heading_of(position));
                redacted_line::show_line(self.part(line), meant(line), &secrets)
            }
            None => {
                let line = self.lines.long_line(line_start, || {
                    let span = self.line_from(line_start);
                    let secrets = (self.secrets)(self.part(span), self.heading_of(position));
                    let secrets = secrets.into();
                    LongLine { span, secrets }
                });
                let (span, secrets) = (line.span, &line.secrets);
                redacted_line::show_line_part(self.part(span), meant(span), secrets)
            }
        };
        SourceLocation {
            origin: self.origin.clone(),
            line: position.line + 1,
            column: position.column + 1,
            snippet,
            caret,
        }
    }

    /// Returns the number of the line of a position, from 0.
    pub(crate) fn line_of(self, at: usize) -> usize {
        let at = floor_boundary(self.text, at);
        self.lines.locate(self.text, at).line
    }

    /// Returns the line of a position, unless it is long.
    fn short_line(self, position: LinePosition) -> Option<Span> {
        let LinePosition { at, line_start, .. } = position;
        if at - line_start > SHORT_LINE {
            return None;
        }
        let rest = self.text.as_bytes().get(at..).unwrap_or_default();
        let rest = rest.get(..SHORT_LINE).unwrap_or(rest);
        let ends = at + rest.len() == self.text.len() || rest.contains(&b'\n');
        ends.then(|| self.line_from(line_start))
    }

    /// Returns the line that starts at a position, without its end.
    fn line_from(self, start: usize) -> Span {
        let rest = substr(self.text, start..);
        let line = rest.split('\n').next().unwrap_or_default();
        Span::of_part(start, line.strip_suffix('\r').unwrap_or(line))
    }

    /// Returns the heading of the table that contains a position, without blanks before it.
    fn heading_of(self, position: LinePosition) -> &'a str {
        position
            .heading
            .map_or("", |start| self.part(self.line_from(start)).trim_start())
    }

    fn part(self, span: Span) -> &'a str {
        substr(self.text, span.start..span.end)
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

    /// Returns the document.
    pub(crate) const fn document(&self) -> Document<'_> {
        self.document
    }

    /// Returns a range of the URL as a range of the document.
    pub(crate) const fn span_in_document(&self, span: Span) -> Span {
        match self.at {
            UrlPosition::Verbatim(start) => span.shifted_by(start),
            UrlPosition::Escaped(whole) => whole,
            UrlPosition::NoUrl => span,
        }
    }

    /// Returns the place of a range of the URL.
    pub(crate) fn place_of(&self, span: Span) -> SourceLocation {
        self.document.place_of(self.span_in_document(span))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A place in a text without secrets.
    fn place(origin: &Origin, text: &str, span: Span) -> SourceLocation {
        let document = Document {
            origin,
            text,
            lines: &LineIndex::default(),
            secrets: |_, _| Vec::new(),
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
        assert_eq!(place.snippet.chars().count(), 122);
        assert_eq!(place.snippet.chars().nth(place.caret.0), Some('X'));
        assert_eq!(place.column, 501);
    }

    /// The secrets of these tests.
    fn secrets(line: &str, _: &str) -> Vec<Span> {
        let found = line.match_indices("secret");
        found.map(|(at, part)| Span::of_part(at, part)).collect()
    }

    /// A line that is long is shown as if it were short.
    #[test]
    fn a_long_line_is_not_read_for_each_place() {
        let origin = Origin::Text;
        let text = "a secret ä, ".repeat(900);
        let lines = LineIndex::default();
        let document = Document {
            origin: &origin,
            text: &text,
            lines: &lines,
            secrets,
        };
        let ends = (0..200)
            .chain(6000..6200)
            .chain(text.len() - 200..=text.len());
        for at in ends.filter(|at| text.is_char_boundary(*at)) {
            let span = Span::new(at, at + 3);
            let place = document.place_of(span);
            let whole = redacted_line::show_line(&text, span, &secrets(&text, ""));
            let meant = (place.snippet, place.caret);
            assert_eq!(meant, whole, "{at}");
            assert_eq!(place.column, text[..at].chars().count() + 1);
        }
    }
}
