//! Programs as processes, and an echo server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Maximum time of one program.
const LIMIT: Duration = Duration::from_secs(60);

/// The programs, with their paths.
pub(crate) const PROGRAMS: [(&str, &str); 10] = [
    ("socks5-server", env!("CARGO_BIN_EXE_socks5-server")),
    ("socks5-chain", env!("CARGO_BIN_EXE_socks5-chain")),
    ("kcp-echo", env!("CARGO_BIN_EXE_kcp-echo")),
    ("kcp-frames", env!("CARGO_BIN_EXE_kcp-frames")),
    ("ssh-exec", env!("CARGO_BIN_EXE_ssh-exec")),
    ("ssh-server", env!("CARGO_BIN_EXE_ssh-server")),
    ("ssh-forward", env!("CARGO_BIN_EXE_ssh-forward")),
    (
        "shadowsocks-client",
        env!("CARGO_BIN_EXE_shadowsocks-client"),
    ),
    ("umac", env!("CARGO_BIN_EXE_umac")),
    ("reed-solomon", env!("CARGO_BIN_EXE_reed-solomon")),
];

fn command(name: &str, args: &[&str]) -> Command {
    let program = PROGRAMS.iter().find(|(known, _)| *known == name);
    let mut command = Command::new(program.unwrap().1);
    command.args(args).kill_on_drop(true);
    command
}

/// A server that runs; it ends when this is dropped.
pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    _child: Child,
}

/// Starts a program that prints its address.
pub(crate) async fn serve(name: &str, args: &[&str]) -> Server {
    let mut child = command(name, args).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = timeout(LIMIT, lines.next_line()).await.unwrap().unwrap();
    let line = line.expect("the server has ended");
    let addr = line.strip_prefix("listening on ").unwrap().parse().unwrap();
    // Otherwise its next line would fail.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Server {
        addr,
        _child: child,
    }
}

/// The outcome of a program.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a program until it ends, with `input` as its standard input.
pub(crate) async fn run_with(name: &str, args: &[&str], input: &str) -> Outcome {
    let mut command = command(name, args);
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program with wrong arguments may end before it reads.
    let _ = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    let output = timeout(LIMIT, child.wait_with_output()).await;
    let output = output.expect("the program does not end").unwrap();
    Outcome {
        status: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs a program that succeeds without input, and returns its output.
pub(crate) async fn run(name: &str, args: &[&str]) -> String {
    let outcome = run_with(name, args, "").await;
    assert_eq!(outcome.status, 0, "{outcome:?}");
    outcome.stdout
}

/// Starts a server that sends back all it receives.
pub(crate) async fn echo_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = socket.split();
                tokio::io::copy(&mut reader, &mut writer).await?;
                writer.shutdown().await
            });
        }
    });
    addr
}

/// Writes a file for one test and returns its path.
pub(crate) fn write_file(name: &str, text: &[u8]) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}
