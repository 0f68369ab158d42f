//! The stream ciphers of old peers: they work, with a warning, and attacks show why.

use std::env;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use adit_interop::hostile_clients::{AfterWrite, Reaction, WriteMode, probe_server};
use adit_interop::origin::OriginServer;
use adit_interop::recording_relay::RecordingRelay;
use adit_interop::shadowsocks::{AES_256, MethodKey, ShadowsocksPeer};
use adit_interop::traffic::{self, ForwarderEntry};
use adit_interop::{AditProcess, TempFolder, free_port, loopback_addr};

use crate::setup::{ALLOW, bin, ended, server, start};
use crate::shadowsocks::{from_their_client, to_their_server};

#[test]
fn to_every_server_of_shadowsocks_libev() {
    for method in ShadowsocksPeer::Libev.legacy_methods() {
        to_their_server(ShadowsocksPeer::Libev, *method);
    }
}

#[test]
fn from_every_client_of_shadowsocks_libev() {
    for method in ShadowsocksPeer::Libev.legacy_methods() {
        from_their_client(ShadowsocksPeer::Libev, *method);
    }
}

#[test]
fn shadowsocks_rust_every_method() {
    if env::var_os("ADIT_ALL_PEERS").is_none() {
        return;
    }
    for method in ShadowsocksPeer::Rust.legacy_methods() {
        to_their_server(ShadowsocksPeer::Rust, *method);
        from_their_client(ShadowsocksPeer::Rust, *method);
    }
}

fn legacy() -> impl Iterator<Item = MethodKey> {
    adit_shadowsocks::Method::ALL
        .into_iter()
        .filter(|method| method.is_legacy())
        .map(|method| MethodKey::legacy(method.name()))
}

/// Includes ciphers that no other implementation has: one server and one client with all of them.
#[test]
fn ours_to_ours_every_method() {
    let origin = OriginServer::start().unwrap();
    let run = |words: Vec<String>, listeners| {
        let words: Vec<&str> = ["run"]
            .into_iter()
            .chain(words.iter().map(String::as_str))
            .collect();
        AditProcess::start_with(&bin(), &words, listeners).unwrap()
    };
    let any = loopback_addr(0);
    let servers: Vec<String> = legacy()
        .flat_map(|method| ["-L".to_owned(), format!("{}?{ALLOW}", method.url(any))])
        .collect();
    let count = servers.len() / 2;
    let back = run(servers, count);
    let entry = format!("tcp+udp://{any}/{}", origin.addr());
    let clients: Vec<String> = legacy()
        .zip(back.addrs())
        .flat_map(|(method, addr)| {
            let hop = method.url(*addr);
            ["-L".to_owned(), entry.clone(), "-F".to_owned(), hop]
        })
        .collect();
    let front = run(clients, count);
    for (method, addr) in legacy().zip(front.addrs()) {
        let check = || {
            traffic::check_one_byte(traffic::connect_directly(*addr)?)?;
            traffic::upload(traffic::connect_directly(*addr)?, 300_000)?;
            traffic::download(traffic::connect_directly(*addr)?, 300_000)?;
            traffic::check_half_close(traffic::connect_directly(*addr)?, 50_000)?;
            traffic::check_datagrams(&ForwarderEntry::open(*addr)?)
        };
        if let Err(why) = check() {
            panic!("{}: {why:?}", method.name);
        }
    }
    front.stop().unwrap();
    back.stop().unwrap();
}

#[test]
fn a_method_is_made_checked_drawn_and_warned_about() {
    let password = ended(&["keygen", "aes-256-cfb"]).expect_success().unwrap();
    assert_eq!(password.trim().len(), 32);
    let url = format!("ss://aes-256-cfb:{}@127.0.0.1:0", password.trim());
    for command in ["check", "explain"] {
        let output = ended(&[command, &url]).expect_success().unwrap();
        let warned = output.matches("`aes-256-cfb` is broken").count();
        assert_eq!(warned, 1, "{output}");
    }
    let two = ended(&["check", &url, "ss://table:p@127.0.0.1:1"]);
    let two = two.expect_success().unwrap();
    assert_eq!(two.matches("is broken").count(), 2, "{two}");
    let unknown = ended(&["keygen", "nothing-like-it-at-all"]).output;
    assert!(unknown.contains("legacy ones"), "{unknown}");
}

/// Any bytes decrypt to something, which is not taken for an answer.
#[test]
fn a_client_knows_whether_it_has_the_right_password() {
    let method = MethodKey::legacy("aes-128-cfb");
    let back = server(method);
    let fine = ended(&["client", "--check", &method.url(back.addr())]);
    assert!(fine.output.contains("accepts us"), "{}", fine.output);
    assert_eq!(fine.code, Some(0));
    let wrong = MethodKey {
        key: "another",
        ..method
    };
    let wrong = ended(&["client", "--check", &wrong.url(back.addr())]);
    assert!(!wrong.output.contains("accepts us"), "{}", wrong.output);
    assert_ne!(wrong.code, Some(0));
    back.stop().unwrap();
}

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nserver: unnamed test program\r\n\r\nthe secret";

/// Starts a web server that sends [`ANSWER`] to every client.
fn web() -> SocketAddr {
    let listener = TcpListener::bind(loopback_addr(0)).unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(ANSWER);
        }
    });
    addr
}

/// Opens a port of the attacker. Returns its address and the bytes that arrive.
fn attacker() -> (SocketAddr, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind(loopback_addr(0)).unwrap();
    let addr = listener.local_addr().unwrap();
    let (tell, told) = channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut got = Vec::new();
            let _ = stream.read_to_end(&mut got);
            if tell.send(got).is_err() {
                return;
            }
        }
    });
    (addr, told)
}

