//! Pseudo-terminals for programs that need a terminal.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsendbreak, tcsetwinsize};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The size of a terminal; 0 where it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TerminalSize {
    /// Number of columns, in characters.
    pub columns: u16,
    /// Number of rows.
    pub rows: u16,
    /// Width in pixels.
    pub width: u16,
    /// Height in pixels.
    pub height: u16,
}

/// The master end of a pseudo-terminal. Dropping it hangs up the terminal: the processes it controls
/// receive SIGHUP.
#[derive(Debug)]
pub struct PseudoTerminal {
    master: AsyncFd<File>,
    name: PathBuf,
}

impl PseudoTerminal {
    /// Opens a pseudo-terminal and returns its master end and the program's end. Requires a tokio runtime.
    ///
    /// # Errors
    /// The system has no pseudo-terminals, or none left.
    pub fn open() -> io::Result<(Self, OwnedFd)> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        fcntl_setfd(&ours, FdFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let name = PathBuf::from(OsString::from_vec(ptsname(&ours, Vec::new())?.into_bytes()));
        let theirs = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOCTTY)
            .open(&name)?;
        fcntl_setfl(&ours, fcntl_getfl(&ours)? | OFlags::NONBLOCK)?;
        let terminal = Self {
            master: register_file(File::from(ours))?,
            name,
        };
        Ok((terminal, theirs.into()))
    }

    /// Returns the path of the program's end.
    #[must_use]
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Sets the size; a running program is signalled if it has changed.
    ///
    /// # Errors
    /// The error of the system.
    pub fn resize(&self, size: TerminalSize) -> io::Result<()> {
        let size = Winsize {
            ws_col: size.columns,
            ws_row: size.rows,
            ws_xpixel: size.width,
            ws_ypixel: size.height,
        };
        Ok(tcsetwinsize(&self.master, size)?)
    }

    /// Sends a break.
    ///
    /// # Errors
    /// The error of the system.
    pub fn send_break(&self) -> io::Result<()> {
        Ok(tcsendbreak(&self.master)?)
    }
}

/// Reads the output of the programs. The end of the stream means that no program has the terminal open any
/// more.
impl AsyncRead for &PseudoTerminal {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.master.poll_read_ready(cx))?;
            let into = out.initialize_unfilled();
            match ready.try_io(|ours| ours.get_ref().read(into)) {
                Ok(Ok(n)) => {
                    out.advance(n);
                    return Poll::Ready(Ok(()));
                }
                // Linux returns EIO after the last program has closed the terminal.
                Ok(Err(why)) if Errno::from_io_error(&why) == Some(Errno::IO) => {
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(why)) if why.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(why)) => return Poll::Ready(Err(why)),
                Err(_would_block) => {}
            }
        }
    }
}

/// Writes input for the programs, as if it was typed. Shutting down has no effect: a terminal cannot signal
/// the end of its input.
impl AsyncWrite for &PseudoTerminal {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.master.poll_write_ready(cx))?;
            match ready.try_io(|ours| ours.get_ref().write(bytes)) {
                Ok(Err(why)) if why.kind() == io::ErrorKind::Interrupted => {}
                Ok(done) => return Poll::Ready(done),
                Err(_would_block) => {}
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[allow(
    deprecated,
    reason = "a `File` keeps its descriptor as long as it lives, which is all that is required"
)]
fn register_file(file: File) -> io::Result<AsyncFd<File>> {
    AsyncFd::new(file)
}

impl AsFd for PseudoTerminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.master.get_ref().as_fd()
    }
}
