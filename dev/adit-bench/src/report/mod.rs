//! The results of a run: for the reader, for machines, and in the documents.

mod docs;
mod grid;
mod json;
mod markdown;
mod stacks;
mod summary;
mod svg;

pub(crate) use docs::write_docs;
pub(crate) use json::lines as json_lines;
pub(crate) use markdown::{machine, tables};
