//! Selections in manual groups, which outlive a reload and the process.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use adit_interop::socks_client::{self, Destination};
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, loopback_addr};

use crate::admin::world::{Reply, ask};
use crate::setup::bin;

/// A server that closes each connection, and reports it.
struct Member {
    addr: SocketAddr,
    connections: Receiver<()>,
}

impl Member {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let (sender, connections) = channel();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                drop(stream);
                if sender.send(()).is_err() {
                    return;
                }
            }
        });
        Self { addr, connections }
    }
}

/// A configuration file with a manual group, whose members are called `m1`, `m2` and so on.
struct World {
    folder: TempFolder,
    members: Vec<Member>,
}

impl World {
    fn new() -> Self {
        let world = Self {
            folder: TempFolder::new("selections").unwrap(),
            members: (0..3).map(|_| Member::start()).collect(),
        };
        world.write(&[1, 2, 3], "");
        world
    }

    /// Writes the file with these members and a line of settings.
    fn write(&self, members: &[usize], settings: &str) {
        let url = |n: &usize| format!("\"socks5://{}#m{n}\"", self.members[n - 1].addr);
        let members: Vec<String> = members.iter().map(url).collect();
        let members = members.join(", ");
        let text = format!(
            "[route.r]\nlisten = \"socks5://127.0.0.1:0\"\nvia = \"g\"\n\
             [group.g]\nkind = \"manual\"\n{settings}\nmembers = [{members}]\n"
        );
        self.folder.write_file("adit.toml", text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts adit with its state in the folder.
    fn start(&self) -> AditProcess {
        let mut command = Command::new(bin());
        command.arg("run").arg("-c").arg(self.path("adit.toml"));
        command.arg("--admin").arg(self.path("admin.sock"));
        command
            .env("XDG_STATE_HOME", self.folder.path())
            .env_remove("STATE_DIRECTORY");
        AditProcess::start_command(command, 1).unwrap()
    }

    fn ask(&self, request: &str, body: &str) -> Reply {
        let stream = UnixStream::connect(self.path("admin.sock")).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let headers = ["Host: localhost", "Content-Type: application/json"];
        ask(stream, request, &headers, body)
    }

    fn select(&self, member: &str) {
        let reply = self.ask("POST /groups/g", &format!("{{\"selected\": \"{member}\"}}"));
        assert_eq!(reply.status, 200, "{}", reply.body);
    }

    fn reload(&self) {
        let reply = self.ask("POST /v1/reload", "{}");
        assert_eq!(reply.status, 200, "{}", reply.body);
    }

    /// Checks that the API and a request agree on the selected member.
    #[track_caller]
    fn check_selected(&self, adit: &AditProcess, number: usize) {
        let reply = self.ask("GET /groups/g", "");
        let group: serde_json::Value = serde_json::from_str(&reply.body).unwrap();
        let members = group["members"].as_array().unwrap().iter();
        let selected = members.filter(|member| member["selected"] == true);
        let names: Vec<&str> = selected.map(|m| m["name"].as_str().unwrap()).collect();
        assert_eq!(names, [format!("m{number}")]);
        let to = Destination::Addr(loopback_addr(9));
        // The member closes the connection, so the request fails.
        let _ = socks_client::connect_through(adit.addr(), None, &to);
        let connections = &self.members[number - 1].connections;
        connections.recv_timeout(TEST_TIMEOUT).unwrap();
    }

    /// Returns the only file of selections.
    fn selection_file(&self) -> PathBuf {
        let folder = self.path("adit/selections");
        let mut files = fs::read_dir(folder).unwrap();
        let file = files.next().unwrap().unwrap().path();
        assert!(files.next().is_none());
        file
    }
}

#[track_caller]
fn wait_for(adit: &mut AditProcess, line: &str) {
    let lines = adit.process().wait_lines(line, 1, TEST_TIMEOUT);
    lines.unwrap();
}

#[test]
fn a_selection_outlives_a_restart() {
    let world = World::new();
    let adit = world.start();
    world.check_selected(&adit, 1);
    world.select("m2");
    world.select("3");
    world.check_selected(&adit, 3);
    adit.stop().unwrap();
    let file = world.selection_file();
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let mut adit = world.start();
    wait_for(&mut adit, "group g: uses m3, which was selected earlier");
    world.check_selected(&adit, 3);
    adit.stop().unwrap();

    // The selected member is gone, and comes back.
    world.write(&[1, 2], "");
    let mut adit = world.start();
    wait_for(
        &mut adit,
        "group g: uses m1, because m3, which was selected",
    );
    world.check_selected(&adit, 1);
    adit.stop().unwrap();
    world.write(&[2, 3, 1], "selected = \"m1\"");
    let adit = world.start();
    world.check_selected(&adit, 3);
    adit.stop().unwrap();

    // A decision in the file is newer.
    world.write(&[1, 2, 3], "selected = \"m2\"");
    let mut adit = world.start();
    wait_for(&mut adit, "which the configuration selects now");
    world.check_selected(&adit, 2);
    adit.stop().unwrap();
}

#[test]
fn a_broken_file_of_selections_is_a_warning() {
    let world = World::new();
    let adit = world.start();
    world.select("m2");
    adit.stop().unwrap();
    let file = world.selection_file();
    fs::write(&file, "{\"groups\": ").unwrap();
    let mut adit = world.start();
    let name = file.file_name().unwrap().to_str().unwrap();
    wait_for(&mut adit, &format!("{name}: not a file of selections"));
    world.check_selected(&adit, 1);
    world.select("m3");
    adit.stop().unwrap();
    let adit = world.start();
    world.check_selected(&adit, 3);
    adit.stop().unwrap();
}

#[test]
fn a_selection_outlives_a_reload() {
    let world = World::new();
    let adit = world.start();
    world.select("m2");
    world.reload();
    world.check_selected(&adit, 2);
    // Another member makes it a new group.
    world.write(&[3, 2], "selected = \"m3\"");
    world.reload();
    world.check_selected(&adit, 3);
    world.write(&[1, 2], "");
    world.reload();
    world.check_selected(&adit, 2);
    adit.stop().unwrap();
}
