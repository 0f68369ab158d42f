//! Users who are added and removed while the server runs.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use adit_interop::hostile_clients::Reaction;
use adit_interop::origin::OriginServer;
use adit_interop::plugin::PluginScript;
use adit_interop::shadowsocks::{AES_256, ClientSetup, IDENTITY_KEYS, MethodKey, percent_encode};
use adit_interop::socks_client::{self, Destination, UdpAssociation};
use adit_interop::{AditProcess, TEST_TIMEOUT, Transport, free_port, traffic, wait_port};

use super::reaction;
use crate::setup::{UsersFile, ended, start};

/// Time within which the sessions of a removed user end.
const AT_ONCE: Duration = Duration::from_millis(100);
/// Additional time that a busy machine may need occasionally.
const AT_LAST: Duration = Duration::from_secs(5);
/// Number of removals, at least one of which must meet the limit.
const ROUNDS: u64 = 3;

/// The targets of the clients.
struct Far {
    origin: OriginServer,
    socket: UdpSocket,
}

impl Far {
    fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let origin = OriginServer::start().unwrap();
        Self { origin, socket }
    }

    /// Returns a datagram that arrived, and its source.
    fn recv(&self) -> (Vec<u8>, SocketAddr) {
        let mut buf = [0; 64];
        let (len, from) = self.socket.recv_from(&mut buf).unwrap();
        (buf[..len].to_vec(), from)
    }
}

/// An active user: a stream and a UDP session.
struct Guest<'a> {
    far: &'a Far,
    front: AditProcess,
    stream: TcpStream,
    association: UdpAssociation,
    /// The address from which the server sends the datagrams of this session.
    outside: SocketAddr,
}

impl<'a> Guest<'a> {
    fn new(far: &'a Far, hop: &str) -> Self {
        let front = start(&["run", "mixed://127.0.0.1:0", hop]);
        let to = Destination::Addr(far.origin.addr());
        let mut stream = socks_client::connect_through(front.addr(), None, &to).unwrap();
        stream.write_all(b"ECHO\n").unwrap();
        let association = UdpAssociation::open(front.addr(), None).unwrap();
        let there = Destination::Addr(far.socket.local_addr().unwrap());
        association.send_to(&there, b"first").unwrap();
        let (data, outside) = far.recv();
        assert_eq!(data, b"first");
        let mut guest = Self {
            far,
            front,
            stream,
            association,
            outside,
        };
        guest.works();
        guest
    }

    /// Checks that both sessions still work.
    fn works(&mut self) {
        let mut byte = [0];
        self.stream.write_all(b"x").unwrap();
        self.stream.read_exact(&mut byte).unwrap();
        let there = Destination::Addr(self.far.socket.local_addr().unwrap());
        self.association.send_to(&there, b"there").unwrap();
        assert_eq!(self.far.recv(), (b"there".to_vec(), self.outside));
        self.far.socket.send_to(b"back", self.outside).unwrap();
        assert_eq!(self.association.recv().unwrap().1, b"back");
    }

    /// Returns the time until the server has ended both sessions.
    fn ends(&mut self) -> Duration {
        let start = Instant::now();
        self.stream.set_read_timeout(Some(AT_LAST)).unwrap();
        let why = self.stream.read(&mut [0]).map_err(|why| why.kind());
        // A stream that was cut must not look complete.
        assert_eq!(why, Err(ErrorKind::ConnectionReset));
        while wait_port(Transport::Udp, self.outside.port(), Duration::ZERO).is_ok() {
            assert!(start.elapsed() < AT_LAST, "the UDP session goes on");
            thread::sleep(Duration::from_millis(2));
        }
        let took = start.elapsed();
        let there = Destination::Addr(self.far.socket.local_addr().unwrap());
        self.association.send_to(&there, b"too late").unwrap();
        assert!(self.association.recv_within(AT_ONCE).is_err());
        took
    }
}

/// A server with a file of users, and what its log says about the file.
struct Server {
    method: MethodKey,
    file: UsersFile,
    adit: AditProcess,
    taken_over: usize,
}

