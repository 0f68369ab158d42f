//! The leaves of Windows: the console, named pipes in the place of sockets, and access lists in that of modes.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, IsTerminal, Read, Stderr, Write};
use std::os::windows::io::{AsHandle, BorrowedHandle};
use std::path::{Path, PathBuf};
use std::time::Duration;

use adit_cli::{CommandResult, Failure, FailureCode};
use adit_net::named_pipe::{self, PipeListener};
use adit_net::persistent_file::FileOwner;
use adit_ssh_proto::connection::{TerminalModes, TerminalSize};
use adit_wire::subslice;
use anyhow::Context;
use crossterm_winapi::{Console, ConsoleMode, Handle, InputRecord, ScreenBuffer};
use tokio::net::windows::named_pipe::{NamedPipeClient, NamedPipeServer};
use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close};
use tokio::time::sleep;

use super::TerminalMode;

/// Modes of the console's input.
const PROCESSED_INPUT: u32 = 0x1;
const LINE_INPUT: u32 = 0x2;
const ECHO_INPUT: u32 = 0x4;
const VIRTUAL_TERMINAL_INPUT: u32 = 0x200;
/// Modes of its output.
const PROCESSED_OUTPUT: u32 = 0x1;
const VIRTUAL_TERMINAL_PROCESSING: u32 = 0x4;
const NO_AUTO_RETURN: u32 = 0x8;

/// Maximum length of a file with a private key, in bytes.
const MAX_KEY_FILE: usize = 1 << 20;
/// Interval at which the size of the console is looked at: no signal reports a change.
const SIZE_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Fails: Windows has no program that continues in the background.
pub(in crate::ssh) fn spawn_background(
    _: impl IntoIterator<Item = OsString>,
    _: u8,
) -> CommandResult {
    let what = "-f: programs of Windows cannot go to the background";
    Err(Failure::new(FailureCode::Usage, what).with_hint("start /b adit ssh -N ..."))
}

/// Does nothing: no program gets here with `-f`.
#[allow(clippy::unnecessary_wraps, reason = "it fails on other systems")]
pub(in crate::ssh) const fn detach(_: bool) -> CommandResult {
    Ok(())
}

/// Returns standard error.
pub(in crate::ssh) fn stderr() -> Stderr {
    io::stderr()
}

/// The modes of the console before they were changed.
#[derive(Debug)]
pub(in crate::ssh) struct SavedModes {
    input: u32,
    output: Option<u32>,
}

/// The console's input and output.
fn console_input() -> io::Result<ConsoleMode> {
    Ok(ConsoleMode::from(Handle::input_handle()?))
}

fn console_output() -> io::Result<ConsoleMode> {
    Ok(ConsoleMode::from(Handle::current_out_handle()?))
}

impl SavedModes {
    /// Changes the modes of the console, of which a process has one, and returns those before.
    pub(in crate::ssh) fn change(_: impl AsHandle, mode: TerminalMode) -> io::Result<Self> {
        let (input, output) = (console_input()?, console_output());
        let before = Self {
            input: input.mode()?,
            output: output.as_ref().ok().and_then(|output| output.mode().ok()),
        };
        let plain = before.input & !(PROCESSED_INPUT | LINE_INPUT | ECHO_INPUT);
        if mode == TerminalMode::Hidden {
            input.set_mode(plain)?;
            return Ok(before);
        }
        // A console that knows no sequences has keys without any, such as letters.
        if input.set_mode(plain | VIRTUAL_TERMINAL_INPUT).is_err() {
            input.set_mode(plain)?;
        }
        if let (Ok(output), Some(mode)) = (output, before.output) {
            let sequences = mode | PROCESSED_OUTPUT | VIRTUAL_TERMINAL_PROCESSING;
            let _ = output
                .set_mode(sequences | NO_AUTO_RETURN)
                .or_else(|_| output.set_mode(sequences));
        }
        Ok(before)
    }

    /// Sets the modes again.
    pub(in crate::ssh) fn restore(self) {
        // The console may be gone by now.
        let _ = console_input().and_then(|input| input.set_mode(self.input));
        if let (Ok(output), Some(mode)) = (console_output(), self.output) {
            let _ = output.set_mode(mode);
        }
    }
}

/// The console of this process, for questions.
#[derive(Debug)]
pub(in crate::ssh) struct ConsoleFile {
    input: File,
    output: File,
}

impl AsHandle for ConsoleFile {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.input.as_handle()
    }
}

impl Read for ConsoleFile {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.input.read(out)
    }
}

impl Write for ConsoleFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// Opens the console, whatever the standard streams are.
pub(in crate::ssh) fn open_terminal() -> Option<ConsoleFile> {
    let open = |name| OpenOptions::new().read(true).write(true).open(name);
    Some(ConsoleFile {
        input: open("CONIN$").ok()?,
        output: open("CONOUT$").ok()?,
    })
}

/// Ends this program as an interrupt in the usual modes does.
pub(in crate::ssh) fn raise_interrupt() {
    std::process::exit(130);
}

/// Returns false: Windows cannot stop a program.
pub(in crate::ssh) const fn suspend() -> bool {
    false
}

