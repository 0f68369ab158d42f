//! DNS tables and `dns://` listeners, with dig as client and unbound as server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use adit_interop::dns_server::{DnsReply, DnsServer, encode_query};
use adit_interop::external_tools::{self, ToolOutput};
use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::BLAKE3_AES_128;
use adit_interop::socks_client::{
    CONNECT, Destination, UdpAssociation, connect_through, perform_request,
};
use adit_interop::traffic::check_one_byte;
use adit_interop::unbound::UnboundServer;
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, free_port, loopback_addr};

use crate::setup::{ALLOW, bin, ended, says, server, start};

/// Certificates of tests: an authority, and one that it has signed for `localhost` and 127.0.0.1.
const CERTIFICATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../adit-admin/vectors/tls");

fn unbound() -> UnboundServer {
    let mut records: Vec<String> = [
        "a.test. 300 A 192.0.2.7",
        "a.test. 300 AAAA 2001:db8::7",
        "site.test. 300 A 127.0.0.1",
        "a.test. 300 MX 10 mail.test.",
    ]
    .map(str::to_owned)
    .to_vec();
    let long = |n: u32| format!("long.test. TXT \"{n}{}\"", "x".repeat(200));
    records.extend((0..12).map(long));
    let folder = Path::new(CERTIFICATES);
    let (certificate, key) = (folder.join("server.pem"), folder.join("server.key"));
    UnboundServer::start(&records, &certificate, &key).unwrap()
}

fn run_file(folder: &TempFolder, toml: &str, listeners: usize) -> AditProcess {
    let file = folder.write_file("adit.toml", toml).unwrap();
    let mut command = Command::new(bin());
    command.args(["run", "-vv", "-c"]).arg(file);
    command
        .env("XDG_STATE_HOME", folder.path())
        .env_remove("STATE_DIRECTORY");
    AditProcess::start_command(command, listeners).unwrap()
}

fn dig(server: SocketAddr, words: &[&str]) -> ToolOutput {
    let mut dig = Command::new("dig");
    dig.arg(format!("@{}", server.ip()));
    dig.args(["-p", &server.port().to_string(), "+tries=1", "+time=8"]);
    dig.args(words);
    external_tools::run_to_end(dig, Duration::from_secs(20)).unwrap()
}

/// Returns the whole output of a query that is answered.
fn answered(server: SocketAddr, words: &[&str]) -> String {
    dig(server, words).expect_success().unwrap()
}

/// Returns the lines of the answer.
fn short(server: SocketAddr, words: &[&str]) -> Vec<String> {
    let words = [&["+short"], words].concat();
    let lines = answered(server, &words);
    lines.lines().map(str::to_owned).collect()
}

