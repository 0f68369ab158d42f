//! The command lines of shadowsocks-libev and shadowsocksr-libev, with their own programs as peers.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use adit_interop::origin::OriginServer;
use adit_interop::plugin::is_running;
use adit_interop::shadowsocks::{AES_256, ShadowsocksPeer};
use adit_interop::socks_client::{self, Destination, UdpAssociation, UdpFlow};
use adit_interop::ssr::{self, SsrSetup};
use adit_interop::traffic::{self, CloseBehavior, ForwarderEntry};
use adit_interop::{AditProcess, ChildProcess, TEST_TIMEOUT, TempFolder, free_port, loopback_addr};
use rustix::process::{Pid, Signal, kill_process};

use crate::setup::bin;

const KEY: &str = "it's a secret";
const METHOD: &str = "aes-256-gcm";

/// Returns the program as a link with this name, as `install-aliases` creates it.
fn named(folder: &TempFolder, name: &str) -> Command {
    let path = folder.path().join(name);
    if !path.exists() {
        symlink(bin(), &path).unwrap();
    }
    Command::new(path)
}

/// Starts a program by its name, and waits until it prints its listener.
fn run(folder: &TempFolder, name: &str, words: &[&str]) -> AditProcess {
    let mut command = named(folder, name);
    command.args(words);
    AditProcess::start_command(command, 1).unwrap()
}

/// Runs the program until it exits. Returns the exit code and the output.
fn ends(folder: &TempFolder, name: &str, words: &[&str]) -> (Option<i32>, String) {
    let mut command = named(folder, name);
    command.args(words);
    let mut process = ChildProcess::spawn(command).unwrap();
    let status = process.wait(TEST_TIMEOUT).unwrap();
    (status.code(), process.output())
}

fn to(addr: SocketAddr) -> [String; 2] {
    [addr.ip().to_string(), addr.port().to_string()]
}

fn by_socks(proxy: SocketAddr, dest: &Destination) -> anyhow::Result<TcpStream> {
    socks_client::connect_through(proxy, None, dest)
}

#[test]
fn each_end_of_shadowsocks_talks_to_theirs() {
    let (folder, origin) = (
        TempFolder::new("classic").unwrap(),
        OriginServer::start().unwrap(),
    );
    let key = ["-k", AES_256.key, "-m", AES_256.name, "-u"];
    let ours = ["-s", "127.0.0.1", "-p", "0", "--allow-private", "all"];
    let ours = run(&folder, "ss-server", &[&ours[..], &key].concat());
    let [ip, port] = to(ours.addr());

    // A peer's client with adit's server, two clients of adit with a peer's server.
    let theirs = ShadowsocksPeer::Libev
        .start_socks_client(AES_256, ours.addr())
        .unwrap();
    let dest = Destination::Addr(origin.addr());
    traffic::check_streams(CloseBehavior::OnEitherEnd, || {
        by_socks(theirs.addr(), &dest)
    })
    .unwrap();
    let association = UdpAssociation::open(theirs.addr(), None).unwrap();
    traffic::check_datagrams(&UdpFlow::new(&association, dest.clone(), origin.addr())).unwrap();
    drop(theirs);

    let theirs = ShadowsocksPeer::Libev.start_server(AES_256).unwrap();
    let [their_ip, their_port] = to(theirs.addr());
    let at = [
        "-s",
        &their_ip,
        "-p",
        &their_port,
        "-b",
        "127.0.0.1",
        "-l",
        "0",
    ];
    let local = run(&folder, "ss-local", &[&at[..], &key].concat());
    traffic::check_streams(CloseBehavior::OnEitherEnd, || by_socks(local.addr(), &dest)).unwrap();
    let association = UdpAssociation::open(local.addr(), None).unwrap();
    traffic::check_datagrams(&UdpFlow::new(&association, dest.clone(), origin.addr())).unwrap();
    local.stop().unwrap();

    // Both ends of adit, with the commands of `adit`.
    let target = origin.addr().to_string();
    let at = [
        "ss-tunnel",
        "-s",
        &ip,
        "-p",
        &port,
        "-l",
        "0",
        "-L",
        &target,
    ];
    let words: Vec<&str> = [&at[..], &key].concat();
    let tunnel = crate::setup::start(&words);
    traffic::check_streams(CloseBehavior::Independent, || {
        traffic::connect_directly(tunnel.addr())
    })
    .unwrap();
    traffic::check_datagrams(&ForwarderEntry::open(tunnel.addr()).unwrap()).unwrap();
    tunnel.stop().unwrap();
    ours.stop().unwrap();
}

