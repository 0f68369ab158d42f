//! Templates of `packaging`: files with names such as `@VERSION@` in place of values.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail};

use crate::command::root;

/// Values by the name that is between the signs.
#[derive(Debug, Default, Clone)]
pub(super) struct Values(BTreeMap<String, String>);

impl Values {
    pub(super) fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }
}

/// Reads a file of `packaging`.
pub(super) fn read(name: &str) -> Result<String> {
    let path = root().join("packaging").join(name);
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// Returns the example configuration, which names the command that starts the service.
pub(super) fn example_config(start: &str) -> Result<String> {
    let mut values = Values::default();
    values.set("START", start);
    fill("adit.toml", &values)
}

/// Reads a template, and replaces all names by their values.
///
/// # Errors
/// The template contains a name without a value.
pub(super) fn fill(name: &str, values: &Values) -> Result<String> {
    fill_text(&read(name)?, values).with_context(|| format!("packaging/{name}"))
}

fn fill_text(text: &str, values: &Values) -> Result<String> {
    let mut filled = String::new();
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let mut rest = line;
        while let Some((before, after)) = rest.split_once('@') {
            filled.push_str(before);
            let name = after.split_once('@').filter(|(name, _)| is_name(name));
            let Some((name, after)) = name else {
                filled.push('@');
                rest = after;
                continue;
            };
            match values.0.get(name) {
                Some(value) => filled.push_str(value),
                None => bail!("line {}: no value for `@{name}@`", number + 1),
            }
            rest = after;
        }
        filled.push_str(rest);
    }
    Ok(filled)
}

fn is_name(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    !text.is_empty() && text.chars().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_and_other_signs_stay() {
        let mut values = Values::default();
        values.set("A_1", "x@y");
        let text = "adit@.service @A_1@ me@host @\n@A_1@";
        assert_eq!(
            fill_text(text, &values).unwrap(),
            "adit@.service x@y me@host @\nx@y"
        );
        let why = fill_text("a\n@B@\n", &values).unwrap_err().to_string();
        assert_eq!(why, "line 2: no value for `@B@`");
    }
}
