//! A changed configuration is applied while connections are open and new ones arrive.

pub(crate) mod flows;
pub(crate) mod world;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_interop::openssh;
use adit_interop::origin::OriginServer;
use adit_interop::socks_client::{self, Destination, UdpAssociation};
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, free_port, loopback_addr};
use rustix::process::Signal;

use self::flows::{BulkFlow, Connections, EchoStream, stop_working_flows};
use self::world::{Server, Settings};
use crate::setup::{ALLOW, bin, start};

/// Number of reloads, of new connections per second, and of bulk flows through each protocol.
const RELOADS: usize = 20;
const RATE: u32 = 200;
const FLOWS_EACH: usize = 2;

/// Every reload changes a rule, a key of another user and a timeout, and opens or closes a listener. Neither open
/// connections nor new ones notice.
#[test]
fn twenty_reloads_under_load_lose_nothing() {
    let origin = OriginServer::start().unwrap();
    let mut server = Server::start(&Settings::default());
    let clients = server.clients();
    let proxies = clients.iter().map(AditProcess::addr);
    let mut entries = vec![server.mixed()];
    entries.extend(proxies);
    let target = Destination::Addr(origin.addr());
    let flows: Vec<BulkFlow> = entries
        .iter()
        .flat_map(|entry| (0..FLOWS_EACH).map(|_| BulkFlow::start(*entry, &target)))
        .collect();
    assert_eq!(flows.len(), 10);
    // An association through the proxy, and one through the Shadowsocks server.
    let associations: Vec<UdpAssociation> = entries[..2]
        .iter()
        .map(|entry| UdpAssociation::open(*entry, None).unwrap())
        .collect();
    let ping = |text: &[u8]| {
        for association in &associations {
            association.send_to(&target, text).unwrap();
            let (_, back) = association.recv_within(TEST_TIMEOUT).unwrap();
            assert_eq!(back, text);
        }
    };
    ping(b"before");
    let load = Connections::start(&entries[..2], &target, RATE);
    let since = Instant::now();
    for round in 1..=RELOADS {
        server.reload(&Settings::of_round(round));
        ping(format!("round {round}").as_bytes());
        sleep(Duration::from_millis(100));
    }
    let took = since.elapsed();
    let done = load.stop();
    done.assert_lossless(took, RATE);
    stop_working_flows(flows);
    drop(associations);
    // Every connection was counted once, by a counter that the reloads have not reset.
    let per_entry = u64::from(done.opened_at[0]) + FLOWS_EACH as u64;
    server.wait_for_sessions("front", per_entry + 1);
    println!("{} connections in {took:?}", done.opened);
    for client in clients {
        client.stop().unwrap();
    }
    server.adit.stop().unwrap();
}

/// A mistake is logged with its line, and nothing changes: neither the listeners before it nor those after it.
#[test]
fn a_bad_file_changes_nothing_and_says_where() {
    let origin = OriginServer::start().unwrap();
    let target = Destination::Addr(origin.addr());
    let mut server = Server::start(&Settings::default());
    let mut open = EchoStream::open(server.mixed(), &target).unwrap();
    // Once for all: a process that another thread is starting may have a copy of a socket that was closed here.
    let taken = TcpListener::bind(loopback_addr(server.extra_port())).unwrap();
    for (from, to, place) in [
        ("mixed://", "mixd://", "adit.toml:2:"),
        ("via = \"direct://\"", "via = \"sox://a:1\"", "adit.toml:3:"),
        ("[route.front]", "[route.front", "adit.toml:1:"),
        // Found when it is opened: this port is taken.
        ("udp_idle=5m", "udp_idle=6m", "cannot listen on 127.0.0.1:"),
    ] {
        let settings = Settings {
            extra: place.starts_with("cannot"),
            ..Settings::default()
        };
        let text = server.text(&settings);
        assert!(text.contains(from), "{from}");
        server.write(&text.replacen(from, to, 1));
        let line =
            server.signal_and_wait("was not reloaded, the running configuration is unchanged");
        assert!(line.contains(place), "{to}: {line}");
        open.exchange(b"still open").unwrap();
        let mut fresh = EchoStream::open(server.mixed(), &target).unwrap();
        fresh.exchange(b"and accepting").unwrap();
    }
    drop(taken);
    server.reload(&Settings::default());
    server.adit.stop().unwrap();
}