#[test]
fn each_end_of_shadowsocksr_talks_to_theirs() {
    let (folder, origin) = (
        TempFolder::new("classic").unwrap(),
        OriginServer::start().unwrap(),
    );
    let setup = SsrSetup::new("aes-128-cfb", "auth_aes128_md5", "tls1.2_ticket_auth");
    let way = [
        "-k",
        setup.password,
        "-m",
        "aes-128-cfb",
        "-O",
        "auth_aes128_md5",
    ];
    let way = [&way[..], &["-o", "tls1.2_ticket_auth", "-u"]].concat();
    let ours = ["-s", "127.0.0.1", "-p", "0", "--allow-private", "all"];
    let ours = run(&folder, "ssr-server", &[&ours[..], &way].concat());
    let theirs = ssr::start_client(&setup, ours.addr(), "").unwrap();
    let dest = Destination::Addr(origin.addr());
    traffic::check_one_byte(by_socks(theirs.addr(), &dest).unwrap()).unwrap();
    ours.stop().unwrap();

    let theirs = ssr::start_server(&setup, "").unwrap();
    let [ip, port] = to(theirs.addr());
    let local = ["-s", &ip, "-p", &port, "-l", "0"];
    let local = run(&folder, "ssr-local", &[&local[..], &way].concat());
    traffic::check_one_byte(by_socks(local.addr(), &dest).unwrap()).unwrap();
    let association = UdpAssociation::open(local.addr(), None).unwrap();
    traffic::check_datagrams(&UdpFlow::new(&association, dest, origin.addr())).unwrap();
    local.stop().unwrap();
}

#[test]
fn a_file_says_what_is_not_typed_and_lists_decide() {
    let (folder, origin) = (
        TempFolder::new("classic").unwrap(),
        OriginServer::start().unwrap(),
    );
    let file = format!(
        r#"{{ "server": "127.0.0.1", "server_port": 0, "password": "{KEY}", "method": "{METHOD}",
              "acl": "block.acl", "allow_private": "all", }}"#
    );
    let file = folder.write_file("server.json", file).unwrap();
    folder
        .write_file("block.acl", "[outbound_block_list]\n127.0.0.2\n")
        .unwrap();
    let server = run(&folder, "ss-server", &["-c", file.to_str().unwrap()]);
    let [ip, port] = to(server.addr());
    let way = ["-s", &ip, "-p", &port, "-k", KEY, "-m", METHOD, "-l", "0"];

    let local = run(&folder, "ss-local", &way);
    traffic::check_one_byte(by_socks(local.addr(), &Destination::Addr(origin.addr())).unwrap())
        .unwrap();
    // The origin is reachable there too, because it listens on all addresses of this machine.
    let blocked = SocketAddr::new([127, 0, 0, 2].into(), origin.addr().port());
    let refused =
        by_socks(local.addr(), &Destination::Addr(blocked)).and_then(traffic::check_one_byte);
    assert!(refused.is_err(), "a blocked address was reached");
    local.stop().unwrap();

    // Only the destinations in the list use the server, and names are looked up for that.
    let list = folder
        .write_file("a.acl", "[bypass_all]\n[proxy_list]\n127.0.0.0/8\n")
        .unwrap();
    // A server that does not run shows which requests would use it.
    let gone = free_port().to_string();
    let wrong = [
        "-s",
        "127.0.0.1",
        "-p",
        &gone,
        "-k",
        KEY,
        "-m",
        METHOD,
        "-l",
        "0",
    ];
    let words = [&wrong[..], &["--acl", list.to_str().unwrap()]].concat();
    let local = run(&folder, "ss-local", &words);
    let named = Destination::Name("localhost".into(), origin.addr().port());
    let by_server = by_socks(local.addr(), &named).and_then(traffic::check_one_byte);
    assert!(
        by_server.is_err(),
        "a name whose address is listed went directly"
    );
    local.stop().unwrap();
    let list = folder
        .write_file("b.acl", "[proxy_all]\n[bypass_list]\n127.0.0.0/8\n")
        .unwrap();
    let words = [&wrong[..], &["--acl", list.to_str().unwrap()]].concat();
    let local = run(&folder, "ss-local", &words);
    for dest in [named, Destination::Addr(origin.addr())] {
        traffic::check_one_byte(by_socks(local.addr(), &dest).unwrap()).unwrap();
    }
    local.stop().unwrap();
    server.stop().unwrap();
}