/// Reports that the size of the console may have changed.
#[derive(Debug)]
pub(in crate::ssh) struct WindowChanges(Option<(u16, u16)>);

impl WindowChanges {
    #[allow(clippy::unnecessary_wraps, reason = "other systems install a handler")]
    pub(in crate::ssh) fn new() -> io::Result<Self> {
        Ok(Self(console_size()))
    }

    /// Waits for the next change.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub(in crate::ssh) async fn next(&mut self) {
        loop {
            sleep(SIZE_CHECK_INTERVAL).await;
            let now = console_size();
            if now != self.0 {
                self.0 = now;
                return;
            }
        }
    }
}

/// Waits for Ctrl-C, Ctrl-Break or the end of the console, and returns the name of the signal that means the same.
pub(in crate::ssh) async fn wait_for_signal() -> anyhow::Result<&'static str> {
    let what = "cannot install handlers of the console";
    let mut interrupt = ctrl_c().context(what)?;
    let mut terminate = ctrl_break().context(what)?;
    let mut close = ctrl_close().context(what)?;
    Ok(tokio::select! {
        _ = interrupt.recv() => "SIGINT",
        _ = terminate.recv() => "SIGTERM",
        _ = close.recv() => "SIGHUP",
    })
}

/// Returns the columns and rows of the console's window.
fn console_size() -> Option<(u16, u16)> {
    let window = ScreenBuffer::current().ok()?.info().ok()?.terminal_window();
    let length = |from: i16, to: i16| u16::try_from(to.checked_sub(from)?.checked_add(1)?).ok();
    Some((
        length(window.left, window.right)?,
        length(window.top, window.bottom)?,
    ))
}

/// Returns the size of the console, or `None` if there is none.
pub(in crate::ssh) fn terminal_size(_: impl AsHandle) -> Option<TerminalSize> {
    let (columns, rows) = console_size()?;
    Some(TerminalSize {
        columns: columns.into(),
        rows: rows.into(),
        width: 0,
        height: 0,
    })
}

/// Returns the type of the terminal, for programs on the host: consoles understand the sequences of xterm.
pub(in crate::ssh) fn terminal_type() -> String {
    let set = std::env::var("TERM").ok().filter(|set| !set.is_empty());
    set.unwrap_or_else(|| "xterm-256color".to_owned())
}

/// Returns no modes: the host uses its defaults.
pub(in crate::ssh) fn read_modes(_: impl AsHandle) -> TerminalModes {
    TerminalModes::new()
}

/// Standard input without a buffer: keys of the console, or the bytes of anything else.
#[derive(Debug)]
pub(in crate::ssh) enum InputStream {
    Console(ConsoleKeys, File),
    Other(File),
}

/// Standard output or error without a buffer.
#[derive(Debug)]
pub(in crate::ssh) enum OutputStream {
    Console(ConsoleText, File),
    Other(File),
}

impl AsHandle for InputStream {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        match self {
            Self::Console(_, file) | Self::Other(file) => file.as_handle(),
        }
    }
}

impl AsHandle for OutputStream {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        match self {
            Self::Console(_, file) | Self::Other(file) => file.as_handle(),
        }
    }
}

impl Read for InputStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Console(keys, _) => keys.read(out),
            // The other end of a pipe was closed.
            Self::Other(file) => match file.read(out) {
                Err(why) if why.kind() == io::ErrorKind::BrokenPipe => Ok(0),
                read => read,
            },
        }
    }
}

impl Write for OutputStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Console(text, _) => text.write(bytes),
            Self::Other(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Console(text, _) => text.to.flush(),
            Self::Other(file) => file.flush(),
        }
    }
}

/// Returns standard input.
pub(in crate::ssh) fn open_stdin() -> io::Result<InputStream> {
    let stdin = io::stdin();
    let file = File::from(stdin.as_handle().try_clone_to_owned()?);
    Ok(match stdin.is_terminal() {
        true => InputStream::Console(ConsoleKeys::new()?, file),
        false => InputStream::Other(file),
    })
}

/// Returns standard output.
pub(in crate::ssh) fn open_stdout() -> io::Result<OutputStream> {
    let stdout = io::stdout();
    let is_console = stdout.is_terminal();
    open_output(stdout, is_console)
}

/// Returns standard error.
pub(in crate::ssh) fn open_stderr() -> io::Result<OutputStream> {
    let stderr = io::stderr();
    let is_console = stderr.is_terminal();
    open_output(stderr, is_console)
}

fn open_output(
    stream: impl AsHandle + Write + Send + 'static,
    is_console: bool,
) -> io::Result<OutputStream> {
    let file = File::from(stream.as_handle().try_clone_to_owned()?);
    Ok(match is_console {
        true => OutputStream::Console(ConsoleText::new(stream), file),
        false => OutputStream::Other(file),
    })
}

/// The keys of the console, as UTF-8 and sequences of terminals.
pub(in crate::ssh) struct ConsoleKeys {
    console: Console,
    /// Bytes of keys that have not been read.
    pending: Vec<u8>,
    /// The first half of a character beyond the basic plane.
    high: Option<u16>,
}

