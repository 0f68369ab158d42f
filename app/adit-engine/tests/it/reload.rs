//! Changes of a running plan, one listener at a time.

use std::net::SocketAddr;
use std::time::Duration;

use adit_config::Plan;
use adit_engine::{Engine, ReloadSummary, RuleSetTable};
use adit_interop::free_port;
use adit_rules::{Condition, RuleSet};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::world::{KEY, METHOD, echo, socks, start, talk, udp_echo};

const OTHER_KEY: &str = "ICEiIyQlJicoKSorLC0uLw==";

fn plan(text: &str) -> Plan {
    Plan::from_toml(text, "test.toml").unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn ss(port: u16, key: &str, more: &str) -> Plan {
    let common = "allow_private=all&restart=lenient";
    plan(&format!(
        "[route.a]\nlisten = \"ss://{METHOD}:{key}@127.0.0.1:{port}?{common}{more}\"\n"
    ))
}

fn changed(changed: usize) -> ReloadSummary {
    ReloadSummary {
        changed,
        ..ReloadSummary::default()
    }
}

async fn client(port: u16, key: &str) -> (Engine, SocketAddr) {
    start(&[
        "socks5://127.0.0.1:0",
        &format!("ss://{METHOD}:{key}@127.0.0.1:{port}"),
    ])
    .await
}

async fn works(proxy: SocketAddr, target: SocketAddr) -> bool {
    let talk = async {
        let mut socket = socks(proxy, target).await.ok()?;
        talk(&mut socket, b"hello").await.ok()
    };
    timeout(Duration::from_secs(2), talk)
        .await
        .ok()
        .flatten()
        .is_some()
}

/// Sends a datagram through a forwarder and waits for its echo.
async fn pings(forwarder: SocketAddr) -> bool {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut back = [0; 9];
    for _ in 0..4 {
        socket.send_to(b"ping", forwarder).await.unwrap();
        let received = timeout(Duration::from_millis(500), socket.recv_from(&mut back)).await;
        if received.is_ok() {
            return true;
        }
    }
    false
}

/// A listener that has changed can still be handed over to a successor.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_changed_listener_keeps_its_sockets_for_a_successor() {
    let port = free_port();
    let of_kcp = |more: &str| {
        let url = format!("ss+kcp://{METHOD}:{KEY}@127.0.0.1:{port}?allow_private=all{more}");
        plan(&format!("[route.a]\nlisten = \"{url}\"\n"))
    };
    let plans = [
        (ss(port, KEY, ""), ss(port, OTHER_KEY, ""), 2),
        (of_kcp(""), of_kcp("&mtu=1200"), 1),
        (of_kcp(""), of_kcp("&handshake=9s"), 1),
    ];
    for (before, after, sockets) in plans {
        let engine = Engine::start(&before).await.unwrap();
        assert_eq!(engine.export_sockets().unwrap().len(), sockets);
        assert_eq!(engine.apply(&before, &after).await.unwrap(), changed(1));
        assert_eq!(engine.export_sockets().unwrap().len(), sockets);
        engine.drain_and_stop(Duration::ZERO).await;
    }
}

#[tokio::test]
async fn another_key_ends_sessions_and_counters_continue() {
    let target = echo().await;
    let port = free_port();
    let before = ss(port, KEY, "");
    let engine = Engine::start(&before).await.unwrap();
    let (_near, proxy) = client(port, KEY).await;
    let mut open = socks(proxy, target).await.unwrap();
    talk(&mut open, &[7; 1000]).await.unwrap();

    // A timeout ends nothing.
    let slower = ss(port, KEY, "&idle=7m");
    assert_eq!(engine.apply(&before, &slower).await.unwrap(), changed(1));
    talk(&mut open, &[7; 1000]).await.unwrap();

    let now = ss(port, OTHER_KEY, "&idle=7m");
    assert_eq!(engine.apply(&slower, &now).await.unwrap(), changed(1));
    assert!(
        talk(&mut open, b"more").await.is_err(),
        "the session continues"
    );
    assert!(!works(proxy, target).await, "the old key still works");
    let (_near, proxy) = client(port, OTHER_KEY).await;
    assert!(works(proxy, target).await);
    let counts = engine.listener_counts();
    assert_eq!((counts.len(), counts[0].1.up), (1, 2005));
    let usage = engine.keyed_servers()[0].user_table.total_usage(false);
    assert_eq!(usage.up, 2005);
}

