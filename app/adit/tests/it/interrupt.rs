//! Ctrl-C ends every command within 200 ms, with the exit code of shells.

use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use adit_interop::shadowsocks::{AES_256, BLAKE3_AES_128};
use adit_interop::{ChildProcess, TEST_TIMEOUT, TempFolder, free_port, loopback_addr};
use rustix::process::Signal;

use crate::setup::{bin, ended, start};

/// The promise.
const LIMIT: Duration = Duration::from_millis(200);
/// Number of attempts: other tests share the processor.
const ATTEMPTS: usize = 4;
/// Commands that have an answer at once, without a network or a measurement.
const QUICK: [&str; 13] = [
    // They wait for the tools of the system, which Ctrl-C ends with them.
    "service",
    "system-proxy",
    "url",
    "qr",
    "keygen",
    "check",
    "convert",
    "explain",
    "install-aliases",
    "help",
    "completion",
    "man",
    "schema",
];

/// The moment of the interrupt.
#[derive(Clone, Copy)]
enum Moment {
    /// Once it has printed this.
    Says(&'static str),
    /// Once it waits for a server.
    Waits,
    /// While it computes.
    Later,
}

use Moment::{Later, Says, Waits};

/// Commands that run for long. `STATE` is a folder, `KEYS` and `HOST` are files, `PORT` is a free port, and `URL`, `AT`
/// and `SERVER` name a server that never answers.
const LONG: [(&str, Moment); 33] = [
    ("up", Says("Ctrl-C stops this")),
    ("up", Later),
    (
        "server --no-qr --listen 127.0.0.1:0 --state STATE",
        Says("listening on"),
    ),
    ("client -l mixed://127.0.0.1:0 URL", Says("listening on")),
    ("client --check URL", Waits),
    ("client --state STATE --subscribe http://AT/list", Waits),
    ("run mixed://127.0.0.1:0", Says("listening on")),
    ("status --admin AT", Waits),
    ("upgrade --admin AT", Waits),
    ("user list --admin AT", Waits),
    ("fleet init --engine valkey://AT --membership STATE", Waits),
    ("dashboard --admin AT", Waits),
    ("sessions --admin AT", Waits),
    ("routes --admin AT", Waits),
    (
        "manager -s 127.0.0.1 --manager-address 127.0.0.1:PORT",
        Says("listening on"),
    ),
    ("bench mac --millis 9000", Later),
    ("bench fec --millis 9000", Later),
    ("bench ss --millis 9000", Later),
    ("bench kcp --millis 9000", Later),
    ("bench ssh AT", Waits),
    ("bench proxy --mib 100000", Later),
    ("kcp server -l 127.0.0.1:0 -t AT", Says("listening on")),
    ("kcp client -l 127.0.0.1:0 -r AT", Says("listening on")),
    ("doctor --tries 0 URL", Waits),
    (
        "ssh -F none -o BatchMode=yes -p SERVER 127.0.0.1 true",
        Waits,
    ),
    ("sftp -F none -o BatchMode=yes -P SERVER 127.0.0.1", Waits),
    (
        "scp -F none -o BatchMode=yes -P SERVER 127.0.0.1:a b",
        Waits,
    ),
    (
        "sshd --listen 127.0.0.1:0 --host-key HOST --authorized-keys KEYS",
        Says("listening on"),
    ),
    (
        "ss-local -b 127.0.0.1 -l PORT -s 127.0.0.1 -p SERVER -k word -m aes-256-gcm",
        Says("listening on"),
    ),
    (
        "ss-server -s 127.0.0.1 -p PORT -k word -m aes-256-gcm",
        Says("listening on"),
    ),
    (
        "ss-tunnel -b 127.0.0.1 -l PORT -L AT -s 127.0.0.1 -p SERVER -k word -m aes-256-gcm",
        Says("listening on"),
    ),
    (
        "ss-manager --manager-address 127.0.0.1:PORT -s 127.0.0.1 -m aes-256-gcm",
        Says("listening on"),
    ),
    (
        "ssr-local -b 127.0.0.1 -l PORT -s 127.0.0.1 -p SERVER -k word -m aes-256-ctr -O origin -o plain",
        Says("listening on"),
    ),
];

/// Commands like others of [`LONG`], which need a firewall or another listener only, or a terminal (`top/terminal.rs`
/// interrupts that one).
const ALIKE: [&str; 3] = ["ss-redir", "ssr-server", "top"];

/// Runs a command, interrupts it, and returns the time that it took, with its exit code and output.
fn interrupted(line: &str, moment: Moment) -> (Duration, i32, String) {
    let folder = TempFolder::new("interrupt").unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    folder.write_file("keys", "").unwrap();
    let silent = TcpListener::bind(loopback_addr(0)).unwrap();
    let server = silent.local_addr().unwrap();
    // Shells without job control start background jobs with SIGINT ignored, which children inherit.
    let mut command = Command::new("env");
    command.arg("--default-signal=INT").arg(bin());
    command.env("HOME", folder.path());
    for word in line.split(' ') {
        let word = match word {
            "URL" => BLAKE3_AES_128.url(server),
            word => word
                .replace("STATE", &at("state"))
                .replace("KEYS", &at("keys"))
                .replace("HOST", &at("host"))
                .replace("PORT", &free_port().to_string())
                .replace("SERVER", &server.port().to_string())
                .replace("AT", &server.to_string()),
        };
        command.arg(word);
    }
    let mut process = ChildProcess::spawn(command).unwrap();
    let waits = match moment {
        Says(words) => {
            process.wait_lines(words, 1, TEST_TIMEOUT).unwrap();
            None
        }
        Waits => Some(silent.accept().unwrap()),
        Later => {
            thread::sleep(Duration::from_millis(150));
            None
        }
    };
    process.send_signal(Signal::INT).unwrap();
    let begun = Instant::now();
    let status = process.wait(TEST_TIMEOUT).unwrap();
    let took = begun.elapsed();
    drop(waits);
    // A shell reports both as 130.
    let killed = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(killed).unwrap();
    (took, code, process.output())
}

#[track_caller]
fn check(line: &str, moment: Moment) {
    let mut slow = Vec::new();
    for _ in 0..ATTEMPTS {
        let (took, code, output) = interrupted(line, moment);
        assert_eq!(code, 130, "adit {line}\n{output}");
        if took < LIMIT {
            return;
        }
        slow.push(took);
    }
    panic!("adit {line}: {slow:?}");
}

#[test]
fn ctrl_c_ends_every_command() {
    for (line, moment) in LONG {
        check(line, moment);
    }
}

/// A new command is in one of the lists.
#[test]
fn every_command_is_listed() {
    let help = ended(&["--help"]).output;
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let mut seen = 0;
    for line in commands.lines().take_while(|line| !line.is_empty()) {
        // Continued descriptions are indented by more.
        let Some(name) = line
            .strip_prefix("  ")
            .filter(|rest| !rest.starts_with(' '))
        else {
            continue;
        };
        let name = name.split(' ').next().unwrap();
        let long = LONG
            .iter()
            .any(|(line, _)| line.split(' ').next() == Some(name));
        let known = long || QUICK.contains(&name) || ALIKE.contains(&name);
        assert!(known, "`adit {name}` is in no list of this file");
        seen += 1;
    }
    assert!(seen > 20, "{seen} commands in\n{help}");
}

/// A measurement that follows a connection.
#[test]
fn ctrl_c_ends_the_measurement_of_an_ssh_server() {
    let folder = TempFolder::new("interrupt").unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    folder.write_file("keys", "").unwrap();
    let (host, keys) = (at("host"), at("keys"));
    let server = start(&[
        "sshd",
        "--listen",
        "127.0.0.1:0",
        "--host-key",
        &host,
        "--authorized-keys",
        &keys,
    ]);
    let line = format!("bench ssh --millis 9000 {}", server.addr());
    check(&line, Says("strict key exchange"));
    server.stop().unwrap();
}

/// The server does not answer, but connections are open.
#[test]
fn open_connections_do_not_delay_the_end() {
    let silent = TcpListener::bind(loopback_addr(0)).unwrap();
    let url = AES_256.url(silent.local_addr().unwrap());
    let mut slow = Vec::new();
    for _ in 0..ATTEMPTS {
        let mut front = start(&["run", "mixed://127.0.0.1:0", &url]);
        let to = adit_interop::socks_client::Destination::Addr(loopback_addr(9));
        let open: Vec<_> = (0..3)
            .map(|_| adit_interop::socks_client::connect_through(front.addr(), None, &to).unwrap())
            .collect();
        front.process().send_signal(Signal::INT).unwrap();
        let begun = Instant::now();
        let status = front.process().wait(TEST_TIMEOUT).unwrap();
        let took = begun.elapsed();
        assert_eq!(status.code(), Some(130));
        drop(open);
        if took < LIMIT {
            return;
        }
        slow.push(took);
    }
    panic!("{slow:?}");
}
