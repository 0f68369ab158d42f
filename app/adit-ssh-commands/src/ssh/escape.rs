//! Escapes at a terminal: `~` at the start of a line and the character after it.

/// The command of an escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EscapeCommand {
    /// `~.`: closes the connection.
    End,
    /// `~^Z`: suspends this process.
    Suspend,
    /// `~B`: sends a break.
    Break,
    /// `~R`: exchanges new keys.
    Rekey,
    /// `~?`: lists the escapes.
    Help,
}

/// Recognizes escapes in typed input.
#[derive(Debug)]
pub(super) struct EscapeParser {
    /// The escape character; `None` turns escapes off.
    character: Option<u8>,
    state: ParserState,
}

/// Position of the parser in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParserState {
    LineStart,
    Escape,
    MidLine,
}

impl EscapeParser {
    /// Creates a parser. A character beyond U+00FF turns escapes off.
    pub(super) fn new(character: Option<char>) -> Self {
        Self {
            character: character.and_then(|c| u8::try_from(c).ok()),
            state: ParserState::LineStart,
        }
    }

    /// Copies input for the program to `out`, up to the first escape. Returns the number of consumed bytes of
    /// `typed`, and the command of the escape.
    pub(super) fn filter_input(
        &mut self,
        typed: &[u8],
        out: &mut Vec<u8>,
    ) -> (usize, Option<EscapeCommand>) {
        let Some(character) = self.character else {
            out.extend_from_slice(typed);
            return (typed.len(), None);
        };
        for (at, &byte) in typed.iter().enumerate() {
            if self.state == ParserState::Escape {
                let wish = match byte {
                    b'.' => Some(EscapeCommand::End),
                    0x1a => Some(EscapeCommand::Suspend),
                    b'B' => Some(EscapeCommand::Break),
                    b'R' => Some(EscapeCommand::Rekey),
                    b'?' => Some(EscapeCommand::Help),
                    _ => None,
                };
                if let Some(wish) = wish {
                    self.state = ParserState::LineStart;
                    return (at + 1, Some(wish));
                }
                // Typed twice, it stands for itself.
                if byte != character {
                    out.push(character);
                }
            } else if byte == character && self.state == ParserState::LineStart {
                self.state = ParserState::Escape;
                continue;
            }
            out.push(byte);
            self.state = match byte {
                b'\r' | b'\n' => ParserState::LineStart,
                _ => ParserState::MidLine,
            };
        }
        (typed.len(), None)
    }

    /// Returns the list of escapes, one per line.
    pub(super) fn help_text(&self) -> String {
        let c = self
            .character
            .map_or('~', char::from)
            .escape_default()
            .to_string();
        format!(
            "{c}.   close the connection\n{c}^Z  suspend adit ssh\n{c}B   send a break\n\
             {c}R   exchange new keys\n{c}?   print this message\n{c}{c}   send the escape character\n\
             (escapes are recognized only at the start of a line)"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all passed input and all commands, for input in parts of `n` bytes.
    fn all(character: Option<char>, typed: &[u8], n: usize) -> (Vec<u8>, Vec<EscapeCommand>) {
        let mut escapes = EscapeParser::new(character);
        let (mut out, mut wishes) = (Vec::new(), Vec::new());
        for mut piece in typed.chunks(n) {
            while !piece.is_empty() {
                let (done, wish) = escapes.filter_input(piece, &mut out);
                assert!(done > 0);
                wishes.extend(wish);
                piece = &piece[done..];
            }
        }
        (out, wishes)
    }

    #[test]
    fn they_are_found_at_the_beginning_of_lines_alone() {
        for (typed, out, wishes) in [
            (&b"~."[..], &b""[..], &[EscapeCommand::End][..]),
            (b"a~.\r~?b", b"a~.\rb", &[EscapeCommand::Help]),
            (
                b"~~.\n~R~B",
                b"~.\n",
                &[EscapeCommand::Rekey, EscapeCommand::Break],
            ),
            (b"~x~.", b"~x~.", &[]),
            (b"~\r~\x1a", b"~\r", &[EscapeCommand::Suspend]),
        ] {
            for n in 1..=typed.len() {
                let got = all(Some('~'), typed, n);
                assert_eq!((&*got.0, &*got.1), (out, wishes), "{typed:?} by {n}");
            }
        }
        assert_eq!(all(None, b"~.", 2), (b"~.".to_vec(), vec![]));
        assert_eq!(all(Some('%'), b"%.", 2), (vec![], vec![EscapeCommand::End]));
    }
}
