//! SSH as client, server, hop and listener, between adit and OpenSSH.

use adit_interop::ChildProcess;
use adit_interop::origin::OriginServer;
use adit_interop::traffic;

use super::Walk;
use super::hosts::{Host, Hosts};
use super::page::SERVER_ID;

const SOCKS: &str = "socks5h://127.0.0.1:1080";

/// Asserts that the port 5432 at home leads to the database.
fn reaches_database(home: &Host) {
    let open = || traffic::connect_directly("127.0.0.1:5432".parse().unwrap());
    home.inside(|| open().and_then(traffic::check_one_byte).unwrap());
}

fn start_database(hosts: &Hosts) -> OriginServer {
    hosts.inner.start_origin("10.66.0.6:5432")
}

/// Starts a client that prints nothing when it listens, and waits for the port.
fn start_silent(host: &Host, line: &str, port: u16) -> ChildProcess {
    let started = host.start_until(line, "", 0);
    host.wait_for_port(port, &started);
    started
}

/// Starts a proxy at home, and asserts that it reaches a web server.
fn proxies(hosts: &Hosts, line: &str) {
    let mut proxy = hosts.home.start(line);
    hosts.home.browses(SOCKS);
    proxy.terminate().unwrap();
}

/// Asserts that the SSH server of adit on the VPS runs programs.
fn runs_programs(hosts: &Hosts) {
    let told = hosts.home.run("ssh -p 2222 me@vps.example 'echo at $PWD'");
    assert_eq!(told, "at /run/home");
}

/// Asserts that the SSH server of adit on the VPS forwards, and runs nothing.
fn only_forwards(hosts: &Hosts) {
    let tunnel = start_silent(&hosts.home, "ssh -N -D 1080 -p 2222 me@vps.example", 1080);
    hosts.home.browses(SOCKS);
    let told = hosts.home.try_run("ssh -p 2222 me@vps.example true");
    assert_ne!(told.code, Some(0), "{}", told.output);
    drop(tunnel);
}

pub(super) fn how_it_works(hosts: &Hosts, walk: &mut Walk) {
    drop(hosts.start_ssh(&[]));
    let drawn = hosts.home.run(&walk.next("adit explain"));
    assert!(drawn.contains("inner.lan"), "{drawn}");
}

pub(super) fn ssh_only(hosts: &Hosts, walk: &mut Walk) {
    let (home, gate, inner) = (&hosts.home, &hosts.gate, &hosts.inner);
    let mut sshd = hosts.start_ssh(&[(gate, 22), (inner, 22), (&hosts.vps, 22)]);
    let _sites = hosts.start_sites(&[]);
    let _database = start_database(hosts);
    proxies(hosts, &walk.next("adit run mixed"));
    let key = gate.run(&walk.next("ssh-keygen -lf"));
    let fingerprint = key.split(' ').nth(1).unwrap();
    let with_key =
        format!("adit run mixed://127.0.0.1:1080 'ssh://me@host.example?host_key={fingerprint}'");
    proxies(hosts, &with_key);

    let forward = home.start(&walk.next("adit run tcp"));
    reaches_database(home);
    drop(forward);
    proxies(hosts, &walk.next("adit run mixed"));

    let told = home.run(&walk.next("adit ssh -J gate"));
    assert!(told.starts_with("Linux"), "{told}");
    let forward = start_silent(home, &walk.next("adit ssh -N -L"), 5432);
    reaches_database(home);
    drop(forward);
    hosts.vps.write("disk.img", "a disk");
    home.write("disk.img", "a d");
    home.run(&walk.next("adit scp --resume"));
    assert_eq!(home.read("disk.img"), "a disk");

    let server = hosts.vps.start(&walk.next("adit sshd"));
    runs_programs(hosts);
    drop(server);
    let server = hosts.vps.start(&walk.next("adit run 'ssh"));
    only_forwards(hosts);
    drop(server);
    let found = home.run(&walk.next("adit doctor"));
    assert!(!found.contains("failed"), "{found}");
    sshd.clear();
}

