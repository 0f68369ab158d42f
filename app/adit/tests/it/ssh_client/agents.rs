//! Agent keys that are restricted to some hosts (`ssh-add -h`): the agent must be told the session that
//! it signs for, both locally and where it is forwarded to.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use adit_interop::TempFolder;
use adit_interop::openssh::{Sshd, generate_key};

use super::{Got, World, run, run_fine};

/// OpenSSH's agent, which ends with the test.
struct Agent {
    folder: TempFolder,
    process: Child,
}

impl Agent {
    fn start() -> Self {
        let folder = TempFolder::new("agent").unwrap();
        let mut command = Command::new("ssh-agent");
        command
            .arg("-D")
            .arg("-a")
            .arg(folder.path().join("socket"));
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        // It prints its address once it runs.
        let mut line = String::new();
        let said = process.stdout.take().unwrap();
        BufReader::new(said).read_line(&mut line).unwrap();
        assert!(line.contains("SSH_AUTH_SOCK"), "{line}");
        Self { folder, process }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Loads only this key, with these constraints.
    fn keep(&self, key: &Path, constraints: &[&str], known: &Path) {
        let add = || {
            let mut command = Command::new("ssh-add");
            command.env("SSH_AUTH_SOCK", self.socket()).arg("-q");
            command
        };
        run_fine(add().arg("-D"));
        let mut command = add();
        command.arg("-H").arg(known);
        for constraint in constraints {
            command.args(["-h", constraint]);
        }
        run_fine(command.arg(key));
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Three hosts that accept the same key, and a file of their names: `one`, `two`, `three`.
struct Hosts {
    world: World,
    others: [Sshd; 2],
    names: PathBuf,
}

impl Hosts {
    fn new() -> Self {
        let world = World::new("");
        let others = [Sshd::start("").unwrap(), Sshd::start("").unwrap()];
        let mut names = String::new();
        for (name, sshd) in [
            ("one", &world.sshd),
            ("two", &others[0]),
            ("three", &others[1]),
        ] {
            fs::copy(
                world.key().with_extension("pub"),
                sshd.folder().join("authorized_keys"),
            )
            .unwrap();
            names += &format!("{name} {}\n", sshd.host_key().unwrap().trim());
        }
        let names = world.home.write_file("names", names).unwrap();
        Self {
            world,
            others,
            names,
        }
    }

    /// Runs `adit ssh` to a port, with the agent only.
    fn enter(&self, agent: &Agent, port: u16, more: &[&str], words: &str) -> Got {
        let mut command = self.world.bare();
        command.env("SSH_AUTH_SOCK", agent.socket());
        command.args(["-F", "none", "-p", &port.to_string()]);
        for option in [
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "GlobalKnownHostsFile=none",
            "BatchMode=yes",
        ] {
            command.args(["-o", option]);
        }
        command.args(more).arg("-q").arg(World::place()).arg(words);
        run(command, b"")
    }
}

#[test]
fn a_key_for_one_host_opens_that_one_alone() {
    let (hosts, agent) = (Hosts::new(), Agent::start());
    let (one, two) = (hosts.world.sshd.port(), hosts.others[0].port());
    agent.keep(&hosts.world.key(), &["one"], &hosts.names);
    assert_eq!(hosts.enter(&agent, one, &[], "echo in").fine(), "in\n");
    let got = hosts.enter(&agent, two, &[], "echo in");
    assert_eq!((got.code, &*got.out), (Some(255), &b""[..]), "{}", got.err);
    // The other host accepts the key, if the agent allows it.
    agent.keep(&hosts.world.key(), &["one", "two"], &hosts.names);
    assert_eq!(hosts.enter(&agent, two, &[], "echo in").fine(), "in\n");
    // Through one host to another, each has a separate binding.
    let jump = format!("{}:{one}", World::place());
    let options = ["-o", &format!("ProxyJump={jump}")];
    let config = "Host *\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n \
                  BatchMode yes\n LogLevel QUIET\n";
    let config = hosts.world.home.write_file("config", config).unwrap();
    let mut command = hosts.world.bare();
    command.env("SSH_AUTH_SOCK", agent.socket());
    command.arg("-F").arg(config).args(["-p", &two.to_string()]);
    command.args(options).arg(World::place()).arg("echo in");
    assert_eq!(run(command, b"").fine(), "in\n");
}

#[test]
fn a_forwarded_agent_knows_where_it_is_used() {
    let (hosts, agent) = (Hosts::new(), Agent::start());
    let one = hosts.world.sshd.port();
    let [two, three] = [0, 1].map(|n| hosts.others[n].port());
    agent.keep(&hosts.world.key(), &["one", "one>two"], &hosts.names);
    let onwards = |port: u16| {
        format!(
            "ssh -F none -p {port} -o BatchMode=yes -o StrictHostKeyChecking=no \
             -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR {} echo in",
            World::place()
        )
    };
    let got = hosts.enter(&agent, one, &["-A"], &onwards(two));
    assert_eq!(got.fine(), "in\n");
    let got = hosts.enter(&agent, one, &["-A"], &onwards(three));
    assert_eq!((got.code, &*got.out), (Some(255), &b""[..]), "{}", got.err);
    // Not from elsewhere, and not without the connection through the first.
    let got = hosts.enter(&agent, two, &[], "echo in");
    assert_eq!(got.code, Some(255), "{}", got.err);
}

/// OpenSSH's client forwards an agent through adit's server to another host.
#[test]
fn our_server_is_a_host_on_the_way() {
    let (hosts, agent) = (Hosts::new(), Agent::start());
    let folder = TempFolder::new("sshd").unwrap();
    let (id, host) = (
        hosts.world.key(),
        generate_key(folder.path(), "host").unwrap(),
    );
    let public = id.with_extension("pub");
    let mut args = vec!["sshd", "--listen", "127.0.0.1:0", "--host-key"];
    args.extend([
        host.to_str().unwrap(),
        "--authorized-keys",
        public.to_str().unwrap(),
    ]);
    let adit = adit_interop::AditProcess::start(&args, 1).unwrap();
    let line = fs::read_to_string(host.with_extension("pub")).unwrap();
    let names = fs::read_to_string(&hosts.names).unwrap() + &format!("ours {line}");
    fs::write(&hosts.names, names).unwrap();
    agent.keep(&id, &["ours", "ours>two"], &hosts.names);
    let options = "-F none -o BatchMode=yes -o StrictHostKeyChecking=no \
                   -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR";
    for (port, good) in [
        (hosts.others[0].port(), true),
        (hosts.others[1].port(), false),
    ] {
        let place = World::place();
        let mut command = Command::new("timeout");
        command.args(["60", "ssh", "-A", "-p", &adit.addr().port().to_string()]);
        command.args(options.split_whitespace());
        command.env("SSH_AUTH_SOCK", agent.socket());
        command.env("HOME", hosts.world.home.path());
        command
            .arg(&place)
            .arg(format!("ssh -p {port} {options} {place} echo in"));
        let got = run(command, b"");
        assert_eq!(got.text() == "in\n", good, "{}", got.err);
    }
}
