//! Chains, groups and rules.

use std::time::Duration;

use adit_config::Plan;
use adit_engine::Engine;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::world::{echo, server, socks, start, talk, url};

#[tokio::test]
async fn every_kind_of_hop_carries_a_stream() {
    let target = echo().await;
    let (_ss, ss) = server("").await;
    let (_mixed, mixed) = start(&["mixed://127.0.0.1:0"]).await;
    let (_guarded, guarded) = start(&["mixed://me:secret@127.0.0.1:0"]).await;
    for chain in [
        vec![url(ss)],
        vec![format!("socks5://{mixed}")],
        vec![format!("socks4a://{mixed}")],
        vec![format!("http://{mixed}")],
        vec![format!("socks5://me:secret@{guarded}")],
        vec![format!("http://me:secret@{guarded}")],
        vec![
            format!("http://{mixed}"),
            url(ss),
            format!("socks5://me:secret@{guarded}"),
            url(ss),
        ],
    ] {
        let mut words = vec!["socks5://127.0.0.1:0"];
        words.extend(chain.iter().map(String::as_str));
        let (_client, proxy) = start(&words).await;
        let mut socket = socks(proxy, target)
            .await
            .unwrap_or_else(|e| panic!("{chain:?}: {e}"));
        let say = vec![7; 200_000];
        assert!(talk(&mut socket, &say).await.unwrap() == say, "{chain:?}");
    }
}

/// Urgent data, as in FTP's ABOR or telnet's break: the byte is part of the stream.
#[tokio::test]
async fn an_urgent_byte_comes_in_its_place() {
    async fn say(socket: &mut TcpStream) {
        socket.write_all(b"before ").await.unwrap();
        SockRef::from(&*socket).send_out_of_band(b"!").unwrap();
        socket.write_all(b" after").await.unwrap();
    }
    async fn hears(socket: &mut TcpStream) {
        let mut heard = [0; 14];
        let all = timeout(Duration::from_secs(5), socket.read_exact(&mut heard)).await;
        let heard = String::from_utf8_lossy(&heard);
        all.unwrap_or_else(|_| panic!("only {heard:?}")).unwrap();
        assert_eq!(heard, "before ! after");
    }
    let (_ss, ss) = server("").await;
    let hop = url(ss);
    for words in [
        vec!["socks5://127.0.0.1:0"],
        vec!["socks5://127.0.0.1:0", &hop],
    ] {
        let (_proxy, proxy) = start(&words).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (client, target) = tokio::join!(socks(proxy, at), listener.accept());
        let (mut client, mut target) = (client.unwrap(), target.unwrap().0);
        for _ in 0..3 {
            say(&mut client).await;
            hears(&mut target).await;
            say(&mut target).await;
            hears(&mut client).await;
        }
    }
}

#[tokio::test]
async fn a_wrong_login_at_a_hop_is_told_as_such() {
    let (_guarded, guarded) = start(&["mixed://me:secret@127.0.0.1:0"]).await;
    let target = echo().await;
    for scheme in ["socks5", "http"] {
        let hop = format!("{scheme}://me:wrong@{guarded}");
        let (_client, proxy) = start(&["socks5://127.0.0.1:0", &hop]).await;
        let code = socks(proxy, target).await.unwrap_err();
        assert!(code == 2 || code == 1, "{scheme}: {code}");
    }
}

#[tokio::test]
async fn errors_come_back_as_reply_codes_through_hops() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let (_far, far) = start(&["socks5://127.0.0.1:0"]).await;
    let (_near, near) = start(&["socks5://127.0.0.1:0", &format!("socks5://{far}")]).await;
    assert_eq!(socks(far, closed).await.unwrap_err(), 5);
    assert_eq!(socks(near, closed).await.unwrap_err(), 5);
    let (_dead, dead) = start(&["socks5://127.0.0.1:0", &url(closed)]).await;
    assert_eq!(
        socks(dead, closed).await.unwrap_err(),
        5,
        "the hop's server refuses"
    );
}

async fn from_toml(text: &str) -> Engine {
    let plan = Plan::from_toml(text, "test.toml").unwrap_or_else(|p| panic!("{p:?}"));
    Engine::start(&plan).await.unwrap()
}

#[tokio::test]
async fn a_group_takes_the_first_that_works() {
    let (_server, live) = server("").await;
    let dead = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let engine = from_toml(&format!(
        "[route.r]\nlisten = [\"socks5://127.0.0.1:0\"]\nvia = [[\"{}\", \"{}\"]]\n",
        url(dead),
        url(live)
    ))
    .await;
    let mut socket = socks(engine.listeners()[0].addr, echo().await)
        .await
        .unwrap();
    assert_eq!(talk(&mut socket, b"second").await.unwrap(), b"second");
}

#[tokio::test]
async fn rules_go_before_the_chain() {
    let target = echo().await;
    let dead = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let engine = from_toml(&format!(
        "[route.r]\nlisten = [\"socks5://127.0.0.1:0\"]\nvia = [\"{}\"]\n\
         rules = [{{ match = [\"127.0.0.0/8\"], via = [\"direct://\"] }}, \
         {{ match = [\"192.0.2.0/24\"], via = [\"reject://\"] }}]\n",
        url(dead)
    ))
    .await;
    let proxy = engine.listeners()[0].addr;
    let mut socket = socks(proxy, target).await.unwrap();
    assert_eq!(talk(&mut socket, b"direct").await.unwrap(), b"direct");
    assert_eq!(
        socks(proxy, "192.0.2.1:80".parse().unwrap())
            .await
            .unwrap_err(),
        2,
        "rejected"
    );
    assert_eq!(
        socks(proxy, "198.51.100.1:80".parse().unwrap())
            .await
            .unwrap_err(),
        5,
        "the chain"
    );
}

