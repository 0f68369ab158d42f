//! KCP below other protocols, kcptun's tunnel, and datagrams with error correction.

use adit_interop::traffic::{self, ForwarderEntry};

use super::Walk;
use super::hosts::{Host, Hosts};
use super::kernel::turn_on_bbr;
use super::page::{KEY, SERVER_ID};

const SOCKS: &str = "socks5h://127.0.0.1:1080";

fn write_keys(hosts: &Hosts) {
    hosts.home.write("key.txt", KEY);
    hosts.vps.write("key.txt", KEY);
}

/// Runs a server and its client, and asserts that a proxy at home works.
fn proxies(hosts: &Hosts, server: &str, client: &str, proxy: &str) {
    let server = hosts.vps.start(server);
    let client = hosts.home.start(client);
    hosts.home.browses(proxy);
    drop(client);
    drop(server);
}

/// Follows the two commands that carry a game.
fn game(hosts: &Hosts, walk: &mut Walk) {
    let _game = hosts.vps.start_origin("127.0.0.1:27015");
    let _server = hosts.vps.start(&walk.next("adit run 'udp+fec"));
    let _client = hosts.home.start(&walk.next("adit run udp"));
    let play = || ForwarderEntry::open("127.0.0.1:27015".parse().unwrap());
    let play = || play().and_then(|link| traffic::check_datagrams(&link));
    hosts.home.inside(|| play().unwrap());
}

/// Asserts that a port at home leads to the Shadowsocks server on the VPS.
fn leads_to_shadowsocks(home: &Host, port: u16) {
    let proxy = format!("adit run mixed://127.0.0.1:1085 ss://{SERVER_ID}@127.0.0.1:{port}");
    let _proxy = home.start(&proxy);
    home.browses("socks5h://127.0.0.1:1085");
}

pub(super) fn games(hosts: &Hosts, walk: &mut Walk) {
    turn_on_bbr(&hosts.vps, walk);
    write_keys(hosts);
    let _sites = hosts.start_sites(&[]);
    let server = walk.next("adit run 'ss+kcp");
    proxies(hosts, &server, &walk.next("adit run mixed"), SOCKS);
    game(hosts, walk);
}

pub(super) fn kcp(hosts: &Hosts, walk: &mut Walk) {
    write_keys(hosts);
    let large = "x".repeat(190_000);
    let _sites = hosts.start_sites(&[("/LARGE-FILE", &large)]);
    let (home, vps) = (&hosts.home, &hosts.vps);
    // All 500 take 100 seconds.
    let ping = walk.next("ping -c 500 ").replace("-c 500", "-c 5");
    assert!(home.run(&ping).contains(" 0% packet loss"));
    turn_on_bbr(vps, walk);
    let server = vps.start(&walk.next("adit run -L"));
    let tcp = home.start(&walk.next("adit run mixed"));
    let kcp = home.start(&walk.next("adit run mixed"));
    let measured = home.run(&walk.next("for port"));
    let figures: Vec<f64> = measured.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(figures.len(), 6, "{measured}");
    assert!(figures.iter().all(|figure| *figure > 0.0), "{measured}");
    drop((tcp, kcp, server));

    let _shadowsocks = vps.start(&format!("adit run ss://{SERVER_ID}@:8388"));
    let _server = vps.start(&walk.next("adit kcp server"));
    let _client = home.start(&walk.next("adit kcp client"));
    leads_to_shadowsocks(home, 8388);
}

pub(super) fn carrier(hosts: &Hosts, walk: &mut Walk) {
    write_keys(hosts);
    let _sites = hosts.start_sites(&[]);
    let (home, vps) = (&hosts.home, &hosts.vps);
    let server = walk.next("adit run 'ss+kcp");
    proxies(hosts, &server, &walk.next("adit run mixed"), SOCKS);
    let server = walk.next("adit run 'socks5+kcp");
    proxies(
        hosts,
        &server,
        &walk.next("adit run http"),
        "http://127.0.0.1:8080",
    );

    let database = vps.start_origin("127.0.0.1:5432");
    let server = vps.start(&walk.next("adit run 'tcp+kcp"));
    let client = home.start(&walk.next("adit run tcp"));
    home.inside(|| {
        traffic::connect_directly(database.addr())
            .and_then(traffic::check_one_byte)
            .unwrap();
    });
    drop((client, server));
    game(hosts, walk);

    let _shadowsocks = vps.start(&format!("adit run ss://{SERVER_ID}@:8388"));
    let server = vps.start(&walk.next("adit run 'kcptun"));
    let client = home.start(&walk.next("adit run tcp"));
    leads_to_shadowsocks(home, 12948);
    drop(client);
    let client = home.start(&walk.next("adit run mixed"));
    home.browses(SOCKS);
    drop((client, server));
    let _server = vps.start(&walk.next("adit run 'kcptun"));
    let _client = home.start(&walk.next("adit run tcp"));
    leads_to_shadowsocks(home, 12948);
}
