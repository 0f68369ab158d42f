//! Hops to SSH servers: OpenSSH's and ours, alone and in chains; what happens when they fail.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};
use std::{env, fs};

use adit_interop::openssh::{self, Sshd};
use adit_interop::origin::Origin;
use adit_interop::shadowsocks::BLAKE3_AES_128;
use adit_interop::socks::{self, CONNECT, Dest};
use adit_interop::traffic::{self, Datagrams, Ends, Entry};
use adit_interop::web::Web;
use adit_interop::{Adit, Folder, PATIENCE, Process, free_port, loopback, tool};
use rustix::process::Signal;
#[cfg(target_os = "linux")]
use rustix::process::{Pid, kill_process};

use crate::setup::{ALLOW, bin, server, start};

const LEN: usize = 1 << 20;

/// A listener of ours, with its keys in a folder.
pub(crate) struct Ours {
    pub(crate) folder: Folder,
    pub(crate) adit: Adit,
}

impl Ours {
    /// Lets the key `id` in, and `ann` by her password. `more` are further keys of its URL.
    pub(crate) fn start(more: &str) -> Self {
        let folder = Folder::new("ssh").unwrap();
        openssh::keygen(folder.path(), "id").unwrap();
        let adit = Self::at(&folder, 0, more);
        Self { folder, adit }
    }

