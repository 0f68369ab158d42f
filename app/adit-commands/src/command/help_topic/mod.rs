//! Help on the configuration file, and the manual pages that do not describe a command.

mod roff_page;

use std::fmt::Write;

/// Topics of `adit help` and their texts.
const TOPICS: [(&str, &str); 4] = [
    ("config", include_str!("config.txt")),
    ("rules", include_str!("rules.txt")),
    ("groups", include_str!("groups.txt")),
    ("users", include_str!("users.txt")),
];

/// A manual page that does not describe a command.
pub(super) struct ManualPage {
    /// The name, without the section.
    pub(super) name: &'static str,
    section: char,
    text: fn() -> String,
}

/// All of these pages.
pub(super) const PAGES: [ManualPage; 2] = [
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

/// Returns the text on a topic, whose case is ignored.
pub(super) fn topic_text(topic: &str) -> Option<&'static str> {
    let found = TOPICS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(topic));
    found.map(|(_, text)| *text)
}

/// Returns the names of all topics.
pub(super) fn topic_names() -> impl Iterator<Item = String> {
    TOPICS.iter().map(|(name, _)| (*name).to_owned())
}

impl ManualPage {
    /// Returns the page with this name, with or without the section: `adit.toml`, `adit.toml.5`.
    pub(super) fn find_by_name(name: &str) -> Option<&'static Self> {
        PAGES
            .iter()
            .find(|page| page.name == name || page.file_name() == name)
    }

    /// Returns the file name.
    pub(super) fn file_name(&self) -> String {
        format!("{}.{}", self.name, self.section)
    }

    /// Returns the page in the format of `man`.
    pub(super) fn to_roff(&self) -> String {
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
        let help = adit_config::scheme_help(name).unwrap_or_default();
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
    fn texts_have_one_shape() {
        for text in TOPICS
            .map(|(_, text)| text.to_owned())
            .iter()
            .chain([&config_page()])
        {
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "too long: {line}");
                let heading = !line.starts_with(' ') && line == line.to_uppercase();
                assert!(heading || line.starts_with("  "), "{line}");
            }
            assert_eq!(text.matches('`').count() % 2, 0, "{text}");
        }
    }

    #[test]
    fn topics_and_pages_are_found() {
        assert!(topic_text("Config").is_some() && topic_text("nothing").is_none());
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