/// A removed user, and one with another password, lose their sessions; others do not.
#[test]
fn sessions_of_removed_users_end() {
    let origin = OriginServer::start().unwrap();
    let target = Destination::Addr(origin.addr());
    let folder = TempFolder::new("reload-users").unwrap();
    let port = free_port();
    let write = |users: &str| {
        folder.write_file("users", users).unwrap();
        let text =
            format!("[route.a]\nlisten = \"socks5://127.0.0.1:{port}?users=@users&{ALLOW}\"\n");
        folder.write_file("adit.toml", text).unwrap()
    };
    let file = write("ann:one\nbob:two\n");
    let mut adit = start(&["run", "-c", file.to_str().unwrap()]);
    let login = |name, password| {
        let stream =
            socks_client::connect_through(adit_addr(port), Some((name, password)), &target);
        stream.map(EchoStream::new)
    };
    let mut ann = login("ann", "one").unwrap().unwrap();
    let mut bob = login("bob", "two").unwrap().unwrap();
    ann.exchange(b"ann").unwrap();
    bob.exchange(b"bob").unwrap();
    write("ann:one\nbob:other\n");
    adit.process().send_signal(Signal::HUP).unwrap();
    adit.process()
        .wait_lines("reloaded ", 1, TEST_TIMEOUT)
        .unwrap();
    ann.exchange(b"ann again").unwrap();
    assert!(bob.ends_within(TEST_TIMEOUT), "bob's session continues");
    assert!(login("bob", "two").is_err());
    login("bob", "other")
        .unwrap()
        .unwrap()
        .exchange(b"bob")
        .unwrap();
    adit.stop().unwrap();
}

fn adit_addr(port: u16) -> std::net::SocketAddr {
    loopback_addr(port)
}

/// With `watch`, a file that an editor replaces is applied without a signal, and so is a key file.
#[test]
fn a_watched_file_is_applied_when_it_changes() {
    let folder = TempFolder::new("reload-watch").unwrap();
    let [port, other] = [free_port(), free_port()];
    folder.write_file("password", "one").unwrap();
    let text = |port: u16| {
        format!(
            "[run]\nwatch = true\n[route.a]\nlisten = \"socks5://ann:@password@127.0.0.1:{port}?{ALLOW}\"\n"
        )
    };
    let file = folder.write_file("adit.toml", text(port)).unwrap();
    let mut adit = start(&["run", "-c", file.to_str().unwrap()]);
    folder.write_file("password", "two").unwrap();
    let lines = adit
        .process()
        .wait_lines("reloaded ", 1, TEST_TIMEOUT)
        .unwrap();
    assert!(
        lines[0].contains("0 listeners added, 1 changed, 0 removed"),
        "{lines:?}"
    );
    let draft = folder.write_file("draft", text(other)).unwrap();
    std::fs::rename(draft, &file).unwrap();
    let lines = adit
        .process()
        .wait_lines("reloaded ", 2, TEST_TIMEOUT)
        .unwrap();
    assert!(
        lines[1].contains("1 listener added, 0 changed, 1 removed"),
        "{lines:?}"
    );
    TcpStream::connect(loopback_addr(other)).unwrap();
    assert!(TcpStream::connect(loopback_addr(port)).is_err());
    adit.stop().unwrap();
}

