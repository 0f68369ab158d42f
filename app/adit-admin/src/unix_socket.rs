//! Unix sockets that only their owner can use.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod};
use socket2::{Domain, SockAddr, Socket, Type};

/// File mode of a socket: only the owner may read and write.
const MODE: u32 = 0o600;
/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 64;

/// The file of a socket. Dropping it removes the file, unless another process has the socket.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    is_owner: bool,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.is_owner {
            // A process that exits cannot report an error.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl SocketFile {
    fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            is_owner: true,
        }
    }

    /// Leaves the file to another process, which has the socket, or takes it over from it.
    pub(crate) fn set_owner(&mut self, is_owner: bool) {
        self.is_owner = is_owner;
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Binds a datagram socket at `path`.
pub(crate) fn bind_datagram_socket(
    path: &Path,
) -> io::Result<(tokio::net::UnixDatagram, SocketFile)> {
    let (socket, file) = bind_socket(path, Type::DGRAM)?;
    Ok((tokio::net::UnixDatagram::from_std(socket.into())?, file))
}

/// Binds a listening stream socket at `path`.
pub(crate) fn bind_stream_socket(
    path: &Path,
) -> io::Result<(tokio::net::UnixListener, SocketFile)> {
    let (socket, file) = bind_socket(path, Type::STREAM)?;
    socket.listen(BACKLOG)?;
    Ok((tokio::net::UnixListener::from_std(socket.into())?, file))
}

/// Continues a listening stream socket that another process has bound at `path`. That process remains the owner of the
/// file.
pub(crate) fn continue_stream_socket(
    fd: OwnedFd,
    path: &Path,
) -> io::Result<(tokio::net::UnixListener, SocketFile)> {
    let socket = std::os::unix::net::UnixListener::from(fd);
    if socket.local_addr()?.as_pathname() != Some(path) {
        let why = "the inherited socket is bound to another path";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    socket.set_nonblocking(true)?;
    let socket = tokio::net::UnixListener::from_std(socket)?;
    let mut file = SocketFile::new(path);
    file.set_owner(false);
    Ok((socket, file))
}

fn bind_socket(path: &Path, kind: Type) -> io::Result<(Socket, SocketFile)> {
    let socket = Socket::new(Domain::UNIX, kind, None)?;
    remove_abandoned(path)?;
    // On Linux the file is created with the mode of the socket, so others can never use it.
    // On other systems this has no effect, or fails.
    let _ = fchmod(&socket, Mode::RUSR | Mode::WUSR);
    socket.bind(&SockAddr::unix(path)?)?;
    let file = SocketFile::new(path);
    fs::set_permissions(path, Permissions::from_mode(MODE))?;
    socket.set_nonblocking(true)?;
    Ok((socket, file))
}

/// Removes an abandoned socket at `path`, which a crash may have left. Other files are an error.
fn remove_abandoned(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    let taken = |why: &str| io::Error::new(io::ErrorKind::AddrInUse, why.to_owned());
    if !found.file_type().is_socket() {
        return Err(taken("the path is a file that is not a socket"));
    }
    let refused = |e: io::Error| e.kind() == io::ErrorKind::ConnectionRefused;
    // One of the two has the type of the socket; an abandoned socket refuses both.
    let dead = UnixStream::connect(path).is_err_and(refused)
        || UnixDatagram::unbound()?.connect(path).is_err_and(refused);
    if !dead {
        return Err(taken("another program listens there"));
    }
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("adit-local-{name}-{}", std::process::id()))
    }

    #[tokio::test]
    async fn only_the_owner_gets_in_and_the_file_goes() {
        let at = path("mode");
        let (_socket, file) = bind_datagram_socket(&at).unwrap();
        let mode = fs::metadata(&at).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, MODE);
        drop(file);
        assert!(!at.exists());
    }

    #[tokio::test]
    async fn an_abandoned_socket_gives_way_and_nothing_else_does() {
        for stream in [false, true] {
            let at = path(&format!("stale-{stream}"));
            let open = || match stream {
                true => bind_stream_socket(&at)
                    .map(|(socket, file)| (Box::new(socket) as Box<dyn Send>, file)),
                false => {
                    bind_datagram_socket(&at).map(|(socket, file)| (Box::new(socket) as _, file))
                }
            };
            let (socket, file) = open().unwrap();
            assert_eq!(open().err().unwrap().kind(), io::ErrorKind::AddrInUse);
            drop(socket);
            std::mem::forget(file);
            assert!(at.exists());
            drop(open().unwrap());
            fs::write(&at, b"precious").unwrap();
            assert_eq!(open().err().unwrap().kind(), io::ErrorKind::AddrInUse);
            assert_eq!(fs::read(&at).unwrap(), b"precious");
            fs::remove_file(&at).unwrap();
        }
    }
}
