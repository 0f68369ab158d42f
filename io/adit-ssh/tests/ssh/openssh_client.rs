//! OpenSSH's client with adit's server.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::Duration;

use adit_interop::openssh::{generate_key, ssh_command};
use adit_interop::{BytePattern, Checksum, TempFolder, free_port};
use adit_ssh::server::ServerConfig;
use adit_ssh_proto::key::PublicKey;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use crate::server::{serve, settings};
use crate::world::{BULK, drain, pour};

/// An adit server and the client's files for it.
struct Peer {
    folder: TempFolder,
    id: PathBuf,
    port: u16,
}

impl Peer {
    async fn start(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let folder = TempFolder::new("ssh").unwrap();
        let id = generate_key(folder.path(), "id").unwrap();
        let line = fs::read_to_string(id.with_extension("pub")).unwrap();
        let (user, _) = PublicKey::from_line(&line).unwrap();
        let (mut config, _) = settings();
        change(&mut config);
        let port = serve(config, user).await;
        Self { folder, id, port }
    }

    /// Returns an `ssh` command with piped input.
    fn ssh_command(&self, options: &[&str]) -> Command {
        let mut command = ssh_command(self.port, &self.id);
        command.args(options).arg("me@127.0.0.1");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a command without input; returns its exit status and both outputs.
    async fn run(&self, options: &[&str], command: &str) -> (Option<i32>, Vec<u8>, String) {
        let mut ssh = self.ssh_command(options);
        ssh.arg(command).stdin(Stdio::null());
        let output = ended(ssh.spawn().unwrap()).await;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), output.stdout, errors)
    }
}

/// A process, killed with the test.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the process exits.
async fn ended(child: Child) -> Output {
    let output = spawn_blocking(move || child.wait_with_output().unwrap());
    timeout(Duration::from_secs(60), output)
        .await
        .unwrap()
        .unwrap()
}

/// Writes `bytes` to the process's input and closes it.
async fn feed(mut input: ChildStdin, bytes: Vec<u8>) {
    let fed = spawn_blocking(move || input.write_all(&bytes));
    fed.await.unwrap().unwrap();
}

#[tokio::test]
async fn programs_run() {
    let peer = Peer::start(|_| {}).await;
    let (status, out, err) = peer.run(&[], "both 7").await;
    assert_eq!((status, &*out, &*err), (Some(7), &b"out\n"[..], "err\n"));
    let (status, ..) = peer.run(&[], "nothing").await;
    assert_eq!(status, Some(127));
    let (status, out, _) = peer.run(&[], &format!("give {BULK}")).await;
    assert_eq!((status, out.len()), (Some(0), BULK));
    let sum = pour(&mut tokio::io::sink(), BULK, 1).await;
    assert_eq!(Checksum::EMPTY.extend_with(&out), sum);
}

#[tokio::test]
async fn much_goes_up() {
    let peer = Peer::start(|_| {}).await;
    let mut child = peer.ssh_command(&[]).arg("take").spawn().unwrap();
    let input = child.stdin.take().unwrap();
    let bytes = BytePattern::new(3).next_bytes(BULK);
    let sum = Checksum::EMPTY.extend_with(&bytes);
    let ((), output) = tokio::join!(feed(input, bytes), ended(child));
    let told = format!("{BULK} {:x}\n", sum.0);
    assert_eq!(String::from_utf8_lossy(&output.stdout), told);
    assert_eq!(output.status.code(), Some(0));
}

