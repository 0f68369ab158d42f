//! The count of entries and notes while a document is read.

use super::limits::{Limits, Loaded, Note, NoteKind, Place, ReadError};
use crate::bounds::AddError;
use crate::builder::RuleSetBuilder;
use crate::rule_set::RuleSet;

/// Maximum characters of a text in a note.
const SHOWN: usize = 80;

/// Counts against the limits.
#[derive(Debug)]
pub(super) struct Tally<'l> {
    pub(super) limits: &'l Limits,
    seen: usize,
    pub(super) accepted: usize,
    notes: Vec<Note>,
    omitted: usize,
}

impl<'l> Tally<'l> {
    /// Starts a document.
    pub(super) const fn new(document: &[u8], limits: &'l Limits) -> Result<Self, ReadError> {
        if document.len() > limits.bytes {
            return Err(ReadError::TooLong(limits.bytes));
        }
        Ok(Self {
            limits,
            seen: 0,
            accepted: 0,
            notes: Vec::new(),
            omitted: 0,
        })
    }

    /// Counts an entry, accepted or not.
    pub(super) const fn see(&mut self) -> Result<(), ReadError> {
        self.seen += 1;
        if self.seen > self.limits.entries {
            return Err(ReadError::TooManyEntries(self.limits.entries));
        }
        Ok(())
    }

    /// Counts an entry that was added or not. A full set is an error of the document.
    pub(super) fn count(
        &mut self,
        place: Place,
        text: &str,
        added: Result<(), AddError>,
    ) -> Result<(), ReadError> {
        self.see()?;
        match added {
            Ok(()) => self.accepted += 1,
            Err(why @ AddError::TooMany(_)) => return Err(ReadError::Set(why)),
            Err(why) => self.note(place, value_note(text, why)),
        }
        Ok(())
    }

    /// Notes an entry that is skipped.
    pub(super) fn note(&mut self, place: Place, kind: NoteKind) {
        if self.notes.len() < self.limits.notes {
            self.notes.push(Note { place, kind });
        } else {
            self.omitted += 1;
        }
    }

    pub(super) fn finish(self, set: RuleSetBuilder) -> Loaded {
        self.finish_set(set.build())
    }

    pub(super) fn finish_set(self, set: RuleSet) -> Loaded {
        Loaded {
            set,
            accepted: self.accepted,
            notes: self.notes,
            omitted_notes: self.omitted,
        }
    }
}

pub(super) fn value_note(text: &str, why: AddError) -> NoteKind {
    let text = shorten(text);
    NoteKind::Value { text, why }
}

/// Returns the start of a text that a note can show.
pub(super) fn shorten(text: &str) -> String {
    let shown = text.chars().take(SHOWN);
    shown.flat_map(char::escape_debug).collect()
}
