//! Peers that send empty chunks, and the log of a server that receives invalid bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use adit_interop::shadowsocks::{AES_256, BLAKE3_AES_128, CHACHA20, ShadowsocksPeer};
use adit_interop::traffic::connect_directly;
use adit_interop::unanswering_port::UnansweringPort;
use adit_interop::{AditProcess, TEST_TIMEOUT, loopback_addr};

use crate::setup::{ALLOW, bin, server, start};

const BANNER: &str = "220 the server speaks first\r\n";

/// Starts a server that sends first: a banner, then each line is echoed.
fn banners() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                stream.write_all(BANNER.as_bytes())?;
                let mut lines = BufReader::new(stream.try_clone()?);
                std::io::copy(&mut lines, &mut stream)
            });
        }
    });
    addr
}

/// Returns the greeting that a client receives.
fn greeted(entry: SocketAddr) -> std::io::Result<String> {
    let mut stream = connect_directly(entry).map_err(std::io::Error::other)?;
    let mut lines = BufReader::new(stream.try_clone()?);
    let mut heard = String::new();
    lines.read_line(&mut heard)?;
    stream.write_all(b"HELO\r\n")?;
    lines.read_line(&mut heard)?;
    Ok(heard)
}

/// Xray's client of the AEAD edition sends an empty chunk if its application is silent for
/// 100 ms, as with every protocol in which the server sends first.
#[test]
fn server_first_protocols_pass_from_xrays_client() {
    for method in [AES_256, CHACHA20] {
        let ours = server(method);
        let theirs = ShadowsocksPeer::Xray
            .start_forwarder(method, ours.addr(), banners())
            .unwrap();
        let entry = theirs.addr();
        let clients: Vec<_> = (0..20)
            .map(|_| thread::spawn(move || greeted(entry)))
            .collect();
        let heard = clients.into_iter().map(|client| client.join().unwrap());
        let right =
            heard.filter(|heard| matches!(heard, Ok(text) if *text == format!("{BANNER}HELO\r\n")));
        assert_eq!(right.count(), 20, "{}: of 20", method.name);
        ours.stop().unwrap();
    }
}

/// Forwards the first bytes unchanged, and changes one of the following.
fn corrupting(upstream: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || -> std::io::Result<()> {
        let (mut near, _) = listener.accept()?;
        let mut far = TcpStream::connect(upstream)?;
        let mut buf = [0; 4096];
        for changed in [0, 1, 0] {
            let n = near.read(&mut buf)?;
            buf[n / 2] ^= changed;
            far.write_all(&buf[..n])?;
        }
        // This end must not be the first to close.
        far.read(&mut buf).map(drop)
    });
    addr
}

/// While the target is being dialled: the log names the invalid bytes, not the end of the client.
#[test]
fn a_protocol_error_before_the_dial_ended_is_named() {
    let target = UnansweringPort::start().unwrap();
    let url = format!("{}?{ALLOW}", BLAKE3_AES_128.url(loopback_addr(0)));
    let mut command = Command::new(bin());
    command.args(["run", "-v", &url]);
    let mut back = AditProcess::start_command(command, 1).unwrap();
    let hop = BLAKE3_AES_128.url(corrupting(back.addr()));
    let entry = format!("tcp://127.0.0.1:0/{}", target.addr());
    let front = start(&["run", &entry, &hop]);
    let mut stream = connect_directly(front.addr()).unwrap();
    stream.write_all(b"with the request").unwrap();
    thread::sleep(std::time::Duration::from_millis(200));
    stream.write_all(b"changed on the way").unwrap();
    let lines = back
        .process()
        .wait_lines(
            "the client closed before the connection was open",
            1,
            TEST_TIMEOUT,
        )
        .unwrap();
    assert!(
        lines[0].contains("violated its protocol: authentication failed"),
        "{lines:?}"
    );
    front.stop().unwrap();
    back.stop().unwrap();
}
