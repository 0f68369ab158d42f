//! Starting the binary in the ways that most tests use.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use adit_interop::external_tools::{self, ToolOutput};
use adit_interop::shadowsocks::{BLAKE3_AES_128, MethodKey, percent_encode};
use adit_interop::{AditProcess, TempFolder, free_port, loopback_addr};

/// The setting that lets a listener without a hop reach the servers of these tests.
pub(crate) const ALLOW: &str = "allow_private=127.0.0.0/8,::1/128";

/// Returns the path of the binary under test.
pub(crate) fn bin() -> PathBuf {
    let built = env!("CARGO_BIN_EXE_adit");
    env::var_os("ADIT_BIN").map_or_else(|| PathBuf::from(built), PathBuf::from)
}

/// Starts `adit` with these arguments and one listener.
pub(crate) fn start(args: &[&str]) -> AditProcess {
    AditProcess::start_with(&bin(), args, 1).unwrap()
}

/// Returns the memory that a running `adit` has allocated, in KiB. It varies with the parts in use.
pub(crate) fn resident(adit: &mut AditProcess) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", adit.process().id())).unwrap();
    let mut lines = status.lines();
    let line = lines.find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Runs `adit` until it exits.
pub(crate) fn ended(args: &[&str]) -> ToolOutput {
    let mut command = Command::new(bin());
    command.args(args);
    external_tools::run_to_end(command, Duration::from_secs(20)).unwrap()
}

/// Asserts that the output has all of these words.
pub(crate) fn says(output: &str, words: &[&str]) {
    for word in words {
        assert!(output.contains(word), "`{word}` is not in:\n{output}");
    }
}

/// Starts a Shadowsocks server of adit that may reach loopback.
pub(crate) fn server(method: MethodKey) -> AditProcess {
    let url = format!("{}?{ALLOW}", method.url(loopback_addr(free_port())));
    start(&["run", &url])
}

/// A Shadowsocks server of adit with a file of users, who have identity headers or only passwords.
#[derive(Debug)]
pub(crate) struct UsersFile {
    folder: TempFolder,
}

impl UsersFile {
    /// Creates a file with these users.
    pub(crate) fn new(users: &[(&str, &str)]) -> Self {
        let file = Self {
            folder: TempFolder::new("users").unwrap(),
        };
        file.hold(users);
        file
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("users.json")
    }

    /// Replaces the users of the file.
    pub(crate) fn hold(&self, users: &[(&str, &str)]) {
        let pairs: Vec<String> = users
            .iter()
            .map(|(name, key)| format!("  \"{name}\": \"{key}\""))
            .collect();
        self.say(&format!("{{\n{}\n}}\n", pairs.join(",\n")));
    }

    /// Replaces the text of the file. Readers see either the old text or the new one.
    pub(crate) fn say(&self, text: &str) {
        let draft = self.folder.write_file("draft", text).unwrap();
        fs::rename(draft, self.path()).unwrap();
    }

    /// Returns the URL of a server for these users that may reach loopback.
    pub(crate) fn url(&self, method: MethodKey) -> String {
        let key = if method.name.starts_with("2022-") {
            format!(":{}", percent_encode(method.key))
        } else {
            String::new()
        };
        let path = self.path();
        let users = path.display();
        format!(
            "ss://{}{key}@127.0.0.1:0?users=@{users}&{ALLOW}",
            method.name
        )
    }

    /// Starts that server.
    pub(crate) fn serve(&self, method: MethodKey) -> AditProcess {
        start(&["run", &self.url(method)])
    }
}

/// Starts a relay of adit to servers, each with the key that leads to it.
pub(crate) fn relay(method: MethodKey, next: &[(SocketAddr, &str)]) -> AditProcess {
    let folder = TempFolder::new("relay").unwrap();
    let one = |(to, key): &(SocketAddr, &str)| {
        let (ip, port) = (to.ip(), to.port());
        format!("{{\"server\": \"{ip}\", \"port\": {port}, \"psk\": \"{key}\"}}")
    };
    let next: Vec<String> = next.iter().map(one).collect();
    let file = folder
        .write_file("relay.json", format!("[{}]", next.join(",")))
        .unwrap();
    // The file is read once, at the start.
    start(&["run", &relay_url(method, &file)])
}

fn relay_url(method: MethodKey, file: &Path) -> String {
    let (name, key) = (method.name, percent_encode(method.key));
    format!("ss://{name}:{key}@127.0.0.1:0?relay=@{}", file.display())
}

/// The path of requests to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// One process connects directly.
    Alone,
    /// A client of adit, then a server of adit.
    Tunnel,
}

/// A listener of adit and the server behind it.
#[derive(Debug)]
pub(crate) struct Proxy {
    front: AditProcess,
    back: Option<AditProcess>,
}

impl Proxy {
    /// Listens at this URL, which must not have a query.
    pub(crate) fn start(listen: &str, way: Way) -> Self {
        match way {
            Way::Alone => {
                let front = start(&["run", &format!("{listen}?{ALLOW}")]);
                Self { front, back: None }
            }
            Way::Tunnel => {
                let back = server(BLAKE3_AES_128);
                let hop = BLAKE3_AES_128.url(back.addr());
                let front = start(&["run", listen, &hop]);
                Self {
                    front,
                    back: Some(back),
                }
            }
        }
    }

    /// Starts a mixed listener on 127.0.0.1.
    pub(crate) fn mixed(way: Way) -> Self {
        Self::start("mixed://127.0.0.1:0", way)
    }

    /// Returns the address of the listener.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.front.addr()
    }

    /// Stops all processes; each must exit successfully.
    pub(crate) fn stop(self) {
        self.front.stop().unwrap();
        if let Some(back) = self.back {
            back.stop().unwrap();
        }
    }
}
