//! The terminal: its set-up, its restoration and its keys.

use std::io::{self, IsTerminal};
use std::time::Duration;

use adit_cli::{Failure, FailureCode};
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use ratatui::{DefaultTerminal, Frame};
use tokio::sync::mpsc;

/// Time after which the thread of the keys notices that they are no longer wanted.
const POLL: Duration = Duration::from_millis(100);
/// Number of keys that may wait.
const QUEUE: usize = 64;

/// Input from the terminal.
#[derive(Debug)]
pub(super) enum Input {
    Key(KeyEvent),
    /// It has another size now.
    Resized,
    /// It is gone.
    Closed,
}

/// The terminal while the view is shown. It is restored when this value is dropped, and before the message of a panic.
pub(super) struct Screen {
    terminal: DefaultTerminal,
    input: mpsc::Receiver<Input>,
}

/// Checks that the standard streams are a terminal that can show the view of a command.
pub(super) fn check_terminal(command: &str, hint: &str) -> Result<(), Failure> {
    let fault = |what: String| Err(Failure::new(FailureCode::Usage, what).with_hint(hint));
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return fault(format!(
            "`{command}` needs a terminal as standard input and output"
        ));
    }
    match std::env::var("TERM").as_deref() {
        Ok("dumb") => fault(format!(
            "this terminal (TERM=dumb) cannot move its cursor, as `{command}` needs"
        )),
        _ => Ok(()),
    }
}

impl Screen {
    /// Switches to the alternate screen, and starts to read keys.
    pub(super) fn open() -> Result<Self, Failure> {
        let terminal = ratatui::try_init().map_err(|why| failure(&why))?;
        let (sender, input) = mpsc::channel(QUEUE);
        let reading = std::thread::Builder::new().name("keys".to_owned());
        let screen = Self { terminal, input };
        reading
            .spawn(move || read_input(&sender))
            .map_err(|why| failure(&why))?;
        Ok(screen)
    }

    /// Draws a frame.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> Result<(), Failure> {
        let drawn = self.terminal.draw(draw);
        drawn.map(drop).map_err(|why| failure(&why))
    }

    /// Waits for input.
    ///
    /// # Cancel safety
    /// Cancel-safe: no key is lost.
    pub(super) async fn next_input(&mut self) -> Input {
        self.input.recv().await.unwrap_or(Input::Closed)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoration.
        let _ = ratatui::try_restore();
    }
}

fn failure(why: &io::Error) -> Failure {
    Failure::new(FailureCode::Failure, format!("the terminal: {why}"))
}

/// Sends input until the receiver is gone, or the terminal.
fn read_input(sender: &mpsc::Sender<Input>) {
    while !sender.is_closed() {
        let input = match event::poll(POLL) {
            Ok(false) => continue,
            Ok(true) => match event::read() {
                // Windows reports the release of keys too.
                Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => Input::Key(key),
                Ok(Event::Resize(..)) => Input::Resized,
                Ok(_) => continue,
                Err(_) => Input::Closed,
            },
            Err(_) => Input::Closed,
        };
        let is_last = matches!(input, Input::Closed);
        if sender.blocking_send(input).is_err() || is_last {
            return;
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::*;

    const SUBJECT: &str = "command::top::screen::tests::panics_in_a_terminal";

    /// The program of [`a_panic_restores_the_terminal`].
    #[test]
    #[ignore = "it fails on purpose, in a terminal of its own"]
    fn panics_in_a_terminal() {
        let mut screen = Screen::open().unwrap();
        screen.draw(|_| ()).unwrap();
        panic!("on purpose");
    }

    #[test]
    fn a_panic_restores_the_terminal() {
        let program = std::env::current_exe().unwrap();
        let line = format!(
            "{} --ignored --exact {SUBJECT} --nocapture",
            program.display()
        );
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]);
        command
            .env("TERM", "xterm")
            .stdin(std::process::Stdio::null());
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let position = |words: &str| {
            let found = text.find(words);
            found.unwrap_or_else(|| panic!("{words:?} is not in {text:?}"))
        };
        let (entered, left) = (position("\u{1b}[?1049h"), position("\u{1b}[?1049l"));
        assert!(entered < left && left < position("on purpose"), "{text:?}");
    }
}
