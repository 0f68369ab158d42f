//! The documents: `benchmarks/SUITE.md` and `.svg` with all tables of a suite and its charts, and
//! the summaries of `benchmarks.md`. There each suite has its place between two markers, and the
//! rest is written by hand. Charts are drawn from the figures of the page, so that no chart shows
//! what its page does not.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap::ValueEnum;

use super::plots::{self, ChartFile};
use super::{suite_page, suite_summary};
use crate::environment::RunEnvironment;
use crate::sample_log::SampleLog;
use crate::suite::Suite;

/// The page with all suites.
const PAGE: &str = "benchmarks.md";

/// Writes the page and the charts of each suite that was run, and replaces its summary.
pub(crate) fn write_docs(
    folder: &Path,
    environment: &RunEnvironment,
    journal: &SampleLog,
) -> Result<()> {
    let mut page = fs::read_to_string(folder.join(PAGE)).unwrap_or_default();
    let mut outcome = Ok(());
    for suite in journal.suites() {
        let text = suite_page::suite_page(environment, journal, suite);
        write_page(folder, suite, &text)?;
        match replace_summary(&page, suite, &suite_summary::suite_summary(journal, suite)) {
            Ok(text) => page = text,
            // The pages of the suites contain the figures; they are written in any case.
            Err(why) => outcome = Err(why),
        }
    }
    write_file(&folder.join(PAGE), &page)?;
    outcome
}

/// Draws the charts of all pages again, from the figures of the pages.
pub(crate) fn redraw_charts(folder: &Path) -> Result<()> {
    for &suite in Suite::value_variants() {
        let path = folder.join(format!("benchmarks/{suite}.md"));
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        write_page(folder, suite, &text)?;
    }
    Ok(())
}

/// Writes the page of a suite with its charts, and removes charts that it no longer has.
fn write_page(folder: &Path, suite: Suite, text: &str) -> Result<()> {
    let folder = folder.join("benchmarks");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let charts = plots::draw_charts(suite, text);
    for name in image_files(text) {
        let stale = !charts.iter().any(|chart| chart.name == name);
        let path = folder.join(name);
        if stale && path.is_file() {
            fs::remove_file(&path).with_context(|| path.display().to_string())?;
        }
    }
    for chart in &charts {
        write_file(&folder.join(&chart.name), &chart.svg)?;
    }
    write_file(
        &folder.join(format!("{suite}.md")),
        &insert_charts(text, &charts),
    )
}

fn write_file(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| path.display().to_string())
}

/// Returns the page with these charts, and no others, before its first table.
fn insert_charts(page: &str, charts: &[ChartFile]) -> String {
    let is_image = |line: &&str| image_file(line).is_some();
    let mut images: String = charts
        .iter()
        .map(|chart| format!("![{}]({})\n\n", chart.alt_text, chart.name))
        .collect();
    let mut out = String::new();
    let mut blank = false;
    for line in page.lines().filter(|line| !is_image(line)) {
        // A removed image leaves two blank lines.
        if line.is_empty() && std::mem::replace(&mut blank, line.is_empty()) {
            continue;
        }
        blank = line.is_empty();
        if line.starts_with("**") {
            out.push_str(&std::mem::take(&mut images));
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// Returns the files of the images of a page.
fn image_files(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter_map(image_file)
}

/// Returns the file of a line that is an image in the page's own folder.
fn image_file(line: &str) -> Option<&str> {
    let (_, file) = line.strip_prefix("![")?.split_once("](")?;
    let file = file.strip_suffix(')')?;
    (file.ends_with(".svg") && !file.contains('/')).then_some(file)
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
        let mut journal = journal();
        let case = "2022-blake3-aes-128-gcm, 1 stream, down";
        for sample in &mut journal.samples {
            case.clone_into(&mut sample.case);
        }
        for _ in 0..2 {
            write_docs(folder.path(), &RunEnvironment::default(), &journal).unwrap();
        }
        let page = read(PAGE);
        assert!(page.starts_with("# Benchmarks\n"));
        assert_eq!(page.matches("(benchmarks/ss-tcp.md)").count(), 1);
        let page = read("benchmarks/ss-tcp.md");
        assert_eq!(image_files(&page).collect::<Vec<_>>(), ["ss-tcp.svg"]);
        assert!(page.contains("download: adit 3.00, other 6.00](ss-tcp.svg)\n\n**2022"));
        assert!(read("benchmarks/ss-tcp.svg").starts_with("<svg "));
    }

    #[test]
    fn charts_are_replaced_and_stale_ones_removed() {
        let folder = adit_interop::TempFolder::new("charts").unwrap();
        let before = "# T\n\nHow.\n\n![old](old.svg)\n\n![elsewhere](../a.svg)\n\n\
            **2022-blake3-aes-128-gcm, 1 stream, up**\n\n| | CPU s/GiB, both ↓ |\n|---|--:|\n\
            | adit | 1.00 |\n";
        fs::create_dir(folder.path().join("benchmarks")).unwrap();
        let old = folder.write_file("benchmarks/old.svg", "<svg/>").unwrap();
        for _ in 0..2 {
            let path = folder.path().join("benchmarks/ss-tcp.md");
            let text = fs::read_to_string(path).unwrap_or_else(|_| before.to_owned());
            write_page(folder.path(), Suite::SsTcp, &text).unwrap();
        }
        let page = fs::read_to_string(folder.path().join("benchmarks/ss-tcp.md")).unwrap();
        let chart =
            "![CPU per GiB, Shadowsocks 2022, TCP, one stream, upload: adit 1.00](ss-tcp.svg)\n\n";
        let after = before
            .replace("![old](old.svg)\n\n", "")
            .replace("**2022", &format!("{chart}**2022"));
        assert_eq!(page, after);
        assert!(!old.exists());
    }

    /// `cargo xtask bench --plots` updates them.
    #[test]
    fn every_chart_shows_the_figures_of_its_page() {
        let folder = workspace_root().join("docs/benchmarks");
        let mut drawn = Vec::new();
        for &suite in Suite::value_variants() {
            let page = fs::read_to_string(folder.join(format!("{suite}.md"))).unwrap();
            let charts = plots::draw_charts(suite, &page);
            assert!(
                insert_charts(&page, &charts) == page,
                "{suite}: other charts"
            );
            for chart in charts {
                let kept = fs::read_to_string(folder.join(&chart.name)).unwrap();
                assert!(kept == chart.svg, "{}: other figures", chart.name);
                drawn.push(chart.name);
            }
        }
        for file in fs::read_dir(folder).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            assert!(!name.ends_with(".svg") || drawn.contains(&name), "{name}");
        }
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
