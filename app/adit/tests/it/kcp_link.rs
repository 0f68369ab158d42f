//! KCP over a slow and lossy link between two network namespaces: exact bytes, a blackout, a client
//! that moves, datagrams with error correction only, ends whose settings differ.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::{BLAKE3_AES_128, percent_encode};
use adit_interop::traffic::{self, CloseBehavior, DatagramLink, ForwarderEntry};
use adit_interop::{AditProcess, free_port, kcptun};
use adit_link::{FAR, LinkPath, NEAR, NamespaceLink, run_as_root};

use crate::kcp::carries;
use crate::setup::{ALLOW, start};

const ROUND_TRIP: Duration = Duration::from_millis(50);

/// A link with the origin at its remote end.
struct World {
    link: NamespaceLink,
    origin: SocketAddr,
}

impl World {
    fn new(path: LinkPath, seed: u64) -> Self {
        let link = NamespaceLink::start(path, seed).unwrap();
        let origin = link
            .far()
            .run_inside(|| OriginServer::start_at(at(FAR, free_port())));
        Self {
            link,
            origin: origin.unwrap().addr(),
        }
    }

    /// Loses this many of a thousand packets, and duplicates and delays a few.
    fn lossy(lost: u16, seed: u64) -> Self {
        let mut path = LinkPath::new(ROUND_TRIP, lost);
        (path.doubled, path.late) = (lost / 5, lost / 5);
        Self::new(path, seed)
    }

    fn far(&self, words: &[&str]) -> AditProcess {
        self.link.far().run_inside(|| start(words))
    }

    fn near(&self, words: &[&str]) -> AditProcess {
        self.link.near().run_inside(|| start(words))
    }

    /// Starts the server of `adit kcp`.
    fn server(&self, options: &[&str]) -> AditProcess {
        let (at, target) = (at(FAR, free_port()).to_string(), self.origin.to_string());
        let words = ["kcp", "server", "-l", &at, "-t", &target];
        self.far(&[&words[..], options].concat())
    }

    /// Starts the client of `adit kcp`.
    fn client(&self, server: SocketAddr, options: &[&str]) -> AditProcess {
        let server = server.to_string();
        let words = ["kcp", "client", "-l", "127.0.0.1:0", "-r", &server];
        self.near(&[&words[..], options].concat())
    }

    /// Starts both ends of `adit run` with Shadowsocks over KCP, which authenticates; the local end leads
    /// to the origin.
    fn shadowsocks(&self, keys: &str) -> [AditProcess; 2] {
        let (name, key) = (BLAKE3_AES_128.name, percent_encode(BLAKE3_AES_128.key));
        let url = format!("ss+kcp://{name}:{key}@{}", at(FAR, free_port()));
        let allow = format!("{ALLOW},{FAR}/32");
        let back = self.far(&["run", &format!("{url}?{keys}&{allow}")]);
        let entry = format!("tcp://127.0.0.1:0/{}", self.origin);
        [self.near(&["run", &entry, &format!("{url}?{keys}")]), back]
    }

    /// Runs work at the local end.
    fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.link.near().run_inside(work)
    }

    /// Checks that packets were lost in both directions, and that enough passed for a meaningful test.
    fn has_lost(&self, what: &str) {
        let counts = self.link.counts();
        for tally in [counts.near_to_far, counts.far_to_near] {
            let enough = tally.lost > 30 && tally.passed > 500;
            assert!(enough, "{what}: {counts:?}");
        }
    }
}

fn at(address: Ipv4Addr, port: u16) -> SocketAddr {
    (address, port).into()
}

fn dial(entry: SocketAddr) -> TcpStream {
    traffic::connect_directly(entry).unwrap()
}

/// The settings of kcptun of 2021, in its fastest mode.
const DEBIAN: [&str; 6] = ["--crypt", "aes", "--smuxver", "1", "--mode", "fast3"];

