//! A quota ends a transfer in every protocol, and refuses the next session as the protocol can.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_engine::UserLimits;
use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::{AES_256, ClientSetup, IDENTITY_KEYS, MethodKey, ShadowsocksPeer};
use adit_interop::socks_client::{self, Destination, UdpAssociation};
use adit_interop::ssr::{self, SsrSetup};
use adit_interop::traffic::{self, DatagramLink, ForwarderEntry};
use adit_interop::{ChildProcess, TEST_TIMEOUT, TempFolder, free_port, openssh};
use adit_wire::QuotaPeriod;

use super::world::{ByteServer, CUT_WITHIN, MIB, World, curl, download};
use crate::setup::{ALLOW, UsersFile};

/// The quota of these tests.
const QUOTA: u64 = 3 * MIB;
/// The words of a refusal.
const WORDS: &str = "the quota of the user is used up";

fn quota() -> UserLimits {
    UserLimits {
        quota: Some(QUOTA),
        period: QuotaPeriod::Month,
        ..UserLimits::default()
    }
}

/// Stops the process, and checks the usage that it has stored, and that it has logged each cause once.
#[track_caller]
fn check_end(world: World, user: &str) {
    let (log, stored) = world.stop(user);
    let used = stored.total.up + stored.total.down;
    assert!(used >= QUOTA, "{used}: cut too early");
    assert!(used <= QUOTA + MIB, "{used}: {} too many", used - QUOTA);
    assert_eq!(stored.limits, quota());
    let refused = format!("refused: {WORDS}");
    assert_eq!(log.matches(&refused).count(), 1, "{log}");
    assert_eq!(log.matches(&format!("{WORDS}: ")).count(), 1, "{log}");
}

/// Checks what a client behind a peer has read. The connection is reset, so what the peer had not read yet is lost: up to
/// its whole receive buffer on a busy machine. [`check_end`] knows that the cut was not too early.
#[track_caller]
fn check_read(read: u64) {
    assert!((1..QUOTA + MIB).contains(&read), "{read}");
}

#[test]
fn proxies() {
    for scheme in ["socks5h", "http", "connect"] {
        let server = ByteServer::start();
        let listener = format!("mixed://ann:one@127.0.0.1:0?{ALLOW}");
        let mut world = World::start(&[("ann", quota())], &[&listener]);
        let (name, more) = match scheme {
            "connect" => ("http", &["-p"][..]),
            name => (name, &[][..]),
        };
        let proxy = format!("{name}://ann:one@{}", world.adit.addr());
        let done = curl(&proxy, more, &server.url());
        assert_ne!(
            done.code,
            Some(0),
            "the end looks complete: {}",
            done.output
        );
        assert_ne!(done.code, Some(28), "not cut: {}", done.output);
        world.wait_for(WORDS);
        for _ in 0..3 {
            let done = curl(&proxy, more, &server.url());
            let output = &done.output;
            match scheme {
                "socks5h" => assert_eq!(done.code, Some(97), "{output}"),
                "http" => assert!(output.starts_with("403 000 "), "{output}"),
                _ => assert!(output.contains(" 403 0"), "{output}"),
            }
        }
        check_end(world, "ann");
    }
}

fn shadowsocks(method: MethodKey, users: &[(&str, &str)], keys: &[&str]) {
    let server = ByteServer::start();
    let file = UsersFile::new(users);
    let world = World::start(&[("alice", quota())], &[&file.url(method)]);
    let setup = ClientSetup::new(method, keys, world.adit.addr());
    let client = ShadowsocksPeer::SingBox
        .start_forwarder_for(&setup, server.addr)
        .unwrap();
    let mut stream = traffic::connect_directly(client.addr()).unwrap();
    let read = download(&mut stream);
    check_read(read);
    // A refused stream is closed without a word.
    for _ in 0..3 {
        let mut stream = traffic::connect_directly(client.addr()).unwrap();
        assert_eq!(download(&mut stream), 0);
    }
    check_end(world, "alice");
}

#[test]
fn shadowsocks_with_identity_headers() {
    for ring in &IDENTITY_KEYS {
        let keys = [ring.method.key, ring.users[0].1];
        shadowsocks(ring.method, &ring.users, &keys);
    }
}

#[test]
fn shadowsocks_with_users_found_by_trial() {
    let users = [("bob", "one of the two"), ("alice", "the other of them")];
    shadowsocks(AES_256, &users, &["the other of them"]);
}

#[test]
fn shadowsocksr() {
    let server = ByteServer::start();
    let setup = SsrSetup::new("aes-128-ctr", "auth_aes128_md5", "plain");
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = format!("{}&protocol_param=64%2342:userpw&{ALLOW}", setup.url(any));
    let world = World::start(&[("42", quota())], &[&listener]);
    let client = ssr::start_client(&setup, world.adit.addr(), "42:userpw").unwrap();
    let to = Destination::Addr(server.addr);
    let mut stream = socks_client::connect_through(client.addr(), None, &to).unwrap();
    let read = download(&mut stream);
    check_read(read);
    let mut stream = socks_client::connect_through(client.addr(), None, &to).unwrap();
    assert_eq!(download(&mut stream), 0);
    check_end(world, "42");
}

