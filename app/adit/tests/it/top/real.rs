//! The live view and the tables of a real process: a session ends, and a group uses another member.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use adit_interop::openssh::{Sshd, current_user, ssh_command};
use adit_interop::origin::OriginServer;
use adit_interop::socks_client::{self, Destination};
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::tmux::{Tmux, is_coloured};
use crate::setup::{ALLOW, bin, ended, start};

/// A process with a manual group of two proxies.
struct World {
    folder: TempFolder,
    adit: AditProcess,
    hops: [AditProcess; 2],
    origin: OriginServer,
}

impl World {
    fn start() -> Self {
        let folder = TempFolder::new("top").unwrap();
        let hop = |_| start(&["run", &format!("socks5://127.0.0.1:0?{ALLOW}")]);
        let hops = [0, 1].map(hop);
        let member = |at: usize| format!("\"socks5://{}#m{at}\"", hops[at].addr());
        let text = format!(
            "[route.main]\nlisten = \"socks5://127.0.0.1:0\"\nvia = \"g\"\n\
             [group.g]\nkind = \"manual\"\nmembers = [{}, {}]\n",
            member(0),
            member(1)
        );
        folder.write_file("adit.toml", text).unwrap();
        let mut command = Command::new(bin());
        command
            .arg("run")
            .arg("-c")
            .arg(folder.path().join("adit.toml"));
        command.arg("--admin").arg(folder.path().join("api.sock"));
        command
            .env("XDG_STATE_HOME", folder.path())
            .env_remove("STATE_DIRECTORY");
        Self {
            adit: AditProcess::start_command(command, 1).unwrap(),
            folder,
            hops,
            origin: OriginServer::start().unwrap(),
        }
    }

    fn api(&self) -> String {
        self.folder.path().join("api.sock").display().to_string()
    }

    /// Opens a session that echoes.
    fn open(&self) -> TcpStream {
        let to = Destination::Addr(self.origin.addr());
        let mut stream = socks_client::connect_through(self.adit.addr(), None, &to).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.write_all(b"ECHO\n").unwrap();
        assert!(lives(&mut stream));
        stream
    }

    fn result(&self, words: &[&str]) -> Value {
        let api = self.api();
        let text = ended(&[words, &["--json", "--admin", &api]].concat());
        let document: Value = serde_json::from_str(&text.expect_success().unwrap()).unwrap();
        document["result"].clone()
    }

    fn stop(self) {
        self.adit.stop().unwrap();
        for hop in self.hops {
            hop.stop().unwrap();
        }
    }
}

fn lives(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    stream.write_all(b"x").is_ok() && stream.read_exact(&mut byte).is_ok() && byte == *b"x"
}

#[test]
fn a_session_ends_and_a_member_is_used() {
    let world = World::start();
    let (mut first, mut second) = (world.open(), world.open());
    let program = bin();
    let words = [program.to_str().unwrap(), "top", &world.api()];
    let top = Tmux::start((80, 24), &[], &words);
    let port = world.adit.addr().port().to_string();
    let is_row = |line: &&String| line.contains("tcp ") && line.contains(&port);
    let screen = top.wait_for(|screen| screen.iter().filter(is_row).count() == 2);
    assert!(screen[2].starts_with("sessions 2 open"), "{screen:?}");
    assert!(
        screen
            .iter()
            .any(|line| line.contains("IPv4:") || line.contains("private:")),
        "{screen:?}"
    );

    // The newest is the first row.
    top.press(&["g", "K"]);
    top.wait_words("end session ");
    top.press(&["y"]);
    top.wait_words("ended session ");
    assert!(!lives(&mut second), "the session has not ended");
    assert!(lives(&mut first));
    top.wait_for(|screen| screen.iter().filter(is_row).count() == 1);

    top.press(&["3"]);
    top.wait_words("m0");
    top.press(&["G", "Enter"]);
    top.wait_words("g uses m1");
    let before = world.result(&["routes"]);
    let members = &before["groups"][0]["members"];
    assert_eq!(members[0]["selected"], false, "{before}");
    assert_eq!(members[1]["selected"], true, "{before}");
    // The next connection passes the other hop.
    let mut third = world.open();
    assert!(lives(&mut third));

    top.press(&["4"]);
    top.wait_words(&port);
    top.press(&["5"]);
    top.press(&["q"]);
    top.wait_words("exit code 0.");
    world.stop();
}