#[test]
fn dig_is_answered_by_the_rules_of_the_route() {
    let unbound = unbound();
    let other = DnsServer::start_at(loopback_addr(free_port()), |name| match name {
        "none.other" => DnsReply::NoSuchName,
        _ => DnsReply::Address(Ipv4Addr::new(198, 51, 100, 9), 60),
    })
    .unwrap();
    let folder = TempFolder::new("dns").unwrap();
    let toml = format!(
        r#"
[route.dns]
listen = "dns://127.0.0.1:0"
dns = "main"
rules = [
  {{ match = "ads.test", via = "reject://" }},
  {{ match = "198.51.100.0/24", via = "reject://", resolve = true }},
]

[route.open]
listen = "dns://127.0.0.1:0?udp=false"
dns = "main"

[dns.main]
server = "udp://127.0.0.1:{}"
rules = [
  {{ match = "*.other", dns = "other" }},
  {{ match = "suffix:blocked.example", dns = "reject" }},
]

[dns.other]
server = ["tcp://127.0.0.1:{}", "udp://{}"]
"#,
        unbound.plain_addr().port(),
        // Nothing listens there: the second server is asked.
        free_port(),
        other.addr()
    );
    let adit = run_file(&folder, &toml, 2);
    let [ruled, open] = adit.addrs() else {
        panic!("{:?}", adit.addrs())
    };
    for transport in ["+notcp", "+tcp"] {
        assert_eq!(short(*ruled, &[transport, "a.test", "A"]), ["192.0.2.7"]);
        assert_eq!(
            short(*ruled, &[transport, "A.TEST", "AAAA"]),
            ["2001:db8::7"]
        );
        assert_eq!(
            short(*ruled, &[transport, "a.test", "MX"]),
            ["10 mail.test."]
        );
        says(&answered(*ruled, &[transport, "nope.test"]), &["NXDOMAIN"]);
        says(&answered(*ruled, &[transport, "ads.test"]), &["NXDOMAIN"]);
        let blocked = answered(*ruled, &[transport, "a.blocked.example"]);
        says(&blocked, &["status: NXDOMAIN"]);
        assert_eq!(short(*ruled, &[transport, "localhost", "A"]), ["127.0.0.1"]);
    }
    // dig repeats it over TCP, and so does adit.
    let long = short(*ruled, &["+notcp", "+ignore", "long.test", "TXT"]);
    assert!(long.is_empty(), "{long:?}");
    let head = answered(*ruled, &["+notcp", "+ignore", "long.test", "TXT"]);
    says(&head, &["flags: qr tc"]);
    assert_eq!(short(*ruled, &["long.test", "TXT"]).len(), 12);

    // Without the rule on addresses, the other table answers, and then the cache.
    assert_eq!(short(*open, &["+tcp", "x.other", "A"]), ["198.51.100.9"]);
    let asked = other.query_count();
    for _ in 0..3 {
        assert_eq!(short(*open, &["+tcp", "X.other", "A"]), ["198.51.100.9"]);
    }
    assert_eq!(other.query_count(), asked, "the cache answers");
    let cached = answered(*open, &["+tcp", "x.other", "A"]);
    let ttl = cached.lines().find(|line| line.starts_with("x.other."));
    let ttl: u32 = ttl
        .unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=60).contains(&ttl), "{cached}");
    says(&answered(*ruled, &["y.other", "A"]), &["status: NXDOMAIN"]);
    says(
        &answered(*open, &["+tcp", "none.other"]),
        &["status: NXDOMAIN"],
    );
    adit.stop().unwrap();
}

#[test]
fn many_queries_share_a_connection() {
    use std::io::{Read, Write};
    let unbound = unbound();
    let folder = TempFolder::new("dns-tcp").unwrap();
    let toml = format!(
        "[route.dns]\nlisten = 'dns://127.0.0.1:0?idle=1s&max_connections=8'\ndns = 'a'\n\
         [dns.a]\nserver = 'udp://127.0.0.1:{}'\ncache = 0\n",
        unbound.plain_addr().port()
    );
    let adit = run_file(&folder, &toml, 1);
    let mut stream = std::net::TcpStream::connect(adit.addr()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let mut sent = Vec::new();
    for id in 0..40u16 {
        let query = encode_query(id, "a.test");
        sent.extend(u16::try_from(query.len()).unwrap().to_be_bytes());
        sent.extend(query);
    }
    // In pieces that do not end where messages do.
    for part in sent.chunks(33) {
        stream.write_all(part).unwrap();
    }
    let mut ids = Vec::new();
    for _ in 0..40 {
        let mut length = [0; 2];
        stream.read_exact(&mut length).unwrap();
        let mut reply = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut reply).unwrap();
        assert!(reply.windows(4).any(|part| part == [192, 0, 2, 7]));
        ids.push(u16::from_be_bytes([reply[0], reply[1]]));
    }
    ids.sort_unstable();
    assert_eq!(ids, (0..40).collect::<Vec<u16>>());
    // An idle connection is closed.
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    // A client has a quarter of the connections.
    let mut held: Vec<_> = (0..2)
        .map(|_| std::net::TcpStream::connect(adit.addr()).unwrap())
        .collect();
    for stream in &mut held {
        stream
            .set_read_timeout(Some(Duration::from_millis(300)))
            .unwrap();
        let open = stream.read(&mut [0; 1]);
        assert!(open.is_err(), "{open:?}");
    }
    let mut third = std::net::TcpStream::connect(adit.addr()).unwrap();
    third
        .set_read_timeout(Some(Duration::from_millis(900)))
        .unwrap();
    let closed = third.read(&mut [0; 1]);
    assert!(
        !matches!(&closed, Err(why) if why.kind() == std::io::ErrorKind::WouldBlock),
        "{closed:?}"
    );
    adit.stop().unwrap();
}

