//! A client, a gateway and a server, each in a separate network namespace.
//!
//! ```text
//! client 192.168.77.2 ── lan0 [gateway] wan0 9.9.9.1 ── server 9.9.9.9, 9.9.9.10, 10.66.0.1
//!        fd77::2              no forwarding  2620:fe::1         2620:fe::9, 2620:fe::10
//! ```
//!
//! The namespaces are in a mount namespace of the test process, which runs as root of a user namespace
//! if it is not root: nothing of them remains when it ends, in any way.

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use adit_interop::{TempFolder, external_tools};
use adit_link::NetworkNamespace;

/// Marks a process that is already inside.
const INSIDE: &str = "ADIT_TEST_NETNS";
const LIMIT: Duration = Duration::from_secs(100);

pub(crate) const CLIENT: &str = "client";
pub(crate) const GATEWAY: &str = "gateway";
pub(crate) const SERVER: &str = "server";
/// Tells adit's traffic from other traffic on the gateway.
pub(crate) const GROUP: &str = "4242";

/// Links, addresses and routes; one `ip` command per line. The gateway forwards nothing.
const WORLD: &str = "
netns add client
netns add gateway
netns add server
-n client link add eth0 type veth peer name lan0 netns gateway
-n server link add eth0 type veth peer name wan0 netns gateway
-n client link set lo up
-n client link set eth0 up
-n client addr add 192.168.77.2/24 dev eth0
-n client addr add fd77::2/64 dev eth0 nodad
-n gateway link set lo up
-n gateway link set lan0 up
-n gateway link set wan0 up
-n gateway addr add 192.168.77.1/24 dev lan0
-n gateway addr add fd77::1/64 dev lan0 nodad
-n gateway addr add 9.9.9.1/24 dev wan0
-n gateway addr add 2620:fe::1/64 dev wan0 nodad
-n gateway route add 10.66.0.0/24 dev wan0
-n server link set lo up
-n server link set eth0 up
-n server addr add 9.9.9.9/24 dev eth0
-n server addr add 9.9.9.10/24 dev eth0
-n server addr add 10.66.0.1/24 dev eth0
-n server addr add 2620:fe::9/64 dev eth0 nodad
-n server addr add 2620:fe::10/64 dev eth0 nodad
-n client route add default via 192.168.77.1
-n client -6 route add default via fd77::1
";

/// Runs the calling test, whose path this is, in separate namespaces. Returns false if that has
/// happened in another process.
#[must_use]
pub(crate) fn world(test: &str) -> bool {
    if !separate(test) {
        return false;
    }
    WORLD
        .lines()
        .filter(|line| !line.is_empty())
        .for_each(|line| sh(&format!("ip {line}")));
    enter(GATEWAY, || {
        fs::write("/proc/sys/net/ipv4/ip_forward", "0").unwrap();
        fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "0").unwrap();
    });
    true
}

/// Runs the calling test, whose path this is, in a mount and a network namespace of its own, which are
/// still empty. Returns false if that has happened in another process.
#[must_use]
pub(crate) fn separate(test: &str) -> bool {
    if env::var_os(INSIDE).is_some() {
        return true;
    }
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    let script = "mount -t tmpfs tmpfs /run && mkdir /run/netns && exec \"$0\" \"$@\"";
    command.args(["--mount", "--net", "--", "sh", "-c", script]);
    command.arg(env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1");
    let told = external_tools::run_to_end(command, LIMIT)
        .unwrap()
        .expect_success()
        .unwrap();
    assert!(told.contains("1 passed"), "the test did not run: {told}");
    false
}

/// Runs work in one namespace. Sockets that it opens stay there.
pub(crate) fn enter<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> T {
    NetworkNamespace::open(format!("/run/netns/{name}"))
        .unwrap()
        .run_inside(work)
}

/// Returns a command that runs in one namespace.
pub(crate) fn command(name: &str, words: &[&str]) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{name}")).args(words);
    command
}

/// Makes 127.0.0.1 the only DNS server of the system, for this process and its children: it is asked for every name but
/// `localhost`. The files are in `folder`.
pub(crate) fn use_local_dns_server(folder: &TempFolder) {
    for (path, content) in [
        ("/etc/resolv.conf", "nameserver 127.0.0.1\n"),
        ("/etc/nsswitch.conf", "hosts: files dns\n"),
        ("/etc/hosts", "127.0.0.1 localhost\n"),
    ] {
        let name = Path::new(path).file_name().unwrap().to_str().unwrap();
        let ours = folder.write_file(name, content).unwrap();
        let mut mount = Command::new("mount");
        mount.arg("--bind").arg(ours).arg(path);
        let mounted = external_tools::run_to_end(mount, Duration::from_secs(5)).unwrap();
        mounted.expect_success().unwrap();
    }
}

/// Applies the commands of the guide under this heading to the gateway.
pub(crate) fn follow_guide(heading: &str) {
    let guide = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/guides/transparent.md"
    );
    let guide = fs::read_to_string(guide).unwrap();
    let (_, after) = guide
        .split_once(&format!("\n### {heading}\n"))
        .expect(heading);
    let block = after.split("```").nth(1).expect(heading);
    // The rest of the fence's line names a language.
    let (_, block) = block.split_once('\n').expect(heading);
    // If the tests run as root there is no such user, but any group works.
    let block = block
        .replace("--uid-owner adit", &format!("--gid-owner {GROUP}"))
        .replace("skuid \"adit\"", &format!("skgid {GROUP}"));
    let program = if block.contains("table inet") {
        "nft -f -"
    } else {
        "sh -ex"
    };
    sh(&format!(
        "nsenter --net=/run/netns/{GATEWAY} {program} <<'END'\n{block}END"
    ));
}

/// Runs a script of a shell, which must succeed.
pub(crate) fn sh(script: &str) {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    let ended = external_tools::run_to_end(command, Duration::from_secs(20)).unwrap();
    ended
        .expect_success()
        .unwrap_or_else(|why| panic!("{script}\n{why:#}"));
}
