//! Forwarding in all directions.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::thread;
use std::time::Duration;

use adit_interop::socks_client::{self, Credentials, Destination};
use adit_interop::{
    BytePattern, ChildProcess, TEST_TIMEOUT, Transport, free_port, loopback_addr, wait_port,
    wait_socket,
};

use super::World;

/// Starts a server that returns all data once the sender has ended, for `n` connections.
fn echo(n: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().take(n) {
            thread::spawn(move || back(stream.unwrap()));
        }
    });
    port
}

fn back(mut stream: impl Read + Write) {
    let mut all = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece).unwrap() {
            0 => break,
            n => all.extend_from_slice(&piece[..n]),
        }
    }
    stream.write_all(&all).unwrap();
}

/// Checks that the data is returned after the half close.
fn check(mut stream: TcpStream, len: usize) {
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let sent = BytePattern::new(3).next_bytes(len);
    stream.write_all(&sent).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    assert!(got == sent, "{} of {} bytes", got.len(), sent.len());
}

fn forward(world: &World, options: &[&str]) -> ChildProcess {
    let mut command = world.ssh(options);
    command.arg("-N");
    ChildProcess::spawn(command).unwrap()
}

#[test]
fn ports_here_lead_there() {
    let world = World::new("");
    let target = echo(4);
    let (plain, socks_port) = (free_port(), free_port());
    let _ssh = forward(
        &world,
        &[
            "-L",
            &format!("{plain}:localhost:{target}"),
            "-D",
            &format!("127.0.0.1:{socks_port}"),
        ],
    );
    for port in [plain, socks_port] {
        wait_port(Transport::Tcp, port, TEST_TIMEOUT).unwrap();
    }
    check(TcpStream::connect(loopback_addr(plain)).unwrap(), 3 << 20);
    check(TcpStream::connect(loopback_addr(plain)).unwrap(), 0);
    for host in [
        Destination::from_name("localhost", target),
        Destination::from_name("127.0.0.1", target),
    ] {
        let stream =
            socks_client::connect_through(loopback_addr(socks_port), Credentials::None, &host)
                .unwrap();
        check(stream, 100_000);
    }
    // Nothing listens there: the client gets the error, and the others continue.
    let nobody = Destination::from_name("localhost", free_port());
    socks_client::connect_through(loopback_addr(socks_port), Credentials::None, &nobody)
        .unwrap_err();
}

#[test]
fn ports_there_lead_here() {
    let world = World::new("GatewayPorts no");
    let target = echo(2);
    let (there, socks_port) = (free_port(), free_port());
    let mut ssh = forward(
        &world,
        &[
            "-R",
            &format!("{there}:localhost:{target}"),
            "-R",
            &socks_port.to_string(),
            "-R",
            &format!("0:localhost:{target}"),
        ],
    );
    for port in [there, socks_port] {
        wait_port(Transport::Tcp, port, TEST_TIMEOUT).unwrap();
    }
    check(TcpStream::connect(loopback_addr(there)).unwrap(), 1 << 20);
    let host = Destination::from_name("localhost", target);
    check(
        socks_client::connect_through(loopback_addr(socks_port), Credentials::None, &host).unwrap(),
        1000,
    );
    // The port that the server chose is logged.
    ssh.wait_lines("on the host for the forward to", 1, TEST_TIMEOUT)
        .unwrap();
    // A target that does not exist only ends that connection.
    drop(ssh);
    let ssh = forward(
        &world,
        &["-R", &format!("{there}:localhost:{}", free_port())],
    );
    wait_port(Transport::Tcp, there, TEST_TIMEOUT).unwrap();
    let mut stream = TcpStream::connect(loopback_addr(there)).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    drop(ssh);
}

#[test]
fn sockets_lead_both_ways() {
    let world = World::new("StreamLocalBindUnlink yes");
    let path = |name: &str| world.at_home(name);
    let target = UnixListener::bind(path("target")).unwrap();
    thread::spawn(move || {
        for stream in target.incoming().take(2) {
            thread::spawn(move || back(stream.unwrap()));
        }
    });
    let spec = |from: &str| format!("{}:{}", path(from).display(), path("target").display());
    let ssh = forward(&world, &["-L", &spec("here"), "-R", &spec("there")]);
    for name in ["here", "there"] {
        let mut stream = wait_socket(&path(name), TEST_TIMEOUT).unwrap();
        stream.write_all(b"ping").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut got = String::new();
        stream.read_to_string(&mut got).unwrap();
        assert_eq!(got, "ping", "{name}");
    }
    let mode = std::fs::metadata(path("here")).unwrap().permissions();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777,
        0o600
    );
    drop(ssh);
    assert!(!path("here").exists(), "it is taken away in the end");
}

#[test]
fn the_standard_streams_are_a_connection() {
    let world = World::new("");
    let target = echo(1);
    let sent = BytePattern::new(1).next_bytes(1 << 20);
    let got = world.run(&["-W", &format!("127.0.0.1:{target}")], &[], &sent);
    assert_eq!(got.code, Some(0), "{}", got.err);
    assert!(got.out == sent);
    let got = world.run(&["-W", &format!("127.0.0.1:{}", free_port())], &[], b"");
    assert_eq!(got.code, Some(255));
    assert!(got.err.contains("could not connect"), "{}", got.err);
}

#[test]
fn a_forward_that_fails_is_told_or_is_the_end() {
    let world = World::new("");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let spec = format!("{}:localhost:1", taken.local_addr().unwrap().port());
    let got = world.run(&["-L", &spec, "-o", "LogLevel=INFO"], &["echo on"], b"");
    assert_eq!(got.fine(), "on\n");
    let got = world.run(
        &["-L", &spec, "-o", "ExitOnForwardFailure=yes"],
        &["echo on"],
        b"",
    );
    assert_eq!((got.code, &*got.text()), (Some(255), ""));
    assert!(got.err.contains("in use"), "{}", got.err);
    let got = world.run(&["-L", "nonsense"], &["true"], b"");
    assert_eq!(got.code, Some(255));
    assert!(got.err.contains("HOSTPORT"), "{}", got.err);
    // The end of a program waits for the open connections.
    let (port, target) = (free_port(), echo(1));
    let spec = format!("{port}:localhost:{target}");
    let mut command = world.ssh(&["-L", &spec]);
    command.arg("sleep 1");
    let mut ssh = ChildProcess::spawn(command).unwrap();
    wait_port(Transport::Tcp, port, TEST_TIMEOUT).unwrap();
    let stream = TcpStream::connect(loopback_addr(port)).unwrap();
    thread::sleep(Duration::from_millis(1500));
    check(stream, 1000);
    assert_eq!(ssh.wait(TEST_TIMEOUT).unwrap().code(), Some(0));
}
