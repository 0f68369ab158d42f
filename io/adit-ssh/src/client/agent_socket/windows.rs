//! Agents at named pipes, such as that of OpenSSH's service.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient};
use tokio::time::sleep;

/// `ERROR_PIPE_BUSY`: all instances of the pipe have a client.
const PIPE_BUSY: i32 = 231;
/// Number of attempts while the pipe is busy.
const ATTEMPTS: u32 = 40;
/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(50);

pub(in super::super) async fn connect(path: &Path) -> io::Result<NamedPipeClient> {
    // The agent may identify this process, and not act on its behalf: this is the default of the options.
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::windows::named_pipe::ServerOptions;

    use super::*;

    #[tokio::test]
    async fn a_busy_pipe_is_tried_again() {
        let name = format!(r"\\.\pipe\adit-agent-test-{}", std::process::id());
        let path = Path::new(&name);
        assert_eq!(
            connect(path).await.unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        let first = ServerOptions::new().create(path).unwrap();
        let _client = connect(path).await.unwrap();
        first.connect().await.unwrap();
        let (mut late, second) = tokio::join!(connect(path), async {
            sleep(PAUSE * 3).await;
            let second = ServerOptions::new().create(path).unwrap();
            second.connect().await.unwrap();
            second
        });
        let (late, mut second) = (late.as_mut().unwrap(), second);
        second.write_all(b"late").await.unwrap();
        let mut bytes = [0; 4];
        late.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"late");
    }
}
