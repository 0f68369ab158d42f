//! The process and its system: signals at the start and while it serves, a log that is not read,
//! descriptors.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use adit_interop::shadowsocks::BLAKE3_AES_128;
use adit_interop::{AditProcess, ChildProcess, TEST_TIMEOUT, TempFolder, free_port, loopback_addr};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::setup::{ALLOW, bin};

/// Much longer than a shutdown takes, and much shorter than the other timeouts.
const SOON: Duration = Duration::from_secs(2);

fn adit(args: &[&str]) -> ChildProcess {
    let mut command = Command::new(bin());
    command.args(args);
    ChildProcess::spawn(command).unwrap()
}

/// A server that accepts connections and sends nothing.
struct Silent(TcpListener);

impl Silent {
    fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    /// Starts it, ends it once it waits for this server, and returns exit code and output.
    #[track_caller]
    fn ended(&self, args: &[&str], signal: Signal) -> (Option<i32>, String) {
        let mut process = adit(args);
        let waits = self.0.accept().unwrap();
        process.send_signal(signal).unwrap();
        let begun = Instant::now();
        let status = process.wait(TEST_TIMEOUT).unwrap();
        let (took, log) = (begun.elapsed(), process.output());
        assert!(took < SOON, "{args:?}: {took:?}\n{log}");
        drop(waits);
        (status.code(), log)
    }
}

#[test]
fn an_interrupt_is_obeyed_before_there_is_an_answer() {
    let folder = TempFolder::new("process").unwrap();
    let state = folder.path().to_str().unwrap();
    for (args, signal, code) in [
        (&["client", "--check", "URL"][..], Signal::INT, 130),
        (&["client", "--check", "URL"], Signal::TERM, 143),
        (&["doctor", "--tries", "0", "URL"], Signal::INT, 130),
        (
            &["client", "--state", state, "--subscribe", "LIST"],
            Signal::INT,
            130,
        ),
        (&["bench", "ssh", "AT"], Signal::INT, 130),
        // It serves already, and only checks whether the server answers.
        (
            &["client", "-l", "mixed://127.0.0.1:0", "URL"],
            Signal::INT,
            130,
        ),
    ] {
        // One for each: a late connection for another case must not count here.
        let silent = Silent::new();
        let at = silent.0.local_addr().unwrap();
        let words = args.iter().map(|word| match *word {
            "URL" => BLAKE3_AES_128.url(at),
            "LIST" => format!("http://{at}/list"),
            "AT" => at.to_string(),
            word => word.to_owned(),
        });
        let words: Vec<String> = words.collect();
        let args: &[&str] = &words.iter().map(String::as_str).collect::<Vec<_>>();
        let (ended, log) = silent.ended(args, signal);
        assert_eq!(ended, Some(code), "{args:?}\n{log}");
        assert!(!log.contains("wrong key"), "{args:?}\n{log}");
        let serves = args.contains(&"mixed://127.0.0.1:0");
        let says = code == 130 && !serves;
        assert_eq!(log.contains("interrupted"), says, "{args:?}\n{log}");
    }
}

#[test]
fn a_hangup_ends_no_server() {
    let folder = TempFolder::new("process").unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    folder.write_file("keys", "").unwrap();
    let [port, kcp] = [free_port(), free_port()].map(|port| loopback_addr(port).to_string());
    let url = BLAKE3_AES_128.url(loopback_addr(free_port()));
    let (state, host, keys) = (at("state"), at("host"), at("keys"));
    for args in [
        &["run", "mixed://127.0.0.1:0"][..],
        &["server", "--no-qr", "-l", "127.0.0.1:0", "--state", &state],
        &["client", "-l", "mixed://127.0.0.1:0", &url],
        &["manager", "-s", "127.0.0.1", "--manager-address", &port],
        &["kcp", "server", "-l", "127.0.0.1:0", "-t", &port],
        &["kcp", "client", "-l", "127.0.0.1:0", "-r", &kcp],
        &[
            "sshd",
            "--listen",
            "127.0.0.1:0",
            "--host-key",
            &host,
            "--authorized-keys",
            &keys,
        ],
    ] {
        let mut process = adit(args);
        process
            .wait_lines("listening on ", 1, TEST_TIMEOUT)
            .unwrap();
        process.send_signal(Signal::HUP).unwrap();
        process.wait_lines("SIGHUP", 1, TEST_TIMEOUT).unwrap();
        let status = process.terminate().unwrap();
        let log = process.output();
        assert_eq!(status.code(), Some(0), "{args:?}\n{log}");
        assert_eq!(log.matches("SIGHUP").count(), 1, "{args:?}\n{log}");
    }
}

#[test]
fn a_terminal_that_goes_takes_it_along() {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    // The program's own copy would keep it open.
    fcntl_setfd(&ours, FdFlags::CLOEXEC).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
    let theirs: OwnedFd = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap();
    let mut command = Command::new(bin());
    command
        .args(["run", "mixed://127.0.0.1:0"])
        .stdin(theirs)
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(log.next().unwrap().unwrap().contains("listening on"));
    drop(ours);
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::HUP).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_log_that_nobody_reads_is_no_failure() {
    let mut command = Command::new(bin());
    command
        .args(["-vv", "run", "mixed://127.0.0.1:0"])
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    while !line.contains("listening on ") {
        line.clear();
        assert!(log.read_line(&mut line).unwrap() > 0, "it has ended");
    }
    let at = line.rsplit(' ').next().unwrap().trim().to_owned();
    drop(log);
    for _ in 0..3 {
        // Each of them makes it log a line.
        TcpStream::connect(&at).unwrap().write_all(b"?").unwrap();
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::HUP).unwrap();
    TcpStream::connect(&at).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn it_takes_as_many_descriptors_as_it_may() {
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -S -n 300 && exec \"$0\" \"$@\""])
        .arg(bin());
    let url = format!("{}?{ALLOW}", BLAKE3_AES_128.url(loopback_addr(0)));
    let mut adit = AditProcess::start_command(
        {
            command.args(["run", &url]);
            command
        },
        1,
    )
    .unwrap();
    let limits = format!("/proc/{}/limits", adit.process().id());
    let limits = fs::read_to_string(limits).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    let [soft, hard]: [&str; 2] = line
        .split_whitespace()
        .skip(3)
        .take(2)
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    assert_eq!(soft, hard, "{line}");
    adit.stop().unwrap();
}
