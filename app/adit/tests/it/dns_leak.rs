//! No query leaves the gateway except through the chain.
//!
//! The gateway's `/etc/resolv.conf` names a trap on its own port 53, and its firewall counts every packet to port 53 that
//! leaves it.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use adit_interop::dns_server::{ANSWER, DnsReply, DnsServer, encode_query};
use adit_interop::external_tools;
use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::BLAKE3_AES_128;
use adit_interop::socks_client::{Destination, UdpAssociation, connect_through};
use adit_interop::traffic::check_one_byte;
use adit_interop::{AditProcess, TempFolder};

use crate::netns::{GATEWAY, SERVER, command, enter, use_local_dns_server, world};
use crate::online::Provider;
use crate::setup::bin;

fn addr(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn adit(place: &str, args: &[&str], listeners: usize) -> AditProcess {
    let bin = bin();
    let words: Vec<&str> = [&[bin.to_str().unwrap()], args].concat();
    AditProcess::start_command(command(place, &words), listeners).unwrap()
}

fn on_gateway(words: &[&str]) -> String {
    let done = external_tools::run_to_end(command(GATEWAY, words), Duration::from_secs(10));
    done.unwrap().expect_success().unwrap()
}

/// Returns the number of packets to port 53 that the gateway has sent.
fn leaked_packets() -> u64 {
    let rules = on_gateway(&["nft", "list", "chain", "inet", "leak", "out"]);
    let counters = rules.lines().filter(|line| line.contains("packets"));
    let counts = counters.map(|line| {
        let (_, after) = line.split_once("packets ").unwrap();
        after.split(' ').next().unwrap().parse::<u64>().unwrap()
    });
    counts.sum()
}

/// Counts the packets to ports of DNS that leave the gateway, or that its own system sends to itself.
fn count_leaks() {
    on_gateway(&[
        "nft",
        "add table inet leak; add chain inet leak out { type filter hook output priority 0; }; \
         add rule inet leak out udp dport 53 counter; add rule inet leak out tcp dport 53 counter; \
         add rule inet leak out tcp dport 853 counter",
    ]);
}

#[test]
fn queries_take_the_chain() {
    if !world("dns_leak::queries_take_the_chain") {
        return;
    }
    let folder = TempFolder::new("leak").unwrap();
    use_local_dns_server(&folder);
    count_leaks();
    let trap_at = addr("127.0.0.1:53");
    let (trap_udp, trap_tcp) = enter(GATEWAY, || {
        (
            UdpSocket::bind(trap_at).unwrap(),
            TcpListener::bind(trap_at).unwrap(),
        )
    });
    trap_udp.set_nonblocking(true).unwrap();
    trap_tcp.set_nonblocking(true).unwrap();
    let (dns, origin) = enter(SERVER, || {
        let dns = DnsServer::start_at(addr("9.9.9.9:53"), |name| match name {
            "web.test" => DnsReply::Address(Ipv4Addr::new(9, 9, 9, 9), 60),
            "hop.test" => DnsReply::Address(Ipv4Addr::new(9, 9, 9, 10), 60),
            "inside.test" => DnsReply::Address(Ipv4Addr::new(10, 66, 0, 1), 60),
            _ => DnsReply::Address(ANSWER, 60),
        });
        let origin = OriginServer::start_at(addr("9.9.9.9:7000"));
        (dns.unwrap(), origin.unwrap())
    });
    let back_at = addr("9.9.9.10:8388");
    let back_url = format!("{}?allow_private=9.9.9.9", BLAKE3_AES_128.url(back_at));
    let back = adit(SERVER, &["run", &back_url], 1);
    let hop = BLAKE3_AES_128.url(back_at);
    let named_hop = hop.replace("9.9.9.10", "hop.test");
    let toml = format!(
        r#"
[route.direct]
listen = "mixed://127.0.0.1:0"
dns = "far"

[route.ruled]
listen = "mixed://127.0.0.1:0"
via = "reject://"
rules = [{{ match = "9.9.9.0/24", via = "direct://", resolve = true }}]

[route.hop]
listen = "mixed://127.0.0.1:0"
via = "{named_hop}"

[route.dns]
listen = "dns://127.0.0.1:0"

[run]
dns = "far"

[dns.far]
server = "udp://9.9.9.9"
via = "{hop}"
"#
    );
    let file = folder.write_file("adit.toml", toml).unwrap();
    let front = adit(GATEWAY, &["run", "-vv", "-c", file.to_str().unwrap()], 4);
    let [direct, ruled, hops, listener] = *front.addrs() else {
        panic!("{:?}", front.addrs())
    };
    let web = Destination::from_name("web.test", 7000);
    enter(GATEWAY, || {
        // The server of the hop has a name; that of the target would be looked up by the hop's system.
        let web_address = Destination::from(addr("9.9.9.9:7000"));
        for (proxy, to) in [(direct, &web), (ruled, &web), (hops, &web_address)] {
            check_one_byte(connect_through(proxy, None, to).unwrap()).unwrap();
        }
        let association = UdpAssociation::open(direct, None).unwrap();
        association
            .send_to(&Destination::from_name("other.test", 7001), b"x")
            .unwrap();
        let query = UdpSocket::bind("127.0.0.1:0").unwrap();
        query
            .set_read_timeout(Some(Duration::from_secs(8)))
            .unwrap();
        query.send_to(&encode_query(9, "a.test"), listener).unwrap();
        let mut reply = [0; 512];
        let (len, _) = query.recv_from(&mut reply).unwrap();
        assert_eq!(reply[..2], [0, 9]);
        assert!(reply[..len].ends_with(&ANSWER.octets()));
        let refused = Destination::from_name("refused.test", 7000);
        assert!(connect_through(ruled, None, &refused).is_err());
    });
    assert!(dns.query_count() >= 5, "{} queries", dns.query_count());
    assert!(origin.connection_count() >= 3);

    // The server's own system is not part of this: the gateway has sent nothing to port 53, and its trap is empty.
    assert_eq!(leaked_packets(), 0);
    assert!(trap_udp.recv_from(&mut [0; 16]).is_err());
    assert!(trap_tcp.accept().is_err());
    front.stop().unwrap();

    // The trap works: without a table, the system's resolver is asked.
    let plain = [
        "run",
        "-L",
        "mixed://127.0.0.1:0",
        "-L",
        "dns://127.0.0.1:0",
    ];
    let plain = adit(GATEWAY, &plain, 2);
    let [proxy, listener] = *plain.addrs() else {
        panic!("{:?}", plain.addrs())
    };
    enter(GATEWAY, || drop(connect_through(proxy, None, &web)));
    assert!(leaked_packets() > 0);
    assert!(trap_udp.recv_from(&mut [0; 512]).is_ok());
    drop(trap_udp);
    let system = enter(GATEWAY, || {
        DnsServer::start_at(trap_at, |name| match name {
            "none.test" => DnsReply::NoSuchName,
            _ => DnsReply::Address(ANSWER, 60),
        })
    });
    let _system = system.unwrap();
    for (words, part) in [
        (["a.test", "A"], "203.0.113.7"),
        (["none.test", "A"], "status: NXDOMAIN"),
        // Other types than addresses, which the resolver itself does not have.
        (["a.test", "MX"], "status: NOERROR"),
        (["none.test", "TXT"], "status: NXDOMAIN"),
    ] {
        let port = listener.port().to_string();
        let ask = ["dig", "@127.0.0.1", "-p", &port, "+tries=1", "+time=8"];
        let found = on_gateway(&[&ask[..], &words].concat());
        assert!(found.contains(part), "{words:?}: {found}");
    }
    drop((plain, back));
}

/// Waits until `is_done`, for at most half a minute.
fn wait_until(what: &str, is_done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_done() {
        assert!(begin.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Starts the DNS server of the far side, and returns the names that it is asked for.
fn start_recorder() -> (DnsServer, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let record = asked.clone();
    let server = DnsServer::start_at(addr("9.9.9.9:53"), move |name| {
        record.lock().unwrap().push(name.to_owned());
        match name {
            "plugin.test" => DnsReply::Address(Ipv4Addr::new(9, 9, 9, 10), 60),
            _ => DnsReply::Address(Ipv4Addr::new(9, 9, 9, 9), 60),
        }
    });
    (server.unwrap(), asked)
}

#[test]
fn names_besides_targets_take_the_chain_too() {
    if !world("dns_leak::names_besides_targets_take_the_chain_too") {
        return;
    }
    let folder = TempFolder::new("leak-others").unwrap();
    use_local_dns_server(&folder);
    count_leaks();
    let ((_dns, asked), origin) = enter(SERVER, || {
        let origin = OriginServer::start_at(addr("9.9.9.9:7000"));
        (start_recorder(), origin.unwrap())
    });
    let program = bin();
    let run_file = |file: &Path| {
        let file = file.to_str().unwrap();
        let words = [program.to_str().unwrap(), "run", "-vv", "-c", file];
        let mut run = command(GATEWAY, &words);
        run.env("XDG_STATE_HOME", folder.path());
        run
    };
    let was_asked = |name: &str| asked.lock().unwrap().iter().any(|known| known == name);
    let back_at = addr("9.9.9.10:8388");
    let back_url = format!("{}?allow_private=9.9.9.9", BLAKE3_AES_128.url(back_at));
    let back = adit(SERVER, &["run", &back_url], 1);
    let hop = BLAKE3_AES_128.url(back_at);
    let plugin = bin().to_str().unwrap().replace('/', "%2F");
    let plugin_hop = format!("{}?plugin={plugin}", hop.replace("9.9.9.10", "plugin.test"));
    let server = BLAKE3_AES_128.url(addr("127.0.0.1:0"));
    let lists = enter(GATEWAY, || Provider::start("ads.test\n"));
    let dns = format!("[run]\ndns = 'far'\n[dns.far]\nserver = 'udp://9.9.9.9'\nvia = '{hop}'\n");
    let toml = format!(
        "{dns}
[route.plugin]
listen = 'mixed://127.0.0.1:0'
via = '{plugin_hop}'

[route.server]
listen = '{server}?reject=forward:decoy.test:7000'

[set.ads]
url = '{}'
refresh = '1s'
",
        lists.url()
    );
    let file = folder.write_file("adit.toml", toml).unwrap();
    let front = AditProcess::start_command(run_file(&file), 2).unwrap();
    let [proxy, keyed] = *front.addrs() else {
        panic!("{:?}", front.addrs())
    };
    enter(GATEWAY, || {
        // The plugin connects to its server itself.
        let web = Destination::from(addr("9.9.9.9:7000"));
        check_one_byte(connect_through(proxy, None, &web).unwrap()).unwrap();
    });
    assert!(was_asked("plugin.test"));
    let before = origin.connection_count();
    enter(GATEWAY, || {
        let mut stranger = TcpStream::connect(keyed).unwrap();
        stranger.write_all(&[7; 300]).unwrap();
        wait_until("the decoy was not reached", || {
            origin.connection_count() > before
        });
    });
    assert!(was_asked("decoy.test"));
    lists.answers(
        "HTTP/1.1 302 Found\r\nLocation: https://lists.test/ads.txt\r\nContent-Length: 0\r\n\r\n",
    );
    wait_until("the list was not refreshed", || was_asked("lists.test"));
    front.stop().unwrap();

    // The first download of a list, when no table runs yet; one of its rules needs the list.
    let toml = format!(
        "{dns}rules = [{{ match = 'set:ads', dns = 'reject' }}]
[set.ads]
url = 'https://first.test/ads.txt'
[route.proxy]
listen = 'mixed://127.0.0.1:0'
"
    );
    let file = folder.write_file("lists.toml", toml).unwrap();
    let run = run_file(&file);
    let failed = external_tools::run_to_end(run, Duration::from_secs(60)).unwrap();
    let why = failed.output;
    assert!(
        failed.code != Some(0) && why.contains("no connection to first.test"),
        "{why}"
    );
    assert!(was_asked("first.test"));

    assert_eq!(leaked_packets(), 0);
    // The counter works: without a table, the plugin asks the system.
    let plain = ["run", "-L", "mixed://127.0.0.1:0", "-F", &plugin_hop];
    let plain = adit(GATEWAY, &plain, 1);
    let web = Destination::from(addr("9.9.9.9:7000"));
    enter(GATEWAY, || drop(connect_through(plain.addr(), None, &web)));
    wait_until("nothing was counted", || leaked_packets() > 0);
    drop((plain, back));
}
