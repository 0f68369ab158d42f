//! ShadowsocksR: links, servers and the search for settings.

use super::Walk;
use super::hosts::Hosts;

const SOCKS: &str = "socks5h://127.0.0.1:1080";
const URL: &str = "ssr://aes-256-ctr:secret@vps.example:8388";
const SERVER: &str = "adit run ssr://aes-256-ctr:secret@:8388";

/// Starts a client, and asserts that it works.
fn works(hosts: &Hosts, client: &str) {
    let mut client = hosts.home.start(client);
    hosts.home.browses(SOCKS);
    client.terminate().unwrap();
}

/// Returns the link of the server.
fn link(hosts: &Hosts) -> String {
    hosts.home.run(&format!("adit url {URL}"))
}

/// Follows the conversions between URL and link.
fn conversions(hosts: &Hosts, walk: &mut Walk) {
    let home = &hosts.home;
    // The link of the page continues with dots; that of the server here is used.
    let to_url = home.run(&walk.next("adit url"));
    assert!(to_url.starts_with("ssr://"), "{to_url}");
    let there = home.run(&walk.next("adit url"));
    let back = home.run(&format!("adit url '{there}'"));
    assert!(back.starts_with("ssr://aes-128-cfb:secret@"), "{back}");
    let drawn = home.run(&walk.next("adit qr"));
    assert!(drawn.lines().count() > 10, "{drawn}");
}

/// Follows `adit doctor` with settings that are not those of the server.
fn doctor(hosts: &Hosts, walk: &mut Walk) {
    let server = hosts
        .vps
        .start(&format!("{SERVER}?protocol=auth_aes128_md5"));
    let found = hosts
        .home
        .try_run(&walk.next("adit doctor 'ssr://aes-256-ctr:"))
        .output;
    for words in [
        "failed   dialogue",
        "ok       settings",
        "protocol=auth_aes128_md5",
    ] {
        assert!(found.contains(words), "{found}");
    }
    drop(server);
}

/// Follows the server of the pages, and uses it.
fn serve(hosts: &Hosts, walk: &mut Walk) {
    let line = walk.next("adit run 'ssr://aes-256-ctr:");
    let server = hosts.vps.start(&line);
    let url = line.replacen("@:8388", "@vps.example:8388", 1);
    let url = url.strip_prefix("adit run ").unwrap();
    works(hosts, &format!("adit run mixed://127.0.0.1:1080 {url}"));
    drop(server);
}

pub(super) fn book(hosts: &Hosts, walk: &mut Walk) {
    let link = link(hosts);
    let _sites = hosts.start_sites(&[("/sub/", &link)]);
    let _names = hosts.start_name_servers();
    let server = hosts.vps.start(SERVER);
    works(hosts, &walk.next("adit run mixed"));
    conversions(hosts, walk);
    works(hosts, &walk.next("adit client --subscribe"));
    drop(server);
    doctor(hosts, walk);
    serve(hosts, walk);
    let line = walk.next("adit run -L");
    let _server = hosts.vps.start(&line);
    let urls: Vec<&str> = line
        .split('\'')
        .filter(|word| word.contains("://"))
        .collect();
    for url in urls {
        let url = url.replacen("@:", "@vps.example:", 1);
        works(hosts, &format!("adit run mixed://127.0.0.1:1080 '{url}'"));
    }
}

pub(super) fn guide(hosts: &Hosts, walk: &mut Walk) {
    let _sites = hosts.start_sites(&[]);
    let _names = hosts.start_name_servers();
    let server = hosts.vps.start(SERVER);
    works(hosts, &walk.next("adit run mixed"));
    conversions(hosts, walk);
    hosts.home.write("subscription.txt", &link(hosts));
    hosts.home.run(&walk.next("adit convert"));
    works(hosts, "adit run -c adit.toml");
    drop(server);
    serve(hosts, walk);
    doctor(hosts, walk);
}

pub(super) fn from_ssr(hosts: &Hosts, walk: &mut Walk) {
    let _sites = hosts.start_sites(&[]);
    let _names = hosts.start_name_servers();
    let home = &hosts.home;
    let _server = hosts.vps.start(SERVER);
    works(hosts, &walk.next("adit run mixed"));
    let server = "\"server\": \"vps.example\", \"server_port\": 8388, \"method\": \"aes-256-ctr\", \
                  \"password\": \"secret\", \"protocol\": \"origin\", \"obfs\": \"plain\"";
    let local = "\"local_address\": \"127.0.0.1\", \"local_port\": 1080";
    home.write("config.json", &format!("{{{server}, {local}}}"));
    works(hosts, &walk.next("adit run -c"));
    home.write(
        "gui-config.json",
        &format!("{{\"configs\": [{{{server}}}], \"localPort\": 1080}}"),
    );
    home.run(&walk.next("adit convert"));
    works(hosts, "adit run -c adit.toml");
    let found = home.run(&walk.next("adit doctor"));
    assert!(!found.contains("failed"), "{found}");
}
