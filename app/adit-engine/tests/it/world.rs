//! Small servers and clients for the tests.

use std::net::SocketAddr;
use std::time::Duration;

use adit_config::Plan;
use adit_engine::Engine;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::timeout;

pub(crate) const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";
pub(crate) const METHOD: &str = "2022-blake3-aes-128-gcm";

/// Starts a plan from its arguments; returns it with the address of its first listener.
pub(crate) async fn start(words: &[&str]) -> (Engine, SocketAddr) {
    let words: Vec<String> = words.iter().map(ToString::to_string).collect();
    let plan = Plan::from_words(&words).unwrap_or_else(|problems| panic!("{problems:?}"));
    let engine = Engine::start(&plan).await.unwrap();
    let at = engine.listeners()[0].addr;
    (engine, at)
}

/// Starts a keyed server on an ephemeral port, with additional parameters.
pub(crate) async fn server(more: &str) -> (Engine, SocketAddr) {
    let restart = "allow_private=all&restart=lenient";
    start(&[&format!("ss://{METHOD}:{KEY}@127.0.0.1:0?{restart}{more}")]).await
}

/// Returns the server's URL for clients.
pub(crate) fn url(at: SocketAddr) -> String {
    format!("ss://{METHOD}:{KEY}@{at}")
}

/// Echoes all bytes.
pub(crate) async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut r, mut w) = socket.split();
                let _ = tokio::io::copy(&mut r, &mut w).await;
            });
        }
    });
    at
}

/// Echoes every datagram.
pub(crate) async fn udp_echo() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let at = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buf = vec![0; 65_535];
        while let Ok((n, from)) = socket.recv_from(&mut buf).await {
            let _ = socket.send_to(&buf[..n], from).await;
        }
    });
    at
}

/// Connects through a SOCKS5 proxy; returns the stream, or the reply code.
pub(crate) async fn socks(proxy: SocketAddr, to: SocketAddr) -> Result<TcpStream, u8> {
    let mut socket = TcpStream::connect(proxy).await.unwrap();
    let SocketAddr::V4(to) = to else {
        panic!("only IPv4 here")
    };
    let mut ask = vec![5, 1, 0, 5, 1, 0, 1];
    ask.extend_from_slice(&to.ip().octets());
    ask.extend_from_slice(&to.port().to_be_bytes());
    socket.write_all(&ask).await.unwrap();
    let mut answer = [0; 12];
    socket.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer[..3], &[5, 0, 5]);
    if answer[3] == 0 {
        Ok(socket)
    } else {
        Err(answer[3])
    }
}

/// Sends bytes to an echo server and returns its answer.
pub(crate) async fn talk(socket: &mut TcpStream, say: &[u8]) -> std::io::Result<Vec<u8>> {
    socket.write_all(say).await?;
    let mut heard = vec![0; say.len()];
    timeout(Duration::from_secs(5), socket.read_exact(&mut heard)).await??;
    Ok(heard)
}