#[test]
fn both_ends_ours() {
    if !run_as_root("kcp_link::both_ends_ours") {
        return;
    }
    for (seed, options) in [
        (1, &["--mode", "fast3"][..]),
        (2, &["--crypt", "salsa20", "--ds", "0", "--ps", "0"]),
    ] {
        let world = World::lossy(50, seed);
        let back = world.server(options);
        let front = world.client(back.addr(), options);
        let what = options.join(" ");
        world.inside(|| carries(front.addr(), &what));
        world.has_lost(&what);
        front.stop().unwrap();
        back.stop().unwrap();
    }
    let world = World::lossy(50, 3);
    let [front, back] = world.shadowsocks("mode=fast3");
    world.inside(|| {
        traffic::check_streams(CloseBehavior::Independent, || {
            traffic::connect_directly(front.addr())
        })
        .unwrap();
    });
    world.has_lost("ss+kcp");
    front.stop().unwrap();
    back.stop().unwrap();
}

#[test]
fn debians_kcptun_at_either_end() {
    if !run_as_root("kcp_link::debians_kcptun_at_either_end") {
        return;
    }
    let world = World::lossy(50, 4);
    let back = world.server(&DEBIAN);
    let front = world.inside(|| kcptun::start_client(back.addr(), &DEBIAN).unwrap());
    world.inside(|| carries(front.addr(), "Debian's client"));
    world.has_lost("Debian's client");
    drop(front);
    back.stop().unwrap();
    let world = World::lossy(50, 5);
    let (here, origin) = (at(FAR, free_port()), world.origin);
    let _back = world
        .link
        .far()
        .run_inside(|| kcptun::start_server_at(here, origin, &DEBIAN).unwrap());
    let front = world.client(here, &DEBIAN);
    world.inside(|| carries(front.addr(), "Debian's server"));
    world.has_lost("Debian's server");
    front.stop().unwrap();
}

/// Ten seconds in which nothing passes, during transfers in both directions.
#[test]
fn a_blackout_is_survived() {
    const DARK: Duration = Duration::from_secs(10);
    /// Takes more than a second with these windows.
    const LEN: usize = 2 << 20;
    if !run_as_root("kcp_link::a_blackout_is_survived") {
        return;
    }
    let world = World::lossy(50, 6);
    let options = ["--mode", "fast3", "--sndwnd", "64", "--rcvwnd", "64"];
    let server = world.server(&options);
    let client = world.client(server.addr(), &options);
    let [front, back] = world.shadowsocks("mode=fast3&sndwnd=64&rcvwnd=64");
    let entries = [client.addr(), front.addr()];
    for entry in entries {
        world.inside(|| traffic::check_one_byte(dial(entry)).unwrap());
    }
    let began = Instant::now();
    let took = world.inside(|| {
        thread::scope(|scope| {
            let transfer = |entry, up: bool| {
                let run = if up {
                    traffic::upload
                } else {
                    traffic::download
                };
                scope.spawn(move || {
                    run(dial(entry), LEN).unwrap();
                    began.elapsed()
                })
            };
            let under_way = entries.map(|entry| [true, false].map(|up| transfer(entry, up)));
            thread::sleep(Duration::from_millis(400));
            world.link.set_cut(true);
            thread::sleep(DARK);
            world.link.set_cut(false);
            let ended = under_way.into_iter().flatten();
            let ended = ended.map(|one| one.join().unwrap());
            ended.collect::<Vec<_>>()
        })
    });
    for took in took {
        let after = took.checked_sub(DARK);
        let after = after.expect("none was through before the blackout");
        assert!(after < Duration::from_secs(6), "{after:?} besides it");
    }
    for adit in [client, server, front, back] {
        adit.stop().unwrap();
    }
}