pub(super) fn ssh(hosts: &Hosts, walk: &mut Walk) {
    let (home, gate) = (&hosts.home, &hosts.gate);
    let _sshd = hosts.start_ssh(&[(gate, 22), (gate, 2222)]);
    let _sites = hosts.start_sites(&[]);
    let _database = start_database(hosts);
    home.run("cp ~/.ssh/id_ed25519 KEY");
    let told = home.run(&format!(
        "echo 'echo at $PWD' | {}",
        walk.next("adit ssh me@host")
    ));
    assert!(told.contains("at /run/home"), "{told}");
    let told = home.run(&walk.next("adit ssh me@host 'uname"));
    assert!(told.starts_with("Linux"), "{told}");
    home.run(&walk.next("adit ssh -p 2222"));
    let listed = home.run("tar tf all.tar");
    assert!(listed.contains("./.ssh/authorized_keys"), "{listed}");
    let proxy = start_silent(home, &walk.next("adit ssh -N -D"), 1080);
    home.browses(SOCKS);
    drop(proxy);
    let forward = start_silent(home, &walk.next("adit ssh -N -L"), 5432);
    reaches_database(home);
    drop(forward);
    let _own_site = home.start_site(":81", &[]);
    let forward = home.start_until(&walk.next("adit ssh -N -R"), "", 0);
    gate.wait_for_port(8080, &forward);
    let page = gate.run("curl -sS http://localhost:8080/");
    assert!(page.starts_with("hello"), "{page}");
    drop(forward);

    other_programs(hosts, walk);
    hosts.home.run("mkdir mount");
    home.run("printf 'exec adit ssh \"$@\"\\n' > adit-ssh && sed -i '1i #!/bin/sh' adit-ssh && chmod +x adit-ssh");
    gate.write("folder/note", "in a folder");
    home.run(&walk.next("sshfs"));
    let read = home.run("cat mount/note && fusermount3 -u mount");
    assert_eq!(read, "in a folder");
    let listed = home.run(&format!("printf 'ls\\nexit\\n' | {}", walk.next("lftp")));
    assert!(listed.contains("repository.git"), "{listed}");
    clone(hosts, walk);
    gate.write("file", "a file");
    home.run(&walk.next("scp -S"));
    assert_eq!(home.read("file"), "a file");
}

/// Copies a folder by rsync; both pages begin with it.
fn other_programs(hosts: &Hosts, walk: &mut Walk) {
    hosts.gate.write("from/file", "by rsync");
    hosts.gate.run("git init -q --bare repository.git");
    hosts.home.run(&walk.next("rsync"));
    assert_eq!(hosts.home.read("to/file"), "by rsync");
}

fn clone(hosts: &Hosts, walk: &mut Walk) {
    hosts.home.run(&walk.next("GIT_SSH_COMMAND"));
    hosts.home.run("test -d repository/.git");
}

pub(super) fn from_openssh(hosts: &Hosts, walk: &mut Walk) {
    let _sshd = hosts.start_ssh(&[(&hosts.gate, 22)]);
    other_programs(hosts, walk);
    clone(hosts, walk);
    let measured = hosts.home.run(&walk.next("adit bench ssh"));
    assert!(measured.contains("aes128-gcm"), "{measured}");
}

pub(super) fn performance(hosts: &Hosts, walk: &mut Walk) {
    let _sshd = hosts.start_ssh(&[(&hosts.gate, 22)]);
    for what in ["ss", "mac", "fec", "kcp"] {
        // With the default duration, all rows take a minute in a debug build.
        let line = walk.next(&format!("adit bench {what}"));
        let measured = hosts.home.run(&format!("{line} --millis 1"));
        assert!(measured.lines().count() > 4, "{measured}");
    }
    let measured = hosts.home.run(&walk.next("adit bench ssh"));
    assert!(measured.contains("aes128-gcm"), "{measured}");
    for table in ["CPU s/GiB", "| CPU s/GiB |"] {
        let line = walk.next("adit bench proxy");
        let measured = hosts.home.run(&format!("{line} --mib 1 --only ss,"));
        assert!(
            measured.contains(table) && measured.contains("adit: ss, 2022-"),
            "{measured}"
        );
    }
}

