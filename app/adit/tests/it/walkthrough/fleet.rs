//! A fleet of three nodes, and its runbook.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_interop::{ChildProcess, TEST_TIMEOUT};

use super::Walk;
use super::hosts::{Host, Hosts, write_program};
use super::page::{block_with, commands_of};

const SOCKS: &str = "socks5h://127.0.0.1:1080";
const PAGE: &str = "docs/fleet.md";

/// A node: its name in the realm, and its machine.
type NodeHost<'a> = (&'static str, &'a Host, &'static str);

/// The three nodes, with the names of their machines.
fn nodes(hosts: &Hosts) -> [NodeHost<'_>; 3] {
    [
        ("paris", &hosts.vps, "vps.example"),
        ("osaka", &hosts.gate, "gate.example"),
        ("lima", &hosts.inner, "9.9.9.6"),
    ]
}

/// Returns a command that runs with a `/var/lib` of the node: all machines of the test share one file system.
fn on_node(name: &str, line: &str) -> String {
    let folder = format!("/run/nodes/{name}");
    fs::create_dir_all(&folder).unwrap();
    let script = format!("/run/nodes/{name}.sh");
    let text = format!("set -e\nmount --bind {folder} /var/lib\nexec {line}\n");
    fs::write(&script, text).unwrap();
    format!("unshare -m sh {script}")
}

/// Returns the token in the output of a command.
fn token_of(output: &str) -> String {
    let words = output.split_whitespace();
    let mut tokens = words.filter(|word| word.starts_with("adit-join:"));
    tokens
        .next()
        .unwrap_or_else(|| panic!("{output}"))
        .to_owned()
}

/// Starts the store server with the configuration of the page.
fn start_store(hosts: &Hosts, line: &str) -> ChildProcess {
    write_program(
        "/usr/local/bin/valkey-server",
        "#!/bin/sh\nexec redis-server \"$@\"\n",
    );
    hosts
        .vps
        .write("store.conf", &block_with(PAGE, "ini", "tls-port"));
    hosts.vps.start_until(line, "eady to accept connections", 1)
}

/// Starts a node with the configuration of the page.
fn start_node((name, host, address): NodeHost<'_>, line: &str) -> ChildProcess {
    let config = block_with(PAGE, "toml", "[fleet]")
        .replace("/run/adit.sock", &format!("/run/{name}.sock"))
        .replace("vps.example", address)
        // That of the page is a minute.
        .replace("[fleet]\n", "[fleet]\ndrain_grace = \"1s\"\n");
    // Two of the machines share a folder.
    let file = format!("{name}.toml");
    host.write(&file, &config);
    host.start(&on_node(name, &line.replace("adit.toml", &file)))
}

/// Repeats a command until it succeeds.
fn wait_for(host: &Host, line: &str) -> String {
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        let done = host.try_run(line);
        if done.code == Some(0) {
            return done.output;
        }
        assert!(Instant::now() < deadline, "{line}: {}", done.output);
        sleep(Duration::from_millis(300));
    }
}

/// Waits until as many nodes are in service.
fn wait_active(host: &Host, count: usize) -> String {
    let words = format!(
        "adit fleet status | tee /run/status | grep -c active | grep -qx {count} && cat /run/status"
    );
    wait_for(host, &words)
}

/// Asserts that each URL in the output of a command leads to the web.
fn urls_work(hosts: &Hosts, output: &str, count: usize) {
    let urls = output
        .lines()
        .filter_map(|line| line.strip_prefix("url           "));
    let urls: Vec<&str> = urls.collect();
    assert_eq!(urls.len(), count, "{output}");
    for url in urls {
        let client = hosts.home.start(&format!("adit client '{url}'"));
        hosts.home.browses(SOCKS);
        drop(client);
    }
}

pub(super) fn fleet(hosts: &Hosts, walk: &mut Walk) {
    let _sites = hosts.start_sites(&[]);
    let vps = &hosts.vps;
    vps.run(&walk.take(5, "umask 077"));
    let _store = start_store(hosts, &walk.next("valkey-server"));
    let created = vps.run(&walk.next("adit fleet init"));
    assert!(created.contains("/etc/adit/fleet.json"), "{created}");
    vps.run("adit fleet node remove node-1");
    let tokens: Vec<String> = (0..3)
        .map(|_| token_of(&vps.run(&walk.next("adit fleet token"))))
        .collect();
    let join = walk.next("adit fleet join");
    for ((name, host, _), token) in nodes(hosts).into_iter().zip(&tokens) {
        let joined = host.run(&on_node(name, &join.replace("TOKEN", token)));
        assert!(joined.contains(&format!("as {name}")), "{joined}");
    }
    let line = walk.next("adit run");
    let _running = nodes(hosts).map(|node| start_node(node, &line));
    wait_active(vps, 3);

    let added = vps.run(&walk.next("adit user add"));
    urls_work(hosts, &added, 3);
    let list = vps.run(&walk.next("adit user list"));
    assert!(list.contains("carol") && list.contains("50.0 GB"), "{list}");
    assert!(vps.run(&walk.next("adit user show")).contains("ss://"));
    assert!(vps.run(&walk.next("adit user limit")).contains("12.5 MB/s"));
    vps.run(&walk.next("adit user remove"));
    let status = vps.run(&walk.next("adit fleet status"));
    for name in ["paris", "osaka", "lima"] {
        assert!(status.contains(name), "{status}");
    }
    assert!(
        vps.run(&walk.next("adit fleet node show"))
            .contains("weight        100")
    );
    vps.run(&walk.next("adit fleet node rename"));
    vps.run(&walk.next("adit fleet node weight"));
    let audit = vps.run(&walk.next("adit fleet audit"));
    assert!(audit.contains("node weight"), "{audit}");
    assert!(
        vps.run(&walk.next("adit fleet drain"))
            .contains("osaka  drains")
    );
    assert!(
        vps.run(&walk.next("adit fleet drain"))
            .contains("in service")
    );
}

