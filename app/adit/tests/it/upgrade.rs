//! A new process continues the listeners of a running one.

mod counters;
mod plugins;
mod replays;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_interop::external_tools::{self, ToolOutput};
use adit_interop::origin::OriginServer;
use adit_interop::socks_client::{Destination, UdpAssociation};
use adit_interop::traffic::{self, ForwarderEntry};
use adit_interop::{AditProcess, ChildProcess, TEST_TIMEOUT, TempFolder, free_port, loopback_addr};
use rustix::process::{Pid, Signal, kill_process};

use crate::notify_socket::NotifySocket;
use crate::reload::flows::{BulkFlow, Connections, EchoStream, stop_working_flows};
use crate::reload::world::{Server, Settings, request};
use crate::setup::{ALLOW, bin, says, start};

/// Number of upgrades, of new connections per second, and of bulk flows through each protocol.
const UPGRADES: usize = 20;
const RATE: u32 = 200;
const FLOWS_EACH: usize = 2;

/// A process and its successors, whose output is that of the first one.
pub(crate) struct Lineage {
    /// Process IDs, the first process first.
    ids: Vec<u32>,
}

impl Drop for Lineage {
    fn drop(&mut self) {
        // The first one has its own guard.
        for id in self.ids.iter().skip(1) {
            if is_alive(*id) {
                signal(*id, Signal::KILL);
            }
        }
    }
}

impl Lineage {
    /// Creates the lineage of a process without a successor yet.
    pub(crate) fn of(first: &ChildProcess) -> Self {
        Self {
            ids: vec![first.id()],
        }
    }

    fn current(&self) -> u32 {
        *self.ids.last().unwrap()
    }

    /// Waits for the log line of the next successor.
    #[track_caller]
    fn wait_for_successor(&mut self, first: &ChildProcess) {
        let needle = "upgraded: process ";
        let lines = wait_for_lines(first, needle, self.ids.len());
        let line = lines.last().unwrap();
        let id = line.split(needle).nth(1).unwrap();
        let id: u32 = id.split(',').next().unwrap().parse().unwrap();
        assert!(!self.ids.contains(&id), "{line}");
        self.ids.push(id);
    }

    /// Requests an upgrade by SIGUSR2, and waits for the successor.
    #[track_caller]
    pub(crate) fn upgrade_by_signal(&mut self, first: &ChildProcess) {
        signal(self.current(), Signal::USR2);
        self.wait_for_successor(first);
    }

    /// Ends the newest process, and waits until all have ended.
    #[track_caller]
    pub(crate) fn stop(self, first: &mut ChildProcess) {
        if self.ids.len() > 1 {
            signal(self.current(), Signal::TERM);
        } else {
            first.send_signal(Signal::TERM).unwrap();
        }
        let status = first.wait(TEST_TIMEOUT).unwrap();
        assert_eq!(status.code(), Some(0), "{}", first.output());
        for id in self.ids.iter().skip(1) {
            wait_until(|| !is_alive(*id), &format!("process {id} is still there"));
        }
    }
}

fn signal(id: u32, signal: Signal) {
    let pid = Pid::from_raw(id.try_into().unwrap()).unwrap();
    // It may have just ended.
    let _ = kill_process(pid, signal);
}

/// Returns true if a process runs, and is not just waiting to be reaped.
fn is_alive(id: u32) -> bool {
    fs::read_to_string(format!("/proc/{id}/stat"))
        .is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
}

#[track_caller]
fn wait_until(done: impl Fn() -> bool, what: &str) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < TEST_TIMEOUT, "{what}");
        sleep(Duration::from_millis(20));
    }
}

/// Waits for lines in the output of a process and its successors. The process itself may have ended.
#[track_caller]
fn wait_for_lines(process: &ChildProcess, needle: &str, count: usize) -> Vec<String> {
    let since = Instant::now();
    loop {
        let output = process.output();
        let lines = output.lines().filter(|line| line.contains(needle));
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        if lines.len() >= count {
            return lines;
        }
        let late = since.elapsed() > Duration::from_secs(20);
        assert!(!late, "{} of {count} `{needle}` in:\n{output}", lines.len());
        sleep(Duration::from_millis(20));
    }
}

/// Runs `adit upgrade`.
fn upgrade(admin: &Path, program: Option<&Path>) -> ToolOutput {
    let mut command = Command::new(bin());
    command.args(["upgrade", "--admin", admin.to_str().unwrap()]);
    command.args(program);
    external_tools::run_to_end(command, Duration::from_secs(50)).unwrap()
}