#[tokio::test]
async fn a_server_that_speaks_first_is_heard_without_a_word() {
    let greeter = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = greeter.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut socket, _) = greeter.accept().await.unwrap();
        socket.write_all(b"220 ready").await.unwrap();
        let _ = socket.read(&mut [0; 8]).await;
    });
    let (_server, at) = server("").await;
    let (_client, proxy) = start(&["socks5://127.0.0.1:0", &url(at)]).await;
    let mut socket = socks(proxy, target).await.unwrap();
    let mut heard = [0; 9];
    timeout(Duration::from_secs(3), socket.read_exact(&mut heard))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&heard, b"220 ready");
}

#[tokio::test]
async fn a_target_that_closes_without_a_word_ends_cleanly() {
    let sink = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = sink.local_addr().unwrap();
    let swallowed = tokio::spawn(async move {
        let (mut socket, _) = sink.accept().await.unwrap();
        let mut all = Vec::new();
        socket.read_to_end(&mut all).await.unwrap();
        all.len()
    });
    let (_server, at) = server("").await;
    let (_client, proxy) = start(&["socks5://127.0.0.1:0", &url(at)]).await;
    let mut socket = socks(proxy, target).await.unwrap();
    socket.write_all(&[1; 100_000]).await.unwrap();
    socket.shutdown().await.unwrap();
    let mut rest = Vec::new();
    timeout(Duration::from_secs(3), socket.read_to_end(&mut rest))
        .await
        .unwrap()
        .unwrap();
    assert!(rest.is_empty());
    assert_eq!(swallowed.await.unwrap(), 100_000);
}

#[tokio::test]
async fn the_first_bytes_count_as_well() {
    let target = echo().await;
    let (server, at) = server("").await;
    let (client, proxy) = start(&["socks5://127.0.0.1:0", &url(at)]).await;
    let mut socket = socks(proxy, target).await.unwrap();
    // Sent with the request, so that no relay of the server counts it.
    assert_eq!(talk(&mut socket, &[7; 1000]).await.unwrap(), [7; 1000]);
    drop(socket);
    for _ in 0..100 {
        if server.total_counts().up >= 1000 && client.total_counts().up >= 1000 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(
        (server.total_counts().up, client.total_counts().up),
        (1000, 1000)
    );
    assert_eq!(
        server.keyed_servers()[0].user_table.total_usage(false).up,
        1000
    );
}

#[tokio::test]
async fn a_route_gets_another_chain_while_connections_are_open() {
    let target = echo().await;
    let (_one, first) = server("").await;
    let (two, second) = server("").await;
    let plan = |hop: String| {
        let words = ["socks5://127.0.0.1:0".to_owned(), hop];
        Plan::from_words(&words).unwrap()
    };
    let engine = Engine::start(&plan(url(first))).await.unwrap();
    let proxy = engine.listeners()[0].addr;
    let mut old = socks(proxy, target).await.unwrap();
    talk(&mut old, b"one").await.unwrap();
    assert!(
        engine
            .replace_routing(&plan(url(second)).routes[0])
            .await
            .unwrap()
    );
    let mut new = socks(proxy, target).await.unwrap();
    talk(&mut new, b"two").await.unwrap();
    talk(&mut old, b"still here").await.unwrap();
    assert_eq!(two.total_counts().opened, 1);
    let mut other = plan(url(second));
    other.routes[0].name = "other".to_owned();
    assert!(!engine.replace_routing(&other.routes[0]).await.unwrap());
}

#[tokio::test]
async fn an_ended_route_leaves_its_port_at_once() {
    let (engine, at) = server("").await;
    let route = engine.listeners()[0].route.clone();
    assert!(engine.remove_route_and_wait(&route).await);
    TcpListener::bind(at).await.unwrap();
    assert!(!engine.remove_route_and_wait(&route).await);
    assert!(engine.keyed_servers().is_empty());
}

/// A name of this machine, which no plan can detect.
#[tokio::test]
async fn a_circle_by_a_name_ends_soon() {
    let port = adit_interop::free_port();
    // The resolver parses `127.1` as an address; the plan does not.
    let hop = format!("socks5://127.1:{port}");
    let (engine, proxy) = start(&[&format!("mixed://127.0.0.1:{port}"), &hop]).await;
    let target = "9.9.9.9:80".parse().unwrap();
    let refused = timeout(Duration::from_secs(5), socks(proxy, target));
    let code = refused.await.expect("it goes round").unwrap_err();
    assert_ne!(code, 0);
    let all_closed = async {
        while engine.open_connections() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(5), all_closed).await.unwrap();
    // Intentional chains of listeners are served as usual.
    let target = echo().await;
    let (_last, mut at) = start(&["mixed://127.0.0.1:0"]).await;
    let mut chain = Vec::new();
    for _ in 0..6 {
        let (engine, next) = start(&["mixed://127.0.0.1:0", &format!("socks5://{at}")]).await;
        chain.push(engine);
        at = next;
    }
    let mut socket = socks(at, target).await.unwrap();
    assert_eq!(talk(&mut socket, b"here").await.unwrap(), b"here");
}
