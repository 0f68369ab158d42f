//! The results of a run: for the reader, for machines, and in the documents.

mod change_table;
mod docs_writer;
mod gate_table;
mod json_lines;
mod method_grid;
mod plots;
mod ssr_stacks;
mod suite_page;
mod suite_summary;

pub(crate) use change_table::change_table;
pub(crate) use docs_writer::{redraw_charts, write_docs};
pub(crate) use json_lines::json_lines;
pub(crate) use plots::escape_xml;
pub(crate) use suite_page::{machine_paragraph, suite_tables};
