//! The person at the terminal: questions, hidden answers, and the terminal's modes.
//!
//! Whatever changes the modes keeps the old ones here, so that [`restore`] can bring them back
//! however the program ends.

use std::fs::{File, OpenOptions};
use std::future::pending;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use adit_cli::{Code, Failure, patient::stderr};
use adit_crypto::Secret;
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios, tcgetattr,
    tcsetattr,
};

/// The longest answer, octets.
const LONGEST: usize = 4096;

/// A terminal whose modes were changed, and what they were.
static CHANGED: Mutex<Option<(File, Termios)>> = Mutex::new(None);

fn changed() -> MutexGuard<'static, Option<(File, Termios)>> {
    CHANGED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Brings the modes back, if any were changed.
pub(super) fn restore() {
    if let Some((terminal, modes)) = changed().take() {
        // It may be gone by now.
        let _ = tcsetattr(&terminal, OptionalActions::Drain, &modes);
    }
}

/// Modes that hold until it is dropped.
#[derive(Debug)]
pub(super) struct Changed(());

impl Drop for Changed {
    fn drop(&mut self) {
        restore();
    }
}

/// Every key goes through as it is, and every byte comes out as it is.
pub(super) fn raw(terminal: impl AsFd) -> io::Result<Changed> {
    change(terminal, |modes| {
        modes.input_modes |= InputModes::IGNPAR;
        modes.input_modes -= InputModes::ISTRIP
            | InputModes::INLCR
            | InputModes::IGNCR
            | InputModes::ICRNL
            | InputModes::IXON
            | InputModes::IXANY
            | InputModes::IXOFF;
        modes.local_modes -= LocalModes::ISIG
            | LocalModes::ICANON
            | LocalModes::ECHO
            | LocalModes::ECHOE
            | LocalModes::ECHOK
            | LocalModes::ECHONL
            | LocalModes::IEXTEN;
        modes.output_modes -= OutputModes::OPOST;
    })
}

/// Keys come one by one, are not shown, and raise no signal: an interrupt has to find its way
/// past the modes.
fn hidden(terminal: impl AsFd) -> io::Result<Changed> {
    change(terminal, |modes| {
        modes.local_modes -=
            LocalModes::ISIG | LocalModes::ICANON | LocalModes::ECHO | LocalModes::ECHONL;
    })
}

fn change(terminal: impl AsFd, how: impl FnOnce(&mut Termios)) -> io::Result<Changed> {
    let terminal = File::from(terminal.as_fd().try_clone_to_owned()?);
    let before = tcgetattr(&terminal)?;
    let mut modes = before.clone();
    how(&mut modes);
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    let mut place = changed();
    tcsetattr(&terminal, OptionalActions::Drain, &modes)?;
    place.get_or_insert((terminal, before));
    Ok(Changed(()))
}

/// Where things are said, if not on standard error.
static SAID_TO: OnceLock<File> = OnceLock::new();

/// Has everything said into a file from now on.
pub(super) fn say_to(path: &Path) -> Result<(), Failure> {
    let opened = OpenOptions::new().append(true).create(true).open(path);
    let file =
        opened.map_err(|why| Failure::new(Code::Failure, format!("{}: {why}", path.display())))?;
    // Asked for once.
    let _ = SAID_TO.set(file);
    Ok(())
}

/// Says something, whatever the modes are.
pub(super) fn say(text: &str) {
    // Nobody to hear it is no failure.
    let _ = match SAID_TO.get() {
        Some(mut file) => writeln!(file, "{text}"),
        None if changed().is_some() => {
            write!(stderr(), "{}\r\n", text.replace('\n', "\r\n"))
        }
        None => writeln!(stderr(), "{text}"),
    };
}

fn open() -> Option<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/tty")
        .ok()
}

/// Asks, and shows what is typed. `None` if there is no terminal, or no answer.
pub(super) async fn ask(question: String) -> Option<String> {
    let answer = tokio::task::spawn_blocking(move || {
        let mut tty = open()?;
        write!(tty, "{question}").ok()?;
        line(&mut tty)
    });
    answer.await.ok().flatten()
}

/// A line, byte by byte: what follows it is not ours.
fn line(tty: &mut File) -> Option<String> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    loop {
        match tty.read(&mut byte) {
            Ok(0) | Err(_) if line.is_empty() => return None,
            Ok(0) | Err(_) => break,
            Ok(_) if byte == *b"\n" => break,
            Ok(_) => line.push(byte[0]),
        }
        if line.len() > LONGEST {
            return None;
        }
    }
    String::from_utf8(line).ok()
}

/// Asks, and shows nothing of what is typed. `None` if there is no terminal, or the person does
/// not want to answer (^D). An interrupt is the program's end: there is no answer then.
pub(super) async fn ask_hidden(question: String) -> Option<Secret<String>> {
    let typed = tokio::task::spawn_blocking(move || {
        let mut tty = open()?;
        let modes = hidden(&tty).ok()?;
        write!(tty, "{question}").ok()?;
        let typed = keys(&mut tty);
        drop(modes);
        writeln!(tty).ok()?;
        Some(typed)
    });
    match typed.await.ok().flatten()? {
        Typed::Answer(answer) => answer,
        Typed::Interrupt => {
            // What the terminal would have made of it with its usual modes.
            let _ = kill_process(getpid(), Signal::INT);
            pending().await
        }
    }
}

/// What comes from the keys while they are hidden.
enum Typed {
    Answer(Option<Secret<String>>),
    Interrupt,
}

fn keys(tty: &mut File) -> Typed {
    // As long as it can get, so that no part of it is left behind in memory.
    let mut answer = Secret::new(Vec::with_capacity(LONGEST));
    let mut byte = [0];
    loop {
        if !matches!(tty.read(&mut byte), Ok(1)) {
            return Typed::Answer(None);
        }
        let typed = answer.expose_mut();
        match byte[0] {
            b'\r' | b'\n' => break,
            // Interrupt and quit.
            0x03 | 0x1c => return Typed::Interrupt,
            0x04 if typed.is_empty() => return Typed::Answer(None),
            0x08 | 0x7f => {
                // A character may have several bytes.
                while typed.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
            }
            0x15 => typed.clear(),
            key if typed.len() < LONGEST => typed.push(key),
            _ => return Typed::Answer(None),
        }
    }
    let text = String::from_utf8(std::mem::take(answer.expose_mut())).ok();
    Typed::Answer(text.map(Secret::new))
}
