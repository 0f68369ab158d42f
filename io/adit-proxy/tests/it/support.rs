//! An echo server, and a proxy of this crate.

use std::net::SocketAddr;
use std::sync::Arc;

use adit_proxy::{Users, accept};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpListener;

/// Starts a server that sends back all it receives.
pub(crate) async fn echo_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = socket.split();
                tokio::io::copy(&mut reader, &mut writer).await.unwrap();
                writer.shutdown().await.unwrap();
            });
        }
    });
    addr
}

/// Starts a proxy for `users`.
pub(crate) async fn proxy_server(users: Users) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let users = Arc::new(users);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let users = Arc::clone(&users);
            tokio::spawn(async move {
                let (mut client, mut target) = accept(socket, &*users).await?.connect().await?;
                copy_bidirectional(&mut client, &mut target).await?;
                Ok::<_, adit_proxy::Error>(())
            });
        }
    });
    addr
}

/// Returns an address that refuses connections.
pub(crate) async fn closed_port() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}

/// Sends a word and its end, and asserts that it comes back with the end.
pub(crate) async fn assert_echoes(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    stream.write_all(b"there and back").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut got = String::new();
    stream.read_to_string(&mut got).await.unwrap();
    assert_eq!(got, "there and back");
}
