//! A gateway for a network, with the rules of the page in the kernel.

use super::Walk;
use super::hosts::Hosts;
use super::page::block_with;

/// Asserts that the laptop, which has no settings, reaches the web.
fn laptop_browses(hosts: &Hosts) {
    let page = hosts.laptop.run("curl -sS -m 40 http://example.com/");
    assert_eq!(page, "hello from example.com");
}

fn laptop_asks(hosts: &Hosts) {
    let answer = hosts.laptop.run("dig +short @9.9.9.9 example.com");
    assert!(answer.contains("9.9.9.4"), "{answer}");
}

fn add_table(hosts: &Hosts, page: &str, words: &str) {
    hosts
        .home
        .write("rules.nft", &block_with(page, "nft", words));
    hosts.home.run("nft -f rules.nft");
}

pub(super) fn transparent(hosts: &Hosts, walk: &mut Walk) {
    let _sites = hosts.start_sites(&[]);
    let _names = hosts.start_name_servers();
    let _server = hosts.vps.start("adit run ss://aes-128-gcm:secret@:8388");
    let home = &hosts.home;
    let page = walk.page;
    let blocked = hosts.laptop.try_run("curl -sS -m 1 http://example.com/");
    assert_ne!(blocked.code, Some(0), "the laptop needs no gateway");

    let gateway = home.start(&walk.next("adit run -L tproxy"));
    let install = walk.next("sudo adit service install -c");
    home.run("mkdir -p /etc/adit");
    let route = "[route.gateway]\nlisten = 'tproxy://127.0.0.1:12345'\nvia = 'direct://'\n";
    home.write("/etc/adit/adit.toml", route);
    let print = install.replace("install", "install --manager systemd --print");
    let unit = home.run(&print);
    assert!(unit.contains("CAP_NET_ADMIN"), "{unit}");
    home.run(&walk.take(4, "ip rule"));
    add_table(hosts, page, "table inet adit {");
    laptop_browses(hosts);
    laptop_asks(hosts);
    home.run("nft delete table inet adit");
    home.run(&walk.take(13, "iptables -t mangle"));
    laptop_browses(hosts);
    laptop_asks(hosts);
    home.run("iptables -t mangle -F && ip6tables -t mangle -F");
    drop(gateway);

    let redirect = walk.next("adit run 'redir");
    let gateway = home.start(&redirect);
    home.run(&walk.take(10, "iptables -t nat"));
    laptop_browses(hosts);
    drop(gateway);
    names(hosts, page, &redirect);
    // A user namespace has one user, so adit's traffic cannot be told from other traffic.
    let output = walk.take(4, "iptables -t nat -A OUTPUT");
    let mapped = std::fs::read_to_string("/proc/self/uid_map").unwrap();
    if !mapped.contains("4294967295") {
        return;
    }
    // As the user `adit`, who may not be able to read the build folder.
    home.run("cp --remove-destination $(readlink /usr/local/bin/adit) /usr/local/bin/adit");
    let as_adit = |line: &str| format!("setpriv --reuid adit --regid 4242 --clear-groups {line}");
    let hop = "-F ss://aes-128-gcm:secret@vps.example:8388";
    let two = "adit run -L redir://127.0.0.1:12345 -L 'redir://[::1]:12345'";
    let gateway = home.start(&as_adit(&format!("{two} {hop}")));
    home.run(&output);
    let direct = "curl -sS -m 40 http://example.com/";
    assert_eq!(home.run(direct), "hello from example.com");
    let counted = home.run("iptables -t nat -vnL ADIT | grep REDIRECT");
    assert!(!counted.trim_start().starts_with("0 "), "{counted}");
    home.run("iptables -t nat -F && ip6tables -t nat -F");
    drop(gateway);
    let capable = "--inh-caps +net_admin --ambient-caps +net_admin";
    let two = "adit run -L tproxy://127.0.0.1:12345 -L 'tproxy://[::1]:12345'";
    let line = format!("setpriv --reuid adit --regid 4242 --clear-groups {capable} {two} {hop} -v");
    let mut gateway = home.start(&line);
    add_table(hosts, page, "table inet adit_own");
    assert_eq!(home.run(direct), "hello from example.com");
    gateway
        .wait_lines("9.9.9.4:80", 1, adit_interop::TEST_TIMEOUT)
        .unwrap();
}

/// Follows the part about names: the laptop asks the gateway, and connects to the address that it made up.
fn names(hosts: &Hosts, page: &str, redirect: &str) {
    let route = block_with(page, "toml", "fake_ip");
    let urls: Vec<&str> = redirect.split('\'').collect();
    let (listen, via) = (urls[1], urls[3]);
    let file = format!("{route}\n[route.gateway]\nlisten = \"{listen}\"\nvia = \"{via}\"\n");
    hosts.home.write("adit.toml", &file);
    let _gateway = hosts
        .home
        .start_until("adit run -c adit.toml", "listening on ", 2);
    let address = hosts.laptop.run("dig +short @192.168.1.1 example.com A");
    assert!(address.starts_with("198.1"), "{address}");
    let page = format!("curl -sS -m 40 -H 'Host: example.com' http://{address}/");
    assert_eq!(hosts.laptop.run(&page), "hello from example.com");
}
