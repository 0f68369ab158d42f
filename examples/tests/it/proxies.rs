//! SOCKS5 and Shadowsocks.

use std::sync::Arc;

use adit_net::system::{SystemClock, ThreadRng, unix_now};
use adit_shadowsocks::tcp::ServerHandshake;
use adit_shadowsocks::{Key, Method, RestartPolicy, SaltPool, Users};
use adit_stream::{Layered, Stream, Tcp, run_handshake, write_all};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use crate::support::{echo_server, run_with, serve};

#[tokio::test]
async fn socks5_chain_goes_through_two_servers() {
    let first = serve("socks5-server", &["127.0.0.1:0", "ann", "secret"]).await;
    let second = serve("socks5-server", &["127.0.0.1:0", "bob", "p:w@rd"]).await;
    let target = echo_server().await;
    let first = format!("ann:secret@{}", first.addr);
    let (right, wrong) = ("bob:p:w@rd", "bob:password");
    let args = |login| {
        [
            target.clone(),
            first.clone(),
            format!("{login}@{}", second.addr),
        ]
    };
    let right = args(right);
    let right: Vec<&str> = right.iter().map(String::as_str).collect();
    let outcome = run_with("socks5-chain", &right, "there and back").await;
    assert_eq!((outcome.status, &*outcome.stdout), (0, "there and back"));
    let wrong = args(wrong);
    let wrong: Vec<&str> = wrong.iter().map(String::as_str).collect();
    let outcome = run_with("socks5-chain", &wrong, "there and back").await;
    assert_eq!((outcome.status, &*outcome.stdout), (1, ""));
    assert!(
        outcome.stderr.contains("refused user name and password"),
        "{outcome:?}"
    );
}

/// Starts a Shadowsocks server of `adit-shadowsocks`.
async fn shadowsocks_server(key: Key) -> String {
    let users = Users::with_single_key(key);
    let salts = Arc::new(SaltPool::new([7; 16], unix_now(), RestartPolicy::Lenient));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (users, salts) = (Arc::clone(&users), Arc::clone(&salts));
            tokio::spawn(async move {
                let mut io = Tcp::from(socket);
                let clock = Arc::new(SystemClock);
                let mut core = ServerHandshake::new(&users, clock, salts, &mut ThreadRng);
                let request = run_handshake(&mut io, &mut core).await?;
                let mut target = Tcp::from(TcpStream::connect(request.target.to_string()).await?);
                write_all(&mut target, &request.first).await?;
                let mut client = Layered::new(io, request.seal, request.open).into_tokio();
                copy_bidirectional(&mut client, &mut target.into_tokio()).await?;
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
            });
        }
    });
    addr
}

#[tokio::test]
async fn shadowsocks_client_reaches_the_target_with_the_right_key_alone() {
    let target = echo_server().await;
    let text = "there and back ".repeat(20_000);
    for method in ["2022-blake3-aes-128-gcm", "chacha20-ietf-poly1305"] {
        let kind: Method = method.parse().unwrap();
        let (key, right) = Key::generate(kind, &mut ThreadRng);
        let (_, wrong) = Key::generate(kind, &mut ThreadRng);
        let server = shadowsocks_server(key).await;
        let args = [&*server, method, &right, &target];
        let outcome = run_with("shadowsocks-client", &args, &text).await;
        assert_eq!(outcome.status, 0, "{method}: {}", outcome.stderr);
        assert!(outcome.stdout == text, "{method}: the echo differs");
        let args = [&*server, method, &wrong, &target];
        let outcome = run_with("shadowsocks-client", &args, "there and back").await;
        assert_eq!(outcome.stdout, "", "{method}");
    }
}
