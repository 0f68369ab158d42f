//! Forwarded connections, in both directions and through each other.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use adit_interop::openssh::{Sshd, ssh_command};
use adit_interop::{BytePattern, TEST_TIMEOUT, free_port, wait_socket};

use super::world::{Guard, Host, ended, until};

/// Bytes of a transfer.
const MUCH: usize = 2 << 20;

/// Starts a server that returns what it receives. Returns its port.
fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut reader = socket.unwrap();
            thread::spawn(move || {
                let mut writer = reader.try_clone().unwrap();
                let _ = std::io::copy(&mut reader, &mut writer);
                let _ = writer.shutdown(Shutdown::Write);
            });
        }
    });
    port
}

/// Sends much, ends that direction, and receives all of it again.
fn talk(
    mut reader: impl Read,
    mut writer: impl Write + Send + 'static,
    end: impl FnOnce() + Send + 'static,
) {
    let bytes = BytePattern::new(3).next_bytes(MUCH);
    let sent = bytes.clone();
    let sender = thread::spawn(move || {
        writer.write_all(&sent).unwrap();
        end();
    });
    let mut got = Vec::new();
    reader.read_to_end(&mut got).unwrap();
    sender.join().unwrap();
    assert!(got == bytes, "{} of {MUCH}", got.len());
}

fn talk_tcp(socket: TcpStream) {
    socket
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let (writer, end) = (socket.try_clone().unwrap(), socket.try_clone().unwrap());
    talk(socket, writer, move || {
        end.shutdown(Shutdown::Write).unwrap();
    });
}

fn talk_local(socket: UnixStream) {
    socket
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let (writer, end) = (socket.try_clone().unwrap(), socket.try_clone().unwrap());
    talk(socket, writer, move || {
        end.shutdown(Shutdown::Write).unwrap();
    });
}

fn connected(port: u16) -> TcpStream {
    let mut socket = None;
    until("a forwarded port", || {
        socket = TcpStream::connect(("127.0.0.1", port)).ok();
        socket.is_some()
    });
    socket.unwrap()
}

/// Starts a client that only forwards.
fn forward(host: &Host, options: &[&str]) -> Guard {
    let mut ssh = host.ssh(
        &[&["-N", "-o", "ExitOnForwardFailure=yes"], options].concat(),
        "",
    );
    Guard::spawn(ssh.stdin(Stdio::null()))
}

/// Number of simultaneous connections to a forwarded port.
const AT_ONCE: usize = 200;

/// All of them are carried.
fn many_at_once(port: u16, what: &str) {
    drop(connected(port));
    for round in 0..2 {
        let mut all: Vec<_> = (0..AT_ONCE).map(|_| connected(port)).collect();
        for socket in &mut all {
            socket
                .set_read_timeout(Some(Duration::from_secs(30)))
                .unwrap();
            socket.write_all(b"x").unwrap();
        }
        for (n, mut socket) in all.into_iter().enumerate() {
            let mut byte = [0];
            let read = socket.read_exact(&mut byte);
            assert!(
                read.is_ok(),
                "{what}: round {round}, connection {n}: {read:?}"
            );
        }
    }
}

#[test]
fn many_connections_at_once_come_through_remote_forwards() {
    let (to, host) = (echo(), Host::start(&[]));
    let place = |port: u16| format!("{port}:127.0.0.1:{to}");
    let port = free_port();
    let _theirs = forward(&host, &["-R", &place(port)]);
    many_at_once(port, "OpenSSH's client at adit's server");
    let sshd = Sshd::start("").unwrap();
    let servers = [
        (host.port(), host.key(), "adit's server"),
        (sshd.port(), sshd.folder().join("id"), "OpenSSH's server"),
    ];
    for (server, key, name) in servers {
        let port = free_port();
        let mut ours = Command::new(crate::setup::bin());
        ours.arg("ssh").args(ssh_command(server, &key).get_args());
        ours.args(["-N", "-o", "ExitOnForwardFailure=yes", "-R", &place(port)]);
        ours.arg(super::world::destination()).stdin(Stdio::null());
        let _client = Guard::spawn(&mut ours);
        many_at_once(port, &format!("adit's client at {name}"));
    }
}

#[test]
fn ports_both_ways_and_socks() {
    let host = Host::start(&[]);
    let (to, local, remote, socks) = (echo(), free_port(), free_port(), free_port());
    let _client = forward(
        &host,
        &[
            "-L",
            &format!("{local}:127.0.0.1:{to}"),
            "-R",
            &format!("{remote}:127.0.0.1:{to}"),
            "-D",
            &socks.to_string(),
        ],
    );
    talk_tcp(connected(local));
    talk_tcp(connected(remote));
    let mut proxied = connected(socks);
    proxied.write_all(&[5, 1, 0]).unwrap();
    let mut request = vec![5, 1, 0, 1, 127, 0, 0, 1];
    request.extend(to.to_be_bytes());
    let mut answer = [0; 12];
    proxied.read_exact(&mut answer[..2]).unwrap();
    proxied.write_all(&request).unwrap();
    proxied.read_exact(&mut answer[..10]).unwrap();
    assert_eq!(answer[1], 0);
    talk_tcp(proxied);
    // Only loopback, with any request of the client.
    let other = format!("0.0.0.0:{}:127.0.0.1:{to}", free_port());
    let _wide = forward(&host, &["-R", &other]);
    let port: u16 = other.split(':').nth(1).unwrap().parse().unwrap();
    talk_tcp(connected(port));
    assert!(TcpStream::connect(("127.0.0.2", port)).is_err());
}

