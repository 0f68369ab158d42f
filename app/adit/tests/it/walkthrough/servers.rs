//! Servers for other people: users, the API, the manager, plugins, upgrades, the configuration file.

use adit_interop::shadowsocks::percent_encode;

use super::Walk;
use super::hosts::{Host, Hosts};
use super::page::{KEY, SERVER_ID, block_with};

const SOCKS: &str = "socks5h://127.0.0.1:1080";

/// Asserts that a user with this key can use the server on the VPS.
fn user_works(hosts: &Hosts, server_key: &str, user_key: &str) {
    let keys = percent_encode(&format!("{server_key}:{user_key}"));
    let url = format!("ss://2022-blake3-aes-128-gcm:{keys}@vps.example:8388");
    let _client = hosts.home.start(&format!("adit client {url}"));
    hosts.home.browses(SOCKS);
}

/// A key of another panel.
const ERINS_KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQ==";
/// An export of that panel.
const EXPORT: &str = r#"{"protocol": "shadowsocks", "remark": "ss", "settings": {"method": "2022-blake3-aes-128-gcm",
    "clients": [{"email": "erin", "password": "AQEBAQEBAQEBAQEBAQEBAQ==", "totalGB": 1000000000}]}}"#;

/// Returns the key of a user in `users.json`.
fn key_of(host: &Host, user: &str) -> String {
    let users: serde_json::Value = serde_json::from_str(&host.read("users.json")).unwrap();
    users[user].as_str().unwrap().to_owned()
}

pub(super) fn operator(hosts: &Hosts, walk: &mut Walk) {
    let _sites = hosts.start_sites(&[]);
    let vps = &hosts.vps;
    vps.run(&walk.take(3, "umask 077"));
    let server_key = vps.read("server.key").trim().to_owned();
    let server = vps.start(&walk.next("adit run"));
    for user in ["alice", "bob"] {
        user_works(hosts, &server_key, &key_of(vps, user));
    }
    drop(server);

    vps.run(&walk.take(2, "umask 077"));
    let server = vps.start(&walk.next("adit run"));
    let users = vps.run(&walk.next("curl"));
    assert!(users.contains("\"alice\""), "{users}");
    let status = vps.run(&walk.next("adit status"));
    assert!(status.contains("sessions       0 open"), "{status}");
    let routes = vps.run(&walk.next("adit routes"));
    assert!(routes.contains(":8388"), "{routes}");
    let sessions = vps.run(&walk.next("adit sessions"));
    assert!(sessions.ends_with("0 open sessions"), "{sessions}");
    let added = vps.run(&walk.next("adit user add"));
    assert!(added.contains("@vps.example:8388"), "{added}");
    user_works(hosts, &server_key, &key_of(vps, "carol"));
    let list = vps.run(&walk.next("adit user list"));
    assert!(
        list.contains("50.0 GB/month") && list.contains("30 days"),
        "{list}"
    );
    let limited = vps.run(&walk.next("adit user limit"));
    assert!(limited.contains("12.5 MB/s"), "{limited}");
    vps.run(&walk.next("adit user remove"));
    assert!(!vps.read("users.json").contains("carol"));
    vps.write("export.json", EXPORT);
    let planned = vps.run(&walk.next("adit user import"));
    assert!(planned.contains("3x-ui: would add 1"), "{planned}");
    assert!(!vps.read("users.json").contains("erin"));
    vps.run(&walk.next("adit user import"));
    user_works(hosts, &server_key, ERINS_KEY);
    assert_eq!(key_of(vps, "erin"), ERINS_KEY);
    let page = vps.start_until(&walk.next("adit dashboard"), "/dashboard#token=", 1);
    drop((page, server));

    vps.run("mkdir /etc/adit && cp /usr/local/bin/adit adit-new");
    let file = format!(
        "[admin]\nlisten = \"/run/adit.sock\"\n\n[route.main]\nlisten = \"ss://{SERVER_ID}@:8388\"\n"
    );
    std::fs::write("/etc/adit/adit.toml", &file).unwrap();
    let mut old = vps.start("/usr/local/bin/adit run -c /etc/adit/adit.toml");
    let told = vps.run(&walk.take(2, "install"));
    assert!(told.contains("pid") || told.contains("process"), "{told}");
    old.wait(adit_interop::TEST_TIMEOUT).unwrap();
    let _client = hosts
        .home
        .start(&format!("adit client ss://{SERVER_ID}@vps.example:8388"));
    hosts.home.browses(SOCKS);
    vps.run("curl -sS --unix-socket /run/adit.sock http://adit/healthz");
    let pid = told
        .split(|c: char| !c.is_ascii_digit())
        .find(|word| word.len() > 1);
    vps.run(&format!("kill {}", pid.unwrap()));

    let manager = vps.start_until(&walk.next("adit manager"), "manager.sock", 1);
    drop(manager);
    vps.write("adit.toml", &file);
    vps.run(&walk.next("adit check"));
    vps.run(&walk.next("adit explain"));
}

