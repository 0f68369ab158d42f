//! The sections of CHANGELOG.md: `## VERSION (DATE)`, the newest first, `(unreleased)` before its release.

use anyhow::{Context, Result, ensure};

const UNRELEASED: &str = "unreleased";

/// The text of a changelog, with at least one section.
#[derive(Debug)]
pub(super) struct Changelog {
    text: String,
}

impl Changelog {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let changelog = Self {
            text: text.to_owned(),
        };
        changelog.newest()?;
        Ok(changelog)
    }

    /// Returns the version and the date of the newest section.
    pub(super) fn newest(&self) -> Result<(&str, &str)> {
        let heading = self.text.lines().find_map(|line| line.strip_prefix("## "));
        let heading = heading.context("CHANGELOG.md has no section")?;
        let (version, rest) = heading.split_once(" (").unwrap_or((heading, ""));
        Ok((version, rest.trim_end_matches(')')))
    }

    /// Returns true if the newest section is not released yet.
    pub(super) fn is_unreleased(&self) -> Result<bool> {
        Ok(self.newest()?.1 == UNRELEASED)
    }

    /// Returns the lines of a section, without its heading.
    pub(super) fn section(&self, version: &str) -> Result<String> {
        let mut lines = self.text.lines();
        let heading = format!("## {version} (");
        lines
            .find(|line| line.starts_with(&heading))
            .with_context(|| format!("CHANGELOG.md has no section `{heading}…)`"))?;
        let lines: Vec<&str> = lines.take_while(|line| !line.starts_with("## ")).collect();
        let text = lines.join("\n").trim().to_owned();
        ensure!(
            !text.is_empty(),
            "CHANGELOG.md: the section of {version} is empty"
        );
        Ok(text + "\n")
    }

    /// Returns the text with the newest section released under `version` on `date`.
    pub(super) fn with_release(&self, version: &str, date: &str) -> Result<String> {
        ensure!(
            self.is_unreleased()?,
            "CHANGELOG.md has no unreleased section"
        );
        let (old, _) = self.newest()?;
        let heading = format!("## {old} ({UNRELEASED})");
        Ok(self
            .text
            .replacen(&heading, &format!("## {version} ({date})"), 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "# Changelog\n\n## 0.2.0 (unreleased)\n\n* New.\n\n## 0.1.0 (2026-01-02)\n\n* Old.\n";

    #[test]
    fn the_newest_section_is_released() {
        let changelog = Changelog::parse(TEXT).unwrap();
        assert!(changelog.is_unreleased().unwrap());
        assert_eq!(changelog.section("0.2.0").unwrap(), "* New.\n");
        assert_eq!(changelog.section("0.1.0").unwrap(), "* Old.\n");
        assert!(changelog.section("0.1").is_err());
        let text = changelog.with_release("0.3.0", "2026-02-03").unwrap();
        assert_eq!(
            text,
            TEXT.replace("0.2.0 (unreleased)", "0.3.0 (2026-02-03)")
        );
        let released = Changelog::parse(&text).unwrap();
        assert!(!released.is_unreleased().unwrap());
        assert!(released.with_release("0.4.0", "2026-02-03").is_err());
    }

    #[test]
    fn a_section_has_lines() {
        assert!(Changelog::parse("# Changelog\n").is_err());
        let empty = Changelog::parse("## 1.0.0 (unreleased)\n\n## 0.9.0 (x)\n* a\n").unwrap();
        assert!(empty.section("1.0.0").is_err());
    }
}