/// Starts a server that stores its salts in `state`, if it is given.
fn keeping(method: MethodKey, state: Option<&Path>) -> AditProcess {
    let state = state.map_or_else(String::new, |path| format!("&state=@{}", path.display()));
    let url = format!(
        "{}?{ALLOW}&restart=lenient{state}",
        method.url(loopback_addr(free_port()))
    );
    start(&["run", &url])
}

/// Returns the server's answer to a client of adit, as it was on the wire.
fn recorded(method: MethodKey, back: &AditProcess, to: SocketAddr) -> Vec<u8> {
    let tap = RecordingRelay::start(back.addr()).unwrap();
    let entry = format!("tcp://127.0.0.1:0/{to}");
    let front = start(&["run", &entry, &method.url(tap.addr())]);
    let mut stream = traffic::connect_directly(front.addr()).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut got = vec![0; ANSWER.len()];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(got, ANSWER);
    drop(stream);
    front.stop().unwrap();
    tap.answers().remove(0)
}

/// Returns an answer whose start, which is the same in all answers of the web server, is replaced by
/// the attacker's address: that needs no key.
fn redirected(answer: &[u8], salt: usize, to: SocketAddr) -> Vec<u8> {
    let SocketAddr::V4(to) = to else {
        panic!("{to}")
    };
    let address = [&[1][..], &to.ip().octets(), &to.port().to_be_bytes()].concat();
    let mut forged = answer.to_vec();
    for ((byte, known), wanted) in forged[salt..].iter_mut().zip(ANSWER).zip(address) {
        *byte ^= known ^ wanted;
    }
    forged
}

/// Sends a request and ends. Returns what arrives at the attacker in the next second.
fn attack(server: SocketAddr, request: &[u8], told: &Receiver<Vec<u8>>) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.write_all(request).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    told.recv_timeout(Duration::from_secs(1)).ok()
}

/// A recorded answer is sent to the server with another address in front, and the server decrypts it
/// for the attacker: without authentication this cannot be prevented. The filter of IVs only prevents it
/// as long as it remembers them.
#[test]
fn redirect_demo() {
    let folder = TempFolder::new("redirect").unwrap();
    for (method, salt, works) in [
        (MethodKey::legacy("aes-256-ctr"), 16, true),
        (MethodKey::legacy("aes-128-cfb"), 16, true),
        (MethodKey::legacy("chacha20-ietf"), 12, true),
        (AES_256, 32, false),
    ] {
        let state = folder.path().join(method.name);
        let (to, told) = attacker();
        let back = keeping(method, Some(&state));
        let answer = recorded(method, &back, web());
        let forged = redirected(&answer, salt, to);
        let running = attack(back.addr(), &forged, &told);
        assert_eq!(running, None, "{}: the IV is remembered", method.name);
        back.stop().unwrap();

        let back = keeping(method, Some(&state));
        let restarted = attack(back.addr(), &forged, &told);
        assert_eq!(restarted, None, "{}: the IV was kept", method.name);
        back.stop().unwrap();

        let back = keeping(method, None);
        let forgotten = attack(back.addr(), &forged, &told);
        back.stop().unwrap();
        assert_eq!(forgotten.is_some(), works, "{}", method.name);
        if let Some(plain) = forgotten {
            assert!(
                plain.ends_with(b"the secret"),
                "{}: {}",
                method.name,
                String::from_utf8_lossy(&plain)
            );
        }
    }
}

/// SEC-P1: an invalid address has the same reaction as a replay or an incomplete request.
#[test]
fn one_reaction_to_what_is_no_request() {
    let method = MethodKey::legacy("chacha20-ietf");
    let iv = 12;
    let origin = OriginServer::start().unwrap();
    let ours = server(method);
    let tap = RecordingRelay::start(ours.addr()).unwrap();
    let client = ShadowsocksPeer::Libev
        .start_forwarder(method, tap.addr(), origin.addr())
        .unwrap();
    traffic::check_one_byte(traffic::connect_directly(client.addr()).unwrap()).unwrap();
    let genuine = tap.requests().remove(0);
    // The address is 127.0.0.1 in four bytes, so this part of the plaintext is known.
    let mut bad_type = genuine.clone();
    bad_type[iv] ^= 1 ^ 5;
    let mut empty_name = genuine.clone();
    empty_name[iv] ^= 1 ^ 3;
    empty_name[iv + 1] ^= 127;
    let probes = [
        ("a replay", &genuine[..]),
        ("another type", &bad_type),
        ("an empty name", &empty_name),
        ("a cut address", &genuine[..iv + 3]),
        ("a cut IV", &genuine[..iv - 1]),
        ("nothing", &[]),
    ];
    let patience = Duration::from_secs(1);
    for ending in [AfterWrite::Hold, AfterWrite::HalfClose] {
        let seen = probes.map(|(what, bytes)| {
            let reaction = probe_server(ours.addr(), bytes, WriteMode::OneWrite, ending, patience);
            (what, reaction.unwrap())
        });
        let (_, wanted) = seen[0];
        assert!(!matches!(wanted, Reaction::Answer(_)), "{seen:?}");
        assert!(
            seen.iter().all(|(_, reaction)| *reaction == wanted),
            "{ending:?}: {seen:?}"
        );
    }
    assert_eq!(origin.connection_count(), 1);
    ours.stop().unwrap();
}