#[test]
fn in_the_background_it_serves_and_its_number_is_in_the_file() {
    let folder = TempFolder::new("classic").unwrap();
    let pid_file = folder.path().join("pid");
    let pid = pid_file.to_str().unwrap();
    let port = free_port().to_string();
    let words = [
        "-s",
        "127.0.0.1",
        "-p",
        "1",
        "-k",
        KEY,
        "-m",
        METHOD,
        "-f",
        pid,
    ];
    let rest = ["-l", &port, "-n", "200", "-t", "60", "-i", "lo"];
    let (code, log) = ends(&folder, "ss-local", &[&words[..], &rest].concat());
    assert_eq!(code, Some(0), "{log}");
    // It listens already.
    TcpStream::connect(loopback_addr(port.parse().unwrap())).unwrap();
    let number = fs::read_to_string(&pid_file).unwrap();
    let number: u32 = number.trim().parse().unwrap();
    let limits = fs::read_to_string(format!("/proc/{number}/limits")).unwrap();
    let limits = limits
        .lines()
        .find(|line| line.contains("open files"))
        .unwrap();
    assert!(limits.contains(" 200 "), "{limits}");
    assert!(is_running(number));
    // Its failure is that of the program that was started.
    let (code, log) = ends(&folder, "ss-local", &[&words[..], &rest].concat());
    assert_eq!(code, Some(4), "{log}");
    assert!(log.contains("another program listens there"), "{log}");
    let number = Pid::from_raw(i32::try_from(number).unwrap()).unwrap();
    kill_process(number, Signal::TERM).unwrap();
    for _ in 0..500 {
        if TcpStream::connect(loopback_addr(port.parse().unwrap())).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it goes on");
}

#[test]
fn it_becomes_the_user() {
    let folder = TempFolder::new("classic").unwrap();
    let words = [
        "-s",
        "127.0.0.1",
        "-p",
        "1",
        "-k",
        KEY,
        "-m",
        METHOD,
        "-l",
        "0",
        "-a",
    ];
    let with = |user: &'static str| [&words[..], &[user]].concat();
    let (code, log) = ends(&folder, "ss-local", &with("no-such-user"));
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("no such user"), "{log}");
    if !rustix::process::geteuid().is_root() {
        let (code, log) = ends(&folder, "ss-local", &with("daemon"));
        assert_eq!(code, Some(1), "{log}");
        assert!(log.contains("only root"), "{log}");
        return;
    }
    let mut local = run(&folder, "ss-local", &with("daemon"));
    let id = local.process().id();
    let status = || fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let users = || {
        let status = status();
        let line = status
            .lines()
            .find(|line| line.starts_with("Uid:"))
            .unwrap();
        line.split_whitespace()
            .skip(1)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    // It prints its listener, and then switches to the user.
    for _ in 0..500 {
        if users().iter().all(|user| user != "0") {
            // All threads.
            for task in fs::read_dir(format!("/proc/{id}/task")).unwrap() {
                let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
                assert!(!status.contains("Uid:\t0"), "{status}");
            }
            local.stop().unwrap();
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{}", status());
}

#[test]
fn a_manager_begins_with_the_servers_of_its_file() {
    let (folder, origin) = (
        TempFolder::new("classic").unwrap(),
        OriginServer::start().unwrap(),
    );
    let (port, door) = (free_port(), free_port());
    let file = format!(
        r#"{{ "server": ["127.0.0.1"], "method": "{METHOD}", "mode": "tcp_and_udp",
              "port_password": {{ "{port}": "{KEY}" }} }}"#
    );
    let file = folder.write_file("manager.json", file).unwrap();
    let door = format!("127.0.0.1:{door}");
    let mut command = named(&folder, "ss-manager");
    command.args(["-c", file.to_str().unwrap(), "--manager-address", &door]);
    command.args([
        "--allow-private",
        "all",
        "--executable",
        "/usr/bin/ss-server",
        "-D",
        "/",
    ]);
    let mut manager = ChildProcess::spawn(command).unwrap();
    manager
        .wait_lines("manager listening on ", 1, TEST_TIMEOUT)
        .unwrap();
    let port = port.to_string();
    let way = [
        "-s",
        "127.0.0.1",
        "-p",
        &port,
        "-k",
        KEY,
        "-m",
        METHOD,
        "-l",
        "0",
    ];
    let local = run(&folder, "ss-local", &way);
    traffic::check_one_byte(by_socks(local.addr(), &Destination::Addr(origin.addr())).unwrap())
        .unwrap();
    let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(&door).unwrap();
    client.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    client.send(b"ping").unwrap();
    let mut buf = [0; 512];
    let n = client.recv(&mut buf).unwrap();
    let said = String::from_utf8_lossy(&buf[..n]);
    assert!(said.contains(&format!("\"{port}\":")), "{said}");
    local.stop().unwrap();
    manager.terminate().unwrap();
}

#[test]
fn links_are_made_and_nothing_else_is_touched() {
    let folder = TempFolder::new("classic").unwrap();
    let dir = folder.path().join("bin");
    fs::create_dir(&dir).unwrap();
    let install = |dir: &Path| {
        let mut command = Command::new(bin());
        command.arg("install-aliases").arg(dir);
        let done = command.output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        (done.status.code(), said)
    };
    // Twice, with the same result.
    for _ in 0..2 {
        assert_eq!(install(&dir), (Some(0), String::new()));
    }
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 7);
    let help = Command::new(dir.join("ssr-local"))
        .arg("-h")
        .output()
        .unwrap();
    assert!(
        String::from_utf8(help.stdout)
            .unwrap()
            .contains("-O <PROTOCOL>")
    );
    fs::remove_file(dir.join("ss-local")).unwrap();
    fs::write(dir.join("ss-local"), "another program").unwrap();
    let (code, said) = install(&dir);
    assert!(code == Some(1) && said.contains("ss-local in "), "{said}");
    assert_eq!(
        fs::read_to_string(dir.join("ss-local")).unwrap(),
        "another program"
    );
    let (code, said) = install(&folder.path().join("none"));
    assert!(code == Some(2) && said.contains("not a folder"), "{said}");
}

