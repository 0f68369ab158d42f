//! Transparent listeners on a gateway, with the rules of the guide.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use adit_interop::dns_server::{DnsReply, DnsServer};
use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::BLAKE3_AES_128;
use adit_interop::traffic::{self, CloseBehavior, DatagramLink};
use adit_interop::{AditProcess, TempFolder, external_tools};
use anyhow::Result;

use crate::netns::{CLIENT, GATEWAY, GROUP, SERVER, command, enter, follow_guide, world};
use crate::setup::bin;
use crate::upgrade::Lineage;

const FOUR: &str = "9.9.9.9:7000";
const SIX: &str = "[2620:fe::9]:7000";
/// A listener for each address family on loopback, as in the guide.
const LOOPBACK: [&str; 2] = ["tproxy://127.0.0.1:12345", "tproxy://[::1]:12345"];
const SOON: Duration = Duration::from_millis(400);

fn addr(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Starts `adit` on the gateway with these listeners and hops.
fn gateway(listeners: &[&str], hops: &[String]) -> AditProcess {
    let mut args = vec!["run", "-vv"];
    args.extend(listeners.iter().flat_map(|url| ["-L", url]));
    args.extend(hops.iter().flat_map(|url| ["-F", url.as_str()]));
    adit(GATEWAY, &args, listeners.len())
}

fn adit(place: &str, args: &[&str], listeners: usize) -> AditProcess {
    let bin = bin();
    let words: Vec<&str> = [&[bin.to_str().unwrap()], args].concat();
    AditProcess::start_command(command(place, &words), listeners).unwrap()
}

/// Starts a Shadowsocks server next to the origins. Returns it, and the hop to it.
fn far_end() -> (AditProcess, String) {
    let at = addr("9.9.9.10:8388");
    // The origins share its machine, and a machine's own addresses count as private.
    let url = format!(
        "{}?allow_private=9.9.9.9,2620:fe::9",
        BLAKE3_AES_128.url(at)
    );
    (adit(SERVER, &["run", &url], 1), BLAKE3_AES_128.url(at))
}

fn origin(at: &str) -> OriginServer {
    let at = addr(at);
    enter(SERVER, || OriginServer::start_at(at)).unwrap()
}

fn client_socket(to: SocketAddr) -> UdpSocket {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    socket
}

/// A connected socket, which only receives datagrams from its peer's address.
struct Link(UdpSocket);

impl Link {
    fn to(peer: SocketAddr) -> Self {
        let socket = client_socket(peer);
        socket.connect(peer).unwrap();
        Self(socket)
    }
}

impl DatagramLink for Link {
    fn send(&self, data: &[u8]) -> Result<()> {
        self.0.send(data)?;
        Ok(())
    }

    fn recv(&self) -> Result<Vec<u8>> {
        let mut buf = vec![0; 65_536];
        let len = self.0.recv(&mut buf)?;
        buf.truncate(len);
        Ok(buf)
    }
}

fn tcp_passes(origin: &OriginServer) {
    let at = origin.addr();
    enter(CLIENT, || {
        traffic::check_streams(CloseBehavior::Independent, || traffic::connect_directly(at))
    })
    .unwrap();
    assert_eq!(origin.connection_count(), 5, "{at}");
}

fn udp_passes(origin: &OriginServer) {
    let at = origin.addr();
    enter(CLIENT, || traffic::check_datagrams(&Link::to(at))).unwrap();
}

#[test]
fn nothing_passes_the_gateway_by_itself() {
    if !world("transparent::nothing_passes_the_gateway_by_itself") {
        return;
    }
    let origin = origin(FOUR);
    // adit runs, and no rule leads to it.
    let adit = gateway(&LOOPBACK, &[]);
    let at = origin.addr();
    enter(CLIENT, || {
        assert!(TcpStream::connect_timeout(&at, SOON).is_err());
        let link = Link::to(at);
        link.0.set_read_timeout(Some(SOON)).unwrap();
        link.send(b"x").unwrap();
        assert!(link.recv().is_err());
    });
    assert_eq!(origin.connection_count(), 0);
    adit.stop().unwrap();
}

#[test]
fn tproxy_by_nftables() {
    if !world("transparent::tproxy_by_nftables") {
        return;
    }
    let adit = gateway(&LOOPBACK, &[]);
    follow_guide("Routes");
    follow_guide("nftables");
    for origin in [origin(FOUR), origin(SIX)] {
        tcp_passes(&origin);
        udp_passes(&origin);
    }
    adit.stop().unwrap();
}

/// Returns the address that the gateway's DNS server has for a name.
fn looked_up(name: &str, kind: &str) -> IpAddr {
    let words = [
        "dig",
        "@192.168.77.1",
        "+short",
        "+tries=1",
        "+time=8",
        name,
        kind,
    ];
    let done = external_tools::run_to_end(command(CLIENT, &words), Duration::from_secs(20));
    let text = done.unwrap().expect_success().unwrap();
    text.trim()
        .parse()
        .unwrap_or_else(|why| panic!("{why}: {text}"))
}

#[test]
fn made_up_addresses_of_a_network_lead_to_their_names() {
    if !world("transparent::made_up_addresses_of_a_network_lead_to_their_names") {
        return;
    }
    let _dns = enter(SERVER, || {
        DnsServer::start_at(addr("9.9.9.9:53"), |name| match name {
            "web.test" => DnsReply::Address([9, 9, 9, 9].into(), 60),
            _ => DnsReply::NoSuchName,
        })
    })
    .unwrap();
    let origin = origin(FOUR);
    let folder = TempFolder::new("fake-network").unwrap();
    let toml = format!(
        r#"
[run]
dns = "far"

[dns.far]
server = "udp://9.9.9.9"

[route.names]
listen = "dns://192.168.77.1:53?allow_open_proxy=true&fake_ip=198.18.0.0/15,2001:db8:198::/64&state=@names"

[route.network]
listen = ["{}", "{}"]
rules = [{{ match = "*.refused.test", via = "reject://" }}]
"#,
        LOOPBACK[0], LOOPBACK[1]
    );
    let file = folder.write_file("adit.toml", &toml).unwrap();
    let adit = adit(GATEWAY, &["run", "-vv", "-c", file.to_str().unwrap()], 3);
    follow_guide("Routes");
    follow_guide("nftables");
    for kind in ["A", "AAAA"] {
        let at = SocketAddr::new(looked_up("web.test", kind), origin.addr().port());
        enter(CLIENT, || {
            let open = || traffic::connect_directly(at);
            traffic::check_streams(CloseBehavior::Independent, open).unwrap();
            // A connected socket receives from the address that it sends to only.
            traffic::check_datagrams(&Link::to(at)).unwrap();
        });
        let refused = SocketAddr::new(looked_up("a.refused.test", kind), at.port());
        assert_ne!(refused.ip(), at.ip());
        enter(CLIENT, || {
            let stream = TcpStream::connect_timeout(&refused, Duration::from_secs(5));
            let end = stream.and_then(|mut stream| stream.read(&mut [0; 1]));
            assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
        });
    }
    assert!(origin.connection_count() >= 10);
    adit.stop().unwrap();
}

#[test]
fn tproxy_by_iptables_to_one_listener_for_both_families() {
    if !world("transparent::tproxy_by_iptables_to_one_listener_for_both_families") {
        return;
    }
    // The rules name 127.0.0.1 and ::1; a wildcard is also tested.
    let adit = gateway(&["tproxy://:12345?allow_open_proxy=true"], &[]);
    follow_guide("Routes");
    follow_guide("iptables");
    for origin in [origin(FOUR), origin(SIX)] {
        tcp_passes(&origin);
        udp_passes(&origin);
    }
    adit.stop().unwrap();
}

#[test]
fn tproxy_through_a_shadowsocks_hop() {
    if !world("transparent::tproxy_through_a_shadowsocks_hop") {
        return;
    }
    let (far, hop) = far_end();
    let adit = gateway(&LOOPBACK, &[hop]);
    follow_guide("Routes");
    follow_guide("nftables");
    for origin in [origin(FOUR), origin(SIX)] {
        tcp_passes(&origin);
        udp_passes(&origin);
    }
    adit.stop().unwrap();
    far.stop().unwrap();
}

/// The sockets of the listeners are handed over, with what makes them transparent.
#[test]
fn tproxy_by_a_successor() {
    if !world("transparent::tproxy_by_a_successor") {
        return;
    }
    let mut adit = gateway(&LOOPBACK, &[]);
    follow_guide("Routes");
    follow_guide("nftables");
    let mut lineage = Lineage::of(adit.process());
    for origin in [origin(FOUR), origin(SIX)] {
        lineage.upgrade_by_signal(adit.process());
        tcp_passes(&origin);
        udp_passes(&origin);
    }
    lineage.stop(adit.process());
}

#[test]
fn redir_for_both_families_alone_and_through_a_hop() {
    if !world("transparent::redir_for_both_families_alone_and_through_a_hop") {
        return;
    }
    follow_guide("REDIRECT");
    let (far, hop) = far_end();
    for (port, hops) in [(7000, &[][..]), (7001, &[hop])] {
        let adit = gateway(&["redir://:12345?allow_open_proxy=true"], hops);
        for host in ["9.9.9.9", "[2620:fe::9]"] {
            tcp_passes(&origin(&format!("{host}:{port}")));
        }
        adit.stop().unwrap();
    }
    far.stop().unwrap();
}

#[test]
fn the_command_line_of_ss_redir() {
    if !world("transparent::the_command_line_of_ss_redir") {
        return;
    }
    let (far, _) = far_end();
    let start = |at: &str, more: &[&str], listeners: usize| {
        let way = ["ss-redir", "-s", "9.9.9.10", "-p", "8388", "-b", at, "-l"];
        let key = ["12345", "-m", BLAKE3_AES_128.name, "-k", BLAKE3_AES_128.key];
        adit(GATEWAY, &[&way[..], &key, more].concat(), listeners)
    };
    follow_guide("REDIRECT");
    // TCP by one, UDP by the other, on one port.
    let redir = start("0.0.0.0", &["-u"], 2);
    tcp_passes(&origin(FOUR));
    redir.stop().unwrap();
    let flush = command(GATEWAY, &["iptables", "-t", "nat", "-F"]);
    let flushed = external_tools::run_to_end(flush, Duration::from_secs(10)).unwrap();
    flushed.expect_success().unwrap();
    follow_guide("Routes");
    follow_guide("nftables");
    let redir = start("127.0.0.1", &["-u", "-T"], 1);
    let origin = origin("9.9.9.9:7001");
    tcp_passes(&origin);
    udp_passes(&origin);
    redir.stop().unwrap();
    far.stop().unwrap();
}

#[test]
fn the_gateway_s_own_traffic_is_turned_and_adit_s_is_not() {
    // A user namespace has one user and one group, so adit's traffic cannot be told from other traffic.
    if !rustix::process::geteuid().is_root()
        || !world("transparent::the_gateway_s_own_traffic_is_turned_and_adit_s_is_not")
    {
        return;
    }
    let (bin, four, six) = (bin(), origin(FOUR), origin(SIX));
    let group = format!("--regid={GROUP}");
    let start = |scheme: &str| {
        let urls = ["127.0.0.1", "[::1]"].map(|host| format!("{scheme}://{host}:12345"));
        let mut words = vec!["setpriv", &group, "--clear-groups"];
        words.extend([bin.to_str().unwrap(), "run", "-v"]);
        words.extend(urls.iter().flat_map(|url| ["-L", url]));
        AditProcess::start_command(command(GATEWAY, &words), 2).unwrap()
    };
    let turned = |mut adit: AditProcess, udp: bool| {
        for origin in [&four, &six] {
            let at = origin.addr();
            enter(GATEWAY, || {
                traffic::connect_directly(at)
                    .and_then(traffic::check_one_byte)
                    .unwrap();
                if udp {
                    traffic::check_datagrams(&Link::to(at)).unwrap();
                }
            });
        }
        // Once each, so adit's own traffic did not return to it, nor bypass it.
        let patience = Duration::from_secs(10);
        adit.process().wait_lines("closed", 2, patience).unwrap();
        let log = adit.process().output();
        assert_eq!(log.matches("DEBUG open").count(), 2, "{log}");
        let associations = if udp { 2 } else { 0 };
        assert_eq!(
            log.matches("association starts").count(),
            associations,
            "{log}"
        );
        adit.stop().unwrap();
    };
    follow_guide("REDIRECT");
    follow_guide("Output by REDIRECT");
    turned(start("redir"), false);
    for tables in ["iptables", "ip6tables"] {
        let flush = command(GATEWAY, &[tables, "-t", "nat", "-F"]);
        let ended = external_tools::run_to_end(flush, Duration::from_secs(10)).unwrap();
        ended.expect_success().unwrap();
    }
    follow_guide("Routes");
    follow_guide("nftables");
    follow_guide("Output by TPROXY");
    turned(start("tproxy"), true);
}

#[test]
fn each_answer_leaves_from_the_address_it_came_from() {
    if !world("transparent::each_answer_leaves_from_the_address_it_came_from") {
        return;
    }
    let adit = gateway(&["tproxy://:12345?allow_open_proxy=true"], &[]);
    follow_guide("Routes");
    follow_guide("nftables");
    // More peers than one association has sockets for, two addresses, and adit's own port among them.
    let ports = (7000..7020).chain([12_345]);
    let parties: Vec<SocketAddr> = ports
        .flat_map(|port| [format!("9.9.9.9:{port}"), format!("9.9.9.10:{port}")])
        .map(|text| origin(&text).addr())
        .collect();
    enter(CLIENT, || {
        let socket = client_socket(parties[0]);
        for round in 0..3u8 {
            for party in &parties {
                socket.send_to(&[round], party).unwrap();
                let mut buf = [0; 8];
                let (len, from) = socket.recv_from(&mut buf).unwrap();
                assert_eq!((&buf[..len], from), (&[round][..], *party));
            }
        }
        // All simultaneously, and each answer arrives once.
        parties.iter().for_each(|party| {
            socket.send_to(party.to_string().as_bytes(), party).unwrap();
        });
        let mut left: BTreeSet<SocketAddr> = parties.iter().copied().collect();
        while !left.is_empty() {
            let mut buf = [0; 64];
            let (len, from) = socket.recv_from(&mut buf).unwrap();
            assert_eq!(buf[..len], *from.to_string().as_bytes());
            assert!(left.remove(&from), "{from} twice");
        }
    });
    adit.stop().unwrap();
}

/// Returns the peers that a client hears that has written to 9.9.9.9, if another peer and one with a
/// private address send to it as well.
fn heard(listen: &str, hops: &[String]) -> BTreeSet<String> {
    let adit = gateway(&[listen], hops);
    let open = |at: &str| enter(SERVER, || UdpSocket::bind(at).unwrap());
    let (contact, stranger) = (open("9.9.9.9:9"), open("9.9.9.10:9"));
    let private = open("10.66.0.1:9");
    let answers = thread::spawn(move || {
        let (_, back) = contact.recv_from(&mut [0; 8]).unwrap();
        stranger.send_to(b"stranger", back).unwrap();
        private.send_to(b"private", back).unwrap();
        contact.send_to(b"contact", back).unwrap();
    });
    let heard = enter(CLIENT, || {
        let to = addr("9.9.9.9:9");
        let socket = client_socket(to);
        socket.send_to(b"x", to).unwrap();
        let mut heard = BTreeSet::new();
        let mut buf = [0; 64];
        while let Ok((len, from)) = socket.recv_from(&mut buf) {
            let text = String::from_utf8_lossy(&buf[..len]);
            heard.insert(format!("{text} {from}"));
            socket.set_read_timeout(Some(SOON)).unwrap();
        }
        heard
    });
    answers.join().unwrap();
    adit.stop().unwrap();
    heard
}

#[test]
fn strangers_are_heard_only_where_that_is_wanted() {
    if !world("transparent::strangers_are_heard_only_where_that_is_wanted") {
        return;
    }
    follow_guide("Routes");
    follow_guide("nftables");
    let all = |names: &[&str]| {
        names
            .iter()
            .map(ToString::to_string)
            .collect::<BTreeSet<_>>()
    };
    // Answers through a remote server are filtered like those that arrive directly.
    let (far, hop) = far_end();
    for hops in [&[][..], &[hop]] {
        assert_eq!(heard(LOOPBACK[0], hops), all(&["contact 9.9.9.9:9"]));
        assert_eq!(
            heard(&format!("{}?full_cone=true", LOOPBACK[0]), hops),
            all(&["contact 9.9.9.9:9", "stranger 9.9.9.10:9"])
        );
    }
    far.stop().unwrap();
}

#[test]
fn a_port_that_another_program_holds_is_complained_about() {
    if !world("transparent::a_port_that_another_program_holds_is_complained_about") {
        return;
    }
    follow_guide("Routes");
    follow_guide("nftables");
    let mut adit = gateway(&LOOPBACK, &[]);
    let (origin, other) = (origin(FOUR), origin("9.9.9.9:7001"));
    let resolver = enter(GATEWAY, || UdpSocket::bind("0.0.0.0:7000")).unwrap();
    enter(CLIENT, || {
        let socket = client_socket(origin.addr());
        socket.send_to(b"x", origin.addr()).unwrap();
        socket.send_to(b"y", other.addr()).unwrap();
        let mut buf = [0; 8];
        let (_, from) = socket.recv_from(&mut buf).unwrap();
        assert_eq!(from, other.addr(), "the others are still heard");
    });
    let line = adit
        .process()
        .wait_lines(" WARN ", 1, Duration::from_secs(10));
    let line = line.unwrap().remove(0);
    assert!(line.contains("from the address 9.9.9.9:7000"), "{line}");
    drop(resolver);
    udp_passes(&origin);
    adit.stop().unwrap();
}

#[test]
fn whoever_comes_straight_to_the_port_is_refused() {
    if !world("transparent::whoever_comes_straight_to_the_port_is_refused") {
        return;
    }
    follow_guide("Routes");
    follow_guide("nftables");
    // Only the guard prevents a loop at the port.
    let all = "12345?allow_open_proxy=true&allow_private=all";
    for (scheme, why) in [
        ("tproxy", "its destination is this listener itself"),
        ("redir", "no `REDIRECT` rule redirected this connection"),
    ] {
        let mut adit = gateway(&[&format!("{scheme}://:{all}")], &[]);
        for door in ["192.168.77.1:12345", "[fd77::1]:12345"] {
            let door = addr(door);
            // The reset may arrive before or after the first look at the connection.
            let end = enter(CLIENT, || TcpStream::connect(door)?.read(&mut [0; 8]));
            assert_eq!(
                end.unwrap_err().kind(),
                ErrorKind::ConnectionReset,
                "{door}"
            );
        }
        if scheme == "tproxy" {
            let at = addr("192.168.77.1:12345");
            enter(CLIENT, || client_socket(at).send_to(b"x", at)).unwrap();
        }
        let refused = if scheme == "tproxy" { 3 } else { 2 };
        let lines = adit
            .process()
            .wait_lines(why, refused, Duration::from_secs(10));
        lines.unwrap();
        thread::sleep(Duration::from_millis(100));
        let log = adit.process().output();
        assert_eq!(log.matches(why).count(), refused, "it goes round:\n{log}");
        adit.stop().unwrap();
    }
}

#[test]
fn private_destinations_are_refused_on_loopback_too() {
    if !world("transparent::private_destinations_are_refused_on_loopback_too") {
        return;
    }
    follow_guide("Routes");
    // Everything, including what the guide excludes.
    let turn = "table ip gate { chain prerouting { type filter hook prerouting priority mangle; \
                iifname lan0 ip daddr 10.66.0.1 tcp dport 7000 meta mark set 1 \
                tproxy to 127.0.0.1:12345 accept; }; }";
    let ended =
        external_tools::run_to_end(command(GATEWAY, &["nft", turn]), Duration::from_secs(10));
    ended.unwrap().expect_success().unwrap();
    let origin = origin("10.66.0.1:7000");
    for (query, passes) in [("", false), ("?allow_private=10.66.0.0/16", true)] {
        let adit = gateway(&[&format!("tproxy://127.0.0.1:12345{query}")], &[]);
        let went = enter(CLIENT, || {
            traffic::connect_directly(origin.addr()).and_then(traffic::check_one_byte)
        });
        assert_eq!(went.is_ok(), passes, "{query}: {went:?}");
        assert_eq!(origin.connection_count(), usize::from(passes), "{query}");
        adit.stop().unwrap();
    }
}

#[test]
fn what_cannot_listen_says_what_it_needs() {
    if !world("transparent::what_cannot_listen_says_what_it_needs") {
        return;
    }
    let bin = bin();
    let run = |url: &str| {
        let without = [
            "setpriv",
            "--bounding-set=-net_admin,-net_raw",
            "--inh-caps=-all",
        ];
        let words = [&without[..], &[bin.to_str().unwrap(), "run", url]].concat();
        let start = Instant::now();
        let ended =
            external_tools::run_to_end(command(GATEWAY, &words), Duration::from_secs(10)).unwrap();
        assert!(
            start.elapsed() < Duration::from_secs(8),
            "it should end at once"
        );
        ended
    };
    for url in LOOPBACK {
        let ended = run(url);
        assert_ne!(ended.code, Some(0));
        let address = url.trim_start_matches("tproxy://");
        let lines: Vec<&str> = ended.output.lines().collect();
        assert_eq!(lines.len(), 1, "{lines:?}");
        for part in [address, "CAP_NET_ADMIN", "AmbientCapabilities", "setcap"] {
            assert!(lines[0].contains(part), "{part}: {lines:?}");
        }
    }
}