impl Server {
    fn new(method: MethodKey, users: &[(&str, &str)]) -> Self {
        let file = UsersFile::new(users);
        let adit = file.serve(method);
        Self {
            method,
            file,
            adit,
            taken_over: 0,
        }
    }

    /// Returns the URL of a hop to this server; `query` is appended to it.
    fn hop(&self, key: &str, query: &str) -> String {
        let (both, alone) = ([self.method.key, key], [key]);
        let keys = match self.method.name.starts_with("2022-") {
            true => &both[..],
            false => &alone[..],
        };
        ClientSetup::new(self.method, keys, self.adit.addr()).url() + query
    }

    /// Sets the users, and returns once they are in use.
    fn serve(&mut self, users: &[(&str, &str)]) {
        self.file.hold(users);
        self.taken_over += 1;
        let line = format!("users.json: {} users", users.len());
        let count =
            |adit: &mut AditProcess| adit.process().output().matches("users.json: ").count();
        let wanted = self.taken_over;
        self.adit
            .process()
            .wait_lines("users.json: ", wanted, TEST_TIMEOUT)
            .unwrap();
        assert_eq!(count(&mut self.adit), wanted);
        let log = self.adit.process().output();
        let last = log.lines().rfind(|said| said.contains("users.json: "));
        assert!(last.unwrap().contains(&line), "{log}");
    }

    /// Sets an invalid text, and returns once the log reports it. Returns all reports.
    fn refuse(&mut self, text: &str, times: usize) -> String {
        self.file.say(text);
        let refused = "was not reloaded, the current users stay in use";
        let process = self.adit.process();
        process.wait_lines(refused, times, TEST_TIMEOUT).unwrap();
        process.output()
    }
}

/// Sessions of a removed user end, others continue; a user who was added is served.
fn users_come_and_go(method: MethodKey, query: &str) {
    let [ring, _] = IDENTITY_KEYS;
    let [alice, bob, carol] = ring.users;
    let far = Far::new();
    let mut server = Server::new(method, &[alice, bob]);
    let mut a = Guest::new(&far, &server.hop(alice.1, query));
    let mut fastest = AT_LAST;
    for _ in 0..ROUNDS {
        let mut b = Guest::new(&far, &server.hop(bob.1, query));
        let stranger = server.hop(carol.1, query);
        let stranger = start(&[
            "run",
            &format!("tcp://127.0.0.1:0/{}", far.origin.addr()),
            &stranger,
        ]);
        assert_eq!(reaction(&stranger), Reaction::Silence);
        server.serve(&[alice, carol]);
        fastest = fastest.min(b.ends());
        a.works();
        // The user was added without a message.
        assert_eq!(reaction(&stranger), Reaction::Answer(1));
        stranger.stop().unwrap();
        // A removed user looks like one who never existed.
        let before = far.origin.connection_count();
        let gone = server.hop(bob.1, query);
        let gone = start(&[
            "run",
            &format!("tcp://127.0.0.1:0/{}", far.origin.addr()),
            &gone,
        ]);
        assert_eq!(reaction(&gone), Reaction::Silence);
        assert_eq!(far.origin.connection_count(), before);
        gone.stop().unwrap();
        b.front.stop().unwrap();
        server.serve(&[bob, alice]);
        a.works();
    }
    assert!(
        fastest < AT_ONCE,
        "the sessions ended after {fastest:?} at best"
    );
    a.front.stop().unwrap();
    server.adit.stop().unwrap();
}

#[test]
fn users_come_and_go_aes_128() {
    users_come_and_go(IDENTITY_KEYS[0].method, "");
}

#[test]
fn users_come_and_go_with_datagrams_in_a_stream() {
    users_come_and_go(IDENTITY_KEYS[0].method, "?udp=over-tcp");
}

#[test]
fn users_come_and_go_by_trial() {
    users_come_and_go(AES_256, "");
}

