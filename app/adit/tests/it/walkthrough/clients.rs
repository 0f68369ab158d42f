//! A server and its client: the README, the first steps, subscriptions, DNS.

use super::Walk;
use super::hosts::Hosts;
use super::page::{KEY, SERVER_ID, block_with};

const CURL: &str = "curl -x socks5h://127.0.0.1:1080 https://example.com/";
const SOCKS: &str = "socks5h://127.0.0.1:1080";

/// Follows `adit up` in the form of the pages.
fn up(hosts: &Hosts, walk: &mut Walk) {
    let up = walk.next("cargo run --release -- up");
    let mut up = hosts.home.start_until(&up, "127.0.0.1:1080", 1);
    hosts.home.browses(SOCKS);
    hosts.home.browses("http://127.0.0.1:1080");
    up.terminate().unwrap();
}

/// Pastes a URL into the client, as its profile, and uses both.
fn save_and_use(hosts: &Hosts, walk: &mut Walk, url: &str) -> adit_interop::ChildProcess {
    hosts.home.write("pasted", url);
    let save = walk.next("adit client - --save home");
    let mut client = hosts.home.start(&format!("{save} < pasted"));
    client
        .wait_lines("accepts us: key-id", 1, adit_interop::TEST_TIMEOUT)
        .unwrap();
    hosts.home.browses(SOCKS);
    client
}

pub(super) fn readme(hosts: &Hosts, walk: &mut Walk) {
    let _sites = hosts.start_sites(&[]);
    up(hosts, walk);
    let server = hosts
        .vps
        .start_on_terminal(&walk.next("adit server"), "listening on ");
    let printed = server.output();
    assert!(printed.contains("adit client"), "{printed}");
    let word = printed
        .split_whitespace()
        .find(|word| word.contains("ss://"));
    let url = word.unwrap().trim_matches('\'').to_owned();
    let mut saved = save_and_use(hosts, walk, &url);
    saved.terminate().unwrap();
    let mut again = hosts.home.start(&walk.next("adit client home"));
    hosts.home.browses(SOCKS);
    hosts.home.browses("http://127.0.0.1:1080");
    again.terminate().unwrap();
}

pub(super) fn start(hosts: &Hosts, walk: &mut Walk) {
    let _sites = hosts.start_sites(&[]);
    up(hosts, walk);
    drop(hosts.start_ssh(&[]));
    let drawn = hosts.home.run(&walk.next("adit explain"));
    assert!(drawn.contains("gate.example"), "{drawn}");
}

/// Creates what the build would have made, for the commands that copy it.
fn built(hosts: &Hosts) {
    for folder in [
        "target/release",
        "target/dist/adit-0.1.0-x86_64-unknown-linux-musl",
    ] {
        let make = format!("mkdir -p {folder} && ln -s /usr/local/bin/adit.real {folder}/adit");
        hosts.home.run(&make);
    }
    hosts
        .home
        .run("mv /usr/local/bin/adit /usr/local/bin/adit.real");
}

pub(super) fn install(hosts: &Hosts, walk: &mut Walk) {
    let home = &hosts.home;
    built(hosts);
    home.run(&walk.next("sudo install -m 755"));
    let version = home.run(&walk.next("adit --version"));
    assert!(version.starts_with("adit "), "{version}");
    home.run(&walk.next("adit up --once"));
    home.run(&walk.take(2, "mkdir -p"));
    home.run("bash -n ~/.local/share/bash-completion/completions/adit");
    let page = home.run(&walk.next("adit man"));
    assert!(page.contains("SYNOPSIS"), "{page}");
    home.run(&walk.take(3, "mkdir -p"));
    home.run("zsh -n ~/.zfunc/_adit && fish -n ~/.config/fish/completions/adit.fish");
    home.run("mkdir -p ~/.local/bin");
    home.run(&walk.next("adit install-aliases"));
    home.run("~/.local/bin/ss-local -h");
}

pub(super) fn platforms(hosts: &Hosts, walk: &mut Walk) {
    let _names = hosts.start_name_servers();
    let found = hosts.home.run(&walk.next("adit doctor direct://"));
    assert!(found.contains("error correction: "), "{found}");
}

/// Signs a list of sums, as the workflow does for a release, and verifies it.
pub(super) fn releasing(hosts: &Hosts, walk: &mut Walk) {
    let home = &hosts.home;
    home.run(
        "ssh-keygen -q -t ed25519 -N '' -C '' -f key
        echo \"release@adit $(cat key.pub)\" > signers
        sha256sum signers > SHA256SUMS
        ssh-keygen -q -Y sign -f key -n adit-release SHA256SUMS",
    );
    let verify = walk.next("ssh-keygen -Y verify");
    home.run(&verify);
    home.run("echo >> SHA256SUMS");
    assert_ne!(home.try_run(&verify).code, Some(0));
}

/// The server, its URL, the client and a page through both.
fn server_and_client(hosts: &Hosts, walk: &mut Walk, url: &str) {
    let mut client = save_and_use(hosts, walk, url);
    let page = hosts.home.run(&walk.next(CURL));
    assert!(page.contains("hello from example.com"), "{page}");
    client.terminate().unwrap();
}

