//! Escapes at a terminal: `~` at the beginning of a line, and what follows it.

/// What an escape wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// `~.`: end the session.
    End,
    /// `~^Z`: stop this process for now.
    Suspend,
    /// `~B`: send a break.
    Break,
    /// `~R`: make new keys.
    Rekey,
    /// `~?`: tell the escapes.
    Help,
}

/// Finds escapes in what is typed.
#[derive(Debug)]
pub(super) struct Escapes {
    /// The character that begins them; none are found without.
    character: Option<u8>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    LineStart,
    Escape,
    Within,
}

impl Escapes {
    pub(super) fn new(character: Option<char>) -> Self {
        Self {
            character: character.and_then(|c| u8::try_from(c).ok()),
            state: State::LineStart,
        }
    }

    /// Moves what is for the program to `out`, up to the first escape; gives what that wants and
    /// how many octets of `typed` are done with.
    pub(super) fn feed(&mut self, typed: &[u8], out: &mut Vec<u8>) -> (usize, Option<Wish>) {
        let Some(character) = self.character else {
            out.extend_from_slice(typed);
            return (typed.len(), None);
        };
        for (at, &byte) in typed.iter().enumerate() {
            if self.state == State::Escape {
                let wish = match byte {
                    b'.' => Some(Wish::End),
                    0x1a => Some(Wish::Suspend),
                    b'B' => Some(Wish::Break),
                    b'R' => Some(Wish::Rekey),
                    b'?' => Some(Wish::Help),
                    _ => None,
                };
                if let Some(wish) = wish {
                    self.state = State::LineStart;
                    return (at + 1, Some(wish));
                }
                // Typed twice it is the character itself.
                if byte != character {
                    out.push(character);
                }
            } else if byte == character && self.state == State::LineStart {
                self.state = State::Escape;
                continue;
            }
            out.push(byte);
            self.state = match byte {
                b'\r' | b'\n' => State::LineStart,
                _ => State::Within,
            };
        }
        (typed.len(), None)
    }

    /// The escapes, one a line.
    pub(super) fn help(&self) -> String {
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

    /// All that goes through, and all wishes; by pieces of `n` octets.
    fn all(character: Option<char>, typed: &[u8], n: usize) -> (Vec<u8>, Vec<Wish>) {
        let mut escapes = Escapes::new(character);
        let (mut out, mut wishes) = (Vec::new(), Vec::new());
        for mut piece in typed.chunks(n) {
            while !piece.is_empty() {
                let (done, wish) = escapes.feed(piece, &mut out);
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
            (&b"~."[..], &b""[..], &[Wish::End][..]),
            (b"a~.\r~?b", b"a~.\rb", &[Wish::Help]),
            (b"~~.\n~R~B", b"~.\n", &[Wish::Rekey, Wish::Break]),
            (b"~x~.", b"~x~.", &[]),
            (b"~\r~\x1a", b"~\r", &[Wish::Suspend]),
        ] {
            for n in 1..=typed.len() {
                let got = all(Some('~'), typed, n);
                assert_eq!((&*got.0, &*got.1), (out, wishes), "{typed:?} by {n}");
            }
        }
        assert_eq!(all(None, b"~.", 2), (b"~.".to_vec(), vec![]));
        assert_eq!(all(Some('%'), b"%.", 2), (vec![], vec![Wish::End]));
    }
}