impl std::fmt::Debug for ConsoleKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsoleKeys").finish_non_exhaustive()
    }
}

impl ConsoleKeys {
    fn new() -> io::Result<Self> {
        Ok(Self {
            console: Console::from(Handle::input_handle()?),
            pending: Vec::new(),
            high: None,
        })
    }

    /// Adds a unit of UTF-16.
    fn push(&mut self, unit: u16) {
        let units = self.high.take().into_iter().chain([unit]);
        for decoded in char::decode_utf16(units) {
            match decoded {
                Ok(character) => {
                    let mut bytes = [0; 4];
                    let text = character.encode_utf8(&mut bytes);
                    self.pending.extend_from_slice(text.as_bytes());
                }
                // The other half is the next key.
                Err(half) => self.high = Some(half.unpaired_surrogate()),
            }
        }
    }

    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.pending.is_empty() {
            for record in self.console.read_console_input()? {
                let InputRecord::KeyEvent(key) = record else {
                    continue;
                };
                // Keys that only change others, and such without a sequence, have no character.
                if key.key_down && key.u_char != 0 {
                    for _ in 0..key.repeat_count.max(1) {
                        self.push(key.u_char);
                    }
                }
            }
        }
        let count = out.len().min(self.pending.len());
        for (to, byte) in out.iter_mut().zip(self.pending.drain(..count)) {
            *to = byte;
        }
        Ok(count)
    }
}

/// Output to the console, which takes text and no bytes: a character may come in two writes, and what is not UTF-8
/// becomes a replacement character.
pub(in crate::ssh) struct ConsoleText {
    to: Box<dyn Write + Send>,
    incomplete: Vec<u8>,
}

impl std::fmt::Debug for ConsoleText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsoleText").finish_non_exhaustive()
    }
}

impl ConsoleText {
    fn new(to: impl Write + Send + 'static) -> Self {
        Self {
            to: Box::new(to),
            incomplete: Vec::new(),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = complete_text(&mut self.incomplete, bytes);
        self.to.write_all(text.as_bytes())?;
        self.to.flush()?;
        Ok(bytes.len())
    }
}

/// Returns the text of `incomplete` and `bytes`. The begin of a character at the end stays in `incomplete`.
fn complete_text(incomplete: &mut Vec<u8>, bytes: &[u8]) -> String {
    incomplete.extend_from_slice(bytes);
    let all = std::mem::take(incomplete);
    let mut text = String::with_capacity(all.len());
    let mut rest = &all[..];
    loop {
        match std::str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                return text;
            }
            Err(why) => {
                let (valid, after) = rest.split_at(why.valid_up_to());
                text.push_str(&String::from_utf8_lossy(valid));
                let Some(len) = why.error_len() else {
                    incomplete.extend_from_slice(after);
                    return text;
                };
                text.push(char::REPLACEMENT_CHARACTER);
                rest = subslice(after, len..);
            }
        }
    }
}

/// Returns the name of the local user.
pub(in crate::ssh) fn user_name() -> String {
    std::env::var("USERNAME").unwrap_or_default()
}

/// Returns the home folder of the local user.
pub(in crate::ssh) fn home_folder() -> PathBuf {
    std::env::home_dir().unwrap_or_default()
}

/// Returns the host name of this machine.
pub(in crate::ssh) fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// Checks that no other account can read a file with a private key.
pub(in crate::ssh) fn check_key_file(file: &Path, _: &Metadata) -> anyhow::Result<()> {
    FileOwner::current().read_secret(file, MAX_KEY_FILE)?;
    Ok(())
}

/// Returns text as it is sent to the host: UTF-8.
pub(in crate::ssh) fn to_bytes(text: &OsStr) -> Vec<u8> {
    text.to_string_lossy().into_owned().into_bytes()
}

/// Opens a named pipe that only the user can connect to.
pub(in crate::ssh) fn bind_private_socket(path: &str) -> io::Result<LocalSocketListener> {
    PipeListener::bind(Path::new(path)).map(LocalSocketListener)
}

/// A listener at a named pipe.
#[derive(Debug)]
pub(in crate::ssh) struct LocalSocketListener(PipeListener);

impl LocalSocketListener {
    /// Accepts a connection.
    pub(in crate::ssh) async fn accept(&mut self) -> io::Result<NamedPipeServer> {
        self.0.accept().await
    }
}

/// Connects to a named pipe.
pub(in crate::ssh) async fn connect_socket(path: impl AsRef<Path>) -> io::Result<NamedPipeClient> {
    named_pipe::connect(path.as_ref()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_in_pieces() {
        let mut kept = Vec::new();
        assert_eq!(complete_text(&mut kept, b"a\xc3"), "a");
        assert_eq!(complete_text(&mut kept, b"\xa4b"), "\u{e4}b");
        assert_eq!(complete_text(&mut kept, b"\xffc\xe2\x82"), "\u{fffd}c");
        assert_eq!(complete_text(&mut kept, b"x"), "\u{fffd}x");
        assert!(kept.is_empty());
    }
}
