//! The documents: `benchmarks/SUITE.md` and `.svg` with all tables of a suite and its chart, and
//! the summaries of `benchmarks.md`. There each suite has its place between two markers, and the
//! rest is written by hand.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{suite_page, suite_summary, svg};
use crate::environment::RunEnvironment;
use crate::sample_log::SampleLog;
use crate::suite::Suite;

/// The page with all suites.
const PAGE: &str = "benchmarks.md";

/// Writes the page and the chart of each suite that was run, and replaces its summary.
pub(crate) fn write_docs(
    folder: &Path,
    environment: &RunEnvironment,
    journal: &SampleLog,
) -> Result<()> {
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())
    };
    fs::create_dir_all(folder.join("benchmarks"))?;
    let mut page = fs::read_to_string(folder.join(PAGE)).unwrap_or_default();
    let mut outcome = Ok(());
    for suite in journal.suites() {
        let name = format!("{suite}.svg");
        let chart = svg::chart(journal, suite);
        let address = chart.is_some().then_some(name.as_str());
        let text = suite_page::suite_page(environment, journal, suite, address);
        write(&format!("benchmarks/{suite}.md"), text)?;
        if let Some(chart) = chart {
            write(&format!("benchmarks/{name}"), chart)?;
        }
        match replace_summary(&page, suite, &suite_summary::suite_summary(journal, suite)) {
            Ok(text) => page = text,
            // The pages of the suites contain the figures; they are written in any case.
            Err(why) => outcome = Err(why),
        }
    }
    write(PAGE, page)?;
    outcome
}

/// Returns the page with the summary of `suite` in its place, or at the end if it has none yet.
fn replace_summary(page: &str, suite: Suite, summary: &str) -> Result<String> {
    let begin = format!("<!-- {suite}: begin; written by `cargo xtask bench --write-docs` -->");
    let end = format!("<!-- {suite}: end -->");
    let block = format!("{begin}\n{summary}{end}");
    let Some((before, rest)) = page.split_once(&begin) else {
        return Ok(format!("{}\n\n{block}\n", page.trim_end()));
    };
    let (_, after) = rest
        .split_once(&end)
        .with_context(|| format!("{PAGE} lacks `{end}`"))?;
    Ok(format!("{before}{block}{after}"))
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::locations::workspace_root;
    use crate::report::suite_summary::HEADLINES;
    use crate::sample_log::tests::journal;

    #[test]
    fn a_summary_replaces_itself_and_nothing_else() {
        let page = replace_summary("# Title\n\nMine.\n", Suite::SsTcp, "one\n").unwrap();
        let page = replace_summary(&page, Suite::Idle, "two\n").unwrap() + "\nLast words.\n";
        let page = replace_summary(&page, Suite::SsTcp, "three\n").unwrap();
        assert!(page.starts_with("# Title\n\nMine.\n"), "{page}");
        assert!(page.ends_with("\nLast words.\n"), "{page}");
        assert!(
            page.contains("three\n") && page.contains("two\n") && !page.contains("one\n"),
            "{page}"
        );
        assert_eq!(
            replace_summary(&page, Suite::SsTcp, "three\n").unwrap(),
            page
        );
    }

    #[test]
    fn a_lost_end_marker_is_an_error() {
        let page = replace_summary("", Suite::SsTcp, "one\n").unwrap();
        let cut = page.replace("<!-- ss-tcp: end -->", "");
        assert!(replace_summary(&cut, Suite::SsTcp, "two\n").is_err());
    }

    #[test]
    fn pages_and_charts_are_written() {
        let folder = adit_interop::TempFolder::new("docs").unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        folder.write_file(PAGE, "# Benchmarks\n").unwrap();
        for _ in 0..2 {
            write_docs(folder.path(), &RunEnvironment::default(), &journal()).unwrap();
        }
        let page = read(PAGE);
        assert!(page.starts_with("# Benchmarks\n"));
        assert_eq!(page.matches("(benchmarks/ss-tcp.md)").count(), 1);
        assert!(read("benchmarks/ss-tcp.md").contains("(ss-tcp.svg)"));
        assert!(read("benchmarks/ss-tcp.svg").starts_with("<svg "));
    }

    #[test]
    fn every_suite_is_in_the_documents() {
        let docs = workspace_root().join("docs");
        let page = fs::read_to_string(docs.join(PAGE)).unwrap();
        for &suite in Suite::value_variants() {
            for name in [format!("{suite}.md"), format!("{suite}.svg")] {
                assert!(docs.join("benchmarks").join(&name).is_file(), "{name}");
            }
            // Each row has found its case in the latest measured figures.
            let (_, rest) = page
                .split_once(&format!("(benchmarks/{suite}.md)"))
                .unwrap();
            let (table, _) = rest.split_once(&format!("<!-- {suite}: end -->")).unwrap();
            let own = HEADLINES.iter().filter(|(of, _)| *of == suite);
            for (case, quantity) in own.flat_map(|(_, rows)| *rows) {
                let row = format!("\n| {case}: {} {} |", quantity.title, quantity.arrow());
                assert!(table.contains(&row), "{row}");
            }
        }
    }
}