/// The client's address changes, once on the link and once on its interface: the session
/// continues, and nothing is lost.
#[test]
fn a_client_that_moves_is_followed() {
    const LEN: usize = 3 << 20;
    if !run_as_root("kcp_link::a_client_that_moves_is_followed") {
        return;
    }
    let path = LinkPath::new(ROUND_TRIP, 50).with_rate(16_000_000, ROUND_TRIP);
    let world = World::new(path, 7);
    let [front, back] = world.shadowsocks("mode=fast3");
    let entry = front.addr();
    let elsewhere = Ipv4Addr::new(10, 77, 0, 99);
    let moves: [&(dyn Fn() + Sync); 2] =
        [&|| world.link.set_near_address(Some(elsewhere)), &|| {
            world.link.set_near_address(None);
            let near = world.link.near();
            near.run_ip(&format!("addr del {NEAR}/24 dev link0"))
                .unwrap();
            thread::sleep(Duration::from_millis(300));
            near.run_ip("addr add 10.77.0.50/24 dev link0").unwrap();
        }];
    for go in moves {
        world.inside(|| {
            thread::scope(|scope| {
                let up = scope.spawn(|| traffic::upload(dial(entry), LEN).unwrap());
                let down = scope.spawn(|| traffic::download(dial(entry), LEN).unwrap());
                thread::sleep(Duration::from_millis(700));
                assert!(!up.is_finished() && !down.is_finished());
                go();
                let moved = Instant::now();
                up.join().unwrap();
                down.join().unwrap();
                let took = moved.elapsed();
                assert!(took < Duration::from_secs(6), "{took:?}");
            });
        });
    }
    // Streams that were opened before and after used the same session.
    front.stop().unwrap();
    back.stop().unwrap();
}

/// The result of a stream of datagrams: how many returned, and after which times.
struct Seen {
    sent: u32,
    times: Vec<Duration>,
}

impl Seen {
    fn lost_of_thousand(&self) -> u32 {
        (self.sent - u32::try_from(self.times.len()).unwrap()) * 1000 / self.sent
    }

    /// Returns what is wrong, compared with datagrams without correction: more of 1000 datagrams are lost than `at_most`,
    /// or they arrive late. Those that were not lost are not delayed; others wait for their group, in each direction. If
    /// all were delayed until their group of 10 is complete, it would be 29 ms; a busy machine adds some.
    fn fault(&self, bare: &Self, at_most: u32) -> Option<String> {
        let lost = self.lost_of_thousand();
        if lost > at_most {
            return Some(format!("{lost} of 1000 lost"));
        }
        let usual = bare.within(50);
        let late = [(50, 10), (85, 18), (100, 150)]
            .into_iter()
            .find(|(percent, delay)| {
                self.within(*percent) >= usual + Duration::from_millis(*delay)
            });
        late.map(|(percent, _)| format!("{percent} % in {:?}, not {usual:?}", self.within(percent)))
    }

    /// Returns the time within which this percentage of the returned datagrams arrived.
    fn within(&self, percent: usize) -> Duration {
        self.times[(self.times.len() - 1) * percent / 100]
    }
}

/// Sends this many datagrams, one every 2 ms, to a target that returns them.
fn talk(to: SocketAddr, sent: u32) -> Seen {
    let entry = ForwarderEntry::open(to).unwrap();
    // A client is not served before it has proved that it is not a recording.
    while entry.recv_within(Duration::from_millis(100)).is_err() {
        entry.send(b"hello").unwrap();
    }
    while entry.recv_within(Duration::from_millis(100)).is_ok() {}
    let began = Instant::now();
    let mut times = vec![None; usize::try_from(sent).unwrap()];
    let mut take = |patience| {
        let back = entry.recv_within(patience).ok()?;
        let stamp = u64::from_le_bytes(back[4..12].try_into().unwrap());
        let number = u32::from_le_bytes(back[..4].try_into().unwrap());
        let slot = &mut times[usize::try_from(number).unwrap()];
        assert!(slot.is_none(), "{number} came twice");
        *slot = Some(began.elapsed() - Duration::from_micros(stamp));
        Some(())
    };
    for number in 0..sent {
        let due = Duration::from_millis(2) * number;
        while let Some(wait) = due
            .checked_sub(began.elapsed())
            .filter(|wait| !wait.is_zero())
        {
            take(wait.max(Duration::from_micros(100)));
        }
        let stamp = u64::try_from(began.elapsed().as_micros()).unwrap();
        let bytes = [&number.to_le_bytes()[..], &stamp.to_le_bytes(), &[7; 100]].concat();
        entry.send(&bytes).unwrap();
    }
    while take(Duration::from_millis(300)).is_some() {}
    let mut times: Vec<Duration> = times.into_iter().flatten().collect();
    times.sort();
    Seen { sent, times }
}