pub(super) fn api(hosts: &Hosts, walk: &mut Walk) {
    let _sites = hosts.start_sites(&[]);
    let vps = &hosts.vps;
    vps.write("key", KEY);
    vps.run(&walk.next("echo"));
    let _server = vps.start(&walk.next("adit run"));
    let users = vps.run(&walk.next("curl"));
    assert!(users.contains("{\"username\":\"anna\"}"), "{users}");
    user_works(hosts, KEY, &key_of(vps, "anna"));
}

pub(super) fn manager(hosts: &Hosts, walk: &mut Walk) {
    let _sites = hosts.start_sites(&[]);
    let vps = &hosts.vps;
    drop(vps.start_until(&walk.next("adit manager"), "manager.sock", 1));
    drop(vps.start_until(&walk.next("adit manager"), "127.0.0.1:6001", 1));
    let line = walk.next("adit manager");
    let _manager = vps.start_until(line.trim_end_matches('&'), "127.0.0.1:6001", 1);
    assert_eq!(vps.run(&walk.next("printf 'add")), "ok");
    assert_eq!(vps.run(&walk.next("printf 'ping")), "stat: {\"8001\":0}");
    let _client = vps.start("adit client ss://aes-256-gcm:try@127.0.0.1:8001");
    vps.browses(SOCKS);
}

pub(super) fn plugin(hosts: &Hosts, walk: &mut Walk) {
    let _sites = hosts.start_sites(&[]);
    let (home, vps) = (&hosts.home, &hosts.vps);
    let server = vps.start_until(&walk.next("ss-server"), "listening", 1);
    vps.wait_for_port(443, &server);
    let client = home.start_until(&walk.next("ss-local"), "listening", 1);
    home.wait_for_port(1080, &client);
    home.browses(SOCKS);
    drop((client, server));

    let client = walk.next("adit run mixed");
    let _server = vps.start(&walk.next("adit run 'ss://"));
    let _client = home.start(&client);
    home.browses(SOCKS);
}

pub(super) fn config(hosts: &Hosts, walk: &mut Walk) {
    let home = &hosts.home;
    home.run(&walk.take(11, "umask 077"));
    home.run("test -s server.key -a -s token -a -s users.json -a -s corp.yaml");
    home.write("adit.toml", &block_with(walk.page, "toml", "[set.ads]"));
    let explained = home.run(&walk.next("adit explain"));
    let shown = block_with(walk.page, "console", "adit explain");
    let (_, shown) = shown.split_once('\n').unwrap();
    assert_eq!(explained.trim_end(), shown.trim_end());
    home.run(&walk.next("printf"));
    let done = home.try_run(&walk.next("adit check"));
    assert_eq!(done.code, Some(3), "{}", done.output);
    assert!(
        done.output.contains("did you mean `via`?"),
        "{}",
        done.output
    );
}
