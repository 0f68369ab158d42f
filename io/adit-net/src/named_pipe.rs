//! Named pipes of Windows: listeners for programs of the same user on the same machine, and connections to pipes.

use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::windows::named_pipe::{
    ClientOptions, NamedPipeClient, NamedPipeServer, ServerOptions,
};
use tokio::time::sleep;

use crate::persistent_file::PrivateSecurity;

/// The prefix of the paths of pipes of this machine.
const PREFIX: &str = r"\\.\pipe\";
/// `ERROR_PIPE_BUSY`: all instances of the pipe have a client.
const PIPE_BUSY: i32 = 231;
/// Number of attempts while the pipe is busy.
const ATTEMPTS: u32 = 40;
/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(50);

/// A listener at a named pipe that only the user, the system and the administrators can open. Programs on other machines
/// cannot.
#[derive(Debug)]
pub struct PipeListener {
    path: PathBuf,
    security: PrivateSecurity,
    /// The instance that the next client opens.
    waiting: NamedPipeServer,
}

impl PipeListener {
    /// Creates a pipe at a path of the form `\\.\pipe\NAME`. Requires a tokio runtime.
    ///
    /// # Errors
    /// The path has another form ([`InvalidInput`](io::ErrorKind::InvalidInput)), there is a pipe of this name already
    /// ([`PermissionDenied`](io::ErrorKind::PermissionDenied)), and errors of the system.
    pub fn bind(path: &Path) -> io::Result<Self> {
        if !is_pipe_path(path) {
            let why = format!("the path of a pipe has the form {PREFIX}NAME");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let security = PrivateSecurity::for_user()?;
        let waiting = create_instance(path, &security, true)?;
        Ok(Self {
            path: path.to_owned(),
            security,
            waiting,
        })
    }

    /// Returns the path of the pipe.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for the next client.
    ///
    /// # Errors
    /// Errors of the system; the next call tries again.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn accept(&mut self) -> io::Result<NamedPipeServer> {
        self.waiting.connect().await?;
        let next = create_instance(&self.path, &self.security, false)?;
        Ok(mem::replace(&mut self.waiting, next))
    }
}

/// Connects to a pipe. While all its instances have a client, this is tried again for two seconds. The server may identify
/// this process, and not act on its behalf. Requires a tokio runtime.
///
/// # Errors
/// No pipe of this name ([`NotFound`](io::ErrorKind::NotFound)), and errors of the system.
pub async fn connect(path: &Path) -> io::Result<NamedPipeClient> {
    // The level of identification is the default of the options.
    let options = ClientOptions::new();
    let mut attempt = 1;
    loop {
        match options.open(path) {
            Err(why) if why.raw_os_error() == Some(PIPE_BUSY) && attempt < ATTEMPTS => {
                attempt += 1;
                sleep(PAUSE).await;
            }
            done => return done,
        }
    }
}

/// Returns true for `\\.\pipe\NAME`, also with slashes.
fn is_pipe_path(path: &Path) -> bool {
    let Some(text) = path.to_str() else {
        return false;
    };
    let text = text.replace('/', "\\");
    text.get(..PREFIX.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(PREFIX) && text.len() > PREFIX.len())
}

/// Creates an instance of the pipe. With `first`, another process must not have a pipe of this name: it would see the
/// clients of this one.
#[allow(
    unsafe_code,
    reason = "the attributes of a pipe are passed as a pointer"
)]
fn create_instance(
    path: &Path,
    security: &PrivateSecurity,
    first: bool,
) -> io::Result<NamedPipeServer> {
    let mut attributes = security.attributes();
    // SAFETY: the pointer is that of attributes of the type that the function requires, which live longer than the
    // call, as does the descriptor that they point to.
    unsafe {
        ServerOptions::new()
            .first_pipe_instance(first)
            .reject_remote_clients(true)
            .create_with_security_attributes_raw(path, (&raw mut attributes).cast())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn pipe(test: &str) -> PathBuf {
        PathBuf::from(format!(r"\\.\pipe\adit-{test}-{}", std::process::id()))
    }

    #[tokio::test]
    async fn clients_are_served_one_after_the_other() {
        let mut listener = PipeListener::bind(&pipe("served")).unwrap();
        let path = listener.path().to_owned();
        let mut open = Vec::new();
        for text in [b"one", b"two"] {
            let mut client = connect(&path).await.unwrap();
            let mut server = listener.accept().await.unwrap();
            client.write_all(text).await.unwrap();
            let mut bytes = [0; 3];
            server.read_exact(&mut bytes).await.unwrap();
            assert_eq!(&bytes, text);
            open.push((client, server));
        }
    }

    #[tokio::test]
    async fn a_busy_pipe_is_tried_again() {
        let path = pipe("busy");
        let missing = connect(&path).await.unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let first = ServerOptions::new().create(&path).unwrap();
        let _client = connect(&path).await.unwrap();
        first.connect().await.unwrap();
        let (late, mut second) = tokio::join!(connect(&path), async {
            sleep(PAUSE * 3).await;
            let second = ServerOptions::new().create(&path).unwrap();
            second.connect().await.unwrap();
            second
        });
        second.write_all(b"late").await.unwrap();
        let mut bytes = [0; 4];
        late.unwrap().read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"late");
    }

    #[tokio::test]
    async fn a_name_is_taken_once() {
        let path = pipe("taken");
        let _listener = PipeListener::bind(&path).unwrap();
        assert_eq!(
            PipeListener::bind(&path).unwrap_err().kind(),
            io::ErrorKind::PermissionDenied
        );
    }

    #[tokio::test]
    async fn other_paths_are_refused() {
        for path in [r"C:\pipe\adit", "adit", r"\\.\pipe\", r"\\server\pipe\adit"] {
            let why = PipeListener::bind(Path::new(path)).unwrap_err();
            assert_eq!(why.kind(), io::ErrorKind::InvalidInput, "{path}");
        }
        assert!(is_pipe_path(Path::new("//./pipe/adit")));
    }
}
