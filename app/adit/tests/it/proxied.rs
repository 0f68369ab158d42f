//! Listeners behind a proxy of the same machine that sends the clients' addresses
//! (`proxy_protocol=true`).

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use adit_interop::haproxy::HaproxyServer;
use adit_interop::hostile_clients::{Reaction, watch_reaction};
use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::BLAKE3_AES_128;
use adit_interop::socks_client::{self, CONNECT, Destination};
use adit_interop::{TEST_TIMEOUT, loopback_addr, traffic};

use crate::setup::{ALLOW, ended, start};

/// Opens a connection of this client, as a proxy forwards it.
fn brought(to: SocketAddr, client: Ipv4Addr) -> TcpStream {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
    header.extend(client.octets());
    header.extend([127, 0, 0, 1, 0x12, 0x34, 0x20, 0xc4]);
    let mut stream = traffic::connect_directly(to).unwrap();
    stream.write_all(&header).unwrap();
    stream
}

/// Through a real proxy, for each kind of listener that has many clients.
#[test]
fn haproxy_brings_clients() {
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    let mixed = start(&[
        "-v",
        "run",
        &format!("mixed://127.0.0.1:0?{ALLOW}&proxy_protocol=true"),
    ]);
    let front = HaproxyServer::start(mixed.addr()).unwrap();
    traffic::check_one_byte(socks_client::connect_through(front.addr(), None, &to).unwrap())
        .unwrap();

    let url = BLAKE3_AES_128.url(loopback_addr(0));
    let keyed = start(&["run", &format!("{url}?{ALLOW}&proxy_protocol=true")]);
    let outer = HaproxyServer::start(keyed.addr()).unwrap();
    let hop = BLAKE3_AES_128.url(outer.addr());
    let client = start(&["run", &format!("tcp://127.0.0.1:0/{}", origin.addr()), &hop]);
    traffic::check_one_byte(traffic::connect_directly(client.addr()).unwrap()).unwrap();
    for adit in [client, keyed, mixed] {
        adit.stop().unwrap();
    }
}

/// The log names the client of the header, and its failed logins count.
#[test]
fn clients_are_told_apart_by_their_headers() {
    let origin = OriginServer::start().unwrap();
    let url = format!("socks5://anna:right@127.0.0.1:0?{ALLOW}&proxy_protocol=true");
    let mut proxy = start(&["-v", "run", &url]);
    let (at, to) = (proxy.addr(), Destination::Addr(origin.addr()));
    let (guesser, friend) = (Ipv4Addr::new(192, 0, 2, 66), Ipv4Addr::new(192, 0, 2, 7));
    let login = |client, password| {
        let mut stream = brought(at, client);
        socks_client::authenticate(&mut stream, Some(("anna", password))).map(|()| stream)
    };
    let guesses: Vec<_> = (0..12)
        .map(|_| {
            thread::spawn(move || {
                let mut stream = brought(at, guesser);
                assert!(socks_client::authenticate(&mut stream, Some(("anna", "wrong"))).is_err());
            })
        })
        .collect();
    for guess in guesses {
        guess.join().unwrap();
    }
    // The last guesses may not have been counted yet.
    let until = Instant::now() + TEST_TIMEOUT;
    while login(guesser, "right").is_ok() {
        assert!(Instant::now() < until, "the guesser is still let in");
        thread::sleep(Duration::from_millis(50));
    }
    let mut stream = login(friend, "right").unwrap();
    stream
        .write_all(&socks_client::encode_request(CONNECT, &to))
        .unwrap();
    assert_eq!(socks_client::read_reply(&mut stream).unwrap().code, 0);
    traffic::check_one_byte(stream).unwrap();
    let lines = proxy
        .process()
        .wait_lines("client=192.0.2.7:4660", 1, TEST_TIMEOUT);
    assert!(lines.is_ok(), "{lines:?}");
    proxy.stop().unwrap();
}

#[test]
fn nobody_else_gets_in() {
    let origin = OriginServer::start().unwrap();
    let proxy = start(&[
        "run",
        &format!("mixed://127.0.0.1:0?{ALLOW}&proxy_protocol=true"),
    ]);
    // No header, a header of version 1, half a header: nothing is served or answered.
    let request = socks_client::encode_request(CONNECT, &Destination::Addr(origin.addr()));
    let mut direct = traffic::connect_directly(proxy.addr()).unwrap();
    direct
        .write_all(&[&[5, 1, 0][..], &request].concat())
        .unwrap();
    let mut first = traffic::connect_directly(proxy.addr()).unwrap();
    first
        .write_all(b"PROXY TCP4 192.0.2.7 127.0.0.1 4660 8388\r\n\x05\x01\0")
        .unwrap();
    for mut stream in [direct, first] {
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        assert!(matches!(stream.read(&mut [0; 8]), Ok(0) | Err(_)));
    }
    let mut half = traffic::connect_directly(proxy.addr()).unwrap();
    half.write_all(b"\r\n\r\n\0\r\nQUIT\n\x21").unwrap();
    let seen = watch_reaction(&mut half, Duration::from_millis(300)).unwrap();
    assert_eq!(seen, Reaction::Silence);
    drop(half);
    assert_eq!(origin.connection_count(), 0);
    proxy.stop().unwrap();

    // An address that other machines reach must not accept headers, because anyone can write them.
    let open = ended(&["check", "socks5://a:b@0.0.0.0:1080?proxy_protocol=true"]);
    assert_eq!(open.code, Some(3), "{}", open.output);
    assert!(
        open.output.contains("a proxy on this machine"),
        "{}",
        open.output
    );
}