#[test]
fn a_free_port_and_one_that_is_taken() {
    let host = Host::start(&["--gateway-ports"]);
    let to = echo();
    let (_, _, err) = host.run(&["-v", "-R", &format!("0:127.0.0.1:{to}")], "sleep 0.1");
    assert!(err.contains("Allocated port"), "{err}");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let taken = format!("127.0.0.1:{port}:127.0.0.1:{to}");
    let (status, ..) = host.run(&["-o", "ExitOnForwardFailure=yes", "-R", &taken], "true");
    assert_eq!(status, Some(255));
    // Other addresses of this machine are allowed once that is configured.
    let port = free_port();
    let _client = forward(&host, &["-R", &format!("0.0.0.0:{port}:127.0.0.1:{to}")]);
    talk_tcp(connected(port));
    talk_tcp(TcpStream::connect(("127.0.0.2", port)).unwrap());
}

#[test]
fn a_connection_is_the_clients_streams_and_a_way_on() {
    let host = Host::start(&[]);
    let to = echo();
    let output = ended(host.ssh(&["-W", &format!("127.0.0.1:{to}")], ""), b"ping");
    assert_eq!(output.stdout, b"ping");
    let refused = ended(host.ssh(&["-W", "127.0.0.1:1"], ""), b"");
    assert_eq!(refused.status.code(), Some(255));
    // Jumps over the server to itself, in three steps. Its options apply to all of them.
    let config = format!(
        "Host *\n  User {}\n  IdentityFile {}\n  IdentitiesOnly yes\n  StrictHostKeyChecking no\n  \
         UserKnownHostsFile /dev/null\n  LogLevel ERROR\n  BatchMode yes\nHost a b c\n  HostName \
         127.0.0.1\n  Port {}\n",
        adit_interop::openssh::current_user(),
        host.key().display(),
        host.port()
    );
    let config = host.folder.write_file("config", config).unwrap();
    let mut ssh = Command::new("ssh");
    ssh.arg("-F")
        .arg(config)
        .args(["-J", "a,b", "c", "echo through"]);
    let output = ended(ssh, b"");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "through\n");
}

#[test]
fn sockets_in_the_file_system() {
    let host = Host::start(&[]);
    let target = host.path("target");
    let listener = UnixListener::bind(&target).unwrap();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut reader = socket.unwrap();
            thread::spawn(move || {
                let mut writer = reader.try_clone().unwrap();
                let _ = std::io::copy(&mut reader, &mut writer);
                let _ = writer.shutdown(Shutdown::Write);
            });
        }
    });
    let (local, remote) = (host.path("local"), host.path("remote"));
    let mut client = forward(
        &host,
        &[
            "-L",
            &format!("{}:{}", local.display(), target.display()),
            "-R",
            &format!("{}:{}", remote.display(), target.display()),
        ],
    );
    for path in [&local, &remote] {
        talk_local(wait_socket(path, TEST_TIMEOUT).unwrap());
    }
    let mode = fs::metadata(&remote).unwrap().permissions();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777,
        0o600
    );
    client.kill();
    until("the socket goes with the client", || !remote.exists());
    // An existing file is left unchanged.
    fs::write(&remote, "mine").unwrap();
    let option = format!("{}:{}", remote.display(), target.display());
    let (status, ..) = host.run(&["-o", "ExitOnForwardFailure=yes", "-R", &option], "true");
    assert_eq!(status, Some(255));
    assert_eq!(fs::read_to_string(&remote).unwrap(), "mine");
}

#[test]
fn an_agent_comes_along() {
    let host = Host::start(&[]);
    let socket = host.path("agent");
    let mut agent = Command::new("ssh-agent");
    agent.arg("-D").arg("-a").arg(&socket).stdout(Stdio::null());
    let _agent = Guard::spawn(&mut agent);
    wait_socket(&socket, TEST_TIMEOUT).unwrap();
    let mut add = Command::new("ssh-add");
    add.arg("-q").arg(host.key()).env("SSH_AUTH_SOCK", &socket);
    assert!(ended(add, b"").status.success());
    let mut list = host.ssh(
        &["-A"],
        "ssh-add -l; stat -c %a $(dirname $SSH_AUTH_SOCK); echo $SSH_AUTH_SOCK",
    );
    list.env("SSH_AUTH_SOCK", &socket);
    let said = String::from_utf8_lossy(&ended(list, b"").stdout).into_owned();
    let lines: Vec<_> = said.lines().collect();
    assert!(lines[0].contains("SHA256:"), "{said}");
    assert_eq!(lines[1], "700");
    until("its folder goes", || !fs::exists(lines[2]).unwrap());
    let mut none = host.ssh(&["-a"], "echo ${SSH_AUTH_SOCK-none}");
    none.env("SSH_AUTH_SOCK", &socket);
    assert_eq!(ended(none, b"").stdout, b"none\n");
}

#[test]
fn nothing_is_forwarded_that_must_not_be() {
    let host = Host::start(&["--no-forwarding"]);
    let to = echo();
    let place = format!("127.0.0.1:{to}");
    let refused = ended(host.ssh(&["-W", &place], ""), b"ping");
    assert_eq!(refused.status.code(), Some(255));
    let remote = format!("{}:{place}", free_port());
    let (status, ..) = host.run(&["-o", "ExitOnForwardFailure=yes", "-R", &remote], "true");
    assert_eq!(status, Some(255));
    let local = host.path("socket");
    let option = format!("{}:{place}", local.display());
    let (status, ..) = host.run(&["-o", "ExitOnForwardFailure=yes", "-R", &option], "true");
    assert_eq!(status, Some(255));
    assert!(!local.exists());
    assert_eq!(host.says(&[], "echo still here"), "still here");
}
