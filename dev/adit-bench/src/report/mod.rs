//! The results of a run: for the reader, for machines, and in the documents.

mod docs_writer;
mod json_lines;
mod method_grid;
mod ssr_stacks;
mod suite_page;
mod suite_summary;
mod svg;

pub(crate) use docs_writer::write_docs;
pub(crate) use json_lines::json_lines;
pub(crate) use suite_page::{machine_paragraph, suite_tables};
