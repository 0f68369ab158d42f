//! The options of a plugin: `key=value;flag;key=value` (SIP003).
//!
//! A backslash escapes the next character; the first unescaped `=` ends a key, an unescaped `;` an
//! item. Empty items are ignored.

use std::fmt;

/// Options, in the order in which they were written.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PluginOptions {
    items: Vec<(String, Option<String>)>,
}

/// The error of options that cannot be parsed. Values are not included, as they may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PluginOptionsError {
    /// A backslash at the end.
    #[error("the options end in the middle of an escape (`\\` must be followed by a character)")]
    Escape,
    /// A value without a key.
    #[error("an option starts with `=`: its key is missing")]
    Key,
    /// A key that occurs twice.
    #[error("option `{0}` is given twice")]
    Twice(String),
}

/// Parses options.
///
/// # Errors
///
/// Returns an [`PluginOptionsError`] for an incomplete escape, a missing key or a repeated key.
pub fn parse_options(text: &str) -> Result<PluginOptions, PluginOptionsError> {
    let mut options = PluginOptions::default();
    let (mut key, mut value) = (String::new(), None::<String>);
    let mut rest = text.chars();
    loop {
        let next = rest.next();
        match (next, &mut value) {
            (None | Some(';'), _) => {
                options.add_option(std::mem::take(&mut key), value.take())?;
                if next.is_none() {
                    return Ok(options);
                }
            }
            (Some('='), None) => value = Some(String::new()),
            (Some(c), part) => {
                let c = match c {
                    '\\' => rest.next().ok_or(PluginOptionsError::Escape)?,
                    c => c,
                };
                part.as_mut().unwrap_or(&mut key).push(c);
            }
        }
    }
}

impl PluginOptions {
    fn add_option(&mut self, key: String, value: Option<String>) -> Result<(), PluginOptionsError> {
        match (key.is_empty(), value.is_some()) {
            (true, false) => Ok(()),
            (true, true) => Err(PluginOptionsError::Key),
            _ if self.items.iter().any(|(k, _)| *k == key) => Err(PluginOptionsError::Twice(key)),
            _ => {
                self.items.push((key, value));
                Ok(())
            }
        }
    }

    /// Returns an iterator over all options. A flag has no value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.items
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_deref()))
    }
}

/// Writes the options, with an escape before each special character.
impl fmt::Display for PluginOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        for (n, (key, value)) in self.iter().enumerate() {
            if n > 0 {
                f.write_char(';')?;
            }
            for (mark, part) in [("", Some(key)), ("=", value)] {
                let Some(part) = part else { continue };
                f.write_str(mark)?;
                for c in part.chars() {
                    if matches!(c, '\\' | ';' | '=') {
                        f.write_char('\\')?;
                    }
                    f.write_char(c)?;
                }
            }
        }
        Ok(())
    }
}

/// Writes the keys only, as values may be secret.
impl fmt::Debug for PluginOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.items.iter().map(|(key, _)| key))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_values_flags_and_escapes() {
        let all = |text: &str| {
            let options = parse_options(text).unwrap();
            options
                .iter()
                .map(|(k, v)| v.map_or_else(|| k.to_owned(), |v| format!("{k} is {v}")))
                .collect::<Vec<_>>()
        };
        assert_eq!(all(""), [""; 0]);
        assert_eq!(all("server;path=/a;tls"), ["server", "path is /a", "tls"]);
        assert_eq!(all("a=;;b=c=d;"), ["a is ", "b is c=d"]);
        assert_eq!(
            all(r"k\=e\;y=v\;al\\ue;f\l\ag\:"),
            [r"k=e;y is v;al\ue", "flag:"]
        );
        assert_eq!(all("ключ=значение 💧"), ["ключ is значение 💧"]);
    }

    #[test]
    fn what_cannot_be_read_is_told_without_values() {
        assert_eq!(parse_options(r"a=b\"), Err(PluginOptionsError::Escape));
        assert_eq!(parse_options("a;=secret"), Err(PluginOptionsError::Key));
        assert_eq!(
            parse_options("a=1;b;a"),
            Err(PluginOptionsError::Twice("a".to_owned()))
        );
        let shown = format!("{:?}", parse_options("key=secret;flag").unwrap());
        assert_eq!(shown, r#"{"key", "flag"}"#);
    }

    /// All texts of up to six special characters: parsing does not panic, and parsed options are written and
    /// parsed to the same.
    #[test]
    fn written_options_are_read_as_they_were() {
        let letters = ['a', '=', ';', '\\', 'é'];
        let (mut read, mut refused) = (0, 0);
        for number in 0..5usize.pow(6) * 6 {
            let (mut left, len) = (number / 6, number % 6 + 1);
            let text: String = (0..len)
                .map(|_| {
                    let letter = letters[left % 5];
                    left /= 5;
                    letter
                })
                .collect();
            match parse_options(&text) {
                Ok(options) => {
                    read += 1;
                    assert_eq!(parse_options(&options.to_string()), Ok(options), "{text}");
                }
                Err(_) => refused += 1,
            }
        }
        assert!(read > 10_000 && refused > 10_000, "{read} {refused}");
    }
}