#[test]
fn what_cannot_be_had_is_refused() {
    let folder = TempFolder::new("classic").unwrap();
    let way = ["-s", "127.0.0.1", "-p", "1", "-k", KEY, "-m", METHOD];
    for (name, more, said) in [
        (
            "ss-local",
            &["-l", "0", "-i", "no-such-if"][..],
            "no network interface",
        ),
        ("ss-local", &["-l", "0", "--acl", "none.acl"], "cannot read"),
        ("ss-local", &["-l", "0", "--key", "AAAA"], "raw key"),
        (
            "ss-local",
            &["-l", "0", "-L", "127.0.0.1:1"],
            "unexpected argument",
        ),
        ("ss-tunnel", &["-l", "0"], "is missing"),
        ("ss-server", &["-b", "192.0.2.1"], "cannot be chosen"),
        (
            "ss-server",
            &["--manager-address", "manager.sock"],
            "ss-manager",
        ),
        (
            "ssr-local",
            &["-l", "0", "-m", "aes-128-cfb", "-O", "auth_x"],
            "`auth_x` is not known",
        ),
        ("ss-manager", &[], "is missing"),
    ] {
        let words: Vec<&str> = match (name, more) {
            // The password would hide the raw key.
            (_, ["-l", _, "--key", _]) => [&["-s", "127.0.0.1", "-p", "1"], more].concat(),
            _ => [&way[..], more].concat(),
        };
        let (code, log) = ends(&folder, name, &words);
        assert!(
            matches!(code, Some(2 | 3)),
            "{name} {more:?}: {code:?}\n{log}"
        );
        assert!(log.contains(said), "{name} {more:?}\n{log}");
    }
}
