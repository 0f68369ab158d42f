//! Groups of servers behind a slow and lossy line, between two network namespaces.

use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::BLAKE3_AES_128;
use adit_interop::socks_client::{self, Destination};
use adit_interop::{AditProcess, TempFolder, free_port, traffic};
use adit_link::{FAR, LinkPath, NamespaceLink, run_as_root};

use crate::group::FIRST_LIMIT;
use crate::setup::{ALLOW, start};

const ROUND_TRIP: Duration = Duration::from_millis(80);
/// Rate of the line, in bits per second, and the time that its queue holds.
const RATE: u64 = 4_000_000;
const QUEUE: Duration = Duration::from_millis(100);

/// A line with an origin and two servers at its remote end.
struct World {
    link: NamespaceLink,
    origin: SocketAddr,
    servers: Vec<AditProcess>,
}

impl World {
    /// Loses this many of a thousand packets.
    fn new(lost: u16, seed: u64) -> Self {
        let path = LinkPath::new(ROUND_TRIP, lost).with_rate(RATE, QUEUE);
        let link = NamespaceLink::start(path, seed).unwrap();
        let (origin, servers) = link.far().run_inside(|| {
            let origin = OriginServer::start_at((FAR, free_port()).into()).unwrap();
            let server = || {
                let url = BLAKE3_AES_128.url((FAR, free_port()).into());
                start(&["run", &format!("{url}?{ALLOW},{FAR}/32")])
            };
            (origin.addr(), vec![server(), server()])
        });
        Self {
            link,
            origin,
            servers,
        }
    }

    fn url(&self, server: usize) -> String {
        BLAKE3_AES_128.url(self.servers[server].addr())
    }

    /// Starts a client at the local end, with a group of these servers.
    fn client(&self, via: &[&str]) -> AditProcess {
        let config = format!("[route.r]\nlisten = \"socks5://127.0.0.1:0\"\nvia = [{via:?}]\n");
        let folder = TempFolder::new("group-link").unwrap();
        let file = folder.write_file("group.toml", config).unwrap();
        let words = ["run", file.to_str().unwrap()];
        self.link.near().run_inside(|| start(&words))
    }

    /// Returns the time of one request.
    fn request(&self, client: &AditProcess) -> Duration {
        let (entry, to) = (client.addr(), Destination::Addr(self.origin));
        self.link.near().run_inside(|| {
            let since = Instant::now();
            let stream = socks_client::connect_through(entry, None, &to).unwrap();
            traffic::check_one_byte(stream).unwrap();
            since.elapsed()
        })
    }

    fn stop(self) {
        for server in self.servers {
            server.stop().unwrap();
        }
    }
}

/// Every request is answered, although one packet of twenty is lost in each direction.
#[test]
fn requests_pass_a_lossy_line() {
    if !run_as_root("group_link::requests_pass_a_lossy_line") {
        return;
    }
    let world = World::new(50, 7);
    let front = world.client(&[&world.url(0), &world.url(1)]);
    let mut times: Vec<Duration> = (0..30).map(|_| world.request(&front)).collect();
    times.sort();
    println!("median {:?}, slowest {:?}", times[15], times[29]);
    assert!(times[15] < Duration::from_secs(2), "{times:?}");
    let counts = world.link.counts();
    assert!(
        counts.near_to_far.lost > 3 && counts.far_to_near.lost > 3,
        "{counts:?}"
    );
    front.stop().unwrap();
    world.stop();
}

/// A first member that accepts connections and sends nothing costs the first request its usual time, on a slow line
/// too, and later ones nothing.
#[test]
fn a_silent_member_behind_a_slow_line() {
    if !run_as_root("group_link::a_silent_member_behind_a_slow_line") {
        return;
    }
    let world = World::new(0, 8);
    let silent = world
        .link
        .far()
        .run_inside(|| TcpListener::bind((FAR, 0)).unwrap());
    let dead = BLAKE3_AES_128.url(silent.local_addr().unwrap());
    thread::spawn(move || {
        let mut open = Vec::new();
        while let Ok((stream, _)) = silent.accept() {
            open.push(stream);
        }
    });
    let plain = world.client(&[&world.url(0)]);
    let usual = (0..5).map(|_| world.request(&plain)).max().unwrap();
    plain.stop().unwrap();
    let front = world.client(&[&dead, &world.url(0)]);
    let first = world.request(&front);
    let later = (0..5).map(|_| world.request(&front)).min().unwrap();
    println!("usual {usual:?}, first {first:?}, later {later:?}");
    assert!(first <= usual + FIRST_LIMIT, "{first:?}, usual {usual:?}");
    assert!(
        later <= usual + Duration::from_millis(10),
        "{later:?}, usual {usual:?}"
    );
    front.stop().unwrap();
    world.stop();
}