pub(super) fn vps(hosts: &Hosts, walk: &mut Walk) {
    let _sites = hosts.start_sites(&[]);
    let _names = hosts.start_name_servers();
    let mut server = hosts.vps.start(&walk.next("adit server --host"));
    let url = hosts.vps.run(&walk.next("adit server url"));
    server_and_client(hosts, walk, &url);
    server.terminate().unwrap();

    hosts.home.write("key.txt", KEY);
    let mut server = hosts.vps.start(&format!("adit run ss://{SERVER_ID}@:8388"));
    let client = hosts.home.start(&walk.next("adit client 'ss://"));
    hosts.home.browses(SOCKS);
    drop(client);
    server.terminate().unwrap();
    let _server = hosts.vps.start("adit run ss://aes-128-gcm:secret@:8388");
    let found = hosts.home.run(&walk.next("adit doctor 'ss://"));
    assert!(!found.contains("failed"), "{found}");
}

pub(super) fn first(hosts: &Hosts, walk: &mut Walk) {
    let mut sshd = hosts.start_ssh(&[(&hosts.vps, 22)]);
    let _sites = hosts.start_sites(&[]);
    built(hosts);
    hosts.home.run("ln -s adit.real /usr/local/bin/adit");
    hosts.home.run(&walk.next("scp target"));
    drop(sshd.pop());
    let mut server = hosts.vps.start(&walk.next("./adit server --host"));
    let url = hosts.vps.run("./adit server url --host vps.example");
    server_and_client(hosts, walk, &url);
    server.terminate().unwrap();

    // The service, as systemd would start it.
    let install = walk.next("sudo adit service install server");
    let print = install.replace("install", "install --manager systemd --print");
    let unit = hosts.vps.run(&print);
    let started = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    let line = format!("env STATE_DIRECTORY=/var/lib/adit {}", started.unwrap());
    hosts.vps.run("mkdir -m 700 /var/lib/adit");
    let mut service = hosts.vps.start(&line);
    let url = hosts.vps.run(&walk.next("sudo adit server url"));
    hosts.home.write("service", &url);
    hosts.home.run("adit client --check - < service");
    service.terminate().unwrap();

    let server = hosts.vps.start(&walk.next("adit run"));
    let balancer = block_with(walk.page, "text", "listen adit");
    let defaults = "defaults\n  timeout client 60s\n  timeout server 60s\n  timeout connect 60s\n";
    hosts
        .vps
        .write("haproxy.cfg", &format!("{defaults}{balancer}"));
    let _balancer = hosts.vps.start_haproxy("haproxy.cfg", 443);
    let client = format!("adit client ss://{SERVER_ID}@vps.example:443");
    let _client = hosts.home.start(&client);
    hosts.home.browses(SOCKS);
    drop(server);
}

pub(super) fn troubleshooting(hosts: &Hosts, walk: &mut Walk) {
    let _names = hosts.start_name_servers();
    let _server = hosts.vps.start("adit run ss://aes-128-gcm:secret@:8388");
    let found = hosts.home.run(&walk.next("adit doctor"));
    assert!(!found.contains("failed"), "{found}");
    hosts.home.run(&walk.next("adit explain"));
}

pub(super) fn subscription(hosts: &Hosts, walk: &mut Walk) {
    let list = "ss://aes-128-gcm:secret@vps.example:8388#one\n";
    let _sites = hosts.start_sites(&[("/sub/", list)]);
    let home = &hosts.home;
    let server = hosts.vps.start("adit run ss://aes-128-gcm:secret@:8388");
    for begins in ["adit client https://", "adit client https://"] {
        let _client = home.start(&walk.next(begins));
        home.browses(SOCKS);
    }
    let saved = home.start("adit client work");
    home.browses(SOCKS);
    drop(saved);
    home.write(
        "servers.yaml",
        "proxies:\n- { name: one, type: ss, server: vps.example, port: 8388, cipher: aes-128-gcm, password: secret }\n",
    );
    let _client = home.start(&walk.next("adit client ./servers.yaml"));
    home.browses(SOCKS);
    drop(server);

    let vps = &hosts.vps;
    vps.write("token", "0123456789abcdef0123456789abcdef reveal\n");
    vps.write("users.json", "{\"anna\": \"EBESExQVFhcYGRobHB0eHw==\"}");
    let _server = vps.start(&format!(
        "adit run 'ss://{SERVER_ID}@:8388?users=@users.json' --admin ./api.sock --admin-token @token \
         --public-host vps.example"
    ));
    let read = "TOKEN=0123456789abcdef0123456789abcdef\n";
    let anna = vps.run(&format!("{read}{}", walk.next("curl")));
    let (_, path) = anna.split_once("\"subscription\":\"").unwrap();
    let path = path.split('"').next().unwrap();
    let fetch = format!("curl -sS --unix-socket api.sock http://adit{path}");
    let document = vps.run(&fetch);
    assert!(document.contains("\"servers\""), "{document}");
}

pub(super) fn dns(hosts: &Hosts, walk: &mut Walk) {
    let _names = hosts.start_name_servers();
    hosts
        .home
        .write("adit.toml", &block_with(walk.page, "toml", "[route.dns]"));
    let _server = hosts.home.start(&walk.next("adit run"));
    let answer = hosts.home.run(&walk.next("dig"));
    assert!(answer.contains("9.9.9.4"), "{answer}");
    let refused = hosts.home.run("dig @127.0.0.1 -p 5353 www.ads.example");
    assert!(refused.contains("NXDOMAIN"), "{refused}");
}
