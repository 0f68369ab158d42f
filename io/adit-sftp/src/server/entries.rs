//! Entries of directories in answers.

use adit_ssh_proto::sftp::{FileAttrs, FileEntry, NamesAnswer};

use crate::listing::Line;

/// The entries of one answer to READDIR.
#[derive(Debug)]
pub struct Entries<'a> {
    names: NamesAnswer<'a>,
    line: Vec<u8>,
}

impl<'a> Entries<'a> {
    pub(super) const fn new(names: NamesAnswer<'a>) -> Self {
        Self {
            names,
            line: Vec::new(),
        }
    }

    pub(super) fn into_answer(self) -> NamesAnswer<'a> {
        self.names
    }

    /// True if no more entries should be added; the rest is for the next answer.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.names.is_full()
    }

    /// Adds an entry. Its line for users is built from the attributes, with the numbers of the owner.
    pub fn push(&mut self, name: &[u8], attrs: &FileAttrs) {
        let line = Line::of(attrs).format(0);
        self.push_with_line(name, &line, attrs);
    }

    /// Adds an entry with the start of its line for users, to which the name is appended.
    pub fn push_with_line(&mut self, name: &[u8], line: &str, attrs: &FileAttrs) {
        self.line.clear();
        self.line.extend_from_slice(line.as_bytes());
        self.line.extend_from_slice(name);
        self.names.push(&FileEntry {
            name,
            line: &self.line,
            attrs: *attrs,
        });
    }
}
