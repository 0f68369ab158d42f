//! Algorithm lists, absolute or relative to a default list.

use adit_wire::substr;

use super::pattern;

/// Maximum number of names in a list.
const MAX_NAMES: usize = 256;

/// Value of `Ciphers`, `MACs`, `KexAlgorithms` or `HostKeyAlgorithms`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlgorithmList {
    /// Exactly these names, in this order.
    Exactly(Vec<String>),
    /// The default list, followed by these names (`+`).
    Append(Vec<String>),
    /// The default list without these names, which may contain `*` and `?` (`-`).
    Remove(Vec<String>),
    /// These names, followed by the default list (`^`).
    Prefer(Vec<String>),
}

impl AlgorithmList {
    /// Parses comma-separated names, optionally as a change of the default list (`+`, `-`, `^`).
    ///
    /// # Errors
    /// A message with the expected form, for an empty name, a character that is not graphic ASCII, or more
    /// than 256 names.
    pub fn parse(text: &str) -> Result<Self, String> {
        let make = match text.as_bytes().first() {
            Some(b'+') => Self::Append,
            Some(b'-') => Self::Remove,
            Some(b'^') => Self::Prefer,
            _ => Self::Exactly,
        };
        let names = match make(Vec::new()) {
            Self::Exactly(_) => text,
            _ => substr(text, 1..),
        };
        let names: Vec<String> = names.split(',').map(str::to_owned).collect();
        let fine = |name: &String| !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic());
        if names.len() > MAX_NAMES || !names.iter().all(fine) {
            return Err("expected names separated by commas".to_owned());
        }
        Ok(make(names))
    }

    /// Applies the list to `defaults` and returns the result, without duplicates.
    #[must_use]
    pub fn apply_to(&self, defaults: &[&str]) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        let (before, after): (&[String], &[String]) = match self {
            Self::Exactly(names) | Self::Prefer(names) => (names, &[]),
            Self::Append(names) => (&[], names),
            Self::Remove(_) => (&[], &[]),
        };
        let defaults = match self {
            Self::Exactly(_) => &[],
            _ => defaults,
        };
        let names = before.iter().map(String::as_str);
        let names = names.chain(defaults.iter().copied());
        for name in names.chain(after.iter().map(String::as_str)) {
            let removed = match self {
                Self::Remove(gone) => gone.iter().any(|gone| pattern::matches_pattern(gone, name)),
                _ => false,
            };
            if !removed && !all.iter().any(|one| one == name) {
                all.push(name.to_owned());
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_change_the_default() {
        let defaults = ["a", "b", "umac-64", "umac-128"];
        for (text, wanted) in [
            ("c,a", "c,a"),
            ("+c,a", "a,b,umac-64,umac-128,c"),
            ("-umac-*,a", "b"),
            ("^b,c", "b,c,a,umac-64,umac-128"),
        ] {
            let list = AlgorithmList::parse(text).unwrap();
            assert_eq!(list.apply_to(&defaults).join(","), wanted, "{text}");
        }
        for text in ["", "+", "a,,b", "a b"] {
            assert!(AlgorithmList::parse(text).is_err(), "{text}");
        }
    }
}