/// On another machine, in a terminal of the usual size and without colours.
#[test]
fn it_is_usable_over_ssh_without_colours() {
    let world = World::start();
    let (mut first, mut second) = (world.open(), world.open());
    let sshd = Sshd::start("").unwrap();
    let program = bin();
    let key = sshd.folder().join("id");
    let (own, host) = (
        program.display().to_string(),
        format!("{}@127.0.0.1", current_user()),
    );
    let openssh: Vec<String> = std::iter::once("ssh".to_owned())
        .chain(
            ssh_command(sshd.port(), &key)
                .get_args()
                .map(|word| word.to_str().unwrap().to_owned()),
        )
        .collect();
    let port = sshd.port().to_string();
    let ours = [
        "ssh",
        "-F",
        "none",
        "-p",
        &port,
        "-i",
        key.to_str().unwrap(),
    ];
    let known = [
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        "UserKnownHostsFile=/dev/null",
    ];
    let ours: Vec<String> = std::iter::once(own.clone())
        .chain(ours.iter().chain(&known).map(|word| (*word).to_owned()))
        .collect();
    for (client, session) in [(openssh, &mut second), (ours, &mut first)] {
        let api = world.api();
        let there = ["-t", &host, "env", "NO_COLOR=1", &own, "top", &api];
        let mut words: Vec<&str> = client.iter().map(String::as_str).collect();
        words.extend(there);
        let top = Tmux::start((80, 24), &[], &words);
        let listen = world.adit.addr().port().to_string();
        let screen = top.wait_for(|screen| {
            let mut rows = screen.iter();
            rows.any(|line| line.contains("tcp ") && line.contains(&listen))
        });
        assert!(screen.len() <= 24, "{screen:?}");
        assert!(
            screen.iter().all(|line| line.chars().count() <= 80),
            "{screen:?}"
        );
        let coloured = top.coloured_screen();
        assert!(!is_coloured(&coloured), "{coloured:?}");
        // A letter alone ends nothing: `k` moves.
        top.press(&["j", "k", "g", "K"]);
        top.wait_words("end session ");
        top.press(&["y"]);
        top.wait_words("ended session ");
        assert!(!lives(session), "the session has not ended");
        top.press(&["q"]);
        top.wait_words("exit code 0.");
    }
    world.stop();
}

#[test]
fn a_process_that_stops_or_ends_is_reported() {
    let mut world = World::start();
    let _session = world.open();
    let program = bin();
    let words = [program.to_str().unwrap(), "top", &world.api()];
    let top = Tmux::start((80, 24), &[], &words);
    top.wait_words("tcp ");
    world.adit.process().send_signal(Signal::STOP).unwrap();
    top.wait_words("no answer for ");
    world.adit.process().send_signal(Signal::CONT).unwrap();
    top.wait_for(|screen| !screen.iter().any(|line| line.contains("no answer for ")));
    world.adit.process().send_signal(Signal::KILL).unwrap();
    top.wait_words("the process has ended");
    top.wait_words("exit code 4.");
}

#[test]
fn tables_describe_the_process() {
    let mut world = World::start();
    let mut stream = world.open();
    let status = world.result(&["status"]);
    let overview = &status["overview"];
    assert_eq!(overview["sessionsOpen"], 1, "{status}");
    assert_eq!(overview["pid"], world.adit.process().id(), "{status}");
    let routes = world.result(&["routes"]);
    assert_eq!(routes["listeners"][0]["route"], "main", "{routes}");
    assert_eq!(
        routes["listeners"][0]["listen"],
        world.adit.addr().to_string()
    );
    let sessions = world.result(&["sessions"]);
    assert_eq!(sessions["total"], 1, "{sessions}");
    let session = &sessions["sessions"][0];
    assert_eq!(session["kind"], "tcp");
    assert_eq!(session["route"], "main");
    // Neither the destination nor the client.
    let origin = world.origin.addr().ip().to_string();
    let target = session["target"].as_str().unwrap();
    assert!(!target.contains(&origin), "{session}");
    assert!(
        target.ends_with(&format!(":{}", world.origin.addr().port())),
        "{session}"
    );
    let id = session["id"].to_string();
    let text = ended(&["sessions", "--admin", &world.api()])
        .expect_success()
        .unwrap();
    assert!(text.lines().any(|line| line.starts_with(&id)), "{text}");
    assert_eq!(
        world.result(&["sessions", "--user", "stranger"])["total"],
        0
    );

    let ended_one = world.result(&["sessions", "--kill", &id]);
    assert_eq!(ended_one["ended"].to_string(), id);
    assert!(!lives(&mut stream), "the session has not ended");
    let again = ended(&["sessions", "--kill", &id, "--admin", &world.api()]);
    assert_eq!(again.code, Some(1), "{again:?}");
    world.stop();
}

#[test]
fn an_upgrade_is_followed() {
    let mut world = World::start();
    let program = bin();
    let words = [program.to_str().unwrap(), "top", &world.api()];
    let top = Tmux::start((80, 24), &[], &words);
    let first = world.adit.process().id();
    top.wait_words(&format!("pid {first} "));
    let missing = ended(&["upgrade", "/nonexistent", "--json", "--admin", &world.api()]);
    assert_eq!(missing.code, Some(2), "{missing:?}");
    let error: Value = serde_json::from_str(&missing.output).unwrap();
    assert_eq!(error["error"]["exitCode"], 2, "{error}");

    let upgraded = world.result(&["upgrade"]);
    assert_eq!(upgraded["version"], env!("CARGO_PKG_VERSION"), "{upgraded}");
    let second = upgraded["pid"].as_i64().unwrap();
    assert!(world.adit.process().wait(TEST_TIMEOUT).unwrap().success());
    top.wait_words(&format!("pid {second} "));
    let second = Pid::from_raw(i32::try_from(second).unwrap()).unwrap();
    kill_process(second, Signal::TERM).unwrap();
    top.wait_words("the process has ended");
}