/// Creates the fleet of the other page.
fn set_up(hosts: &Hosts) -> (ChildProcess, Vec<ChildProcess>) {
    let commands: Vec<String> = commands_of(PAGE)
        .into_iter()
        .map(|command| command.text)
        .collect();
    let vps = &hosts.vps;
    vps.run(&commands[..5].join("\n"));
    let store = start_store(hosts, &commands[5]);
    vps.run(&commands[6]);
    vps.run("adit fleet node remove node-1");
    let start = |node: NodeHost<'_>| {
        let (name, host, _) = node;
        let token = token_of(&vps.run(&format!("adit fleet token --node {name}")));
        host.run(&on_node(name, &format!("adit fleet join {token}")));
        start_node(node, "adit run -c adit.toml")
    };
    let running = nodes(hosts).map(start).into();
    wait_active(vps, 3);
    (store, running)
}

pub(super) fn runbook(hosts: &Hosts, walk: &mut Walk) {
    let _sites = hosts.start_sites(&[]);
    let vps = &hosts.vps;
    let (store, mut running) = set_up(hosts);
    for (name, ..) in nodes(hosts) {
        wait_for(
            vps,
            &format!("adit fleet node show {name} | grep -q ': ss '"),
        );
    }
    let added = vps.run("adit user add carol");
    urls_work(hosts, &added, 3);

    // The store server stops, and users notice nothing.
    drop(store);
    let failed = vps.try_run(&walk.next("adit fleet status"));
    assert_eq!(failed.code, Some(4), "{}", failed.output);
    urls_work(hosts, &added, 3);
    let _store = start_store(hosts, "valkey-server store.conf");
    wait_active(vps, 3);

    // It loses everything, and a node that runs writes it back.
    let flush = "REDISCLI_AUTH=$(cat store.password) redis-cli -p 6380 --tls --cacert store-ca.crt flushall";
    vps.run(flush);
    wait_for(vps, "adit fleet resync | grep -q 'change [1-9]'");
    let found = vps.run(&walk.next("adit fleet resync"));
    assert!(found.contains("the store has lost everything"), "{found}");
    urls_work(hosts, &added, 3);
    let restored = vps.run(&walk.next("adit fleet restore"));
    assert!(
        restored.contains("restored      1 users of paris"),
        "{restored}"
    );
    wait_active(vps, 3);
    assert!(vps.run("adit user list").contains("carol"));

    // Or one that does not.
    drop(running.remove(0));
    vps.run(flush);
    let line = on_node("paris", &walk.next("adit fleet restore"));
    let restored = vps.run(&line);
    assert!(
        restored.contains("restored      1 users of paris"),
        "{restored}"
    );
    let [paris, _, _] = nodes(hosts);
    running.insert(0, start_node(paris, "adit run -c adit.toml"));
    wait_active(vps, 3);
    let accepted = vps.run(&walk.next("adit fleet resync"));
    assert!(accepted.contains("nothing to accept"), "{accepted}");

    // A node is lost.
    drop(running.pop());
    vps.run(&walk.next("adit fleet node remove"));
    token_of(&vps.run(&walk.next("adit fleet token")));

    // Others have the realm's key.
    let rotated = vps.run(&walk.next("adit fleet rotate-key"));
    let join = walk.next("adit fleet join --replace");
    let mut lines = rotated.lines();
    running.clear();
    for node in nodes(hosts).into_iter().take(2) {
        let (name, host, _) = node;
        let start = format!("token         for node {name},");
        assert!(lines.any(|line| line.starts_with(&start)), "{rotated}");
        let token = token_of(lines.next().unwrap_or_default());
        let joined = host.run(&on_node(name, &join.replace("TOKEN", &token)));
        assert!(joined.contains(&format!("as {name}")), "{joined}");
        running.push(start_node(node, "adit run -c adit.toml"));
    }
    wait_active(vps, 2);
    wait_for(vps, "adit fleet node show osaka | grep -q ': ss '");
    let shown = vps.run("adit user show carol --reveal");
    urls_work(hosts, &shown, 2);

    // Another one leaves.
    let drained = vps.run(&walk.next("adit fleet drain"));
    assert!(drained.contains("osaka  has drained"), "{drained}");
    drop(running.pop());
    let left = hosts
        .gate
        .run(&on_node("osaka", &walk.next("adit fleet leave")));
    assert!(left.contains("osaka  has left"), "{left}");
}