#[tokio::test]
async fn closed_listeners_are_opened_again() {
    let target = echo().await;
    let port = free_port();
    let plan = ss(port, KEY, "");
    let engine = Engine::start(&plan).await.unwrap();
    let (_near, proxy) = client(port, KEY).await;
    let mut open = socks(proxy, target).await.unwrap();
    talk(&mut open, &[7; 1000]).await.unwrap();
    let drain = engine.drain_and_stop(Duration::from_secs(60));
    timeout(Duration::from_millis(300), drain)
        .await
        .unwrap_err();
    assert!(engine.is_draining() && engine.listeners().is_empty());
    assert!(!works(proxy, target).await);
    assert_eq!(engine.total_counts().up, 1000);

    // While another program has the address, nothing is open.
    let thief = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    engine.resume(&plan).await.unwrap_err();
    assert!(engine.is_draining() && engine.listeners().is_empty());
    drop(thief);
    engine.resume(&plan).await.unwrap();
    assert!(!engine.is_draining());
    assert!(works(proxy, target).await);
    talk(&mut open, &[7; 1000]).await.unwrap();
    assert_eq!(engine.total_counts().up, 2005);
    // It can be drained again, to the end.
    engine.drain_and_stop(Duration::ZERO).await;
    assert!(!works(proxy, target).await);
}

#[tokio::test]
async fn datagrams_come_and_go_with_the_setting() {
    let target = udp_echo().await;
    let port = free_port();
    let with = ss(port, KEY, "");
    let without = ss(port, KEY, "&udp=false");
    let engine = Engine::start(&without).await.unwrap();
    let hop = format!("ss://{METHOD}:{KEY}@127.0.0.1:{port}");
    let (_near, forwarder) = start(&[&format!("udp://127.0.0.1:0/{target}"), &hop]).await;
    assert!(!pings(forwarder).await);
    assert_eq!(engine.apply(&without, &with).await.unwrap(), changed(1));
    assert_eq!(engine.listeners()[0].transports, "tcp+udp");
    assert!(pings(forwarder).await);
    assert_eq!(engine.apply(&with, &without).await.unwrap(), changed(1));
    assert_eq!(engine.listeners()[0].transports, "tcp");
    assert!(!pings(forwarder).await);
}

#[tokio::test]
async fn a_socket_option_opens_the_listener_again_and_an_obstacle_leaves_all_as_it_was() {
    let target = echo().await;
    let port = free_port();
    let before = ss(port, KEY, "");
    let engine = Engine::start(&before).await.unwrap();
    let (_near, proxy) = client(port, KEY).await;
    let mut open = socks(proxy, target).await.unwrap();
    talk(&mut open, b"one").await.unwrap();
    let obstacle = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let taken = obstacle.local_addr().unwrap().port();
    let now = |port: u16| {
        let mut now = ss(port, KEY, "&fast_open=true");
        let more = plan(&format!(
            "[route.b]\nlisten = \"mixed://127.0.0.1:{taken}\"\n"
        ));
        now.routes.extend(more.routes);
        now
    };
    let why = engine.apply(&before, &now(port)).await.unwrap_err();
    assert!(
        why.to_string().starts_with("route `b`: cannot listen on"),
        "{why}"
    );
    assert_eq!(engine.listeners().len(), 1);
    assert!(works(proxy, target).await, "it was not opened again");
    drop(obstacle);
    let summary = engine.apply(&before, &now(port)).await.unwrap();
    let expected = ReloadSummary {
        added: 1,
        changed: 1,
        removed: 0,
    };
    assert_eq!(summary, expected);
    assert!(works(proxy, target).await);
    TcpStream::connect(("127.0.0.1", taken)).await.unwrap();
    assert_eq!(engine.total_counts().opened, 3);
}

#[tokio::test]
async fn connections_of_a_removed_listener_continue() {
    let target = echo().await;
    let [kept, gone] = [free_port(), free_port()];
    let text = |port: u16| format!("[route.r{port}]\nlisten = \"mixed://127.0.0.1:{port}\"\n");
    let before = plan(&(text(kept) + &text(gone)));
    let now = plan(&text(kept));
    let engine = Engine::start(&before).await.unwrap();
    let at = SocketAddr::from(([127, 0, 0, 1], gone));
    let mut open = socks(at, target).await.unwrap();
    talk(&mut open, b"one").await.unwrap();
    assert_eq!(engine.apply(&before, &now).await.unwrap().removed, 1);
    assert!(TcpStream::connect(at).await.is_err());
    talk(&mut open, b"two").await.unwrap();
    let counts = engine.total_counts();
    assert_eq!((counts.opened, counts.up), (1, 6));
    // The port moves to an address that overlaps with that of the listener before.
    let wide = plan(&format!(
        "[route.r{kept}]\nlisten = \"mixed://0.0.0.0:{kept}?allow_open_proxy=true&allow_private=all\"\n"
    ));
    let summary = engine.apply(&now, &wide).await.unwrap();
    assert_eq!((summary.added, summary.removed), (1, 1));
    assert!(works(SocketAddr::from(([127, 0, 0, 1], kept)), target).await);
}

