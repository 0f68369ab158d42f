//! An index of the lines of a text, so that a place is found without reading the text from its start.

use core::cell::{OnceCell, RefCell};
use std::rc::Rc;

use adit_wire::substr;

use crate::text::Span;

/// Number of bytes between two checkpoints: a lookup reads at most this number of bytes.
const INTERVAL: usize = 4096;

/// The lines of one text, whose index is built when a place is needed first.
#[derive(Debug, Default)]
pub(crate) struct LineIndex {
    checkpoints: OnceCell<Vec<LinePosition>>,
    /// The long line whose place was needed last.
    long_line: RefCell<Option<LongLine>>,
}

/// A position in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LinePosition {
    /// The position, in bytes.
    pub(super) at: usize,
    /// The number of the line, from 0.
    pub(super) line: usize,
    /// The start of the line, in bytes.
    pub(super) line_start: usize,
    /// The number of characters between the start of the line and the position.
    pub(super) column: usize,
    /// The start of the last line before this one that is the heading of a table.
    pub(super) heading: Option<usize>,
}

/// A line that is too long to be read for each place.
#[derive(Debug, Clone)]
pub(super) struct LongLine {
    /// Its bytes, without the end of the line.
    pub(super) span: Span,
    /// Its secrets, as bytes of the line.
    pub(super) secrets: Rc<[Span]>,
}

impl LinePosition {
    /// Moves to a later position of `text`.
    fn advance_to(&mut self, text: &str, to: usize) {
        for byte in text.as_bytes().get(self.at..to).into_iter().flatten() {
            self.at += 1;
            if *byte == b'\n' {
                if is_heading(substr(text, self.line_start..self.at)) {
                    self.heading = Some(self.line_start);
                }
                self.line += 1;
                self.line_start = self.at;
                self.column = 0;
            } else if byte & 0xc0 != 0x80 {
                // The other bytes continue a character.
                self.column += 1;
            }
        }
    }
}

fn is_heading(line: &str) -> bool {
    line.trim_start().starts_with('[')
}

impl LineIndex {
    /// Returns the position `at` of `text`, which is a boundary of characters, and the same text in each call.
    pub(super) fn locate(&self, text: &str, at: usize) -> LinePosition {
        let checkpoints = self.checkpoints.get_or_init(|| {
            let mut all = Vec::with_capacity(text.len() / INTERVAL + 1);
            let mut next = LinePosition::default();
            loop {
                all.push(next);
                if text.len() - next.at < INTERVAL {
                    return all;
                }
                next.advance_to(text, next.at + INTERVAL);
            }
        });
        let before = checkpoints
            .get(at / INTERVAL)
            .or_else(|| checkpoints.last());
        let mut found = before.copied().unwrap_or_default();
        found.advance_to(text, at);
        found
    }

    /// Returns the long line at the position `start` of a text. `read` returns it, unless it was needed last.
    pub(super) fn long_line(&self, start: usize, read: impl FnOnce() -> LongLine) -> LongLine {
        let mut last = self.long_line.borrow_mut();
        if let Some(line) = last.as_ref().filter(|line| line.span.start == start) {
            return line.clone();
        }
        last.insert(read()).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts from the start.
    fn counted(text: &str, at: usize) -> LinePosition {
        let before = &text[..at];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let mut heading = None;
        let mut start = 0;
        for line in text[..line_start].split_inclusive('\n') {
            if is_heading(line) {
                heading = Some(start);
            }
            start += line.len();
        }
        LinePosition {
            at,
            line: before.matches('\n').count(),
            line_start,
            column: before[line_start..].chars().count(),
            heading,
        }
    }

    #[test]
    fn places_are_those_that_are_counted_from_the_start() {
        let lines = "[route.a]\nlisten = \"ä€\"\r\n\n  [b]\nlong = \"".to_owned()
            + &"ü".repeat(3000)
            + "\"\n\n# x\n";
        for text in [
            String::new(),
            "a".to_owned(),
            lines.repeat(5),
            "\n".repeat(9000),
        ] {
            let index = LineIndex::default();
            for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                if at % 97 == 0 || at % INTERVAL < 3 || at + 20 > text.len() {
                    assert_eq!(index.locate(&text, at), counted(&text, at));
                }
            }
        }
    }
}