#[test]
fn made_up_addresses_lead_to_their_names_after_a_restart_too() {
    let (unbound, origin) = (unbound(), OriginServer::start().unwrap());
    let echo = DnsServer::start().unwrap();
    let folder = TempFolder::new("fake-ip").unwrap();
    let toml = format!(
        r#"
[route.dns]
listen = "dns://127.0.0.1:0?fake_ip=198.18.0.0/15,fd00:ad17::/64"
dns = "main"
rules = [{{ match = "ads.test", via = "reject://" }}]

[route.proxy]
listen = "mixed://127.0.0.1:0"
dns = "main"
rules = [{{ match = "refused.test", via = "reject://" }}]

[dns.main]
server = "udp://127.0.0.1:{}"
"#,
        unbound.plain_addr().port()
    );
    let adit = run_file(&folder, &toml, 2);
    let address_of = |server: SocketAddr, name: &str, kind: &str| -> IpAddr {
        let found = short(server, &[name, kind]);
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        found[0].parse().unwrap()
    };
    let [dns, proxy] = *adit.addrs() else {
        panic!("{:?}", adit.addrs())
    };
    let site = address_of(dns, "site.test", "A");
    let site_v6 = address_of(dns, "site.test", "AAAA");
    let refused = address_of(dns, "refused.test", "A");
    says(&site.to_string(), &["198.18."]);
    says(&site_v6.to_string(), &["fd00:ad17::"]);
    assert_ne!(site, refused);
    assert_eq!(address_of(dns, "Site.Test", "A"), site);
    says(&answered(dns, &["ads.test"]), &["status: NXDOMAIN"]);
    // Addresses in other records would bypass it; further types are looked up.
    assert!(short(dns, &["site.test", "HTTPS"]).is_empty());
    assert_eq!(short(dns, &["a.test", "MX"]), ["10 mail.test."]);

    let port = origin.addr().port();
    let reply = |proxy: SocketAddr, ip: IpAddr, port: u16| {
        let to = Destination::from(SocketAddr::new(ip, port));
        let (_stream, reply) = perform_request(proxy, None, CONNECT, &to).unwrap();
        reply.code
    };
    for ip in [site, site_v6] {
        let to = Destination::from(SocketAddr::new(ip, port));
        check_one_byte(connect_through(proxy, None, &to).unwrap()).unwrap();
    }
    assert_eq!(reply(proxy, refused, port), 2, "by the rule on its name");
    assert_eq!(reply(proxy, [198, 19, 255, 1].into(), port), 2, "no name");

    // Replies come from the address that the client knows.
    let association = UdpAssociation::open(proxy, None).unwrap();
    let target = SocketAddr::new(site, echo.addr().port());
    let query = encode_query(7, "x.test");
    association
        .send_to(&Destination::from(target), &query)
        .unwrap();
    let (from, answer) = association.recv().unwrap();
    assert_eq!(from, target);
    assert!(answer.starts_with(&[0, 7]));
    adit.stop().unwrap();

    let adit = run_file(&folder, &toml, 2);
    let [dns, proxy] = *adit.addrs() else {
        panic!("{:?}", adit.addrs())
    };
    // Before any query.
    let to = Destination::from(SocketAddr::new(site, port));
    check_one_byte(connect_through(proxy, None, &to).unwrap()).unwrap();
    assert_ne!(address_of(dns, "new.test", "A"), site);
    assert_eq!(address_of(dns, "refused.test", "A"), refused);
    adit.stop().unwrap();
}

#[test]
fn dead_lookups_of_one_client_stop_no_other() {
    use std::net::UdpSocket;
    let server = DnsServer::start_at(loopback_addr(free_port()), |name| {
        match name.starts_with("dead") {
            true => DnsReply::NoReply,
            false => DnsReply::Address(Ipv4Addr::new(192, 0, 2, 1), 60),
        }
    })
    .unwrap();
    let folder = TempFolder::new("dns-dead").unwrap();
    let toml = format!(
        "[route.dns]\nlisten = 'dns://127.0.0.1:0'\ndns = 'a'\n[dns.a]\nserver = 'udp://{}'\n",
        server.addr()
    );
    let adit = run_file(&folder, &toml, 1);
    let greedy = UdpSocket::bind("127.0.0.2:0").unwrap();
    for n in 0..2000u16 {
        let query = encode_query(n, &format!("dead{n}.test"));
        greedy.send_to(&query, adit.addr()).unwrap();
    }
    let begin = std::time::Instant::now();
    for n in 0..10 {
        let found = short(
            adit.addr(),
            &["-b", "127.0.0.1", &format!("good{n}.test"), "A"],
        );
        assert_eq!(found, ["192.0.2.1"]);
    }
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(5), "others waited: {took:?}");
    adit.stop().unwrap();
}

