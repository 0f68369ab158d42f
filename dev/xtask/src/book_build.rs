//! Builds the book of `docs` into `target/book`.

use anyhow::{Result, ensure};

use crate::command::{CommandRun, target_dir};
use crate::install;

/// Builds the book, treating mdBook's warnings as errors, and returns its folder.
pub(crate) fn build_book() -> Result<String> {
    let mdbook = install::mdbook_program();
    ensure!(
        mdbook.is_file(),
        "cannot find mdbook; hint: `cargo xtask install` builds it"
    );
    let out = target_dir().join("book");
    let told = CommandRun::new(mdbook, ["build", "docs", "--dest-dir"])
        .args([&out])
        .run_captured("book")?;
    let warning = told.lines().find(|line| is_warning(line));
    ensure!(warning.is_none(), "{}", warning.unwrap_or_default());
    ensure!(
        out.join("book/start.html").is_file(),
        "mdbook wrote no start page in {}",
        out.display()
    );
    Ok(format!("{}", out.display()))
}

/// Returns true for a line of mdBook's log that is a warning or an error.
fn is_warning(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("WARN") || line.starts_with("ERROR")
}

#[cfg(test)]
mod tests {
    use super::is_warning;

    #[test]
    fn warnings_are_told_from_progress() {
        assert!(!is_warning(" INFO Book building has started"));
        assert!(is_warning(" WARN unclosed HTML tag"));
        assert!(is_warning("ERROR no such file"));
    }
}
