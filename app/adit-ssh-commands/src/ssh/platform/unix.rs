//! The leaves of Unix.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use adit_ssh_proto::connection::{TerminalModes, TerminalSize};
use anyhow::Context;
use nix::unistd::{Uid, User};
use rustix::fs::Mode;
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios, tcgetattr,
    tcgetwinsize, tcsetattr,
};
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};

use super::TerminalMode;
use crate::terminal_modes;

pub(in crate::ssh) use adit_cli::background::{detach, spawn_background};
pub(in crate::ssh) use adit_cli::blocking_stream::stderr;

/// The modes of a terminal before they were changed.
#[derive(Debug)]
pub(in crate::ssh) struct SavedModes {
    terminal: File,
    modes: Termios,
}

impl SavedModes {
    /// Changes the modes of a terminal, and returns those before.
    pub(in crate::ssh) fn change(terminal: impl AsFd, mode: TerminalMode) -> io::Result<Self> {
        let terminal = File::from(terminal.as_fd().try_clone_to_owned()?);
        let before = tcgetattr(&terminal)?;
        let mut modes = before.clone();
        match mode {
            TerminalMode::Raw => set_raw(&mut modes),
            TerminalMode::Hidden => {
                modes.local_modes -=
                    LocalModes::ISIG | LocalModes::ICANON | LocalModes::ECHO | LocalModes::ECHONL;
            }
        }
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&terminal, OptionalActions::Drain, &modes)?;
        Ok(Self {
            terminal,
            modes: before,
        })
    }

    /// Sets the modes again.
    pub(in crate::ssh) fn restore(self) {
        // The terminal may be gone by now.
        let _ = tcsetattr(&self.terminal, OptionalActions::Drain, &self.modes);
    }
}

fn set_raw(modes: &mut Termios) {
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
}

/// Opens the controlling terminal.
pub(in crate::ssh) fn open_terminal() -> Option<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/tty")
        .ok()
}

/// Does what the terminal does for an interrupt in its usual modes.
pub(in crate::ssh) fn raise_interrupt() {
    let _ = kill_process(getpid(), Signal::INT);
}

/// Stops this program until the user continues it. Returns false if the system cannot do that.
pub(in crate::ssh) fn suspend() -> bool {
    kill_process(getpid(), Signal::TSTP).is_ok()
}

/// Reports that the size of the terminal may have changed.
#[derive(Debug)]
pub(in crate::ssh) struct WindowChanges(tokio::signal::unix::Signal);

impl WindowChanges {
    pub(in crate::ssh) fn new() -> io::Result<Self> {
        signal(SignalKind::window_change()).map(Self)
    }

    /// Waits for the next change.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub(in crate::ssh) async fn next(&mut self) {
        self.0.recv().await;
    }
}

/// Waits for SIGINT, SIGTERM or SIGHUP, and returns its name.
pub(in crate::ssh) async fn wait_for_signal() -> anyhow::Result<&'static str> {
    let catch = |kind| signal(kind).context("cannot install signal handlers");
    let mut interrupt = catch(SignalKind::interrupt())?;
    let mut terminate = catch(SignalKind::terminate())?;
    let mut hangup = catch(SignalKind::hangup())?;
    Ok(tokio::select! {
        _ = interrupt.recv() => "SIGINT",
        _ = terminate.recv() => "SIGTERM",
        _ = hangup.recv() => "SIGHUP",
    })
}

/// Returns the size of the terminal, or `None` if it is not a terminal.
pub(in crate::ssh) fn terminal_size(terminal: impl AsFd) -> Option<TerminalSize> {
    let size = tcgetwinsize(terminal).ok()?;
    Some(TerminalSize {
        columns: size.ws_col.into(),
        rows: size.ws_row.into(),
        width: size.ws_xpixel.into(),
        height: size.ws_ypixel.into(),
    })
}

/// Returns the type of the terminal, for programs on the host.
pub(in crate::ssh) fn terminal_type() -> String {
    std::env::var("TERM").unwrap_or_default()
}

/// Returns the modes of the terminal.
pub(in crate::ssh) fn read_modes(terminal: impl AsFd) -> TerminalModes {
    terminal_modes::read_modes(terminal)
}

/// Duplicates the descriptor of a stream: the standard library's own type would buffer lines.
fn duplicate_as_file(stream: impl AsFd) -> io::Result<File> {
    Ok(File::from(stream.as_fd().try_clone_to_owned()?))
}

/// Returns standard input, without a buffer.
pub(in crate::ssh) fn open_stdin() -> io::Result<File> {
    duplicate_as_file(io::stdin())
}

/// Returns standard output, without a buffer.
pub(in crate::ssh) fn open_stdout() -> io::Result<File> {
    duplicate_as_file(io::stdout())
}

/// Returns standard error.
pub(in crate::ssh) fn open_stderr() -> io::Result<File> {
    duplicate_as_file(io::stderr())
}

/// Returns the local user's entry in the user database.
fn current_user() -> Option<User> {
    User::from_uid(Uid::current()).ok().flatten()
}

/// Returns the name of the local user.
pub(in crate::ssh) fn user_name() -> String {
    match current_user() {
        Some(user) => user.name,
        None => std::env::var("USER").unwrap_or_else(|_| Uid::current().to_string()),
    }
}

/// Returns the home folder of the local user.
pub(in crate::ssh) fn home_folder() -> PathBuf {
    let set = std::env::var_os("HOME").filter(|value| !value.is_empty());
    match (set, current_user()) {
        (Some(home), _) => PathBuf::from(home),
        (None, Some(user)) => user.dir,
        (None, None) => PathBuf::from("/"),
    }
}

/// Returns the host name of this machine.
pub(in crate::ssh) fn host_name() -> String {
    let uname = rustix::system::uname();
    uname.nodename().to_string_lossy().into_owned()
}

/// Checks that no other user can read a file with a private key.
pub(in crate::ssh) fn check_key_file(file: &Path, metadata: &Metadata) -> anyhow::Result<()> {
    if metadata.uid() == rustix::process::getuid().as_raw() && metadata.mode() & 0o077 != 0 {
        anyhow::bail!(
            "other users can read it; run chmod 600 '{}'",
            file.display()
        );
    }
    Ok(())
}

/// Returns text as it is sent to the host.
pub(in crate::ssh) fn to_bytes(text: &OsStr) -> Vec<u8> {
    OsString::from(text).into_vec()
}

/// Binds a socket that only the user can connect to.
pub(in crate::ssh) fn bind_private_socket(path: &str) -> io::Result<LocalSocketListener> {
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let bound = UnixListener::bind(path);
    rustix::process::umask(before);
    Ok(LocalSocketListener(bound?))
}

/// A listener at a Unix socket.
#[derive(Debug)]
pub(in crate::ssh) struct LocalSocketListener(UnixListener);

impl LocalSocketListener {
    /// Accepts a connection.
    pub(in crate::ssh) async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.0.accept().await?.0)
    }
}

/// Connects to a Unix socket.
pub(in crate::ssh) async fn connect_socket(path: impl AsRef<Path>) -> io::Result<UnixStream> {
    UnixStream::connect(path).await
}