/// Connections arrive and bulk flows continue while one process after another takes over: none is refused, none is
/// reset, and every byte is right.
#[test]
fn twenty_upgrades_under_load_lose_nothing() {
    let origin = OriginServer::start().unwrap();
    let mut server = Server::start(&Settings::default());
    let clients = server.clients();
    let proxies = clients.iter().map(AditProcess::addr);
    let mut entries = vec![server.mixed()];
    entries.extend(proxies);
    let target = Destination::Addr(origin.addr());
    let flows: Vec<BulkFlow> = entries
        .iter()
        .flat_map(|entry| (0..FLOWS_EACH).map(|_| BulkFlow::start(*entry, &target)))
        .collect();
    // An association through the proxy, and one through the Shadowsocks server.
    let associations: Vec<UdpAssociation> = entries[..2]
        .iter()
        .map(|entry| UdpAssociation::open(*entry, None).unwrap())
        .collect();
    let ping = |text: &[u8]| {
        for association in &associations {
            association.send_to(&target, text).unwrap();
            let (_, back) = association.recv_within(TEST_TIMEOUT).unwrap();
            assert_eq!(back, text);
        }
    };
    ping(b"before");
    let mut lineage = Lineage::of(server.adit.process());
    let admin = server.path("admin.sock");
    let load = Connections::start(&entries[..2], &target, RATE);
    let since = Instant::now();
    for round in 1..=UPGRADES {
        match round % 3 {
            0 => {
                let said = upgrade(&admin, None).expect_success().unwrap();
                says(&said, &["upgraded: process "]);
            }
            1 if round == 1 => server.adit.process().send_signal(Signal::USR2).unwrap(),
            1 => signal(lineage.current(), Signal::USR2),
            _ => {
                let reply = server.post_upgrade();
                assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
            }
        }
        lineage.wait_for_successor(server.adit.process());
        ping(format!("round {round}").as_bytes());
        sleep(Duration::from_millis(100));
    }
    let took = since.elapsed();
    let done = load.stop();
    done.assert_lossless(took, RATE);
    stop_working_flows(flows);
    drop(associations);
    // Every connection was counted once, in all processes together.
    let per_entry = u64::from(done.opened_at[0]) + FLOWS_EACH as u64;
    server.wait_for_sessions("front", per_entry + 1);
    println!("{} connections in {took:?}", done.opened);
    for client in clients {
        client.stop().unwrap();
    }
    // The end of a KCP client only shows after a timeout.
    assert!(is_alive(lineage.ids[0]), "the KCP session has a process");
    signal(lineage.ids[0], Signal::INT);
    lineage.stop(server.adit.process());
    assert!(!admin.exists(), "the last process removes the socket");
}

/// A server with one listener and an API, whose file can be changed.
struct SmallServer {
    adit: AditProcess,
    folder: TempFolder,
    lineage: Lineage,
}

impl SmallServer {
    fn start() -> Self {
        let folder = TempFolder::new("upgrade").unwrap();
        let port = free_port();
        let text = format!(
            "[route.a]\nlisten = \"mixed://127.0.0.1:{port}?{ALLOW}\"\n\
             [admin]\nlisten = \"{}/admin.sock\"\n",
            folder.path().display()
        );
        let file = folder.write_file("adit.toml", text).unwrap();
        let mut adit = start(&["run", "-c", file.to_str().unwrap()]);
        let lineage = Lineage::of(adit.process());
        Self {
            adit,
            folder,
            lineage,
        }
    }

    fn admin(&self) -> std::path::PathBuf {
        self.folder.path().join("admin.sock")
    }