pub(super) fn copy(hosts: &Hosts, walk: &mut Walk) {
    let (home, vps) = (&hosts.home, &hosts.vps);
    let _sshd = hosts.start_ssh(&[(vps, 22), (&hosts.gate, 22), (&hosts.inner, 22)]);
    home.write("report.pdf", "a report");
    home.run(&walk.next("adit scp report.pdf"));
    assert_eq!(vps.read("report.pdf"), "a report");
    vps.run("mkdir /srv/www && echo page > /srv/www/index && touch -d 2001-02-03 /srv/www/index");
    home.run(&walk.next("adit scp -rp"));
    home.run("test $(date -r www/index +%Y) = 2001");
    vps.run("mkdir log && touch log/1.gz log/2.gz log/3.txt");
    home.run("mkdir logs");
    home.run(&walk.next("adit scp 'vps:log"));
    assert_eq!(home.run("ls -m logs"), "1.gz, 2.gz");
    vps.write("disk.img", "a disk");
    home.write("disk.img", "a d");
    home.run(&walk.next("adit scp --resume"));
    assert_eq!(home.read("disk.img"), "a disk");
    hosts.gate.write("data/file", "from one");
    home.run(&walk.next("adit scp -r one:data"));
    assert_eq!(hosts.inner.read("data/file"), "from one");
    let listed = home.run(&format!("echo ls | {}", walk.next("adit sftp")));
    assert!(listed.contains("report.pdf"), "{listed}");
}

pub(super) fn tunnel(hosts: &Hosts, walk: &mut Walk) {
    let (home, vps) = (&hosts.home, &hosts.vps);
    let _sshd = hosts.start_ssh(&[(&hosts.gate, 22), (&hosts.inner, 22)]);
    let _sites = hosts.start_sites(&[]);
    let _database = start_database(hosts);
    proxies(hosts, &walk.next("adit run mixed"));
    proxies(hosts, &walk.next("adit run mixed"));
    let shadowsocks = vps.start(&format!("adit run ss://{SERVER_ID}@:8388"));
    proxies(hosts, &walk.next("adit run mixed"));
    drop(shadowsocks);
    let forward = home.start(&walk.next("adit run tcp"));
    reaches_database(home);
    drop(forward);

    vps.write("password.txt", "secret");
    home.write("password.txt", "secret");
    let by_key = walk.next("adit run 'ssh://:2222");
    let by_password = walk.next("adit run 'ssh://ann");
    let server = vps.start(&by_key);
    let tunnel = start_silent(home, &walk.next("ssh -N -D"), 1080);
    home.browses(SOCKS);
    drop(tunnel);
    only_forwards(hosts);
    drop(server);
    let server = vps.start(&by_password);
    let key = vps.run("ssh-keygen -lf ~/.local/state/adit/ssh_host_ed25519_key.pub");
    let fingerprint = key.split(' ').nth(1).unwrap();
    let line = walk.next("adit run mixed");
    let (before, _) = line.split_once("SHA256:").unwrap();
    proxies(hosts, &format!("{before}{fingerprint}'"));
    drop(server);

    vps.run("cp ~/.ssh/id_ed25519.pub keys");
    let _next = hosts
        .gate
        .start(&format!("adit run ss://{SERVER_ID}@:8388"));
    let _server = vps.start(&walk.next("adit run 'ssh"));
    only_forwards(hosts);
}

pub(super) fn sshd(hosts: &Hosts, walk: &mut Walk) {
    drop(hosts.start_ssh(&[]));
    let _server = hosts.vps.start(&walk.next("adit sshd"));
    runs_programs(hosts);
    hosts.vps.write("note", "by sftp");
    hosts
        .home
        .run("echo get note | sftp -P 2222 me@vps.example");
    assert_eq!(hosts.home.read("note"), "by sftp");
    hosts
        .home
        .run("scp -P 2222 me@vps.example:note again && cmp note again");
}
