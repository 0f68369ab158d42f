//! A value inside the text it came from: byte ranges of the value to places a user can find.

use crate::text::{Flaw, Origin, Place, Problem, Span};

/// Covers what of a line must not be shown, and says where a range of it is then, in characters.
/// The second line is the one that opens the table in which the first stands.
pub(crate) type Mask = fn(&str, Span, &str) -> (String, (usize, usize));

/// A text, where it came from, and what covers its secrets. An argument is a text of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Document<'a> {
    pub(crate) origin: &'a Origin,
    pub(crate) text: &'a str,
    pub(crate) mask: Mask,
}

/// Characters of a line that are shown at most.
const WIDTH: usize = 120;
/// Characters that stay before the caret when a line is cut.
const LEAD: usize = 60;

/// A URL, and where it stands in a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Excerpt<'a> {
    document: Document<'a>,
    at: At,
}

#[derive(Debug, Clone, Copy)]
enum At {
    /// The URL's bytes stand in the document as they are, from here on.
    Verbatim(usize),
    /// The document spells the URL with escapes: only the whole value can be shown.
    Spelled(Span),
    /// There is no URL: places count from the start of the document.
    Nowhere,
}

impl<'a> Document<'a> {
    /// All of it, as one URL.
    pub(crate) const fn whole(self) -> Excerpt<'a> {
        self.at(At::Verbatim(0))
    }

    /// None of it, for values that are no URLs.
    pub(crate) const fn no_url(self) -> Excerpt<'a> {
        self.at(At::Nowhere)
    }

    /// The value `text` of a file, written at `span` (with its quotation marks).
    pub(crate) fn value(self, span: Span, text: &str) -> Excerpt<'a> {
        let written = self.text.get(span.start..span.end).unwrap_or_default();
        let inner = written.get(1..written.len().saturating_sub(1));
        self.at(if inner == Some(text) && !text.is_empty() {
            At::Verbatim(span.start + 1)
        } else {
            At::Spelled(span)
        })
    }

    const fn at(self, at: At) -> Excerpt<'a> {
        let document = self;
        Excerpt { document, at }
    }

    /// The place of a range. A range over several lines is cut after the first.
    pub(crate) fn place(self, span: Span) -> Place {
        let document = self.text;
        let at = floor_boundary(document, span.start);
        let before = document.get(..at).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let rest = document.get(line_start..).unwrap_or_default();
        let line = rest.split('\n').next().unwrap_or_default();
        let line = line.strip_suffix('\r').unwrap_or(line);
        let column = before.get(line_start..).unwrap_or_default();
        let end = span.end.saturating_sub(line_start).min(line.len());
        let meant = Span::new((at - line_start).min(line.len()), end);
        let heading = document.get(..line_start).unwrap_or_default();
        let mut headings = heading.lines().rev().map(str::trim_start);
        let heading = headings
            .find(|line| line.starts_with('['))
            .unwrap_or_default();
        let (quoted, caret) = shorten((self.mask)(line, meant, heading));
        Place {
            origin: self.origin.clone(),
            line: before.matches('\n').count() + 1,
            column: column.chars().count() + 1,
            quoted,
            caret,
        }
    }
}

impl Excerpt<'_> {
    /// True if this is a URL, in which characters can be percent-encoded.
    pub(crate) const fn is_url(&self) -> bool {
        !matches!(self.at, At::Nowhere)
    }

    /// True for a command line argument.
    pub(crate) const fn is_argument(&self) -> bool {
        matches!(self.document.origin, Origin::Argument(_))
    }

    /// The flaw of the URL as a problem with a place.
    pub(crate) fn problem(&self, flaw: Flaw) -> Problem {
        let place = self.place(flaw.span);
        flaw.at(place)
    }

    /// The place of a range of the document.
    pub(crate) fn place_in_document(&self, span: Span) -> Place {
        self.document.place(span)
    }

    /// The place of a range of the URL.
    pub(crate) fn place(&self, span: Span) -> Place {
        let span = match self.at {
            At::Verbatim(start) => span.shifted(start),
            At::Spelled(whole) => whole,
            At::Nowhere => span,
        };
        self.document.place(span)
    }
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// A window of a long line, with the caret moved along.
fn shorten((line, (start, len)): (String, (usize, usize))) -> (String, (usize, usize)) {
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
    fn place(origin: &Origin, text: &str, span: Span) -> Place {
        let mask = |line: &str, at: Span, _: &str| {
            let start = line[..at.start].chars().count();
            (line.to_owned(), (start, at.end - at.start))
        };
        let document = Document { origin, text, mask };
        document.place(span)
    }

    #[test]
    fn finds_line_and_column_in_characters() {
        let origin = Origin::File("a.toml".into());
        let place = place(&origin, "via = 1\r\n# ä 2\r\n", Span::new(14, 15));
        assert_eq!((place.line, place.column), (2, 5));
        assert_eq!(place.quoted, "# ä 2");
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
        assert_eq!(place.quoted.chars().count(), WIDTH + 2);
        assert_eq!(place.quoted.chars().nth(place.caret.0), Some('X'));
        assert_eq!(place.column, 501);
    }
}
