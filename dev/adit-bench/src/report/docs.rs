//! The documents: a page with all tables of a suite and its charts, `benchmarks/SUITE.md` and
//! `.svg`, and the summaries of `benchmarks.md`. There each suite has its place between two
//! markers, and the rest is the authors'. Charts are drawn from the figures of the page, so that
//! no chart shows what its page does not.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap::ValueEnum;

use super::plots::{self, Drawing};
use super::{markdown, summary};
use crate::environment::Environment;
use crate::journal::Journal;
use crate::suite::Suite;

/// All suites on one page.
const PAGE: &str = "benchmarks.md";

/// Writes the page and the charts of each suite that was run, and replaces its summary.
pub(crate) fn write_docs(
    folder: &Path,
    environment: &Environment,
    journal: &Journal,
) -> Result<()> {
    let mut page = fs::read_to_string(folder.join(PAGE)).unwrap_or_default();
    let mut outcome = Ok(());
    for suite in journal.suites() {
        let text = markdown::page(environment, journal, suite);
        write_page(folder, suite, &text)?;
        match replaced(&page, suite, &summary::summary(journal, suite)) {
            Ok(text) => page = text,
            // The pages of the suites hold the figures; they are written all the same.
            Err(why) => outcome = Err(why),
        }
    }
    write(&folder.join(PAGE), &page)?;
    outcome
}

/// Draws the charts of all pages again, from the figures that are on them.
pub(crate) fn draw_again(folder: &Path) -> Result<()> {
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
    let charts = plots::drawings(suite, text);
    for name in images(text) {
        let stale = !charts.iter().any(|chart| chart.name == name);
        let path = folder.join(name);
        if stale && path.is_file() {
            fs::remove_file(&path).with_context(|| path.display().to_string())?;
        }
    }
    for chart in &charts {
        write(&folder.join(&chart.name), &chart.svg)?;
    }
    write(
        &folder.join(format!("{suite}.md")),
        &illustrated(text, &charts),
    )
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| path.display().to_string())
}

/// Returns the page with these charts, and no others, before its first table.
fn illustrated(page: &str, charts: &[Drawing]) -> String {
    let is_image = |line: &&str| image(line).is_some();
    let mut images: String = charts
        .iter()
        .map(|chart| format!("![{}]({})\n\n", chart.words, chart.name))
        .collect();
    let mut out = String::new();
    let mut blank = false;
    for line in page.lines().filter(|line| !is_image(line)) {
        // An image leaves two blank lines behind.
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
fn images(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter_map(image)
}

/// Returns the file of a line that is an image in the page's own folder.
fn image(line: &str) -> Option<&str> {
    let (_, file) = line.strip_prefix("![")?.split_once("](")?;
    let file = file.strip_suffix(')')?;
    (file.ends_with(".svg") && !file.contains('/')).then_some(file)
}

/// The page with the summary of `suite` in its place, or at the end if it has none yet.
fn replaced(page: &str, suite: Suite, summary: &str) -> Result<String> {
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
    use crate::journal::tests::journal;
    use crate::places::root;
    use crate::report::summary::HEADLINES;

    #[test]
    fn a_summary_replaces_itself_and_nothing_else() {
        let page = replaced("# Title\n\nMine.\n", Suite::SsTcp, "one\n").unwrap();
        let page = replaced(&page, Suite::Idle, "two\n").unwrap() + "\nLast words.\n";
        let page = replaced(&page, Suite::SsTcp, "three\n").unwrap();
        assert!(page.starts_with("# Title\n\nMine.\n"), "{page}");
        assert!(page.ends_with("\nLast words.\n"), "{page}");
        assert!(
            page.contains("three\n") && page.contains("two\n") && !page.contains("one\n"),
            "{page}"
        );
        assert_eq!(replaced(&page, Suite::SsTcp, "three\n").unwrap(), page);
    }

    #[test]
    fn a_lost_end_marker_is_an_error() {
        let page = replaced("", Suite::SsTcp, "one\n").unwrap();
        let cut = page.replace("<!-- ss-tcp: end -->", "");
        assert!(replaced(&cut, Suite::SsTcp, "two\n").is_err());
    }

    #[test]
    fn pages_and_charts_are_written() {
        let folder = adit_interop::Folder::new("docs").unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        folder.write(PAGE, "# Benchmarks\n").unwrap();
        let mut journal = journal();
        let case = "2022-blake3-aes-128-gcm, 1 stream, down";
        for sample in &mut journal.samples {
            case.clone_into(&mut sample.case);
        }
        for _ in 0..2 {
            write_docs(folder.path(), &Environment::default(), &journal).unwrap();
        }
        let page = read(PAGE);
        assert!(page.starts_with("# Benchmarks\n"));
        assert_eq!(page.matches("(benchmarks/ss-tcp.md)").count(), 1);
        let page = read("benchmarks/ss-tcp.md");
        assert_eq!(images(&page).collect::<Vec<_>>(), ["ss-tcp.svg"]);
        assert!(page.contains("download: adit 3.00, other 6.00](ss-tcp.svg)\n\n**2022"));
        assert!(read("benchmarks/ss-tcp.svg").starts_with("<svg "));
    }

    #[test]
    fn charts_are_replaced_and_stale_ones_removed() {
        let folder = adit_interop::Folder::new("charts").unwrap();
        let before = "# T\n\nHow.\n\n![old](old.svg)\n\n![elsewhere](../a.svg)\n\n\
            **2022-blake3-aes-128-gcm, 1 stream, up**\n\n| | CPU s/GiB, both ↓ |\n|---|--:|\n\
            | adit | 1.00 |\n";
        fs::create_dir(folder.path().join("benchmarks")).unwrap();
        let old = folder.write("benchmarks/old.svg", "<svg/>").unwrap();
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

    /// `cargo xtask bench --plots` brings them up to date.
    #[test]
    fn every_chart_shows_the_figures_of_its_page() {
        let folder = root().join("docs/benchmarks");
        let mut drawn = Vec::new();
        for &suite in Suite::value_variants() {
            let page = fs::read_to_string(folder.join(format!("{suite}.md"))).unwrap();
            let charts = plots::drawings(suite, &page);
            assert!(illustrated(&page, &charts) == page, "{suite}: other charts");
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
        let docs = root().join("docs");
        let page = fs::read_to_string(docs.join(PAGE)).unwrap();
        for &suite in Suite::value_variants() {
            for name in [format!("{suite}.md"), format!("{suite}.svg")] {
                assert!(docs.join("benchmarks").join(&name).is_file(), "{name}");
            }
            // Each row has found its case in the figures that were measured last.
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
