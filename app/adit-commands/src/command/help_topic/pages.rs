//! The manual pages that do not describe a command.

use std::fmt::Write;

use super::{TOPICS, roff_page};

/// A manual page that does not describe a command.
pub(in crate::command) struct ManualPage {
    /// The name, without the section.
    pub(in crate::command) name: &'static str,
    section: char,
    text: fn() -> String,
}

/// All of these pages.
pub(in crate::command) const PAGES: [ManualPage; 2] = [
    ManualPage {
        name: "adit.toml",
        section: '5',
        text: config_page,
    },
    ManualPage {
        name: "adit-urls",
        section: '7',
        text: urls_page,
    },
];

impl ManualPage {
    /// Returns the page with this name, with or without the section: `adit.toml`, `adit.toml.5`.
    pub(in crate::command) fn find_by_name(name: &str) -> Option<&'static Self> {
        PAGES
            .iter()
            .find(|page| page.name == name || page.file_name() == name)
    }

    /// Returns the file name.
    pub(in crate::command) fn file_name(&self) -> String {
        format!("{}.{}", self.name, self.section)
    }

    /// Returns the page in the format of `man`.
    pub(in crate::command) fn to_roff(&self) -> String {
        roff_page::to_page(self.name, self.section, &(self.text)())
    }
}

/// Returns `adit.toml(5)`: the topics between a head and a tail.
fn config_page() -> String {
    let mut text = include_str!("file_head.txt").to_owned();
    for (_, topic) in TOPICS {
        let _ = write!(text, "\n{topic}");
    }
    let _ = write!(text, "\n{}", include_str!("file_tail.txt"));
    text
}

/// Returns `adit-urls(7)`: all schemes with their keys.
fn urls_page() -> String {
    let mut text = include_str!("urls_head.txt").to_owned();
    let schemes = adit_config::schemes().iter().map(|scheme| scheme.name);
    // One dialect of each carrier shows the keys of that carrier.
    for name in schemes.chain(["tcp+kcp", "udp+fec"]) {
        // A build may have no carriers.
        let Some(help) = adit_config::scheme_help(name) else {
            continue;
        };
        let _ = writeln!(text, "SCHEME {}\n", name.to_uppercase());
        for line in help.lines() {
            let indent = if line.is_empty() { "" } else { "    " };
            let _ = writeln!(text, "{indent}{line}");
        }
        text.push('\n');
    }
    text.push_str(include_str!("urls_tail.txt"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_the_file_has_one_shape() {
        for line in config_page().lines() {
            assert!(line.chars().count() <= 80, "too long: {line}");
            let heading = !line.starts_with(' ') && line == line.to_uppercase();
            assert!(heading || line.starts_with("  "), "{line}");
        }
    }

    #[test]
    fn pages_are_found() {
        for page in &PAGES {
            assert!(
                ManualPage::find_by_name(page.name).is_some()
                    && ManualPage::find_by_name(&page.file_name()).is_some()
            );
        }
        let urls = urls_page();
        for scheme in adit_config::schemes() {
            let heading = format!("SCHEME {}\n", scheme.name.to_uppercase());
            assert!(urls.contains(&heading), "{heading}");
        }
    }
}
