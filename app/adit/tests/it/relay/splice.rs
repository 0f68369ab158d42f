//! A relay passes on the bytes after the headers without reading them.

use std::collections::HashMap;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::{ClientSetup, IDENTITY_KEYS};
use adit_interop::traffic::{self, CloseBehavior, LONG_LEN};
use adit_interop::{AditProcess, TempFolder};

use super::relay_at;
use crate::setup::{bin, server, start};

/// Minimum number of bytes that `traffic::check_streams` moves, in both directions together.
const MOVED: u64 = 2 * LONG_LEN as u64;

/// Returns the bytes that each system call has moved, from lines such as `7  splice(9, …) = 65536`.
fn moved(trace: &str) -> HashMap<&str, u64> {
    let mut sums = HashMap::new();
    for line in trace.lines() {
        // `<... splice resumed>` is the end of a call that another thread interrupted.
        let (call, result) = (line.split_once(' '), line.rsplit_once(" = "));
        let (Some((_, call)), Some((_, result))) = (call, result) else {
            continue;
        };
        let call = call.trim_start().trim_start_matches("<... ");
        let name = call.split([' ', '(']).next().unwrap_or_default();
        if let Ok(count) = result.trim().parse::<u64>() {
            *sums.entry(name).or_default() += count;
        }
    }
    sums
}

#[test]
fn traces_are_added_up() {
    let trace = "7     splice(9, NULL, 11, NULL, 65536, SPLICE_F_MOVE) = 100\n\
        8     splice(9, NULL, 11, NULL, 65536, 0 <unfinished ...>\n\
        7     recvfrom(9, \"a = b\", 16, 0, NULL, NULL) = 5\n\
        8     <... splice resumed>) = 20\n\
        7     splice(9, NULL, 11, NULL, 1, 0) = -1 EAGAIN (Resource temporarily unavailable)\n";
    let sums = moved(trace);
    assert_eq!((sums["splice"], sums["recvfrom"], sums.len()), (120, 5, 2));
}

/// The relay reads the first flight; all other bytes go from socket to socket in the kernel.
#[test]
fn a_relay_splices() {
    let [ring, _] = IDENTITY_KEYS;
    let (origin, folder) = (
        OriginServer::start().unwrap(),
        TempFolder::new("splice").unwrap(),
    );
    let back = server(ring.method);
    let (own, psk) = (relay_at(&ring, 0), ring.method.key);
    let port = back.addr().port();
    let next = format!(r#"[{{"server":"127.0.0.1","port":{port},"psk":"{psk}"}}]"#);
    let next = folder.write_file("relay.json", next).unwrap();
    let trace = folder.path().join("trace");
    // -D: the relay is the child of this test and strace a grandchild, so that signals go to the relay.
    let mut command = Command::new("strace");
    command
        .args(["-D", "-f", "-e", "signal=none", "-s", "0", "-o"])
        .arg(&trace);
    let calls = "splice,read,readv,recvfrom,recvmsg,recvmmsg,write,writev,sendto,sendmsg,sendmmsg";
    command
        .args(["-e", &format!("trace={calls}"), "--"])
        .arg(bin());
    let url = format!(
        "{}?relay=@{}",
        own.url("127.0.0.1:0".parse().unwrap()),
        next.display()
    );
    // `portable` would turn off the subject of this test.
    command.args(["run", &url]).env_remove("ADIT_IO");
    let front = AditProcess::start_command(command, 1).unwrap();
    let keys = [own.key, psk];
    let hop = ClientSetup::new(ring.method, &keys, front.addr()).url();
    let entry = start(&["run", &format!("tcp://127.0.0.1:0/{}", origin.addr()), &hop]);
    traffic::check_streams(CloseBehavior::Independent, || {
        traffic::connect_directly(entry.addr())
    })
    .unwrap();
    entry.stop().unwrap();
    front.stop().unwrap();
    back.stop().unwrap();
    let text = whole(&trace);
    let sums = moved(&text);
    let spliced = sums.get("splice").copied().unwrap_or_default();
    // Into the pipe and out of it.
    assert!(spliced > 2 * MOVED, "{sums:?}");
    let copied: u64 = sums
        .iter()
        .filter(|(name, _)| **name != "splice")
        .map(|(_, n)| n)
        .sum();
    assert!(copied < MOVED / 20, "{sums:?}");
}

/// Returns the output of strace once it is complete.
fn whole(trace: &std::path::Path) -> String {
    let start = Instant::now();
    loop {
        let text = fs::read_to_string(trace).unwrap_or_default();
        if text.contains("+++ exited with 0 +++") || start.elapsed() > Duration::from_secs(5) {
            return text;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
