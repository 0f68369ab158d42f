//! Dialog with the user at the terminal: questions, hidden answers, and the terminal's modes.
//!
//! Any function that changes the modes saves the old ones here, so that [`restore_modes`] can set them again however
//! the program ends.

use std::fs::{File, OpenOptions};
use std::future::pending;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use adit_cli::{Failure, FailureCode};
use adit_crypto::Secret;

use super::platform::{self, SavedModes, TerminalMode, stderr};
use crate::channel_pipes::AsStream;

/// Maximum length of an answer, in bytes.
const MAX_ANSWER: usize = 4096;

/// The modes of the terminal before they were changed.
static SAVED_MODES: Mutex<Option<SavedModes>> = Mutex::new(None);

/// Locks [`SAVED_MODES`].
fn lock_saved_modes() -> MutexGuard<'static, Option<SavedModes>> {
    SAVED_MODES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Restores the modes of the terminal, if they were changed.
pub(super) fn restore_modes() {
    if let Some(modes) = lock_saved_modes().take() {
        modes.restore();
    }
}

/// A guard that restores the modes of the terminal when dropped.
#[derive(Debug)]
pub(super) struct ModeGuard(());

impl Drop for ModeGuard {
    fn drop(&mut self) {
        restore_modes();
    }
}

/// Switches to raw mode.
pub(super) fn enter_raw_mode(terminal: impl AsStream) -> io::Result<ModeGuard> {
    change_modes(terminal, TerminalMode::Raw)
}

/// Changes the modes, and saves those before the first change.
fn change_modes(terminal: impl AsStream, mode: TerminalMode) -> io::Result<ModeGuard> {
    let mut place = lock_saved_modes();
    let before = SavedModes::change(terminal, mode)?;
    place.get_or_insert(before);
    Ok(ModeGuard(()))
}

/// File for messages, if not standard error.
static MESSAGE_FILE: OnceLock<File> = OnceLock::new();

/// Redirects all further messages to a file.
pub(super) fn redirect_messages(path: &Path) -> Result<(), Failure> {
    let opened = OpenOptions::new().append(true).create(true).open(path);
    let file = opened
        .map_err(|why| Failure::new(FailureCode::Failure, format!("{}: {why}", path.display())))?;
    // Called only once.
    let _ = MESSAGE_FILE.set(file);
    Ok(())
}

/// Prints a message, with line ends that suit the current modes.
pub(super) fn print_message(text: &str) {
    // A missing reader is not a failure.
    let _ = match MESSAGE_FILE.get() {
        Some(mut file) => writeln!(file, "{text}"),
        None if lock_saved_modes().is_some() => {
            write!(stderr(), "{}\r\n", text.replace('\n', "\r\n"))
        }
        None => writeln!(stderr(), "{text}"),
    };
}

/// Asks a question and reads a visible answer. Returns `None` without a terminal or an answer.
pub(super) async fn ask_visible(question: String) -> Option<String> {
    let answer = tokio::task::spawn_blocking(move || {
        let mut tty = platform::open_terminal()?;
        write!(tty, "{question}").ok()?;
        read_line(&mut tty)
    });
    answer.await.ok().flatten()
}

/// Reads a line byte by byte: the bytes after it belong to other programs.
fn read_line(tty: &mut impl Read) -> Option<String> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    loop {
        match tty.read(&mut byte) {
            Ok(0) | Err(_) if line.is_empty() => return None,
            Ok(0) | Err(_) => break,
            Ok(_) if byte == *b"\n" => break,
            Ok(_) => line.push(byte[0]),
        }
        if line.len() > MAX_ANSWER {
            return None;
        }
    }
    // Consoles end lines with both characters.
    if line.ends_with(b"\r") {
        line.pop();
    }
    String::from_utf8(line).ok()
}

/// Asks a question and reads an answer without echo. Returns `None` without a terminal, or if the user
/// declines (^D). An interrupt ends the program, so that this function does not return.
pub(super) async fn ask_hidden(question: String) -> Option<Secret<String>> {
    let typed = tokio::task::spawn_blocking(move || {
        let mut tty = platform::open_terminal()?;
        let modes = change_modes(&tty, TerminalMode::Hidden).ok()?;
        write!(tty, "{question}").ok()?;
        let typed = read_hidden_keys(&mut tty);
        drop(modes);
        writeln!(tty).ok()?;
        Some(typed)
    });
    match typed.await.ok().flatten()? {
        HiddenInput::Answer(answer) => answer,
        HiddenInput::Interrupt => {
            // As the terminal would have done in its usual modes.
            platform::raise_interrupt();
            pending().await
        }
    }
}

/// Result of reading hidden input.
enum HiddenInput {
    Answer(Option<Secret<String>>),
    Interrupt,
}

/// Reads hidden input, with backspace and ^U, until the end of the line.
fn read_hidden_keys(tty: &mut impl Read) -> HiddenInput {
    // Allocated at full length: growing would leave parts of the answer in freed memory.
    let mut answer = Secret::new(Vec::with_capacity(MAX_ANSWER));
    let mut byte = [0];
    loop {
        if !matches!(tty.read(&mut byte), Ok(1)) {
            return HiddenInput::Answer(None);
        }
        let typed = answer.expose_mut();
        match byte[0] {
            b'\r' | b'\n' => break,
            // Interrupt and quit.
            0x03 | 0x1c => return HiddenInput::Interrupt,
            0x04 if typed.is_empty() => return HiddenInput::Answer(None),
            0x08 | 0x7f => {
                // A character may have several bytes.
                while typed.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
            }
            0x15 => typed.clear(),
            key if typed.len() < MAX_ANSWER => typed.push(key),
            _ => return HiddenInput::Answer(None),
        }
    }
    let text = String::from_utf8(std::mem::take(answer.expose_mut())).ok();
    HiddenInput::Answer(text.map(Secret::new))
}