    fn at(folder: &Folder, port: u16, more: &str) -> Adit {
        let at = folder.path().display();
        start(&[
            "-v",
            "run",
            &format!(
                "ssh://ann:secret@127.0.0.1:{port}?host_key=@{at}/host\
                 &authorized_keys=@{at}/id.pub&{ALLOW}&{more}"
            ),
        ])
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// As a hop, by the key.
    fn hop(&self) -> String {
        hop("ann", self.adit.addr(), self.folder.path())
    }
}

/// A hop by the key `id` to a server with the key `host` of a folder.
fn hop(user: &str, at: SocketAddr, folder: &Path) -> String {
    let known = folder.join(format!("known-{}", at.port()));
    let host = fs::read_to_string(folder.join("host.pub")).unwrap();
    let name = match at.port() {
        22 => at.ip().to_string(),
        port => format!("[{}]:{port}", at.ip()),
    };
    fs::write(&known, format!("# hosts\n{name} {host}")).unwrap();
    let (folder, known) = (folder.display(), known.display());
    format!("ssh://{user}@{at}?key=@{folder}/id&known_hosts=@{known}")
}

fn sshd_hop(sshd: &Sshd) -> String {
    hop(&openssh::user(), loopback(sshd.port()), sshd.folder())
}

/// A forwarder to `target` through hops.
fn front(target: SocketAddr, hops: &[&str]) -> Adit {
    let listen = format!("tcp://127.0.0.1:0/{target}");
    start(&[&["run", &listen][..], hops].concat())
}

fn proxy(hops: &[&str]) -> Adit {
    start(&[&["run", "mixed://127.0.0.1:0"][..], hops].concat())
}

fn carries(entry: SocketAddr, what: &str) {
    let all = || traffic::streams(Ends::Each, || traffic::dial(entry));
    all().unwrap_or_else(|why| panic!("{what}: {why:#}"));
}

fn some(entry: SocketAddr, what: &str) {
    let all = || -> anyhow::Result<()> {
        traffic::one_byte(traffic::dial(entry)?)?;
        traffic::both(traffic::dial(entry)?, LEN)?;
        traffic::half_close(traffic::dial(entry)?, LEN)
    };
    all().unwrap_or_else(|why| panic!("{what}: {why:#}"));
}

#[test]
fn through_openssh_and_through_us() {
    let origin = Origin::start().unwrap();
    let web = Web::start(&[("/", "text/plain", b"through the tunnel")]).unwrap();
    let (sshd, ours) = (Sshd::start("").unwrap(), Ours::start(""));
    for hop in [sshd_hop(&sshd), ours.hop()] {
        let front = front(origin.addr(), &[&hop]);
        carries(front.addr(), &hop);
        front.stop().unwrap();
        let proxy = proxy(&[&hop]);
        for scheme in ["socks5h", "socks4a", "http"] {
            let mut curl = Command::new("curl");
            curl.args(["-sS", "-p", "-x"])
                .arg(format!("{scheme}://{}", proxy.addr()))
                .arg(format!("http://localhost:{}/", web.port()));
            let got = tool::run(curl, PATIENCE).unwrap().success().unwrap();
            assert_eq!(got, "through the tunnel", "{scheme} {hop}");
        }
        // What fails behind the server is told as it is.
        let dead = Dest::Addr(loopback(free_port()));
        let (_, reply) = socks::ask(proxy.addr(), None, CONNECT, &dead).unwrap();
        assert_eq!(reply.code, 5, "connection refused, {hop}");
        let nobody = Dest::name("no-such-name.invalid", 80);
        let (_, reply) = socks::ask(proxy.addr(), None, CONNECT, &nobody).unwrap();
        assert_ne!(reply.code, 0, "{hop}");
        proxy.stop().unwrap();
    }
    ours.adit.stop().unwrap();
}

#[test]
fn every_cipher_and_mac_that_can_be_asked_for() {
    let origin = Origin::start().unwrap();
    let (sshd, ours) = (Sshd::start("").unwrap(), Ours::start("compression=true"));
    for hop in [sshd_hop(&sshd), ours.hop()] {
        for keys in [
            "cipher=chacha20-poly1305&kex=curve25519-sha256",
            "cipher=aes128-ctr&mac=umac-64-etm",
            "cipher=aes256-ctr&mac=umac-128,hmac-sha2-256&kex=sntrup761x25519-sha512",
            "cipher=aes256-gcm&compression=true&sessions=3",
        ] {
            let front = front(origin.addr(), &[&format!("{hop}&{keys}")]);
            some(front.addr(), keys);
            front.stop().unwrap();
        }
    }
    ours.adit.stop().unwrap();
}

#[test]
fn chains() {
    let origin = Origin::start().unwrap();
    let (sshd, ours, ss) = (
        Sshd::start("").unwrap(),
        Ours::start(""),
        server(BLAKE3_AES_128),
    );
    let (sshd, us) = (sshd_hop(&sshd), ours.hop());
    let ss_hop = BLAKE3_AES_128.url(ss.addr());
    for hops in [
        [&*us, &*sshd],
        [&*sshd, &*us],
        [&*ss_hop, &*sshd],
        [&*ss_hop, &*us],
        [&*us, &*ss_hop],
    ] {
        let front = front(origin.addr(), &hops);
        some(front.addr(), &hops.join(" "));
        front.stop().unwrap();
    }
    let front = front(origin.addr(), &[&us, &sshd, &ss_hop]);
    carries(front.addr(), "three");
    front.stop().unwrap();
}

#[test]
fn datagrams_ride_in_a_stream_if_they_are_to() {
    let origin = Origin::start().unwrap();
    let ours = Ours::start("");
    let listen = format!("udp://127.0.0.1:0/{}", origin.addr());
    let front = start(&["run", &listen, &format!("{}&udp=over-tcp", ours.hop())]);
    let entry = Entry::open(front.addr()).unwrap();
    traffic::datagrams(&entry as &dyn Datagrams).unwrap();
    front.stop().unwrap();
    let refused = crate::setup::ended(&["run", &listen, &ours.hop()]);
    let told = format!("{refused:?}");
    assert!(told.contains("cannot pass"), "{told}");
}

fn one(front: &Adit) -> anyhow::Result<()> {
    traffic::one_byte(traffic::dial(front.addr())?)
}

/// The next request but a few is served.
fn found_again(front: &Adit) {
    let since = Instant::now();
    while one(front).is_err() {
        assert!(since.elapsed() < Duration::from_secs(5), "not found again");
        sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_server_that_comes_back_is_found_again() {
    let origin = Origin::start().unwrap();
    let folder = Folder::new("ssh").unwrap();
    openssh::keygen(folder.path(), "id").unwrap();
    let port = free_port();
    let mut first = Ours::at(&folder, port, "");
    let hop = hop("ann", loopback(port), folder.path());
    let front = front(origin.addr(), &[&hop]);
    some(front.addr(), "before");
    let mut open = traffic::dial(front.addr()).unwrap();
    std::io::Write::write_all(&mut open, b"ECHO\n").unwrap();
    // Killed, not ended.
    first.process().signal(Signal::KILL).unwrap();
    first.process().wait(PATIENCE).unwrap();
    drop(first);
    // What was open is cut, not left hanging.
    let mut rest = [0; 8];
    let cut = std::io::Read::read(&mut open, &mut rest);
    assert!(matches!(cut, Ok(0) | Err(_)), "{cut:?}");
    assert!(one(&front).is_err());
    let second = Ours::at(&folder, port, "");
    found_again(&front);
    some(front.addr(), "after");
    // Ended in order, which cuts the connection too.
    second.stop().unwrap();
    let third = Ours::at(&folder, port, "");
    found_again(&front);
    third.stop().unwrap();
    front.stop().unwrap();
}

/// The processes that `sshd` has made for connections.
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
    let origin = Origin::start().unwrap();
    let sshd = Sshd::start("").unwrap();
    let front = front(origin.addr(), &[&sshd_hop(&sshd)]);
    one(&front).unwrap();
    let frozen = children(&sshd);
    assert!(!frozen.is_empty());
    for child in &frozen {
        kill_process(*child, Signal::STOP).unwrap();
    }
    // Asked whether it is there, given up, and made anew, all before the dial is over.
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
fn many_streams_at_a_time() {
    let origin = Origin::start().unwrap();
    let (sshd, ours) = (Sshd::start("").unwrap(), Ours::start(""));
    for hop in [sshd_hop(&sshd), ours.hop()] {
        let front = front(origin.addr(), &[&hop]);
        let at = front.addr();
        let one = move || -> anyhow::Result<()> {
            traffic::one_byte(traffic::dial(at)?)?;
            traffic::both(traffic::dial(at)?, 64 << 10)
        };
        let all: Vec<_> = (0..200).map(|_| thread::spawn(one)).collect();
        for (i, one) in all.into_iter().enumerate() {
            let done = one.join().unwrap();
            done.unwrap_or_else(|why| panic!("stream {i} of {hop}: {why:#}"));
        }
        front.stop().unwrap();
    }
}

#[test]
fn what_is_slow_or_dead_holds_up_nothing_else() {
    let origin = Origin::start().unwrap();
    // A proxy that takes connections and says nothing.
    let silent = TcpListener::bind(loopback(0)).unwrap();
    let folder = Folder::new("ssh").unwrap();
    openssh::keygen(folder.path(), "id").unwrap();
    let (at, silent_at) = (folder.path().display(), silent.local_addr().unwrap());
    let config = format!(
        "[route.a]\nlisten = \"ssh://127.0.0.1:0?host_key=@{at}/host&authorized_keys=@{at}/id.pub\
         &{ALLOW}\"\nrules = [{{ match = \":9\", via = \"socks5://{silent_at}\" }}]\n"
    );
    let config = folder.write("adit.toml", config).unwrap();
    let back = start(&["run", "-c", &config.display().to_string()]);
    let hop = hop("anybody", back.addr(), folder.path());
    let proxy = proxy(&[&format!("{hop}&dial=4s")]);
    let to = Dest::Addr(origin.addr());
    let stream = |to: &Dest| socks::connect(proxy.addr(), None, to);
    traffic::one_byte(stream(&to).unwrap()).unwrap();
    // Those that wait for a target.
    let entry = proxy.addr();
    let dead: Vec<_> = (0..20)
        .map(|_| {
            thread::spawn(move || {
                let to = Dest::name("nobody.example", 9);
                socks::ask(entry, None, CONNECT, &to).map(|(_, reply)| reply.code)
            })
        })
        .collect();
    // Those that send and are not read, and those that are not read and send.
    let mut slow: Vec<TcpStream> = (0..4).map(|_| stream(&to).unwrap()).collect();
    for one in &mut slow {
        std::io::Write::write_all(one, b"GET 100000000 7\n").unwrap();
    }
    sleep(Duration::from_millis(300));
    let since = Instant::now();
    for _ in 0..20 {
        traffic::one_byte(stream(&to).unwrap()).unwrap();
        traffic::both(stream(&to).unwrap(), LEN / 4).unwrap();
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

/// The code of a request through a hop that does not work, and what the log says.
fn fails(hop: &str, part: &str) -> String {
    let mut proxy = start(&["-v", "run", "mixed://127.0.0.1:0", hop]);
    let to = Dest::Addr(loopback(9));
    let (_, reply) = socks::ask(proxy.addr(), None, CONNECT, &to).unwrap();
    assert_ne!(reply.code, 0, "{hop}");
    let process: &mut Process = proxy.process();
    let lines = process.wait_lines(part, 1, Duration::from_secs(5));
    let lines = lines.unwrap_or_else(|why| panic!("{hop}: {why:#}"));
    assert!(!process.log().contains("hunter2"), "a secret is logged");
    lines.join("\n")
}

#[test]
fn failures_are_named() {
    let (sshd, ours) = (Sshd::start("").unwrap(), Ours::start("cipher=aes128-gcm"));
    let strange = Folder::new("strange").unwrap();
    let other = openssh::keygen(strange.path(), "other").unwrap();
    let fingerprint = |file: &Path| {
        let mut command = Command::new("ssh-keygen");
        command.arg("-lf").arg(file);
        let line = tool::run(command, PATIENCE).unwrap().success().unwrap();
        line.split(' ').nth(1).unwrap().to_owned()
    };
    for (hop, folder) in [
        (sshd_hop(&sshd), sshd.folder()),
        (ours.hop(), ours.folder.path()),
    ] {
        let (url, known) = hop.split_once("&known_hosts=@").unwrap();
        // Another key than the server knows.
        let at = url.split_once('?').unwrap().0;
        let key = other.display();
        let told = fails(
            &format!("{at}?key=@{key}&known_hosts=@{known}"),
            "authentication failed",
        );
        assert!(told.contains("publickey"), "{told}");
        // A password that is none.
        let (_, address) = at.split_once('@').unwrap();
        let password = format!("ssh://ann:hunter2@{address}?known_hosts=@{known}");
        fails(&password, "authentication failed");
        // A host that is not known, and then is.
        let fresh = strange.path().join(format!("fresh{}", known.len()));
        let unknown = format!("{url}&known_hosts=@{}", fresh.display());
        let host = fingerprint(&folder.join("host.pub"));
        let told = fails(&unknown, "is not known");
        assert!(told.contains(&host), "{told}");
        let accepting = format!("{unknown}&strict=accept-new");
        let origin = Origin::start().unwrap();
        for url in [&accepting, &unknown] {
            let front = front(origin.addr(), &[url]);
            some(front.addr(), url);
            front.stop().unwrap();
        }
        // A host whose key has changed, whatever is accepted otherwise.
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
    // No SSH at all, and nobody at all.
    let origin = Origin::start().unwrap();
    let at = ours.folder.path();
    fails(&hop("ann", loopback(free_port()), at), "connect to ssh://");
    let mute = format!("{}&dial=1s", hop("ann", origin.addr(), at));
    fails(&mute, "dialogue with ssh://");
}

#[test]
fn an_agent_is_asked() {
    let origin = Origin::start().unwrap();
    let sshd = Sshd::start("").unwrap();
    let folder = Folder::new("agent").unwrap();
    let socket = folder.path().join("socket");
    let mut command = Command::new("ssh-agent");
    command.arg("-D").arg("-a").arg(&socket);
    let _agent = Process::spawn(command).unwrap();
    let since = Instant::now();
    while !socket.exists() {
        assert!(since.elapsed() < PATIENCE, "no agent");
        sleep(Duration::from_millis(20));
    }
    let mut add = Command::new("ssh-add");
    add.arg("-q")
        .arg(sshd.folder().join("id"))
        .env("SSH_AUTH_SOCK", &socket);
    tool::run(add, PATIENCE).unwrap().success().unwrap();
    let hop = sshd_hop(&sshd);
    let (at, query) = hop.split_once('?').unwrap();
    let (_, known) = query.split_once('&').unwrap();
    let mut command = Command::new(bin());
    command
        .args(["run", &format!("tcp://127.0.0.1:0/{}", origin.addr())])
        .arg(format!("{at}?{known}"))
        .env("SSH_AUTH_SOCK", &socket)
        .env("HOME", folder.path())
        .env("PATH", env::var_os("PATH").unwrap_or_default());
    let front = Adit::launch(command, 1).unwrap();
    some(front.addr(), "by the agent");
    front.stop().unwrap();
}
