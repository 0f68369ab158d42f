//! Hops to SSH servers that end, freeze, are slow, or refuse.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use adit_interop::openssh::{self, Sshd};
use adit_interop::origin::OriginServer;
use adit_interop::socks_client::{self, CONNECT, Destination};
use adit_interop::traffic;
use adit_interop::{
    AditProcess, ChildProcess, TEST_TIMEOUT, TempFolder, external_tools, free_port, loopback_addr,
};
use rustix::process::Signal;
#[cfg(target_os = "linux")]
use rustix::process::{Pid, kill_process};

use crate::setup::{ALLOW, start};
use crate::ssh_hop::{Ours, front, hop, proxy, some, sshd_hop};

const LEN: usize = 1 << 20;

fn one(front: &AditProcess) -> anyhow::Result<()> {
    traffic::check_one_byte(traffic::connect_directly(front.addr())?)
}

/// Waits until requests are served again, after at most a few failures.
fn found_again(front: &AditProcess) {
    let since = Instant::now();
    while one(front).is_err() {
        assert!(since.elapsed() < Duration::from_secs(5), "not found again");
        sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_server_that_comes_back_is_found_again() {
    let origin = OriginServer::start().unwrap();
    let folder = TempFolder::new("ssh").unwrap();
    openssh::generate_key(folder.path(), "id").unwrap();
    let port = free_port();
    let mut first = Ours::at(&folder, port, "");
    let hop = hop("ann", loopback_addr(port), folder.path());
    let mut front = front(origin.addr(), &[&hop]);
    some(front.addr(), "before");
    let mut open = traffic::connect_directly(front.addr()).unwrap();
    std::io::Write::write_all(&mut open, b"ECHO\n").unwrap();
    // Killed, without a shutdown.
    first.process().send_signal(Signal::KILL).unwrap();
    first.process().wait(TEST_TIMEOUT).unwrap();
    drop(first);
    // Open streams are cut instead of stalling.
    let mut rest = [0; 8];
    let cut = std::io::Read::read(&mut open, &mut rest);
    assert!(matches!(cut, Ok(0) | Err(_)), "{cut:?}");
    assert!(one(&front).is_err());
    let gone = format!("no connection to ssh://127.0.0.1:{port}: ");
    front.process().wait_lines(&gone, 1, TEST_TIMEOUT).unwrap();
    let second = Ours::at(&folder, port, "");
    found_again(&front);
    some(front.addr(), "after");
    let back = format!("ssh://127.0.0.1:{port} is healthy again");
    front.process().wait_lines(&back, 1, TEST_TIMEOUT).unwrap();
    let log = front.process().output();
    assert_eq!(log.matches(&gone).count(), 1, "said once: {log}");
    // With a shutdown, which cuts the connection too.
    second.stop().unwrap();
    let third = Ours::at(&folder, port, "");
    found_again(&front);
    third.stop().unwrap();
    front.stop().unwrap();
}

/// Returns the processes that `sshd` has started for connections.
#[cfg(target_os = "linux")]
fn children(sshd: &Sshd) -> Vec<Pid> {
    let id = sshd.process().id();
    let text = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    let ids = text.split_whitespace().filter_map(|id| id.parse().ok());
    ids.filter_map(Pid::from_raw).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn a_connection_that_died_silently_is_replaced() {
    let origin = OriginServer::start().unwrap();
    let sshd = Sshd::start("").unwrap();
    let front = front(origin.addr(), &[&sshd_hop(&sshd)]);
    one(&front).unwrap();
    let frozen = children(&sshd);
    assert!(!frozen.is_empty());
    for child in &frozen {
        kill_process(*child, Signal::STOP).unwrap();
    }
    // It is probed, given up, and connected again, all within the dial timeout.
    let since = Instant::now();
    let served = one(&front);
    let took = since.elapsed();
    let next = Instant::now();
    let again = one(&front);
    for child in frozen {
        let _ = kill_process(child, Signal::KILL);
    }
    served.unwrap();
    again.unwrap();
    assert!(took < Duration::from_secs(9), "{took:?}");
    assert!(
        next.elapsed() < Duration::from_secs(2),
        "the new one serves"
    );
    front.stop().unwrap();
}

#[test]
fn what_is_slow_or_dead_holds_up_nothing_else() {
    let origin = OriginServer::start().unwrap();
    // A proxy that accepts connections and sends nothing.
    let silent = TcpListener::bind(loopback_addr(0)).unwrap();
    let folder = TempFolder::new("ssh").unwrap();
    openssh::generate_key(folder.path(), "id").unwrap();
    let (at, silent_at) = (folder.path().display(), silent.local_addr().unwrap());
    let config = format!(
        "[route.a]\nlisten = \"ssh://127.0.0.1:0?host_key=@{at}/host&authorized_keys=@{at}/id.pub\
         &{ALLOW}\"\nrules = [{{ match = \":9\", via = \"socks5://{silent_at}\" }}]\n"
    );
    let config = folder.write_file("adit.toml", config).unwrap();
    let back = start(&["run", "-c", &config.display().to_string()]);
    let hop = hop("anybody", back.addr(), folder.path());
    let proxy = proxy(&[&format!("{hop}&dial=4s")]);
    let to = Destination::Addr(origin.addr());
    let stream = |to: &Destination| socks_client::connect_through(proxy.addr(), None, to);
    traffic::check_one_byte(stream(&to).unwrap()).unwrap();
    // Clients that wait for a target.
    let entry = proxy.addr();
    let dead: Vec<_> = (0..20)
        .map(|_| {
            thread::spawn(move || {
                let to = Destination::from_name("unknown.example", 9);
                socks_client::perform_request(entry, None, CONNECT, &to)
                    .map(|(_, reply)| reply.code)
            })
        })
        .collect();
    // Clients that send and are not read, and clients that are not read and send.
    let mut slow: Vec<TcpStream> = (0..4).map(|_| stream(&to).unwrap()).collect();
    for one in &mut slow {
        std::io::Write::write_all(one, b"GET 100000000 7\n").unwrap();
    }
    sleep(Duration::from_millis(300));
    let since = Instant::now();
    for _ in 0..20 {
        traffic::check_one_byte(stream(&to).unwrap()).unwrap();
        traffic::transfer_both_ways(stream(&to).unwrap(), LEN / 4).unwrap();
    }
    let took = since.elapsed();
    assert!(took < Duration::from_secs(8), "{took:?}");
    for one in dead {
        let code = one.join().unwrap().unwrap();
        assert_ne!(code, 0, "nothing was there");
    }
    proxy.stop().unwrap();
    back.stop().unwrap();
}

/// Returns the reply code of a request through a hop that does not work, and the log.
fn fails(hop: &str, part: &str) -> String {
    let mut proxy = start(&["-v", "run", "mixed://127.0.0.1:0", hop]);
    let to = Destination::Addr(loopback_addr(9));
    let (_, reply) = socks_client::perform_request(proxy.addr(), None, CONNECT, &to).unwrap();
    assert_ne!(reply.code, 0, "{hop}");
    let process: &mut ChildProcess = proxy.process();
    let lines = process.wait_lines(part, 1, Duration::from_secs(5));
    let lines = lines.unwrap_or_else(|why| panic!("{hop}: {why:#}"));
    assert!(!process.output().contains("hunter2"), "a secret is logged");
    lines.join("\n")
}

#[test]
fn failures_are_named() {
    let (sshd, ours) = (Sshd::start("").unwrap(), Ours::start("cipher=aes128-gcm"));
    let strange = TempFolder::new("strange").unwrap();
    let other = openssh::generate_key(strange.path(), "other").unwrap();
    let fingerprint = |file: &Path| {
        let mut command = Command::new("ssh-keygen");
        command.arg("-lf").arg(file);
        let line = external_tools::run_to_end(command, TEST_TIMEOUT)
            .unwrap()
            .expect_success()
            .unwrap();
        line.split(' ').nth(1).unwrap().to_owned()
    };
    for (hop, folder) in [
        (sshd_hop(&sshd), sshd.folder()),
        (ours.hop(), ours.folder.path()),
    ] {
        let (url, known) = hop.split_once("&known_hosts=@").unwrap();
        // A key that the server does not accept.
        let at = url.split_once('?').unwrap().0;
        let key = other.display();
        let told = fails(
            &format!("{at}?key=@{key}&known_hosts=@{known}"),
            "authentication failed",
        );
        assert!(told.contains("publickey"), "{told}");
        // A wrong password.
        let (_, address) = at.split_once('@').unwrap();
        let password = format!("ssh://ann:hunter2@{address}?known_hosts=@{known}");
        fails(&password, "authentication failed");
        // An unknown host, which is known afterwards.
        let fresh = strange.path().join(format!("fresh{}", known.len()));
        let unknown = format!("{url}&known_hosts=@{}", fresh.display());
        let host = fingerprint(&folder.join("host.pub"));
        let told = fails(&unknown, "is unknown");
        assert!(told.contains(&host), "{told}");
        let accepting = format!("{unknown}&strict=accept-new");
        let origin = OriginServer::start().unwrap();
        for url in [&accepting, &unknown] {
            let front = front(origin.addr(), &[url]);
            some(front.addr(), url);
            front.stop().unwrap();
        }
        // A host whose key has changed is refused with any other setting.
        let text = fs::read_to_string(&fresh).unwrap();
        let name = text.split(' ').next().unwrap();
        let line = fs::read_to_string(strange.path().join("other.pub")).unwrap();
        fs::write(&fresh, format!("# one\n\n{name} {line}")).unwrap();
        let told = fails(&accepting, "has changed");
        for part in [
            host.clone(),
            fingerprint(&strange.path().join("other.pub")),
            format!("{}:3", fresh.display()),
        ] {
            assert!(told.contains(&part), "{part}: {told}");
        }
        // A fingerprint instead of a file.
        let pinned = format!("{url}&host_key={host}");
        let front = front(origin.addr(), &[&pinned]);
        some(front.addr(), &pinned);
        front.stop().unwrap();
        let pin = fingerprint(&strange.path().join("other.pub"));
        let told = fails(&format!("{url}&host_key={pin}"), "it shows");
        assert!(told.contains(&host) && told.contains(&pin), "{told}");
    }
    let told = fails(
        &format!("{}&cipher=chacha20-poly1305", ours.hop()),
        "no common cipher",
    );
    assert!(told.contains("aes128-gcm@openssh.com"), "{told}");
    // Not an SSH server, and no server.
    let origin = OriginServer::start().unwrap();
    let at = ours.folder.path();
    fails(
        &hop("ann", loopback_addr(free_port()), at),
        "connect to ssh://",
    );
    let mute = format!("{}&dial=1s", hop("ann", origin.addr(), at));
    fails(&mute, "handshake with ssh://");
}

#[test]
fn what_is_known_of_a_server_is_neither_overlooked_nor_added_to() {
    let folder = TempFolder::new("known-hop").unwrap();
    openssh::generate_key(folder.path(), "other").unwrap();
    let ecdsa = folder.path().join("ecdsa");
    let mut command = Command::new("ssh-keygen");
    command
        .args(["-q", "-t", "ecdsa", "-N", "", "-f"])
        .arg(&ecdsa);
    external_tools::run_to_end(command, TEST_TIMEOUT)
        .unwrap()
        .expect_success()
        .unwrap();
    // It only shows an ECDSA key, and is known by an Ed25519 key.
    let sshd = Sshd::start(&format!(
        "HostKey {}\nHostKeyAlgorithms ecdsa-sha2-nistp256",
        ecdsa.display()
    ));
    let sshd = sshd.unwrap();
    let other = fs::read_to_string(folder.path().join("other.pub")).unwrap();
    let known = folder.path().join("known");
    let line = format!("[127.0.0.1]:{} {other}", sshd.port());
    fs::write(&known, &line).unwrap();
    let hop = sshd_hop(&sshd);
    let (url, _) = hop.split_once("&known_hosts=@").unwrap();
    let hop = format!("{url}&known_hosts=@{}&strict=accept-new", known.display());
    let told = fails(&hop, "different type");
    assert!(told.contains(&format!("{}:1", known.display())), "{told}");
    assert_eq!(fs::read_to_string(&known).unwrap(), line);
    // A file that is too long to read could contain any key.
    let file = fs::OpenOptions::new().append(true).open(&known).unwrap();
    let len = (16 << 20) + 1;
    file.set_len(len).unwrap();
    let told = fails(&hop, "longer than");
    assert!(told.contains(&known.display().to_string()), "{told}");
    assert_eq!(file.metadata().unwrap().len(), len);
    // So could a path that is not a regular file.
    let hop = format!(
        "{url}&known_hosts=@{}&strict=accept-new",
        folder.path().display()
    );
    fails(&hop, "cannot read known hosts");
}