#[tokio::test]
async fn keys_are_renewed_under_load() {
    for (ours, theirs) in [(None, "RekeyLimit=1M"), (Some(1 << 20), "RekeyLimit=1G")] {
        let peer = Peer::start(|config| config.transport.rekey_bytes = ours).await;
        let some = BULK / 8;
        let sum = pour(&mut tokio::io::sink(), some, 1).await;
        let (status, out, _) = peer.run(&["-o", theirs], &format!("give {some}")).await;
        assert_eq!((status, out.len()), (Some(0), some));
        assert_eq!(Checksum::EMPTY.extend_with(&out), sum);
        let mut child = peer
            .ssh_command(&["-o", theirs])
            .arg("take")
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let bytes = BytePattern::new(1).next_bytes(some);
        let ((), output) = tokio::join!(feed(input, bytes), ended(child));
        let told = format!("{some} {:x}\n", sum.0);
        assert_eq!(String::from_utf8_lossy(&output.stdout), told);
    }
}

#[tokio::test]
async fn places_are_forwarded() {
    let peer = Peer::start(|_| {}).await;
    let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = target.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = target.accept().await.unwrap();
            tokio::spawn(async move {
                let (mut reader, mut writer) = socket.split();
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
                let _ = writer.shutdown().await;
            });
        }
    });
    let (local, remote) = (free_port(), free_port());
    let forwards = [
        format!("-L{local}:127.0.0.1:{to}"),
        format!("-R{remote}:127.0.0.1:{to}"),
    ];
    let options = [
        "-N",
        &forwards[0],
        &forwards[1],
        "-o",
        "ExitOnForwardFailure=yes",
    ];
    let _child = Guard(peer.ssh_command(&options).spawn().unwrap());
    for port in [local, remote] {
        let socket = loop {
            match TcpStream::connect(("127.0.0.1", port)).await {
                Ok(socket) => break socket,
                Err(_) => sleep(Duration::from_millis(20)).await,
            }
        };
        let (mut reader, mut writer) = socket.into_split();
        let up = async {
            let sum = pour(&mut writer, 8 << 20, 5).await;
            writer.shutdown().await.unwrap();
            sum
        };
        let (sum, got) = tokio::join!(up, drain(&mut reader));
        assert_eq!(got, (8 << 20, sum));
    }
}

#[tokio::test]
async fn a_connection_is_standard_input_and_output() {
    let peer = Peer::start(|_| {}).await;
    let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = format!("127.0.0.1:{}", target.local_addr().unwrap().port());
    let mut child = peer.ssh_command(&["-W", &to]).spawn().unwrap();
    let (mut socket, _) = target.accept().await.unwrap();
    feed(child.stdin.take().unwrap(), b"ping".to_vec()).await;
    let mut got = Vec::new();
    socket.read_to_end(&mut got).await.unwrap();
    socket.write_all(b"pong").await.unwrap();
    drop(socket);
    let output = ended(child).await;
    assert_eq!((&*got, &*output.stdout), (&b"ping"[..], &b"pong"[..]));
}

#[tokio::test]
async fn sockets_of_file_systems() {
    let peer = Peer::start(|_| {}).await;
    let at = |name: &str| peer.folder.path().join(name).display().to_string();
    let (local, target, remote) = (at("local"), at("target"), at("remote"));
    let listener = UnixListener::bind(&target).unwrap();
    let forwards = [
        format!("-L{local}:{target}"),
        format!("-R{remote}:{target}"),
    ];
    let options = [
        "-N",
        &forwards[0],
        &forwards[1],
        "-o",
        "ExitOnForwardFailure=yes",
    ];
    let _child = Guard(peer.ssh_command(&options).spawn().unwrap());
    for path in [local, remote] {
        let mut near = loop {
            match UnixStream::connect(&path).await {
                Ok(socket) => break socket,
                Err(_) => sleep(Duration::from_millis(20)).await,
            }
        };
        let (mut far, _) = listener.accept().await.unwrap();
        let mut got = String::new();
        near.write_all(b"ping").await.unwrap();
        near.shutdown().await.unwrap();
        far.read_to_string(&mut got).await.unwrap();
        far.write_all(b"pong").await.unwrap();
        drop(far);
        near.read_to_string(&mut got).await.unwrap();
        assert_eq!(got, "pingpong");
    }
}
