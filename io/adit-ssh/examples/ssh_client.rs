//! A client, for users of Go's `x/crypto/ssh`: connects, runs a command, prints its output, and exits
//! with its status.
//!
//! `ssh_client HOST PORT USER KEY KNOWN_HOSTS COMMAND`. The guide shows the functions:
//! `docs/guides/ssh-library.md`.

#![allow(
    dead_code,
    reason = "the guide shows them one by one; the tests run those that the program does not"
)]
#![allow(clippy::print_stderr, reason = "a terminal program")]

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use adit_ssh::client::{Client, ClientConfig, Exit, KnownHostsOnly, Login, Session};
use adit_ssh::{Channel, SessionEnd};
use adit_ssh_proto::connection::{PtyRequest, TerminalModes, TerminalSize};
use adit_ssh_proto::key::PrivateKey;
use adit_stream::{BoxStream, Tcp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Fallible<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [host, port, user, key, known_hosts, command] = &*words else {
        return Err("usage: ssh_client HOST PORT USER KEY KNOWN_HOSTS COMMAND".into());
    };
    let (key, known_hosts) = (Path::new(key), Path::new(known_hosts));
    let session = dial(host, port.parse()?, user, key, known_hosts).await?;
    let status = run(&session, command).await?;
    std::process::exit(i32::try_from(status).unwrap_or(255));
}

// region: dial
/// `ssh.Dial` with `ssh.ParsePrivateKey`, `ssh.PublicKeys` and `knownhosts.New`.
pub(crate) async fn dial(
    host: &str,
    port: u16,
    user: &str,
    key: &Path,
    known_hosts: &Path,
) -> Fallible<Session> {
    let key = PrivateKey::from_text(&fs::read_to_string(key)?, None)?;
    let known = KnownHostsOnly::read(host, port, &[known_hosts])?;
    let config = ClientConfig::for_known_host(known, Login::new(user).with_key(key));
    Ok(Client::connect_tcp(host, port, config).await?)
}
// end

// region: connect
/// `ssh.NewClientConn` and `ssh.NewClient`: over an existing connection. For a jump host, use a
/// channel of another session.
pub(crate) async fn connect(socket: TcpStream, config: ClientConfig) -> Fallible<Session> {
    let stream: BoxStream = Box::new(Tcp::new(socket));
    Ok(Client::connect(stream, config).await?)
}
// end

// region: output
/// `Client.NewSession` and `Session.Output`.
pub(crate) async fn output(session: &Session, command: &str) -> Fallible<Vec<u8>> {
    let output = session
        .open_session()
        .await?
        .collect_output(command)
        .await?;
    match output.exit {
        Some(Exit::Status(0)) => Ok(output.stdout),
        exit => Err(format!("{exit:?}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}
// end

// region: run
/// `Session.Run` with `Session.Stdout` and `Session.Stderr` set; returns the exit status.
pub(crate) async fn run(session: &Session, command: &str) -> Fallible<u32> {
    let output = session
        .open_session()
        .await?
        .collect_output(command)
        .await?;
    std::io::stdout().write_all(&output.stdout)?;
    std::io::stderr().write_all(&output.stderr)?;
    match output.exit {
        Some(Exit::Status(status)) => Ok(status),
        Some(Exit::Signal { name, .. }) => Err(format!("ended by SIG{name}").into()),
        None => Err("the server did not report an exit status".into()),
    }
}
// end

// region: start
/// `Session.Setenv`, `Session.StdinPipe`, `Session.StdoutPipe`, `Session.Start` and
/// `Session.Wait`: writes to a program while it runs.
pub(crate) async fn start(session: &Session, input: &[u8]) -> Fallible<(String, Option<Exit>)> {
    let program = session.open_session().await?;
    // Servers accept only a few names, so ignore a refusal.
    let _ = program.control().set_env("LANG", "C").await;
    program.exec("sort").await?;
    let (control, channel, stderr) = program.into_parts();
    drop(stderr); // Its standard error is discarded.
    let (mut stdout, mut stdin) = channel.into_split();
    stdin.write_all(input).await?;
    stdin.shutdown().await?;
    let mut text = String::new();
    stdout.read_to_string(&mut text).await?;
    Ok((text, control.wait_exit().await))
}
// end

// region: signal
/// `Session.Signal`: ends a program that would run on.
pub(crate) async fn signal(session: &Session) -> Fallible<Option<Exit>> {
    let program = session.open_session().await?;
    program.exec("exec sleep 60").await?;
    program.control().send_signal("TERM").await?;
    Ok(program.control().wait_exit().await)
}
// end

// region: shell
/// `Session.RequestPty`, `Session.WindowChange` and `Session.Shell`.
pub(crate) async fn shell(session: &Session, typed: &[u8]) -> Fallible<Vec<u8>> {
    let mut modes = TerminalModes::new();
    modes.set(53, 0); // ECHO (RFC 4254 section 8): typed text is not echoed.
    let size = TerminalSize {
        columns: 80,
        rows: 24,
        ..TerminalSize::default()
    };
    let mut program = session.open_session().await?;
    let term = "xterm".to_owned();
    program
        .control()
        .request_pty(PtyRequest { term, size, modes })
        .await?;
    program.start_shell().await?;
    let wide = TerminalSize {
        columns: 132,
        ..size
    };
    program.control().send_window_change(wide).await?;
    program.channel().write_all(typed).await?;
    program.channel().flush().await?;
    let mut shown = Vec::new();
    program.channel().read_to_end(&mut shown).await?;
    Ok(shown)
}
// end

// region: subsystem
/// `Session.RequestSubsystem`: a channel for the subsystem's protocol.
pub(crate) async fn subsystem(session: &Session, name: &str) -> Fallible<Channel> {
    let program = session.open_session().await?;
    program.start_subsystem(name).await?;
    Ok(program.into_channel())
}
// end

// region: about
/// `Conn.ServerVersion`, `Conn.SessionID`; `Conn.User` is the name that you logged in with.
pub(crate) fn about(session: &Session) -> String {
    let id = session.session_id().len();
    format!(
        "{}, {}, {id} bytes",
        session.version(),
        session.negotiated()
    )
}
// end

// region: close
/// `Client.Close` and `Client.Wait`. A session whose last handle and channel are dropped ends too.
pub(crate) async fn close(session: Session) -> SessionEnd {
    session.disconnect("that was all");
    session.wait_closed().await
}
// end
