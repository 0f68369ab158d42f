//! Pages for those who come from another program: its files and links, used as the page says.

use adit_interop::external_tools::peer_path;

use super::Walk;
use super::hosts::Hosts;
use super::page::KEY;

const SOCKS: &str = "socks5h://127.0.0.1:1080";
const CLIENT: &str = r#"{"server": "vps.example", "server_port": 8388, "local_address": "127.0.0.1",
"local_port": 1080, "method": "aes-128-gcm", "password": "secret", "timeout": 300}"#;

/// Starts a client, and asserts that it works.
fn works(hosts: &Hosts, client: &str) {
    let mut client = hosts.home.start(client);
    hosts.home.browses(SOCKS);
    client.terminate().unwrap();
}

fn check_and_run(hosts: &Hosts, walk: &mut Walk) {
    hosts.home.run(&walk.next("adit check"));
    works(hosts, &walk.next("adit run"));
}

fn convert(hosts: &Hosts, walk: &mut Walk) {
    hosts.home.run(&walk.next("adit convert"));
}

pub(super) fn migrate(hosts: &Hosts, walk: &mut Walk) {
    let _sites = hosts.start_sites(&[]);
    let server = hosts.vps.start("adit run ss://aes-128-gcm:secret@:8388");
    hosts.home.write("config.json", CLIENT);
    check_and_run(hosts, walk);
    convert(hosts, walk);
    works(hosts, &walk.next("adit run"));
    drop(server);
    hosts.home.run("mkdir -p ~/.local/bin");
    hosts.home.run(&walk.next("adit install-aliases"));
    let _server = hosts.vps.start("adit run ss://aes-256-gcm:secret@:8388");
    let shell = "export PASSWORD=secret PATH=~/.local/bin:$PATH";
    works(hosts, &format!("{shell}\n{}", walk.next("ss-local")));
}

pub(super) fn libev(hosts: &Hosts, walk: &mut Walk) {
    let _sites = hosts.start_sites(&[]);
    let _server = hosts.vps.start("adit run ss://aes-128-gcm:secret@:8388");
    hosts.home.write("config.json", CLIENT);
    check_and_run(hosts, walk);
    hosts.home.run("mkdir -p ~/.local/bin");
    hosts.home.run(&walk.next("adit install-aliases"));
    works(hosts, "~/.local/bin/ss-local -c config.json");
    convert(hosts, walk);
    works(hosts, &walk.next("adit run"));
}

pub(super) fn rust(hosts: &Hosts, walk: &mut Walk) {
    let _sites = hosts.start_sites(&[]);
    let _server = hosts.vps.start("adit run ss://aes-128-gcm:secret@:8388");
    hosts.home.write(
        "config.json",
        "{ // a comment\n  servers: [{ server: \"vps.example\", server_port: 8388, method: \"aes-128-gcm\", \
         password: \"secret\" }],\n  locals: [{ local_address: \"127.0.0.1\", local_port: 1080 }],\n}",
    );
    check_and_run(hosts, walk);
    convert(hosts, walk);
    works(hosts, "adit run -c adit.toml");
}

pub(super) fn go(hosts: &Hosts, walk: &mut Walk) {
    let _sites = hosts.start_sites(&[]);
    let id = super::page::SERVER_ID;
    let _server = hosts.vps.start(&format!("adit run ss://{id}@:8388"));
    hosts.home.write(
        "config.json",
        &format!(
            r#"{{"servers": [{{"name": "local", "protocol": "socks5", "tcpListeners": [{{"network": "tcp", "address": "127.0.0.1:1080"}}],
"udpListeners": [{{"network": "udp", "address": "127.0.0.1:1080"}}]}}],
"clients": [{{"name": "far", "protocol": "2022-blake3-aes-128-gcm", "endpoint": "vps.example:8388", "enableTCP": true,
"enableUDP": true, "mtu": 1500, "psk": "{KEY}"}}]}}"#
        ),
    );
    check_and_run(hosts, walk);
    convert(hosts, walk);
    works(hosts, "adit run -c adit.toml");
}

pub(super) fn sing_box(hosts: &Hosts, walk: &mut Walk) {
    let _sites = hosts.start_sites(&[]);
    let _names = hosts.start_name_servers();
    let home = &hosts.home;
    let _server = hosts.vps.start("adit run ss://aes-128-gcm:secret@:8388");
    home.write(
        "config.json",
        r#"{"inbounds": [{"type": "mixed", "listen": "127.0.0.1", "listen_port": 1080}],
"outbounds": [{"type": "shadowsocks", "tag": "far", "server": "vps.example", "server_port": 8388,
"method": "aes-128-gcm", "password": "secret"}]}"#,
    );
    convert(hosts, walk);
    works(hosts, &walk.next("adit run"));
    home.run(&walk.next("adit check"));
    home.run(&walk.next("adit client --check"));
    home.write(
        "sing-box.json",
        r#"{"inbounds": [{"type": "socks", "listen": "127.0.0.1", "listen_port": 2080}]}"#,
    );
    let line = format!("{} run -c sing-box.json", peer_path("sing-box").display());
    let other = home.start_until(&line, "", 0);
    home.wait_for_port(2080, &other);
    works(hosts, &walk.next("adit run mixed"));
}

pub(super) fn outline(hosts: &Hosts, walk: &mut Walk) {
    let key = r#"{"server": "vps.example", "server_port": 12345, "password": "secret",
"method": "chacha20-ietf-poly1305"}"#;
    let _sites = hosts.start_sites(&[("/key", key)]);
    let server = "adit run ss://chacha20-ietf-poly1305:secret@:12345";
    let _server = hosts.vps.start(server);
    works(hosts, &walk.next("adit client 'ss://"));
    works(hosts, &walk.next("adit client --subscribe"));
    hosts.home.write(
        "links.txt",
        "ss://chacha20-ietf-poly1305:secret@vps.example:12345#one\n",
    );
    convert(hosts, walk);
    works(hosts, &walk.next("adit run"));
}
