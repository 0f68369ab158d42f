//! The means of a terminal: colours, and characters for graphs.

use ratatui::style::{Color, Modifier, Style};

/// Characters for eight levels, and without a character set that has them.
pub(super) const LEVELS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
pub(super) const ASCII_LEVELS: [&str; 8] = ["_", ".", ":", "-", "=", "+", "*", "#"];

/// The means of the terminal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) has_colours: bool,
    pub(super) levels: &'static [&'static str; 8],
}

impl Look {
    /// Returns the look for the variables of the environment: `NO_COLOR`, and the character set.
    pub(super) fn of_environment() -> Self {
        let value = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(value);
        let locale = locale.unwrap_or_default().to_lowercase();
        let is_unicode = cfg!(windows) || locale.contains("utf-8") || locale.contains("utf8");
        Self::new(std::env::var_os("NO_COLOR").is_none(), is_unicode)
    }

    pub(super) const fn new(has_colours: bool, is_unicode: bool) -> Self {
        Self {
            has_colours,
            levels: match is_unicode {
                true => &LEVELS,
                false => &ASCII_LEVELS,
            },
        }
    }

    pub(super) fn colour(self, colour: Color) -> Style {
        match self.has_colours {
            true => Style::new().fg(colour),
            false => Style::new(),
        }
    }

    pub(super) const fn strong() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn warning(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }
}