#[test]
fn a_dead_server_does_not_receive_each_query_of_clients() {
    use std::net::UdpSocket;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent_at = silent.local_addr().unwrap();
    let received = Arc::new(AtomicUsize::new(0));
    let counter = received.clone();
    std::thread::spawn(move || {
        while silent.recv(&mut [0; 512]).is_ok() {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    let folder = TempFolder::new("dns-silent").unwrap();
    let toml = format!(
        "[route.dns]\nlisten = 'dns://127.0.0.1:0'\ndns = 'a'\n[dns.a]\nserver = 'udp://{silent_at}'\n"
    );
    let adit = run_file(&folder, &toml, 1);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let ask = |id: u16| {
        let query = encode_query(id, "a.test");
        client.send_to(&query, adit.addr()).unwrap();
        let mut reply = [0; 512];
        client.recv(&mut reply).unwrap();
        assert_eq!((&reply[..2], reply[3] & 15), (&id.to_be_bytes()[..], 2));
    };
    ask(0);
    let begin = Instant::now();
    for id in 1..=200 {
        ask(id);
    }
    // A query is sent at most three times, and not again within the pause of at least a second.
    let pauses = usize::try_from(begin.elapsed().as_secs()).unwrap();
    let sent = received.load(Ordering::SeqCst);
    assert!((1..=3 * (1 + pauses)).contains(&sent), "{sent} datagrams");
    adit.stop().unwrap();
}

#[test]
fn a_client_with_many_names_keeps_the_addresses_of_others() {
    use std::net::UdpSocket;
    let unbound = unbound();
    let folder = TempFolder::new("fake-ip-share").unwrap();
    // 253 names at most.
    let toml = format!(
        "[route.dns]\nlisten = 'dns://127.0.0.1:0?fake_ip=198.18.0.0/24'\ndns = 'a'\n\
         [dns.a]\nserver = 'udp://{}'\n",
        unbound.plain_addr()
    );
    let adit = run_file(&folder, &toml, 1);
    let names = ["one.test", "two.test", "three.test"];
    let addresses = || {
        names.map(|name| {
            let found = short(adit.addr(), &["-b", "127.0.0.1", name, "A"]);
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            found
        })
    };
    let before = addresses();
    let greedy = UdpSocket::bind("127.0.0.2:0").unwrap();
    greedy
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let mut last = Vec::new();
    for n in 0..1000u16 {
        let query = encode_query(n, &format!("greedy{n}.test"));
        greedy.send_to(&query, adit.addr()).unwrap();
        let mut reply = [0; 512];
        let len = greedy.recv(&mut reply).unwrap();
        assert_eq!(reply[..2], n.to_be_bytes());
        last = reply[len - 4..len].to_vec();
    }
    assert_eq!(last[..3], [198, 18, 0]);
    assert_eq!(addresses(), before);
    adit.stop().unwrap();
}

#[test]
fn a_plugin_starts_once_its_server_has_an_address() {
    let (back, origin) = (server(BLAKE3_AES_128), OriginServer::start().unwrap());
    let folder = TempFolder::new("dns-plugin").unwrap();
    let dns_at = loopback_addr(free_port());
    let hop = BLAKE3_AES_128.url(back.addr());
    let hop = hop.replace("127.0.0.1", "server.test");
    let plugin = bin().to_str().unwrap().replace('/', "%2F");
    let toml = format!(
        "[route.a]\nlisten = 'mixed://127.0.0.1:0'\nvia = '{hop}?plugin={plugin}'\ndns = 'a'\n\
         [dns.a]\nserver = 'udp://{dns_at}'\n"
    );
    let mut adit = run_file(&folder, &toml, 1);
    let lines = adit.process().wait_lines("restarting in", 1, TEST_TIMEOUT);
    says(&lines.unwrap()[0], &["`server.test`", &dns_at.to_string()]);
    let local = |_: &str| DnsReply::Address(Ipv4Addr::LOCALHOST, 60);
    let _dns = DnsServer::start_at(dns_at, local).unwrap();
    let lines = adit.process().wait_lines("was restarted", 1, TEST_TIMEOUT);
    lines.unwrap();
    let web = Destination::from(origin.addr());
    check_one_byte(connect_through(adit.addr(), None, &web).unwrap()).unwrap();
    adit.stop().unwrap();
    back.stop().unwrap();
}

#[test]
fn tls_and_https_take_the_chain() {
    let unbound = unbound();
    let folder = TempFolder::new("dns-tls").unwrap();
    let hop = start(&["run", &format!("socks5://127.0.0.1:0?{ALLOW}")]);
    let toml = format!(
        r#"
[route.tls]
listen = "dns://127.0.0.1:0"
dns = "tls"

[route.https]
listen = "dns://127.0.0.1:0"
dns = "https"

[route.wrong]
listen = "dns://127.0.0.1:0"
dns = "wrong"

[dns.tls]
server = "tls://{tls}?name=localhost"
via = "socks5://{hop}"

[dns.https]
server = "https://localhost:{https}/dns-query"
via = "socks5://{hop}"

[dns.wrong]
server = "tls://{tls}?name=other.example"
"#,
        tls = unbound.tls_addr(),
        https = unbound.https_addr().port(),
        hop = hop.addr(),
    );
    let file = folder.write_file("adit.toml", &toml).unwrap();
    let mut command = Command::new(bin());
    command.args(["run", "-vv", "-c"]).arg(file);
    command.env(
        "SSL_CERT_FILE",
        Path::new(CERTIFICATES).join("authority.pem"),
    );
    let adit = AditProcess::start_command(command, 3).unwrap();
    let [tls, https, wrong] = *adit.addrs() else {
        panic!("{:?}", adit.addrs())
    };
    for server in [tls, https] {
        assert_eq!(short(server, &["a.test", "A"]), ["192.0.2.7"]);
        assert_eq!(short(server, &["long.test", "TXT"]).len(), 12);
        says(&answered(server, &["nope.test"]), &["status: NXDOMAIN"]);
    }
    // The certificate does not have this name.
    says(&answered(wrong, &["a.test"]), &["status: SERVFAIL"]);
    adit.stop().unwrap();
    hop.stop().unwrap();
}

/// Returns the value of a metric with these labels.
fn metric(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name} in:\n{text}"))
        .trim()
        .parse()
        .unwrap()
}

#[test]
fn lookups_and_failures_are_counted() {
    let unbound = unbound();
    let folder = TempFolder::new("dns-counts").unwrap();
    let dead = loopback_addr(free_port());
    let socket = folder.path().join("admin.sock");
    let toml = format!(
        r#"
[admin]
listen = "admin.sock"

[route.dns]
listen = "dns://127.0.0.1:0"
dns = "main"

[dns.main]
server = ["tcp://{dead}", "udp://{}"]
"#,
        unbound.plain_addr()
    );
    let adit = run_file(&folder, &toml, 1);
    for _ in 0..3 {
        assert_eq!(short(adit.addr(), &["a.test", "A"]), ["192.0.2.7"]);
    }
    let get = |path: &str| {
        let mut curl = Command::new("curl");
        curl.args(["-q", "-sS", "--max-time", "10", "--unix-socket"]);
        curl.arg(&socket).arg(format!("http://localhost{path}"));
        let done = external_tools::run_to_end(curl, Duration::from_secs(20)).unwrap();
        done.expect_success().unwrap()
    };
    let metrics = get("/metrics");
    assert_eq!(
        metric(&metrics, "adit_dns_lookups_total{table=\"main\"}"),
        3
    );
    assert_eq!(
        metric(&metrics, "adit_dns_cache_hits_total{table=\"main\"}"),
        2
    );
    let of = |name: &str, server: &str| {
        metric(
            &metrics,
            &format!("adit_dns_{name}_total{{table=\"main\",server=\"{server}\"}}"),
        )
    };
    assert_eq!(of("failures", &format!("tcp://{dead}")), 1);
    let works = format!("udp://{}", unbound.plain_addr());
    assert_eq!((of("queries", &works), of("failures", &works)), (1, 0));
    let list = get("/dns");
    says(
        &list,
        &[
            "\"name\":\"main\"",
            "\"lookups\":3",
            "\"cacheHits\":2",
            &works,
        ],
    );
    adit.stop().unwrap();
}

#[test]
fn a_reload_changes_the_servers_and_keeps_the_caches_of_others() {
    use rustix::process::Signal;
    let server = |address: [u8; 4]| {
        let reply = DnsReply::Address(address.into(), 60);
        DnsServer::start_at(loopback_addr(free_port()), move |_| reply).unwrap()
    };
    let (first, second) = (server([192, 0, 2, 1]), server([192, 0, 2, 2]));
    let folder = TempFolder::new("dns-reload").unwrap();
    let (one, other) = (free_port(), free_port());
    let toml = |main: &DnsServer| {
        format!(
            "[route.a]\nlisten = 'dns://127.0.0.1:{one}'\ndns = 'main'\n\
             [route.b]\nlisten = 'dns://127.0.0.1:{other}'\ndns = 'kept'\n\
             [dns.main]\nserver = 'udp://{}'\n[dns.kept]\nserver = 'udp://{}'\n",
            main.addr(),
            first.addr()
        )
    };
    let mut adit = run_file(&folder, &toml(&first), 2);
    let (one, other) = (loopback_addr(one), loopback_addr(other));
    assert_eq!(short(one, &["x.test", "A"]), ["192.0.2.1"]);
    assert_eq!(short(other, &["x.test", "A"]), ["192.0.2.1"]);
    let asked = first.query_count();
    folder.write_file("adit.toml", toml(&second)).unwrap();
    adit.process().send_signal(Signal::HUP).unwrap();
    adit.process()
        .wait_lines("reloaded", 1, Duration::from_secs(10))
        .unwrap();
    assert_eq!(short(one, &["x.test", "A"]), ["192.0.2.2"]);
    assert_eq!(short(other, &["x.test", "A"]), ["192.0.2.1"]);
    assert_eq!(first.query_count(), asked, "its cache was kept");
    adit.stop().unwrap();
}

#[test]
fn a_server_that_is_silent_for_one_family_delays_nothing_for_long() {
    let origin = OriginServer::start().unwrap();
    // It answers queries for IPv4 alone.
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut room = [0; 512];
        while let Ok((len, from)) = socket.recv_from(&mut room) {
            let mut reply = room[..len].to_vec();
            let wants_v4 = reply.windows(4).any(|part| part == [0, 1, 0, 1]);
            if !wants_v4 {
                continue;
            }
            // The question without EDNS, and an address with a pointer to the name.
            let end = 12 + reply[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
            reply.truncate(end);
            reply[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
            reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
            let _ = socket.send_to(&reply, from);
        }
    });
    let folder = TempFolder::new("dns-family").unwrap();
    let toml = format!(
        "[route.a]\nlisten = 'mixed://127.0.0.1:0'\ndns = 'a'\n[dns.a]\nserver = 'udp://{server}'\n"
    );
    let adit = run_file(&folder, &toml, 1);
    let begin = std::time::Instant::now();
    let to = Destination::from_name("site.test", origin.addr().port());
    check_one_byte(connect_through(adit.addr(), None, &to).unwrap()).unwrap();
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(3), "{took:?}");
    adit.stop().unwrap();
}

#[test]
fn explain_names_the_table_that_looks_a_target_up() {
    let unbound = unbound();
    let folder = TempFolder::new("dns-explain").unwrap();
    let toml = format!(
        r#"
[route.a]
listen = "mixed://127.0.0.1:0"
via = "socks5://192.0.2.1:1080"
rules = [
  {{ match = ["suffix:corp.example", "*.ads.example"], via = "direct://" }},
  {{ match = "192.0.2.0/24", via = "direct://", resolve = true }},
]
dns = "main"

[dns.main]
server = "udp://{}"
rules = [
  {{ match = "*.corp.example", dns = "corp" }},
  {{ match = "*.ads.example", dns = "reject" }},
]

[dns.corp]
server = "udp://192.0.2.53"
"#,
        unbound.plain_addr()
    );
    let file = folder.write_file("adit.toml", toml).unwrap();
    let explain = |target: &str| {
        let file = file.to_str().unwrap();
        let done = ended(&["explain", "-c", file, "--target", target]);
        done.expect_success().unwrap()
    };
    for (target, lines) in [
        ("x.corp.example", &["  dns     corp\n"][..]),
        (
            "x.ads.example",
            &["  dns     no: a rule of its DNS table rejects the name\n"],
        ),
        // Looked up with the table, and not with the system's resolver.
        ("a.test", &["  dns     main\n", "192.0.2.7", "2001:db8::7"]),
        (
            "nope.test",
            &["  dns     main, then the last hop\n", "no address"],
        ),
    ] {
        says(&explain(target), lines);
    }
    assert!(!explain("192.0.2.9").contains("  dns "));
}
