//! The page `benchmarks.md`: each suite has its place between two markers, the rest is the
//! authors'.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{markdown, svg};
use crate::environment::Environment;
use crate::journal::Journal;
use crate::suite::Suite;

const PAGE: &str = "benchmarks.md";

/// What a new page begins with.
const PREFACE: &str = "\
# Benchmarks

Every figure below was measured by `cargo xtask bench … --write-docs` in one run with the rivals
beside it, on the machine and at the date that stand under it. Measure again before you compare
with another machine: `cargo xtask bench --install-rivals`, then `cargo xtask bench`.

Rivals that no package registry offers (gost, hev-socks5-server) take part where their programs lie
in `target/peers` or on the PATH. Time on a busy machine proves little, so what must not become
dearer is counted instead: `cargo xtask bench --instructions` runs hot loops under valgrind and
compares instructions and allocations with `dev/adit-bench/instructions.toml`.
";

/// Replaces the sections of the suites that were run, and writes a chart for each.
pub(crate) fn write_docs(
    folder: &Path,
    environment: &Environment,
    journal: &Journal,
) -> Result<()> {
    fs::create_dir_all(folder)?;
    let page = folder.join(PAGE);
    let mut text = fs::read_to_string(&page).unwrap_or_else(|_| PREFACE.to_owned());
    for suite in journal.suites() {
        let name = format!("benchmarks-{suite}.svg");
        let chart = svg::chart(journal, suite);
        if let Some(chart) = &chart {
            fs::write(folder.join(&name), chart).with_context(|| name.clone())?;
        }
        let address = chart.is_some().then_some(name.as_str());
        let section = markdown::section(environment, journal, suite, address);
        text = replaced(&text, suite, &section)?;
    }
    fs::write(&page, text).with_context(|| page.display().to_string())
}

/// The page with the section of `suite` in its place, or at the end if it has none yet.
fn replaced(page: &str, suite: Suite, section: &str) -> Result<String> {
    let begin = format!("<!-- {suite}: begin; written by `cargo xtask bench --write-docs` -->");
    let end = format!("<!-- {suite}: end -->");
    let block = format!("{begin}\n{section}{end}");
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

    #[test]
    fn a_section_replaces_itself_and_nothing_else() {
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
    fn page_and_chart_are_written() {
        let folder = adit_interop::Folder::new("docs").unwrap();
        for _ in 0..2 {
            write_docs(folder.path(), &Environment::default(), &journal()).unwrap();
        }
        let page = fs::read_to_string(folder.path().join(PAGE)).unwrap();
        assert!(page.starts_with("# Benchmarks\n"));
        assert_eq!(page.matches("## Shadowsocks over TCP").count(), 1);
        assert!(page.contains("(benchmarks-ss-tcp.svg)"));
        let svg = fs::read_to_string(folder.path().join("benchmarks-ss-tcp.svg")).unwrap();
        assert!(svg.starts_with("<svg "));
    }
}
