//! What came of a run: for the reader, for machines, and into the documents.

mod docs;
mod grid;
mod json;
mod markdown;
mod plots;
mod stacks;
mod summary;

pub(crate) use docs::{draw_again, write_docs};
pub(crate) use json::lines as json_lines;
pub(crate) use markdown::{machine, tables};
pub(crate) use plots::escaped;