#[test]
fn ssh() {
    let server = ByteServer::start();
    let keys = TempFolder::new("limits-ssh").unwrap();
    let id = openssh::generate_key(keys.path(), "id").unwrap();
    let at = keys.path().display();
    let listener =
        format!("ssh://ann@127.0.0.1:0?host_key=@{at}/host&authorized_keys=@{at}/id.pub&{ALLOW}");
    let mut world = World::start(&[("ann", quota())], &[&listener]);
    let ssh = |more: &[&str]| {
        let quiet = openssh::ssh_command(world.adit.addr().port(), &id);
        let mut ssh = Command::new("ssh");
        // The first occurrence of an option counts.
        ssh.args(["-o", "LogLevel=INFO"]).args(quiet.get_args());
        ssh.args(["-l", "ann", "-N"]).args(more).arg("127.0.0.1");
        ssh
    };
    let port = free_port();
    let spec = format!("127.0.0.1:{port}:{}", server.addr);
    let mut client = ChildProcess::spawn(ssh(&["-L", &spec])).unwrap();
    let since = Instant::now();
    let mut stream = loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => break stream,
            Err(why) => assert!(since.elapsed() < TEST_TIMEOUT, "{why}: {}", client.output()),
        }
        sleep(Duration::from_millis(20));
    };
    let read = download(&mut stream);
    check_read(read);
    // The connection ends, with the reason.
    client.wait(TEST_TIMEOUT).unwrap();
    assert!(client.output().contains(WORDS), "{}", client.output());
    let again = openssh::run_command(ssh(&[]), TEST_TIMEOUT).unwrap();
    assert!(again.output.contains(WORDS), "{}", again.output);
    world.wait_for(WORDS);
    check_end(world, "ann");
}

/// Echoes datagrams until none comes back; returns their number.
fn echo_until_silence(mut echo: impl FnMut(&[u8]) -> bool) -> u64 {
    let mut count = 0;
    // Each counts twice.
    while echo(&[7; 1000]) {
        count += 1;
        assert!(count < 10 * QUOTA / 2000, "no end");
    }
    count
}

#[test]
fn datagrams() {
    let origin = OriginServer::start().unwrap();
    let [ring, _] = &IDENTITY_KEYS;
    let file = UsersFile::new(&ring.users);
    let small = UserLimits {
        quota: Some(200_000),
        ..UserLimits::default()
    };
    let listeners = [
        file.url(ring.method),
        format!("mixed://ann:one@127.0.0.1:0?{ALLOW}"),
    ];
    let listeners: Vec<&str> = listeners.iter().map(String::as_str).collect();
    let mut world = World::start(&[("alice", small), ("ann", small)], &listeners);
    let [keyed, proxy] = *world.adit.addrs() else {
        panic!("two listeners");
    };
    let keys = [ring.method.key, ring.users[0].1];
    let client = ShadowsocksPeer::SingBox
        .start_forwarder_for(&ClientSetup::new(ring.method, &keys, keyed), origin.addr())
        .unwrap();
    let entry = ForwarderEntry::open(client.addr()).unwrap();
    let wait = Duration::from_secs(3);
    let count = echo_until_silence(|data| {
        entry.send(data).unwrap();
        entry.recv_within(wait).is_ok()
    });
    assert!((90..=100).contains(&count), "{count}");

    let login = Some(("ann", "one"));
    let mut association = UdpAssociation::open(proxy, login).unwrap();
    let to = Destination::Addr(origin.addr());
    let count = echo_until_silence(|data| {
        association.send_to(&to, data).unwrap();
        association.recv_within(wait).is_ok()
    });
    assert!((90..=100).contains(&count), "{count}");
    // The control connection ends with it.
    association
        .control()
        .set_read_timeout(Some(TEST_TIMEOUT))
        .unwrap();
    assert!(!matches!(association.control().read(&mut [0]), Ok(1..)));
    let why = UdpAssociation::open(proxy, login).unwrap_err().to_string();
    assert!(why.contains("0x02"), "{why}");
    world.wait_for("user=alice");
    let folder = {
        let status = world.adit.process().terminate().unwrap();
        assert!(status.success());
        world.folder
    };
    for user in ["alice", "ann"] {
        let used = super::world::stored(&folder, user).total;
        let sum = used.up + used.down;
        assert!((180_000..=201_000).contains(&sum), "{user}: {sum}");
        assert!(used.packets_up >= 90, "{user}: {used:?}");
    }
}

/// A session that is silent ends when others of the user have used up the quota, on another listener too; those of other
/// users do not.
#[test]
fn all_sessions_of_the_user_end() {
    let (server, origin) = (ByteServer::start(), OriginServer::start().unwrap());
    let listeners = [
        format!("mixed://ann:one@127.0.0.1:0?{ALLOW}"),
        format!("socks5://ann:two@127.0.0.1:0?{ALLOW}"),
        format!("mixed://bob:three@127.0.0.1:0?{ALLOW}"),
    ];
    let listeners: Vec<&str> = listeners.iter().map(String::as_str).collect();
    let world = World::start(
        &[("ann", quota()), ("bob", UserLimits::default())],
        &listeners,
    );
    let [first, second, bobs] = *world.adit.addrs() else {
        panic!("three listeners");
    };
    let echo = Destination::Addr(origin.addr());
    let open = |proxy, login| {
        let mut stream = socks_client::connect_through(proxy, Some(login), &echo).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.write_all(b"ECHO\nx").unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 1);
        stream
    };
    let mut idle = open(second, ("ann", "two"));
    let mut other = open(bobs, ("bob", "three"));
    let to = Destination::Addr(server.addr);
    let mut busy = socks_client::connect_through(first, Some(("ann", "one")), &to).unwrap();
    download(&mut busy);
    let since = Instant::now();
    assert!(!matches!(idle.read(&mut [0]), Ok(1..)), "not cut");
    let late = since.elapsed();
    assert!(late < CUT_WITHIN, "{late:?}");
    other.write_all(b"y").unwrap();
    assert_eq!(other.read(&mut [0]).unwrap(), 1, "bob was cut");
    let why = socks_client::connect_through(second, Some(("ann", "two")), &echo);
    assert!(why.unwrap_err().to_string().contains("0x02"));
    check_end(world, "ann");
}
