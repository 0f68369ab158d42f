//! Expiry, rates, and numbers of sessions and devices, on live sessions.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use adit_engine::UserLimits;
use adit_interop::TEST_TIMEOUT;
use adit_interop::origin::OriginServer;
use adit_interop::socks_client::{self, Destination, UdpAssociation};
use adit_wire::UnixTime;

use super::world::{ByteServer, CUT_WITHIN, World, curl, read_rate, read_until_cut};
use crate::setup::{ALLOW, resident};

const LOGIN: Option<(&str, &str)> = Some(("ann", "one"));

fn listener() -> String {
    format!("mixed://ann:one@127.0.0.1:0?{ALLOW}")
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// Opens a stream to the server, which sends forever.
fn open_source(proxy: SocketAddr, server: &ByteServer) -> TcpStream {
    let to = Destination::Addr(server.addr);
    let mut stream = socks_client::connect_through(proxy, LOGIN, &to).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    stream
}

#[test]
fn expiry_ends_live_sessions() {
    let (server, origin) = (ByteServer::start(), OriginServer::start().unwrap());
    let expires = UnixTime(since_1970().as_secs() + 4);
    let limits = UserLimits {
        expires: Some(expires),
        ..UserLimits::default()
    };
    let mut world = World::start(&[("ann", limits)], &[&listener()]);
    let proxy = world.adit.addr();
    let to = Destination::Addr(origin.addr());
    let mut idle = socks_client::connect_through(proxy, LOGIN, &to).unwrap();
    idle.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let mut busy = open_source(proxy, &server);
    read_until_cut(&mut busy);
    let cut = since_1970();
    assert!(!matches!(idle.read(&mut [0]), Ok(1..)), "not cut");
    let late = cut.checked_sub(Duration::from_secs(expires.0));
    let late = late.expect("cut too early");
    eprintln!("cut {late:?} after the expiry");
    assert!(late < CUT_WITHIN, "{late:?}");
    let refused = socks_client::connect_through(proxy, LOGIN, &to);
    assert!(refused.unwrap_err().to_string().contains("0x02"));
    world.wait_for("refused: the time of the user has expired");
    world.stop("ann");
}

#[test]
fn a_rate_is_kept_by_all_sessions_together() {
    const RATE: f64 = 1_500_000.0;
    let server = ByteServer::start();
    let limits = UserLimits {
        rate: Some(RATE as u64),
        ..UserLimits::default()
    };
    let other = format!("mixed://bob:two@127.0.0.1:0?{ALLOW}");
    let world = World::start(&[("ann", limits)], &[&listener(), &other]);
    let [proxy, bobs] = *world.adit.addrs() else {
        panic!("two listeners");
    };
    let mut nearest = f64::MAX;
    for sessions in [1, 3, 3, 3] {
        let each: Vec<_> = (0..sessions)
            .map(|_| {
                let mut stream = open_source(proxy, &server);
                std::thread::spawn(move || {
                    // The first bytes are those of a full bucket.
                    read_rate(&mut stream, Duration::from_millis(500));
                    read_rate(&mut stream, Duration::from_secs(3))
                })
            })
            .collect();
        let each: Vec<f64> = each.into_iter().map(|one| one.join().unwrap()).collect();
        let sum: f64 = each.iter().sum();
        eprintln!("{sessions} sessions: {each:?}, together {sum:.0} B/s");
        // Bytes in buffers, and the ends of the measurements, which differ.
        assert!(sum < RATE * 1.1, "{each:?}");
        assert!(each.iter().all(|rate| *rate > RATE / 30.0), "{each:?}");
        nearest = nearest.min((sum / RATE - 1.0).abs());
    }
    // A busy machine can only make it slower.
    assert!(nearest < 0.1, "{nearest}");
    // Another user has no limit.
    let to = Destination::Addr(server.addr);
    let mut stream = socks_client::connect_through(bobs, Some(("bob", "two")), &to).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let rate = read_rate(&mut stream, Duration::from_secs(1));
    assert!(rate > RATE * 2.0, "{rate}");
    world.stop("ann");
}

#[test]
fn datagrams_above_the_rate_are_dropped() {
    const RATE: u64 = 50_000;
    let origin = OriginServer::start().unwrap();
    let limits = UserLimits {
        rate: Some(RATE),
        ..UserLimits::default()
    };
    let world = World::start(&[("ann", limits)], &[&listener()]);
    let association = UdpAssociation::open(world.adit.addr(), LOGIN).unwrap();
    let to = Destination::Addr(origin.addr());
    let (since, mut answers) = (Instant::now(), 0);
    while since.elapsed() < Duration::from_secs(3) {
        association.send_to(&to, &[1; 1000]).unwrap();
        if association.recv_within(Duration::from_millis(2)).is_ok() {
            answers += 1;
        }
    }
    let allowed = RATE as f64 * since.elapsed().as_secs_f64() / 1000.0;
    eprintln!("{answers} answers, {allowed:.0} by the rate");
    assert!(f64::from(answers) < allowed * 1.15, "{answers}");
    assert!(f64::from(answers) > allowed * 0.3, "{answers}");
    world.stop("ann");
}

#[test]
fn sessions_are_refused_above_their_number() {
    let (server, origin) = (ByteServer::start(), OriginServer::start().unwrap());
    let limits = UserLimits {
        sessions: Some(2),
        ..UserLimits::default()
    };
    let mut world = World::start(&[("ann", limits)], &[&listener()]);
    let proxy = world.adit.addr();
    let to = Destination::Addr(origin.addr());
    let first = socks_client::connect_through(proxy, LOGIN, &to).unwrap();
    let second = UdpAssociation::open(proxy, LOGIN).unwrap();
    let refused = socks_client::connect_through(proxy, LOGIN, &to);
    assert!(refused.unwrap_err().to_string().contains("0x02"));
    let url = format!("http://ann:one@{proxy}");
    let done = curl(&url, &[], &server.url());
    assert!(done.output.starts_with("403 "), "{}", done.output);
    world.wait_for("refused: the user has too many open sessions");
    drop(second);
    // The end is noticed soon, not at once.
    let since = Instant::now();
    let third = loop {
        match socks_client::connect_through(proxy, LOGIN, &to) {
            Ok(stream) => break stream,
            Err(why) => assert!(since.elapsed() < TEST_TIMEOUT, "{why}"),
        }
    };
    drop((first, third));
    world.stop("ann");
}

#[test]
fn another_device_is_refused_while_the_first_is_connected() {
    let (server, origin) = (ByteServer::start(), OriginServer::start().unwrap());
    let limits = UserLimits {
        devices: Some(1),
        ..UserLimits::default()
    };
    let mut world = World::start(&[("ann", limits)], &[&listener()]);
    let proxy = world.adit.addr();
    let to = Destination::Addr(origin.addr());
    let first = socks_client::connect_through(proxy, LOGIN, &to).unwrap();
    let same = socks_client::connect_through(proxy, LOGIN, &to).unwrap();
    let url = format!("http://ann:one@{proxy}");
    let elsewhere = [
        "--interface",
        "127.0.0.2",
        "-r",
        "0-9",
        "--max-filesize",
        "1",
    ];
    let done = curl(&url, &elsewhere, &server.url());
    assert!(done.output.starts_with("403 "), "{}", done.output);
    world.wait_for("refused: the user is connected from too many addresses");
    drop((first, same));
    let since = Instant::now();
    loop {
        let limit = [&elsewhere[..2], &["--max-time", "1"]].concat();
        let done = curl(&url, &limit, &server.url());
        if done.output.starts_with("200 ") || done.output.contains("\n200 ") {
            break;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "{}", done.output);
    }
    world.stop("ann");
}

/// Users with limits are small.
#[test]
fn ten_thousand_users() {
    const USERS: usize = 10_000;
    let quota = UserLimits {
        quota: Some(1 << 40),
        ..UserLimits::default()
    };
    let names: Vec<String> = (0..USERS).map(|n| format!("user{n:05}")).collect();
    let users: Vec<(&str, UserLimits)> = names.iter().map(|name| (name.as_str(), quota)).collect();
    let mut sizes = [0; 2];
    for (size, users) in sizes.iter_mut().zip([&users[..1], &users]) {
        let mut world = World::start(users, &[&listener()]);
        // Some rounds of the store.
        std::thread::sleep(Duration::from_secs(3));
        *size = resident(&mut world.adit);
        world.stop("user00000");
    }
    let [one, all] = sizes;
    let each = all.saturating_sub(one) * 1024 / USERS as u64;
    eprintln!("{one} KiB with one user, {all} KiB with {USERS}: {each} bytes per user");
    assert!(
        each <= 450,
        "{each} bytes per user, with the pages of the store"
    );
}