    /// Writes an executable script.
    fn script(&self, name: &str, text: &str) -> std::path::PathBuf {
        let path = self.folder.write_file(name, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Asserts that an upgrade fails with these words, and that the process continues, as does an open stream.
    #[track_caller]
    fn refuses(&mut self, program: Option<&Path>, open: &mut EchoStream, words: &[&str]) {
        let done = upgrade(&self.admin(), program);
        assert_eq!(done.code, Some(1), "{}", done.output);
        says(&done.output, words);
        says(
            &done.output,
            &["not upgraded, the running process continues"],
        );
        open.exchange(b"still open").unwrap();
        assert!(is_alive(self.adit.process().id()));
    }
}

/// A new process that cannot start leaves the running one unchanged, and the reason is reported.
#[test]
fn a_process_that_cannot_take_over_changes_nothing() {
    let origin = OriginServer::start().unwrap();
    let target = Destination::Addr(origin.addr());
    let mut server = SmallServer::start();
    let mut open = EchoStream::open(server.adit.addr(), &target).unwrap();
    open.exchange(b"before").unwrap();
    let file = server.folder.path().join("adit.toml");
    let text = fs::read_to_string(&file).unwrap();

    fs::write(&file, text.replace("mixed://", "mixd://")).unwrap();
    server.refuses(None, &mut open, &["adit.toml:2:", "mixd"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = format!(
        "{text}\n[route.b]\nlisten = \"mixed://{}\"\n",
        taken.local_addr().unwrap()
    );
    fs::write(&file, other).unwrap();
    server.refuses(None, &mut open, &["cannot listen on 127.0.0.1:"]);
    fs::write(&file, &text).unwrap();

    server.refuses(
        Some("/bin/true".as_ref()),
        &mut open,
        &["ended before it was ready", "is it adit?"],
    );
    let no_program = server.folder.write_file("no-program", "text").unwrap();
    server.refuses(
        Some(&no_program),
        &mut open,
        &["cannot start", "no-program"],
    );
    // It waits for more than the time limit.
    let pid = server.folder.path().join("pid");
    let stalls = server.script(
        "stalls",
        &format!("#!/bin/sh\necho $$ > {}\nexec sleep 600\n", pid.display()),
    );
    server.refuses(Some(&stalls), &mut open, &["was not ready within"]);
    let pid: u32 = fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    wait_until(|| !is_alive(pid), "the stalled process is still there");

    // The API's socket was not removed by any of them, and everything still works.
    assert!(upgrade(&server.admin(), None).expect_success().is_ok());
    let SmallServer {
        mut adit,
        mut lineage,
        ..
    } = server;
    lineage.wait_for_successor(adit.process());
    open.exchange(b"in the first process").unwrap();
    let mut fresh = EchoStream::open(adit.addr(), &target).unwrap();
    fresh.exchange(b"in the second process").unwrap();
    drop((open, fresh));
    lineage.stop(adit.process());
}

/// A binary that was replaced is started from its path, and a changed file is applied: listeners are opened and closed.
#[test]
fn a_new_binary_and_a_new_file_are_used() {
    let origin = OriginServer::start().unwrap();
    let target = Destination::Addr(origin.addr());
    let folder = TempFolder::new("upgrade-binary").unwrap();
    let [kept, closed, added] = [free_port(), free_port(), free_port()];
    let text = |other: u16| {
        let text = format!(
            "[route.a]\nlisten = \"mixed://127.0.0.1:{kept}?{ALLOW}\"\n\
             [route.b]\nlisten = \"mixed://127.0.0.1:{other}?{ALLOW}\"\n\
             [route.c]\nlisten = \"mixed://127.0.0.1:0?{ALLOW}\"\n"
        );
        folder.write_file("adit.toml", text).unwrap()
    };
    let file = text(closed);
    let program = folder.path().join("adit");
    fs::copy(bin(), &program).unwrap();
    let args = ["run", "-c", file.to_str().unwrap()];
    let mut adit = AditProcess::start_with(&program, &args, 3).unwrap();
    let any = adit.addrs()[2];
    // As a package manager does it.
    let new = folder.path().join("adit.new");
    fs::copy(bin(), &new).unwrap();
    fs::rename(&new, &program).unwrap();
    text(added);
    let mut lineage = Lineage::of(adit.process());
    lineage.upgrade_by_signal(adit.process());
    let status = adit.process().wait(TEST_TIMEOUT).unwrap();
    assert_eq!(status.code(), Some(0));
    let running = fs::read_link(format!("/proc/{}/exe", lineage.current())).unwrap();
    assert_eq!(running, program);
    for at in [loopback_addr(kept), loopback_addr(added), any] {
        let mut stream = EchoStream::open(at, &target).unwrap();
        stream.exchange(b"new").unwrap();
    }
    assert!(std::net::TcpStream::connect(loopback_addr(closed)).is_err());
    lineage.stop(adit.process());
}

/// systemd learns that the process is ready, and which process continues.
#[test]
fn the_service_manager_follows() {
    let manager = NotifySocket::new("upgrade-notify");
    let mut command = Command::new(bin());
    command.args(["run", &format!("mixed://127.0.0.1:0?{ALLOW}")]);
    manager.supervise(&mut command);
    let mut adit = AditProcess::start_command(command, 1).unwrap();
    assert_eq!(manager.next_report(), "READY=1");
    let mut lineage = Lineage::of(adit.process());
    lineage.upgrade_by_signal(adit.process());
    let expected = format!("MAINPID={}\nREADY=1", lineage.current());
    assert_eq!(manager.next_report(), expected);
    lineage.stop(adit.process());
}

/// Without a way to name its new process, a unit of systemd would end with the old one: that is refused.
#[test]
fn a_unit_that_would_end_is_not_upgraded() {
    let mut command = Command::new("/bin/sh");
    let run = "SYSTEMD_EXEC_PID=$$ exec \"$0\" run \"$1\"";
    command
        .args(["-c", run])
        .arg(bin())
        .arg(format!("mixed://127.0.0.1:0?{ALLOW}"))
        .env_remove("NOTIFY_SOCKET");
    let mut adit = AditProcess::start_command(command, 1).unwrap();
    adit.process().send_signal(Signal::USR2).unwrap();
    let process = adit.process();
    let lines = process.wait_lines("not upgraded", 1, TEST_TIMEOUT).unwrap();
    assert!(
        lines[0].contains("add `Type=notify` to the unit"),
        "{lines:?}"
    );
    std::net::TcpStream::connect(adit.addr()).unwrap();
    adit.stop().unwrap();
}

/// The member of a manual group that was selected through the API stays selected.
#[test]
fn a_selected_member_stays_selected() {
    let folder = TempFolder::new("upgrade-group").unwrap();
    let admin = folder.path().join("admin.sock");
    let text = format!(
        "[group.g]\nkind = \"manual\"\nmembers = [\"socks5://127.0.0.1:1#one\", \"socks5://127.0.0.1:1#two\"]\n\
         [route.a]\nlisten = \"mixed://127.0.0.1:0?{ALLOW}\"\nvia = \"g\"\n\
         [admin]\nlisten = \"{}\"\n",
        admin.display()
    );
    let file = folder.write_file("adit.toml", text).unwrap();
    let mut adit = start(&["run", "-c", file.to_str().unwrap()]);
    let mut lineage = Lineage::of(adit.process());
    let ask = |head: &str, body: &str| {
        let head = format!(
            "{head} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        request(&admin, &head, body)
    };
    let two = "\"name\":\"two\",\"up\":true,\"selected\":true";
    assert!(!ask("GET /groups/g", "").contains(two));
    ask("POST /groups/g", "{\"selected\": \"two\"}");
    says(&ask("GET /groups/g", ""), &[two]);
    lineage.upgrade_by_signal(adit.process());
    says(&ask("GET /groups/g", ""), &[two]);
    lineage.stop(adit.process());
}

/// A channel with error correction continues in the process that started it, and a new one starts in the next.
#[test]
fn channels_with_error_correction_continue() {
    let origin = OriginServer::start().unwrap();
    let back = format!("udp+fec://127.0.0.1:0/{}?key=word", origin.addr());
    let mut back = start(&["run", &back]);
    let mut lineage = Lineage::of(back.process());
    let hop = format!("udp+fec://{}?key=word", back.addr());
    let front = || start(&["run", "udp://127.0.0.1:0", &hop]);
    let first = front();
    let old = ForwarderEntry::open(first.addr()).unwrap();
    traffic::check_datagrams(&old).unwrap();
    lineage.upgrade_by_signal(back.process());
    traffic::check_datagrams(&old).unwrap();
    let second = front();
    let new = ForwarderEntry::open(second.addr()).unwrap();
    traffic::check_datagrams(&new).unwrap();
    traffic::check_datagrams(&old).unwrap();
    for front in [first, second] {
        front.stop().unwrap();
    }
    signal(lineage.ids[0], Signal::INT);
    lineage.stop(back.process());
}

/// `adit server` is continued too, at the port that the system chose.
#[test]
fn a_server_is_upgraded() {
    let folder = TempFolder::new("upgrade-server").unwrap();
    let state = folder.path().to_str().unwrap();
    let args = [
        "server",
        "--no-qr",
        "--listen",
        "127.0.0.1:0",
        "--state",
        state,
    ];
    let mut adit = start(&args);
    let mut lineage = Lineage::of(adit.process());
    lineage.upgrade_by_signal(adit.process());
    adit.process().wait(TEST_TIMEOUT).unwrap();
    std::net::TcpStream::connect(adit.addr()).unwrap();
    lineage.stop(adit.process());
}
