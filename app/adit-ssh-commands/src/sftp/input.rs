//! Source of commands.

use std::fs;
use std::io::{self, IsTerminal, Read};
use std::path::Path;
use std::thread;

use adit_cli::{Failure, FailureCode, out};
use adit_wire::u64_from;
use tokio::sync::mpsc;

/// Maximum length of a line, in bytes.
const MAX_LINE: usize = 64 << 10;
/// Prompt of an interactive session.
const PROMPT: &str = "sftp> ";

/// Reader of command lines.
#[derive(Debug)]
pub(super) struct CommandInput {
    lines: mpsc::Receiver<io::Result<Vec<u8>>>,
    /// True in batch mode: commands are echoed, and the first that fails ends the program.
    batch: bool,
    /// True if a user types the commands.
    interactive: bool,
}

impl CommandInput {
    /// Opens a batch file, or standard input if it is `-` or `None`.
    pub(super) fn open(batch: Option<&Path>) -> Result<Self, Failure> {
        let file = batch.filter(|path| *path != Path::new("-"));
        let source: Box<dyn Read + Send> = match file {
            Some(path) => {
                let opened = fs::File::open(path);
                Box::new(opened.map_err(|why| {
                    Failure::new(FailureCode::Usage, format!("{}: {why}", path.display()))
                })?)
            }
            None => Box::new(out::stdin()),
        };
        let (send, lines) = mpsc::channel(1);
        // A read from a terminal cannot be canceled, so nothing waits for this thread.
        thread::spawn(move || {
            let mut source = io::BufReader::new(source);
            while let Some(line) = read_line(&mut source) {
                let over = line.is_err();
                if send.blocking_send(line).is_err() || over {
                    return;
                }
            }
        });
        Ok(Self {
            lines,
            batch: batch.is_some(),
            interactive: batch.is_none() && io::stdin().is_terminal(),
        })
    }

    /// Returns true in batch mode.
    pub(super) const fn is_batch(&self) -> bool {
        self.batch
    }

    /// Returns true if a user types the commands.
    pub(super) const fn is_interactive(&self) -> bool {
        self.interactive
    }

    /// Returns the next line, or `None` at the end.
    pub(super) async fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.interactive {
            print!("{PROMPT}");
        }
        let line = self.lines.recv().await.transpose()?;
        if self.interactive && line.is_none() {
            println!();
        }
        Ok(line)
    }

    /// Echoes a command in batch mode.
    pub(super) fn echo_command(&self, line: &[u8]) {
        if self.batch {
            println!("{PROMPT}{}", crate::copy::display_path(line.trim_ascii()));
        }
    }
}

/// Reads a line without its line end; returns `None` after the last one.
fn read_line(source: &mut impl io::BufRead) -> Option<io::Result<Vec<u8>>> {
    let mut line = Vec::new();
    let most = u64_from(MAX_LINE);
    match io::BufRead::read_until(&mut source.take(most), b'\n', &mut line) {
        Err(why) => Some(Err(why)),
        Ok(0) => None,
        Ok(MAX_LINE) if line.last() != Some(&b'\n') => Some(Err(io::Error::other(
            "a line of more than 64 KiB is not a command",
        ))),
        Ok(_) => {
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            Some(Ok(line))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_an_end() {
        let mut source = &b"a\n\nb"[..];
        let mut next = || read_line(&mut source).map(Result::unwrap);
        assert_eq!(next().as_deref(), Some(&b"a"[..]));
        assert_eq!(next().as_deref(), Some(&b""[..]));
        assert_eq!(next().as_deref(), Some(&b"b"[..]));
        assert_eq!(next(), None);
        let long = vec![b'x'; MAX_LINE + 1];
        assert!(read_line(&mut long.as_slice()).unwrap().is_err());
    }
}