#[test]
fn datagrams_with_correction_alone_come_nearly_all_and_no_later() {
    if !run_as_root("kcp_link::datagrams_with_correction_alone_come_nearly_all_and_no_later") {
        return;
    }
    let world = World::new(LinkPath::new(ROUND_TRIP, 50), 8);
    let bare = world.inside(|| talk(world.origin, 1000));
    // Lost in either of two directions: 9.75 %.
    let lost = bare.lost_of_thousand();
    assert!((60..140).contains(&lost), "{lost}");
    for (keys, at_most) in [
        // A datagram is permanently lost if three more of its thirteen are lost: 0.1 % in each direction.
        ("key=word&data=10&parity=3&wait=30ms", 8),
        // If one more of its four is lost: 0.7 % in each direction.
        ("key=word&data=3&parity=1", 35),
        ("key=word&data=2&parity=2&crypt=aes", 10),
    ] {
        let target = world.origin;
        let back = world.far(&["run", &format!("udp+fec://{FAR}:0/{target}?{keys}")]);
        let hop = format!("udp+fec://{}?{keys}", back.addr());
        let front = world.near(&["run", "udp://127.0.0.1:0", &hop]);
        // A busy machine delays and drops some datagrams, but not in each attempt.
        let mut faults = Vec::new();
        for _ in 0..4 {
            // The datagrams of both are sent at the same time, so that both meet the same delays of the machine.
            let (bare, seen) = world.inside(|| {
                thread::scope(|scope| {
                    let bare = scope.spawn(|| talk(world.origin, 1500));
                    let seen = talk(front.addr(), 1500);
                    (bare.join().unwrap(), seen)
                })
            });
            match seen.fault(&bare, at_most) {
                None => break,
                Some(fault) => faults.push(fault),
            }
        }
        assert!(faults.len() < 4, "{keys}: {faults:?}");
        front.stop().unwrap();
        back.stop().unwrap();
    }
}

/// Loss and distance do not make an end look different, nor hide a difference.
#[test]
fn ends_that_do_not_fit_are_named_and_others_are_not() {
    if !run_as_root("kcp_link::ends_that_do_not_fit_are_named_and_others_are_not") {
        return;
    }
    let world = World::lossy(50, 9);
    let back = world.server(&["--crypt", "salsa20", "--smuxver", "1", "--nocomp"]);
    for (options, words) in [
        (&["--crypt", "aes"][..], "answers to `crypt` salsa20 only"),
        (
            &["--crypt", "salsa20", "--key", "wrong"],
            "`key` differs there",
        ),
        (
            &["--crypt", "salsa20", "--smuxver", "2", "--nocomp"],
            "use `smuxver=1`",
        ),
        (
            &["--crypt", "salsa20", "--smuxver", "1", "--nocomp=false"],
            "use `nocomp`",
        ),
    ] {
        let mut front = world.client(back.addr(), options);
        let begun = Instant::now();
        let told = front.process().wait_lines(words, 1, Duration::from_secs(6));
        told.unwrap_or_else(|why| panic!("{options:?}: {why:#}"));
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(4), "{options:?}: {took:?}");
        front.stop().unwrap();
    }
    // smux and compression were not configured: they are learnt despite the losses.
    for _ in 0..3 {
        let mut front = world.client(back.addr(), &["--crypt", "salsa20"]);
        world.inside(|| traffic::transfer_both_ways(dial(front.addr()), 100_000).unwrap());
        let log = front.process().output();
        for words in ["use `", "only", "another there"] {
            assert!(!log.contains(words), "{log}");
        }
        front.stop().unwrap();
    }
    back.stop().unwrap();
}
