//! The store of a process that is killed under load, and one that hands over.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use adit_engine::UserLimits;
use adit_interop::TEST_TIMEOUT;
use adit_interop::socks_client::{self, Destination};
use rustix::process::Signal;

use super::world::{ByteServer, World, stored};
use crate::setup::{ALLOW, ended, says};

/// Bytes per second of the load.
const RATE: u64 = 4_000_000;
/// Interval of the store.
const INTERVAL: Duration = Duration::from_millis(200);
/// Time between the end of an interval and its transaction, on a busy machine.
const WRITE_TIME: Duration = Duration::from_millis(500);

/// Uploads until the proxy is gone.
fn upload(proxy: SocketAddr, server: SocketAddr, stop: &AtomicBool) {
    let to = Destination::Addr(server);
    let Ok(mut stream) = socks_client::connect_through(proxy, Some(("ann", "one")), &to) else {
        return;
    };
    stream.set_write_timeout(Some(TEST_TIMEOUT)).unwrap();
    while !stop.load(Ordering::Relaxed) && stream.write_all(&[b'x'; 16 << 10]).is_ok() {}
}

/// Kills a process `rounds` times under load. What is stored is never more than what the server has received, and never
/// less than that without the bytes of one interval per round.
fn kill_under_load(rounds: u32) {
    let server = ByteServer::start();
    let limits = UserLimits {
        rate: Some(RATE),
        quota: Some(1 << 50),
        ..UserLimits::default()
    };
    let url = format!("mixed://ann:one@127.0.0.1:0?{ALLOW}");
    let interval = format!("{}ms", INTERVAL.as_millis());
    let World { folder, mut adit } =
        World::start_with_interval(&[("ann", limits)], &[&url], &interval);
    let mut lowest = 0;
    for round in 1..=rounds {
        let (proxy, addr) = (adit.addr(), server.addr);
        let stop = Arc::new(AtomicBool::new(false));
        let load: Vec<_> = (0..3)
            .map(|_| {
                let stop = stop.clone();
                thread::spawn(move || upload(proxy, addr, &stop))
            })
            .collect();
        thread::sleep(Duration::from_millis(1500 + u64::from(round) * 13 % 200));
        adit.process().send_signal(Signal::KILL).unwrap();
        adit.process().wait(TEST_TIMEOUT).unwrap();
        stop.store(true, Ordering::Relaxed);
        load.into_iter().for_each(|one| one.join().unwrap());
        let received = settled(&server);
        let known = stored(&folder, "ann");
        assert_eq!(known.limits, limits);
        let up = known.total.up;
        let lost = (INTERVAL + WRITE_TIME).as_millis() as u64 * RATE / 1000;
        assert!(up <= received, "round {round}: {up} of {received}");
        assert!(up > lowest, "round {round}: nothing was stored");
        lowest = up;
        assert!(
            up + lost * u64::from(round) >= received,
            "round {round}: {up} of {received}"
        );
        adit = World::run(&folder, 1);
    }
    let (received, up) = (settled(&server), stored_after_end(adit, &folder));
    eprintln!("{rounds} kills: {up} of {received} bytes are stored");
}

fn stored_after_end(mut adit: adit_interop::AditProcess, folder: &adit_interop::TempFolder) -> u64 {
    adit.process().terminate().unwrap();
    stored(folder, "ann").total.up
}

/// Returns what the server has received once nothing more arrives.
fn settled(server: &ByteServer) -> u64 {
    let since = Instant::now();
    let mut last = server.received();
    loop {
        thread::sleep(Duration::from_millis(100));
        let now = server.received();
        if now == last {
            return now;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "bytes keep arriving");
        last = now;
    }
}

/// Fifty kills, of five processes that run at the same time.
#[test]
fn what_was_counted_survives_kills() {
    thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| kill_under_load(10));
        }
    });
}

/// The limits and the usage of a process are those of its successor, and bytes of sessions that stay in the first are
/// counted once.
#[cfg(target_os = "linux")]
#[test]
fn an_upgrade_hands_the_users_over() {
    const PIECE: usize = 300_000;
    let server = ByteServer::start();
    let limits = UserLimits {
        quota: Some(10_000_000),
        ..UserLimits::default()
    };
    let url = format!("mixed://ann:one@127.0.0.1:0?{ALLOW}");
    let mut world = World::start_with_interval(&[("ann", limits)], &[&url], "200ms");
    let to = Destination::Addr(server.addr);
    let proxy = world.adit.addr();
    let open = || socks_client::connect_through(proxy, Some(("ann", "one")), &to).unwrap();
    let mut old = open();
    old.write_all(&[b'x'; PIECE]).unwrap();
    let api = world.folder.path().join("admin.sock");
    let upgrade = ["upgrade", "--admin", api.to_str().unwrap()];
    ended(&upgrade).expect_success().unwrap();
    // Its session continues, and the next one is in the new process.
    old.write_all(&[b'x'; PIECE]).unwrap();
    let mut new = open();
    new.write_all(&[b'x'; PIECE]).unwrap();
    drop((old, new));
    // The first process ends with its last session.
    world.adit.process().wait(TEST_TIMEOUT).unwrap();
    assert_eq!(settled(&server), 3 * PIECE as u64);
    let log = world.adit.process().output();
    let successor: i32 = {
        let (_, rest) = log.split_once("upgraded: process ").expect(&log);
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    };
    let successor = rustix::process::Pid::from_raw(successor).unwrap();
    rustix::process::kill_process(successor, Signal::TERM).unwrap();
    let since = Instant::now();
    while rustix::process::test_kill_process(successor).is_ok() {
        assert!(since.elapsed() < TEST_TIMEOUT, "the successor does not end");
        thread::sleep(Duration::from_millis(20));
    }
    let known = stored(&world.folder, "ann");
    assert_eq!(known.limits, limits);
    assert_eq!(known.total.up, 3 * PIECE as u64);
    assert_eq!(known.total.tcp_sessions, 2);
}

/// A store that another process has open, and a file that is something else, are errors with a remedy.
#[test]
fn mistakes_of_the_store_have_words() {
    let url = format!("mixed://ann:one@127.0.0.1:0?{ALLOW}");
    let world = World::start(&[("ann", UserLimits::default())], &[&url]);
    let file = world.folder.path().join("adit.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let other = text.replace("admin.sock", "other.sock");
    let second = world.folder.write_file("second.toml", &other).unwrap();
    let done = ended(&["run", "-c", second.to_str().unwrap()]);
    assert_eq!(done.code, Some(1), "{}", done.output);
    says(&done.output, &["another process uses this store"]);
    let third = other.replace("users.redb", "adit.toml");
    let third = world.folder.write_file("third.toml", third).unwrap();
    for command in ["run", "check"] {
        let done = ended(&[command, "-c", third.to_str().unwrap()]);
        assert_eq!(done.code, Some(3), "{}", done.output);
        says(
            &done.output,
            &["is not a store of users", "adit creates it"],
        );
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    assert!(world.store_path().exists());
    world.adit.stop().unwrap();
}
