//! Problems and warnings as users see them: the cause, the place, and what to do.

use core::fmt;

use crate::text::{Span, nearest_word};

/// The origin of a text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// The n-th argument, counted from 1.
    Argument(usize),
    /// The file with this name.
    File(String),
    /// A text without a name.
    Text,
}

/// A place in the input, ready to be shown: secrets are already redacted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourceLocation {
    /// The origin of the text.
    pub origin: Origin,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters of the original line, counted from 1.
    pub column: usize,
    /// The line, or the part around the place, with `***` for secrets.
    pub snippet: String,
    /// The marked part of `quoted`: its first character and the number of characters.
    pub caret: (usize, usize),
}

/// An error in one URL. Like a [`Problem`], but its place is still a range of the URL's bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{title}")]
pub struct ConfigError {
    /// The bytes of the URL that are wrong.
    pub span: Span,
    /// The error in one line.
    pub title: String,
    /// The text beside the caret; may be empty.
    pub label: String,
    /// Hints on what to do, one line each.
    pub help: Vec<String>,
}

/// An error that prevents a plan. `Display` prints it in the style of a compiler.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Problem {
    /// The error in one line.
    pub title: String,
    /// The place of the error, or `None` if something is missing altogether.
    pub place: Option<SourceLocation>,
    /// The text beside the caret; may be empty.
    pub label: String,
    /// Hints on what to do, one line each.
    pub help: Vec<String>,
}

/// A notice about a configuration that works. The caller decides which warnings to print.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Warning {
    /// The class of the warning.
    pub kind: WarningKind,
    /// The text and the place.
    pub about: Problem,
}

/// Classes of warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// A secret is on the command line, where every user of the machine can read it (SEC-E7).
    LiteralSecret,
    /// A file with secrets can be read by other users (SEC-E7).
    ReadableSecret,
    /// Method `none` is used with an address that is not on this machine.
    NoEncryption,
    /// A method has a broken cipher and exists only for old peers.
    LegacyCipher,
    /// Passwords cross the network in clear text.
    ClearPassword,
    /// A listener offers UDP, but its chain cannot carry it.
    UdpStops,
    /// A hop resolves names, so that their addresses are not checked, for a listener that others can reach.
    UncheckedNames,
    /// A key of a foreign link, or of the other role, has no meaning here.
    IgnoredKey,
    /// A rule comes after one that already matches everything.
    NeverReached,
    /// Rules about names cannot match requests of a listener, or it finds names for no rule.
    NamelessRules,
    /// A listener serves only some users of a fleet, if there are many.
    SomeUsers,
    /// A keyword of an SSH configuration is unknown or has no effect here.
    UnknownKeyword,
}

impl ConfigError {
    /// Creates an error at `span`.
    pub fn new(span: Span, title: impl Into<String>) -> Self {
        Self {
            span,
            title: title.into(),
            label: String::new(),
            help: Vec::new(),
        }
    }

    /// Creates the error about a key that does not exist.
    pub(crate) fn unknown_key(span: Span, key: &str) -> Self {
        Self::new(span, format!("unknown key `{key}`"))
    }

    /// Sets the text beside the caret to the candidate that was probably meant by `word`, if there is one.
    #[must_use]
    pub fn with_nearest<'a>(
        self,
        word: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        match nearest_word(word, candidates) {
            Some(meant) => self.with_label(format!("did you mean `{meant}`?")),
            None => self,
        }
    }

    /// Sets the text beside the caret.
    #[must_use]
    pub fn with_label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds a hint on what to do, as one line.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// Converts this error into a problem at a place that can be shown.
    #[must_use]
    pub fn into_problem(self, place: SourceLocation) -> Problem {
        Problem {
            title: self.title,
            place: Some(place),
            label: self.label,
            help: self.help,
        }
    }
}

impl Problem {
    /// Returns the place and the error in one line, for a log.
    #[must_use]
    pub fn to_log_line(&self) -> String {
        let mut line = match &self.place {
            Some(place) => format!("{}: ", place.location()),
            None => String::new(),
        };
        line.push_str(&sanitize_for_terminal(&self.title));
        if !self.label.is_empty() {
            line.push_str(&format!(" ({})", sanitize_for_terminal(&self.label)));
        }
        line
    }

    /// Creates a problem about something that is missing altogether, or about a whole file.
    pub fn without_place(title: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            place: None,
            label: String::new(),
            help: vec![help.into()],
        }
    }

    /// Creates a problem at a place.
    pub fn at_place(
        title: impl Into<String>,
        place: SourceLocation,
        help: impl Into<String>,
    ) -> Self {
        Self {
            place: Some(place),
            ..Self::without_place(title, help)
        }
    }

    /// Prints the problem with its level, `error` or `warning`.
    fn format_as(&self, f: &mut fmt::Formatter<'_>, level: &str) -> fmt::Result {
        write!(f, "{level}: {}", sanitize_for_terminal(&self.title))?;
        let number = match &self.place {
            Some(place) if matches!(place.origin, Origin::File(_)) => place.line.to_string(),
            _ => " ".to_owned(),
        };
        let gutter = " ".repeat(number.len());
        if let Some(place) = &self.place {
            write!(f, "\n{gutter}--> {}", place.location())?;
            write!(f, "\n{number} | {}", sanitize_for_terminal(&place.snippet))?;
            let (start, len) = place.caret;
            let blank = " ".repeat(start);
            let caret = "^".repeat(len.max(1));
            write!(f, "\n{gutter} | {blank}{caret}")?;
            if !self.label.is_empty() {
                write!(f, " {}", sanitize_for_terminal(&self.label))?;
            }
        }
        for line in &self.help {
            write!(f, "\n{gutter} = help: {}", sanitize_for_terminal(line))?;
        }
        Ok(())
    }
}

impl SourceLocation {
    /// Returns the file with line and column, or the column in the word of the command line that is quoted.
    pub(crate) fn location(&self) -> String {
        match &self.origin {
            Origin::Argument(_) => format!("command line, column {}", self.column),
            Origin::File(name) => format!(
                "{}:{}:{}",
                sanitize_for_terminal(name),
                self.line,
                self.column
            ),
            Origin::Text => format!("column {}", self.column),
        }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.location())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.format_as(f, "error")
    }
}

impl std::error::Error for Problem {}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.about.format_as(f, "warning")
    }
}

/// Makes a text safe for a terminal (SEC-X7). Characters that could move the cursor or change the
/// writing direction are replaced one for one, so that carets stay in place.
#[must_use]
pub fn sanitize_for_terminal(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\t' => ' ',
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' => '\u{fffd}',
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => {
                '\u{fffd}'
            }
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_cannot_reach_the_terminal() {
        let problem = Problem::without_place("a\x1b[2Jb\u{202e}c", "d\ne");
        assert_eq!(
            problem.to_string(),
            "error: a\u{fffd}[2Jb\u{fffd}c\n  = help: d\u{fffd}e"
        );
        assert_eq!(problem.to_log_line(), "a\u{fffd}[2Jb\u{fffd}c");
    }
}
