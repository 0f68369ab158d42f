//! Help on the configuration file, and the manual pages that do not describe a command.

#[cfg(feature = "manual")]
mod pages;
#[cfg(feature = "manual")]
mod roff_page;

#[cfg(feature = "manual")]
pub(super) use pages::{ManualPage, PAGES};

/// Topics of `adit help` and their texts.
const TOPICS: [(&str, &str); 4] = [
    ("config", include_str!("config.txt")),
    ("rules", include_str!("rules.txt")),
    ("groups", include_str!("groups.txt")),
    ("users", include_str!("users.txt")),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_one_shape() {
        for (_, text) in TOPICS {
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "too long: {line}");
                let heading = !line.starts_with(' ') && line == line.to_uppercase();
                assert!(heading || line.starts_with("  "), "{line}");
            }
            assert_eq!(text.matches('`').count() % 2, 0, "{text}");
        }
    }

    #[test]
    fn topics_are_found() {
        assert!(topic_text("Config").is_some() && topic_text("nothing").is_none());
    }
}
