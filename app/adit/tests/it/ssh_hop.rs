//! Hops to SSH servers, OpenSSH's and adit's, single and in chains.

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};
use std::{env, fs};

use adit_interop::http_server::HttpServer;
use adit_interop::openssh::{self, Sshd};
use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::BLAKE3_AES_128;
use adit_interop::socks_client::{self, CONNECT, Destination};
use adit_interop::traffic::{self, CloseBehavior, DatagramLink, ForwarderEntry};
use adit_interop::{
    AditProcess, ChildProcess, TEST_TIMEOUT, TempFolder, external_tools, free_port, loopback_addr,
};

use crate::setup::{ALLOW, bin, ended, server, start};

const LEN: usize = 1 << 20;

/// A listener of adit, with its keys in a folder.
pub(crate) struct Ours {
    pub(crate) folder: TempFolder,
    pub(crate) adit: AditProcess,
}

impl Ours {
    /// Accepts the key `id`, and the password of `ann`. `more` are further keys of its URL.
    pub(crate) fn start(more: &str) -> Self {
        let folder = TempFolder::new("ssh").unwrap();
        openssh::generate_key(folder.path(), "id").unwrap();
        let adit = Self::at(&folder, 0, more);
        Self { folder, adit }
    }

    pub(crate) fn at(folder: &TempFolder, port: u16, more: &str) -> AditProcess {
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

    /// Returns its URL as a hop with the key.
    pub(crate) fn hop(&self) -> String {
        hop("ann", self.adit.addr(), self.folder.path())
    }
}

/// Returns a hop with the key `id` to a server with the key `host` of a folder.
pub(crate) fn hop(user: &str, at: SocketAddr, folder: &Path) -> String {
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

pub(crate) fn sshd_hop(sshd: &Sshd) -> String {
    hop(
        &openssh::current_user(),
        loopback_addr(sshd.port()),
        sshd.folder(),
    )
}

/// Starts a forwarder to `target` through hops.
pub(crate) fn front(target: SocketAddr, hops: &[&str]) -> AditProcess {
    let listen = format!("tcp://127.0.0.1:0/{target}");
    start(&[&["run", &listen][..], hops].concat())
}

pub(crate) fn proxy(hops: &[&str]) -> AditProcess {
    start(&[&["run", "mixed://127.0.0.1:0"][..], hops].concat())
}

fn carries(entry: SocketAddr, what: &str) {
    let all = || {
        traffic::check_streams(CloseBehavior::Independent, || {
            traffic::connect_directly(entry)
        })
    };
    all().unwrap_or_else(|why| panic!("{what}: {why:#}"));
}

pub(crate) fn some(entry: SocketAddr, what: &str) {
    let all = || -> anyhow::Result<()> {
        traffic::check_one_byte(traffic::connect_directly(entry)?)?;
        traffic::transfer_both_ways(traffic::connect_directly(entry)?, LEN)?;
        traffic::check_half_close(traffic::connect_directly(entry)?, LEN)
    };
    all().unwrap_or_else(|why| panic!("{what}: {why:#}"));
}

#[test]
fn through_openssh_and_through_us() {
    let origin = OriginServer::start().unwrap();
    let web = HttpServer::start(&[("/", "text/plain", b"through the tunnel")]).unwrap();
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
            let got = external_tools::run_to_end(curl, TEST_TIMEOUT)
                .unwrap()
                .expect_success()
                .unwrap();
            assert_eq!(got, "through the tunnel", "{scheme} {hop}");
        }
        ended(&["doctor", &hop]).expect_success().unwrap();
        // Failures behind the server are reported unchanged.
        let dead = Destination::Addr(loopback_addr(free_port()));
        let (_, reply) = socks_client::perform_request(proxy.addr(), None, CONNECT, &dead).unwrap();
        assert_eq!(reply.code, 5, "connection refused, {hop}");
        let nobody = Destination::from_name("no-such-name.invalid", 80);
        let (_, reply) =
            socks_client::perform_request(proxy.addr(), None, CONNECT, &nobody).unwrap();
        assert_ne!(reply.code, 0, "{hop}");
        proxy.stop().unwrap();
    }
    ours.adit.stop().unwrap();
}

#[test]
fn every_cipher_and_mac_that_can_be_asked_for() {
    let origin = OriginServer::start().unwrap();
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
    let origin = OriginServer::start().unwrap();
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
    let origin = OriginServer::start().unwrap();
    let ours = Ours::start("");
    let listen = format!("udp://127.0.0.1:0/{}", origin.addr());
    let front = start(&["run", &listen, &format!("{}&udp=over-tcp", ours.hop())]);
    let entry = ForwarderEntry::open(front.addr()).unwrap();
    traffic::check_datagrams(&entry as &dyn DatagramLink).unwrap();
    front.stop().unwrap();
    let refused = ended(&["run", &listen, &ours.hop()]);
    let told = format!("{refused:?}");
    assert!(told.contains("cannot pass"), "{told}");
}

#[test]
fn many_streams_at_a_time() {
    let origin = OriginServer::start().unwrap();
    let (sshd, ours) = (Sshd::start("").unwrap(), Ours::start(""));
    for hop in [sshd_hop(&sshd), ours.hop()] {
        let front = front(origin.addr(), &[&hop]);
        let at = front.addr();
        let one = move || -> anyhow::Result<()> {
            traffic::check_one_byte(traffic::connect_directly(at)?)?;
            traffic::transfer_both_ways(traffic::connect_directly(at)?, 64 << 10)
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
fn an_agent_is_asked() {
    let origin = OriginServer::start().unwrap();
    let sshd = Sshd::start("").unwrap();
    let folder = TempFolder::new("agent").unwrap();
    let socket = folder.path().join("socket");
    let mut command = Command::new("ssh-agent");
    command.arg("-D").arg("-a").arg(&socket);
    let _agent = ChildProcess::spawn(command).unwrap();
    let since = Instant::now();
    // The file of the socket exists before the agent accepts connections.
    while UnixStream::connect(&socket).is_err() {
        assert!(since.elapsed() < TEST_TIMEOUT, "no agent");
        sleep(Duration::from_millis(20));
    }
    let mut add = Command::new("ssh-add");
    add.arg("-q")
        .arg(sshd.folder().join("id"))
        .env("SSH_AUTH_SOCK", &socket);
    external_tools::run_to_end(add, TEST_TIMEOUT)
        .unwrap()
        .expect_success()
        .unwrap();
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
    let front = AditProcess::start_command(command, 1).unwrap();
    some(front.addr(), "by the agent");
    front.stop().unwrap();
}