/// A changed list decides about the next request, and a list that cannot be read changes nothing.
#[test]
fn a_changed_list_of_rules_is_applied() {
    let origin = OriginServer::start().unwrap();
    let target = Destination::Addr(origin.addr());
    let folder = TempFolder::new("reload-lists").unwrap();
    let ports = [free_port(), free_port()];
    folder.write_file("closed.txt", "192.0.2.0/24\n").unwrap();
    folder.write_file("other.txt", "192.0.2.0/24\n").unwrap();
    let text = |rest: &str| {
        let [port, other] = ports;
        let text = format!(
            r#"
[route.a]
listen = "socks5://127.0.0.1:{port}?{ALLOW}"
rules = [{{ match = "set:closed", via = "reject://" }}]
[route.b]
listen = "socks5://127.0.0.1:{other}?{ALLOW}"
rules = [{{ match = "set:other", via = "reject://" }}]
[set.closed]
file = "closed.txt"
[set.other]
file = "other.txt"
{rest}"#
        );
        folder.write_file("adit.toml", text).unwrap()
    };
    let file = text("");
    let args = ["run", "-c", file.to_str().unwrap()];
    let mut adit = AditProcess::start_with(&bin(), &args, 2).unwrap();
    let [proxy, other] = ports.map(loopback_addr);
    let mut open = EchoStream::open(proxy, &target).unwrap();
    open.exchange(b"before").unwrap();
    let mut reload = |line: &str, count: usize| {
        let process = adit.process();
        process.send_signal(Signal::HUP).unwrap();
        let lines = process.wait_lines(line, count, TEST_TIMEOUT).unwrap();
        lines.last().unwrap().clone()
    };

    // A list that is missing: nothing changes.
    std::fs::remove_file(folder.path().join("closed.txt")).unwrap();
    let line = reload(
        "was not reloaded, the running configuration is unchanged",
        1,
    );
    assert!(line.contains("adit.toml:9:8: rule set `closed`"), "{line}");
    EchoStream::open(proxy, &target).unwrap();

    // Another list: one of two listeners has other rules.
    folder.write_file("closed.txt", "127.0.0.0/8\n").unwrap();
    let line = reload("reloaded /", 1);
    assert!(
        line.contains("0 listeners added, 1 changed, 0 removed"),
        "{line}"
    );
    assert!(
        EchoStream::open(proxy, &target).is_err(),
        "the former list decides"
    );
    EchoStream::open(other, &target).unwrap();
    open.exchange(b"after").unwrap();

    // The same lists change nothing.
    let line = reload("reloaded /", 2);
    assert!(
        line.contains("0 listeners added, 0 changed, 0 removed"),
        "{line}"
    );

    // A watched list needs no signal.
    text("[run]\nwatch = true\n");
    reload("reloaded /", 3);
    folder.write_file("closed.txt", "192.0.2.0/24\n").unwrap();
    let process = adit.process();
    process.wait_lines("reloaded /", 4, TEST_TIMEOUT).unwrap();
    EchoStream::open(proxy, &target)
        .unwrap()
        .exchange(b"new")
        .unwrap();
    open.exchange(b"still open").unwrap();
    adit.stop().unwrap();
}

/// SIGTERM lets a transfer end, a second one does not wait for it.
#[test]
fn a_stop_waits_for_open_connections_until_the_second_signal() {
    let origin = OriginServer::start().unwrap();
    let target = Destination::Addr(origin.addr());
    for second in [false, true] {
        let mut adit = start(&["run", &format!("mixed://127.0.0.1:0?{ALLOW}")]);
        let mut open = EchoStream::open(adit.addr(), &target).unwrap();
        open.exchange(b"one").unwrap();
        adit.process().send_signal(Signal::TERM).unwrap();
        adit.process()
            .wait_lines("open connections have", 1, TEST_TIMEOUT)
            .unwrap();
        sleep(Duration::from_millis(300));
        open.exchange(b"two").unwrap();
        assert!(TcpStream::connect(adit.addr()).is_err(), "it still accepts");
        let since = Instant::now();
        if second {
            adit.process().send_signal(Signal::TERM).unwrap();
        } else {
            drop(open);
        }
        let status = adit.process().wait(TEST_TIMEOUT).unwrap();
        assert_eq!(status.code(), Some(0));
        assert!(
            since.elapsed() < Duration::from_secs(3),
            "{:?}",
            since.elapsed()
        );
    }
}

/// A reload by the API answers what has changed, or why nothing has.
#[test]
fn the_api_reloads() {
    let server = Server::start(&Settings::default());
    server.write(&server.text(&Settings::of_round(1)));
    let reply = server.post_reload();
    assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
    assert!(reply.contains("\"added\":1,\"changed\":"), "{reply}");
    server.write("[route.front]\nlisten = 7\n");
    let reply = server.post_reload();
    assert!(reply.starts_with("HTTP/1.1 422 "), "{reply}");
    assert!(reply.contains("adit.toml:2:"), "{reply}");
    server.adit.stop().unwrap();
}

/// Reads everything of a stream that is about to end.
fn read_rest(stream: &mut (impl Read + Write)) -> String {
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    String::from_utf8_lossy(&rest).into_owned()
}

/// Creates the SSH key of a client in a folder.
fn generate_client_key(folder: &TempFolder) {
    openssh::generate_key(folder.path(), "id").unwrap();
}
