//! What is wrong, where, and what to do: the texts a user sees.

use core::fmt;

use crate::text::Span;

/// Where a text came from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The n-th argument, counted from 1.
    Argument(usize),
    /// A file.
    File(String),
    /// A text without an address of its own.
    Text,
}

/// A place in the input, ready to be shown: secrets are already masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Where the text came from.
    pub origin: Origin,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters of the original line, counted from 1.
    pub column: usize,
    /// The line, or the part around the place, with `***` for secrets.
    pub quoted: String,
    /// First character and number of characters of `quoted` that are meant.
    pub caret: (usize, usize),
}

/// Something wrong with one URL: as [`Problem`], but the place is still a range of its bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{title}")]
pub struct Flaw {
    /// The bytes of the URL that are meant.
    pub span: Span,
    /// What is wrong, in one line.
    pub title: String,
    /// What stands beside the caret; may be empty.
    pub label: String,
    /// What to do; one line each.
    pub help: Vec<String>,
}

/// Something that keeps a plan from being made. `Display` prints it like a compiler does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong, in one line.
    pub title: String,
    /// Where; `None` if it is something that is missing altogether.
    pub place: Option<Place>,
    /// What stands beside the caret; may be empty.
    pub label: String,
    /// What to do; one line each.
    pub help: Vec<String>,
}

/// Something that works but should be known. Whether to print it is the caller's choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The class.
    pub kind: WarningKind,
    /// The text.
    pub about: Problem,
}

/// Classes of warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// A secret stands on the command line, where every user of the machine can read it (SEC-E7).
    LiteralSecret,
    /// A file with secrets can be read by other users (SEC-E7).
    ReadableSecret,
    /// Method `none` on an address that is not this machine.
    NoEncryption,
    /// A method that is there for old peers alone: its cipher is broken.
    LegacyCipher,
    /// Passwords cross the network in clear text.
    ClearPassword,
    /// A listener offers UDP, and its chain cannot carry it.
    UdpStops,
    /// A hop resolves names for clients of a listener that others use.
    UncheckedNames,
    /// A key of a foreign link, or of the other role, that has no meaning here.
    IgnoredKey,
    /// A rule behind one that already matches everything.
    NeverReached,
    /// A keyword of an SSH configuration that is not known, or has no effect here.
    UnknownKeyword,
}

impl Flaw {
    /// A flaw at `span`.
    pub fn new(span: Span, title: impl Into<String>) -> Self {
        Self {
            span,
            title: title.into(),
            label: String::new(),
            help: Vec::new(),
        }
    }

    /// With a text beside the caret.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// With one more line on what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// The problem that this flaw is at a place that can be shown.
    #[must_use]
    pub fn at(self, place: Place) -> Problem {
        Problem {
            title: self.title,
            place: Some(place),
            label: self.label,
            help: self.help,
        }
    }
}

impl Problem {
    /// A problem of something that is missing altogether, or of a whole file.
    pub fn without_place(title: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            place: None,
            label: String::new(),
            help: vec![help.into()],
        }
    }

    /// A problem of something that stands at a place.
    pub fn at(title: impl Into<String>, place: Place, help: impl Into<String>) -> Self {
        Self {
            place: Some(place),
            ..Self::without_place(title, help)
        }
    }

    fn print(&self, f: &mut fmt::Formatter<'_>, level: &str) -> fmt::Result {
        write!(f, "{level}: {}", printable(&self.title))?;
        let number = match &self.place {
            Some(place) if matches!(place.origin, Origin::File(_)) => place.line.to_string(),
            _ => " ".to_owned(),
        };
        let gutter = " ".repeat(number.len());
        if let Some(place) = &self.place {
            write!(f, "\n{gutter}--> {}", place.address())?;
            write!(f, "\n{number} | {}", printable(&place.quoted))?;
            let (start, len) = place.caret;
            let blank = " ".repeat(start);
            let caret = "^".repeat(len.max(1));
            write!(f, "\n{gutter} | {blank}{caret}")?;
            if !self.label.is_empty() {
                write!(f, " {}", printable(&self.label))?;
            }
        }
        for line in &self.help {
            write!(f, "\n{gutter} = help: {}", printable(line))?;
        }
        Ok(())
    }
}

impl Place {
    fn address(&self) -> String {
        match &self.origin {
            Origin::Argument(n) => format!("argument {n}, column {}", self.column),
            Origin::File(name) => format!("{}:{}:{}", printable(name), self.line, self.column),
            Origin::Text => format!("column {}", self.column),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.print(f, "error")
    }
}

impl std::error::Error for Problem {}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.about.print(f, "warning")
    }
}

/// Text for a terminal: what could move the cursor or turn the writing direction is replaced,
/// one character for one, so that carets stay right (SEC-X7).
#[must_use]
pub fn printable(text: &str) -> String {
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
    }
}
