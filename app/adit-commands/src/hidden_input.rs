//! Reads a line with a secret from standard input; at a terminal, it is not shown.

use std::io::{self, IsTerminal, Read};

use adit_cli::{Failure, FailureCode};
use zeroize::Zeroizing;

/// The key that deletes a character, in two spellings.
const ERASE: [u8; 2] = [0x08, 0x7f];
/// Ctrl-C, which ends the program.
const INTERRUPT: u8 = 0x03;
/// Ctrl-D, which ends the input.
const END: u8 = 0x04;
/// Ctrl-U, which deletes the line.
const KILL: u8 = 0x15;

/// Reads one line of at most `limit` bytes. At a terminal, `question` is printed first.
///
/// # Errors
/// The line is longer or not UTF-8, there is none, standard input fails, or the user interrupts.
pub(crate) fn read_line(question: &str, limit: usize) -> Result<Zeroizing<String>, Failure> {
    let at_terminal = io::stdin().is_terminal();
    let line = if at_terminal {
        let _modes = HiddenModes::set()
            .map_err(|why| Failure::new(FailureCode::Failure, format!("the terminal: {why}")))?;
        adit_cli::out::tell(format_args!("{question}"));
        let line = read_until_end(adit_cli::out::stdin(), limit, true);
        adit_cli::out::tell(format_args!("\n"));
        line?
    } else {
        read_until_end(adit_cli::out::stdin(), limit, false)?
    };
    let text = std::str::from_utf8(&line)
        .map_err(|_| Failure::new(FailureCode::Usage, "standard input is not UTF-8"))?;
    match text.trim() {
        "" => Err(Failure::new(FailureCode::Usage, "standard input is empty")),
        text => Ok(Zeroizing::new(text.to_owned())),
    }
}

/// Reads the keys or bytes of a line, one by one: the rest is for other programs.
fn read_until_end(
    mut from: impl Read,
    limit: usize,
    keys: bool,
) -> Result<Zeroizing<Vec<u8>>, Failure> {
    // Never reallocated, which would leave copies of the secret.
    let mut line = Zeroizing::new(Vec::with_capacity(limit));
    let mut byte = [0];
    loop {
        match from.read(&mut byte) {
            Ok(0) => return Ok(line),
            Ok(_) => {}
            Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
            Err(why) => {
                let what = format!("standard input: {why}");
                return Err(Failure::new(FailureCode::Failure, what));
            }
        }
        match byte[0] {
            b'\n' | b'\r' => return Ok(line),
            INTERRUPT if keys => {
                return Err(Failure::Exit {
                    status: 130,
                    why: None,
                });
            }
            END if keys => return Ok(line),
            KILL if keys => line.clear(),
            key if keys && ERASE.contains(&key) => {
                line.pop();
            }
            _ if line.len() == limit => {
                let what = format!("standard input has a line of more than {limit} bytes");
                return Err(Failure::new(FailureCode::Usage, what));
            }
            other => line.push(other),
        }
    }
}

/// Modes in which keys are not shown and arrive one by one; an interrupt is a key, so that it cannot leave the modes
/// changed. Dropping it restores the modes before.
struct HiddenModes {
    #[cfg(unix)]
    before: rustix::termios::Termios,
    #[cfg(windows)]
    console: crossterm_winapi::ConsoleMode,
    #[cfg(windows)]
    before: u32,
}

#[cfg(unix)]
impl HiddenModes {
    fn set() -> io::Result<Self> {
        use rustix::termios::{
            LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr,
        };
        let before = tcgetattr(rustix::stdio::stdin())?;
        let mut modes = before.clone();
        modes.local_modes -=
            LocalModes::ISIG | LocalModes::ICANON | LocalModes::ECHO | LocalModes::ECHONL;
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, &modes)?;
        Ok(Self { before })
    }
}

#[cfg(unix)]
impl Drop for HiddenModes {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        // A terminal that is gone has no modes.
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, &self.before);
    }
}

#[cfg(windows)]
impl HiddenModes {
    /// Modes of the console's input.
    const PROCESSED_INPUT: u32 = 0x1;
    const LINE_INPUT: u32 = 0x2;
    const ECHO_INPUT: u32 = 0x4;

    fn set() -> io::Result<Self> {
        use crossterm_winapi::{ConsoleMode, Handle};
        let console = ConsoleMode::from(Handle::input_handle()?);
        let before = console.mode()?;
        let keys = Self::PROCESSED_INPUT | Self::LINE_INPUT | Self::ECHO_INPUT;
        console.set_mode(before & !keys)?;
        Ok(Self { console, before })
    }
}

#[cfg(windows)]
impl Drop for HiddenModes {
    fn drop(&mut self) {
        // A console that is gone has no modes.
        let _ = self.console.set_mode(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], keys: bool) -> Option<String> {
        let line = read_until_end(text, 8, keys).ok()?;
        Some(String::from_utf8(line.to_vec()).unwrap())
    }

    #[test]
    fn a_line_is_edited_and_bounded() {
        for (typed, line) in [
            (&b"abc\nd"[..], Some("abc")),
            (b"abc\rd", Some("abc")),
            (b"abc", Some("abc")),
            (b"", Some("")),
            (b"ax\x7f\x08b\n", Some("b")),
            (b"junk\x15abc\n", Some("abc")),
            (b"abc\x04", Some("abc")),
            (b"12345678\n", Some("12345678")),
            (b"123456789\n", None),
            (b"ab\x03", None),
        ] {
            assert_eq!(read(typed, true).as_deref(), line, "{typed:?}");
        }
        assert_eq!(read(b"a\x7f\n", false).as_deref(), Some("a\x7f"));
    }
}