#[tokio::test]
async fn a_chain_that_is_the_same_keeps_its_sessions() {
    let target = echo().await;
    let port = free_port();
    let server = format!("ss+kcp://{METHOD}:{KEY}@127.0.0.1:{port}?allow_private=all");
    let (server, _) = start(&[&server]).await;
    let hop = format!("ss+kcp://{METHOD}:{KEY}@127.0.0.1:{port}");
    let text = |rule: &str| {
        plan(&format!(
            "[route.a]\nlisten = \"socks5://127.0.0.1:0\"\nvia = \"{hop}\"\n\
             rules = [{{ match = [\"{rule}\"], via = \"reject://\" }}]\n"
        ))
    };
    let (before, now) = (text("one.test"), text("two.test"));
    let engine = Engine::start(&before).await.unwrap();
    let proxy = engine.listeners()[0].addr;
    assert!(works(proxy, target).await);
    let sessions = server.kcp_counts().passive_opens;
    assert_eq!(engine.apply(&before, &now).await.unwrap(), changed(1));
    assert_eq!(engine.listeners()[0].addr, proxy);
    assert!(works(proxy, target).await);
    assert_eq!(server.kcp_counts().passive_opens, sessions);
}

/// A plan that rejects the addresses of the set `closed`, and uses the set `other` in another route.
fn with_sets(port: u16, other: u16) -> Plan {
    plan(&format!(
        "[route.a]\nlisten = \"socks5://127.0.0.1:{port}?allow_private=all\"\n\
         rules = [{{ match = \"set:closed\", via = \"reject://\" }}]\n\
         [route.b]\nlisten = \"socks5://127.0.0.1:{other}?allow_private=all\"\n\
         rules = [{{ match = \"set:other\", via = \"reject://\" }}]\n\
         [set.closed]\nfile = \"closed.txt\"\n[set.other]\nfile = \"other.txt\"\n"
    ))
}

fn set_of(network: &str) -> RuleSet {
    RuleSet::compile([Condition::parse(network).unwrap()]).unwrap()
}

#[tokio::test]
async fn a_changed_rule_set_decides_about_new_requests() {
    let target = echo().await;
    let (port, other) = (free_port(), free_port());
    let before = with_sets(port, other);
    let mut sets = RuleSetTable::default();
    sets.insert("closed", set_of("192.0.2.0/24"));
    sets.insert("other", set_of("192.0.2.0/24"));
    let engine = Engine::start_with_rule_sets(&before, sets).await.unwrap();
    let proxy = SocketAddr::from(([127, 0, 0, 1], port));
    let mut open = socks(proxy, target).await.unwrap();
    talk(&mut open, b"before").await.unwrap();

    // The same sets change nothing.
    let running = engine.rule_sets();
    let same = engine.apply_with_rule_sets(&before, &before, running.clone());
    assert_eq!(same.await.unwrap(), changed(0));

    // A rule whose set is missing changes nothing either.
    let mut sets = RuleSetTable::default();
    assert!(sets.share_set("other", &running));
    assert!(!sets.share_set("missing", &running));
    let missing = plan(&format!(
        "[route.a]\nlisten = \"socks5://127.0.0.1:{port}?allow_private=all\"\n\
         rules = [{{ match = [\"set:closed\", \"a.example\"], via = \"reject://\" }}]\n\
         [set.closed]\nfile = \"closed.txt\"\n"
    ));
    let applied = engine.apply_with_rule_sets(&before, &missing, sets.clone());
    let why = applied.await.unwrap_err().to_string();
    assert!(why.contains("no rule set `closed`"), "{why}");
    assert!(works(proxy, target).await);
    assert_eq!(engine.listeners().len(), 2);

    // One of two routes uses the set that changes.
    sets.insert("closed", set_of("127.0.0.0/8"));
    let applied = engine.apply_with_rule_sets(&before, &before, sets);
    assert_eq!(applied.await.unwrap(), changed(1));
    assert!(!works(proxy, target).await, "the former set decides");
    assert!(works(SocketAddr::from(([127, 0, 0, 1], other)), target).await);
    talk(&mut open, b"after").await.unwrap();

    // A route that is added later uses the new set, and a set that is replaced applies to all of them.
    let third = free_port();
    let more = plan(&format!(
        "[route.c]\nlisten = \"socks5://127.0.0.1:{third}?allow_private=all\"\n\
         rules = [{{ match = \"set:closed\", via = \"reject://\" }}]\n\
         [set.closed]\nfile = \"closed.txt\"\n"
    ));
    engine.add_route(&more.routes[0]).await.unwrap();
    let third = SocketAddr::from(([127, 0, 0, 1], third));
    assert!(!works(third, target).await);
    let closed = engine.rule_sets();
    closed
        .get("closed")
        .unwrap()
        .replace(set_of("192.0.2.0/24"));
    assert!(works(third, target).await);
    assert!(works(proxy, target).await);
}
