//! Shared test code: connecting, and moving many bytes.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use adit_interop::openssh::{Sshd, current_user};
use adit_interop::{BytePattern, Checksum, free_port};
use adit_ssh::client::{Client, ClientConfig, Login, PinnedKeys, Session};
use adit_ssh_proto::connection::Originator;
use adit_ssh_proto::key::{AnyKey, PrivateKey, PublicKey};
use adit_stream::{BoxStream, Tcp};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Size of a bulk transfer, in bytes.
pub(crate) const BULK: usize = 64 << 20;

/// Connects to a loopback port.
pub(crate) async fn dial(port: u16) -> BoxStream {
    let socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    socket.set_nodelay(true).unwrap();
    Box::new(Tcp::new(socket))
}

/// Returns a configuration that logs in to `sshd`.
pub(crate) fn config_for(sshd: &Sshd) -> ClientConfig {
    config_of(sshd.folder())
}

/// Returns a configuration for a server whose keys `host` and `id` are in a folder.
pub(crate) fn config_of(folder: &Path) -> ClientConfig {
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let line = read("host.pub");
    let (key, _) = PublicKey::from_line(&line).unwrap();
    let id = PrivateKey::from_text(&read("id"), None).unwrap();
    let host_key = Arc::new(PinnedKeys(vec![AnyKey::Plain(key)]));
    ClientConfig::new(host_key, Login::new(current_user()).with_key(id))
}

/// Connects to `sshd`.
pub(crate) async fn enter(sshd: &Sshd) -> Session {
    let config = config_for(sshd);
    Client::connect(dial(sshd.port()).await, config)
        .await
        .unwrap()
}

/// Writes `len` bytes of a pattern; returns their checksum.
pub(crate) async fn pour(to: &mut (impl AsyncWrite + Unpin), len: usize, seed: u64) -> Checksum {
    let (mut pattern, mut sum, mut left) = (BytePattern::new(seed), Checksum::EMPTY, len);
    while left > 0 {
        let piece = pattern.next_bytes(left.min(256 << 10));
        sum = sum.extend_with(&piece);
        to.write_all(&piece).await.unwrap();
        left -= piece.len();
    }
    to.flush().await.unwrap();
    sum
}

/// Reads to the end; returns the number of bytes and their checksum.
pub(crate) async fn drain(from: &mut (impl AsyncRead + Unpin)) -> (usize, Checksum) {
    let (mut len, mut sum, mut buf) = (0, Checksum::EMPTY, vec![0; 256 << 10]);
    loop {
        let n = from.read(&mut buf).await.unwrap();
        if n == 0 {
            return (len, sum);
        }
        len += n;
        sum = sum.extend_with(&buf[..n]);
    }
}

/// Checks that bytes and the end of each direction pass through the server to a target, and that a
/// missing target is refused.
pub(crate) async fn a_connection_goes_through(session: &Session) {
    let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = target.local_addr().unwrap().port();
    let channel = session.open_direct_tcpip("127.0.0.1", port, Originator::default());
    let (channel, accepted) = tokio::join!(channel, target.accept());
    let (mut channel, (mut socket, _)) = (channel.unwrap(), accepted.unwrap());
    channel.write_all(b"ping").await.unwrap();
    channel.shutdown().await.unwrap();
    let mut got = Vec::new();
    socket.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"ping");
    socket.write_all(b"pong").await.unwrap();
    drop(socket);
    got.clear();
    channel.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"pong");
    drop(target);
    // Not the former target's port, which the kernel may have given to another test by now.
    let refused = session.open_direct_tcpip("127.0.0.1", free_port(), Originator::default());
    refused.await.unwrap_err();
}