/// A new key under the same name is a new user.
#[test]
fn a_new_key_ends_the_sessions_of_the_old_one() {
    for ring in &IDENTITY_KEYS {
        let [alice, bob, (_, another)] = ring.users;
        let far = Far::new();
        let mut server = Server::new(ring.method, &[alice, bob]);
        let mut a = Guest::new(&far, &server.hop(alice.1, ""));
        let mut b = Guest::new(&far, &server.hop(bob.1, ""));
        server.serve(&[alice, (bob.0, another)]);
        b.ends();
        a.works();
        let mut again = Guest::new(&far, &server.hop(another, ""));
        again.works();
        for guest in [a, b, again] {
            guest.front.stop().unwrap();
        }
        server.adit.stop().unwrap();
    }
}

/// An error in a file is reported with its line, and changes nothing.
#[test]
fn a_broken_file_changes_nothing() {
    let [ring, _] = IDENTITY_KEYS;
    let [alice, bob, carol] = ring.users;
    let method = ring.method;
    let far = Far::new();
    let mut server = Server::new(method, &[alice, bob]);
    let mut a = Guest::new(&far, &server.hop(alice.1, ""));
    let mut b = Guest::new(&far, &server.hop(bob.1, ""));
    let of = |name: &str, key: &str| format!("  \"{name}\": \"{key}\"");
    let json = |lines: &[String]| format!("{{\n{}\n}}\n", lines.join(",\n"));
    let one = of(alice.0, alice.1);
    let broken = [
        (String::new(), "no user"),
        ("{\n  \"alice\": x\n}\n".to_owned(), "users.json:2:"),
        (json(&[one.clone(), of(bob.0, alice.1)]), "users.json:3:"),
        (json(&[one.clone(), of(alice.0, bob.1)]), "users.json:3:"),
        (json(&[one.clone(), of(bob.0, method.key)]), "users.json:3:"),
        (json(&[one.clone(), of(bob.0, "c2hvcnQ=")]), "users.json:3:"),
        (
            format!("alice:{}\n# bob\nbob:{}\n", alice.1, alice.1),
            "users.json:3:",
        ),
    ];
    for (times, (text, place)) in (1..).zip(&broken) {
        let log = server.refuse(text, times);
        let said = log.rsplit("was not reloaded").next().unwrap();
        assert!(said.contains(place), "{place} is not in {said}\nfor {text}");
        for (_, key) in ring.users {
            assert!(!log.contains(key), "a key in the log");
        }
        a.works();
        b.works();
        // At the start, it is a configuration error.
        let checked = ended(&["check", &server.file.url(method)]);
        assert_eq!(checked.code, Some(3), "{}", checked.output);
        assert!(checked.output.contains(place), "{}", checked.output);
    }
    // It is reported once for each text.
    std::fs::remove_file(server.file.path()).unwrap();
    let process = server.adit.process();
    let refused = "was not reloaded";
    process
        .wait_lines(refused, broken.len() + 1, TEST_TIMEOUT)
        .unwrap();
    thread::sleep(Duration::from_millis(2500));
    assert_eq!(process.output().matches(refused).count(), broken.len() + 1);
    a.works();
    server.serve(&[alice, carol]);
    b.ends();
    a.works();
    traffic::check_one_byte(
        socks_client::connect_through(a.front.addr(), None, &Destination::Addr(far.origin.addr()))
            .unwrap(),
    )
    .unwrap();
    for guest in [a, b] {
        guest.front.stop().unwrap();
    }
    server.adit.stop().unwrap();
}

/// The file is watched from the moment it was read.
#[test]
fn a_change_while_the_server_starts_is_seen() {
    let [ring, _] = IDENTITY_KEYS;
    let [alice, bob, _] = ring.users;
    let slow = PluginScript::new("slow", "note $$; sleep 1.5; exec obfs-server\n").unwrap();
    let file = UsersFile::new(&[alice]);
    let plugin = percent_encode(&format!("{};obfs=http", slow.path().display()));
    let url = file
        .url(ring.method)
        .replace(":0?", &format!(":{}?", free_port()));
    let mut back = thread::scope(|scope| {
        scope.spawn(|| {
            slow.wait_for_pids(1).unwrap();
            file.hold(&[alice, bob]);
        });
        start(&["run", &format!("{url}&plugin={plugin}")])
    });
    let process = back.process();
    process
        .wait_lines("users.json: 2 users", 1, TEST_TIMEOUT)
        .unwrap();
    back.stop().unwrap();
}
