//! Starting the binary in the shapes that most tests use.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use adit_interop::shadowsocks::{BLAKE3_AES_128, Method, encode};
use adit_interop::tool::{self, Ended};
use adit_interop::{Adit, Folder, free_port, loopback};

/// What a listener without a hop needs to reach the servers of these tests.
pub(crate) const ALLOW: &str = "allow_private=127.0.0.0/8,::1/128";

/// The binary under test.
pub(crate) fn bin() -> PathBuf {
    let built = env!("CARGO_BIN_EXE_adit");
    env::var_os("ADIT_BIN").map_or_else(|| PathBuf::from(built), PathBuf::from)
}

/// Starts `adit` with these arguments and one listener.
pub(crate) fn start(args: &[&str]) -> Adit {
    Adit::start_with(&bin(), args, 1).unwrap()
}

/// Memory that a running `adit` has allocated, in KiB: parts of the program come and go with its use.
pub(crate) fn resident(adit: &mut Adit) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", adit.process().id())).unwrap();
    let mut lines = status.lines();
    let line = lines.find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Runs `adit` to its end.
pub(crate) fn ended(args: &[&str]) -> Ended {
    let mut command = Command::new(bin());
    command.args(args);
    tool::run(command, Duration::from_secs(20)).unwrap()
}

/// A Shadowsocks server of ours that reaches loopback.
pub(crate) fn server(method: Method) -> Adit {
    let url = format!("{}?{ALLOW}", method.url(loopback(free_port())));
    start(&["run", &url])
}

/// A server of ours that identity headers are addressed to, or whose users have passwords alone;
/// who they are stands in a file.
#[derive(Debug)]
pub(crate) struct UsersFile {
    folder: Folder,
}

impl UsersFile {
    /// A file with these users.
    pub(crate) fn new(users: &[(&str, &str)]) -> Self {
        let file = Self {
            folder: Folder::new("users").unwrap(),
        };
        file.hold(users);
        file
    }

    /// Where it is.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("users.json")
    }

    /// Holds these users from now on.
    pub(crate) fn hold(&self, users: &[(&str, &str)]) {
        let pairs: Vec<String> = users
            .iter()
            .map(|(name, key)| format!("  \"{name}\": \"{key}\""))
            .collect();
        self.say(&format!("{{\n{}\n}}\n", pairs.join(",\n")));
    }

    /// Holds this text from now on: whoever reads finds the old one or the new one.
    pub(crate) fn say(&self, text: &str) {
        let draft = self.folder.write("draft", text).unwrap();
        fs::rename(draft, self.path()).unwrap();
    }

    /// The URL of a server for these users that reaches loopback.
    pub(crate) fn url(&self, method: Method) -> String {
        let key = if method.name.starts_with("2022-") {
            format!(":{}", encode(method.key))
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

    /// That server.
    pub(crate) fn serve(&self, method: Method) -> Adit {
        start(&["run", &self.url(method)])
    }
}

/// A relay of ours to servers, each with the key that leads there.
pub(crate) fn relay(method: Method, next: &[(SocketAddr, &str)]) -> Adit {
    let folder = Folder::new("relay").unwrap();
    let one = |(to, key): &(SocketAddr, &str)| {
        let (ip, port) = (to.ip(), to.port());
        format!("{{\"server\": \"{ip}\", \"port\": {port}, \"psk\": \"{key}\"}}")
    };
    let next: Vec<String> = next.iter().map(one).collect();
    let file = folder
        .write("relay.json", format!("[{}]", next.join(",")))
        .unwrap();
    // It is read once, at the start.
    start(&["run", &relay_url(method, &file)])
}

fn relay_url(method: Method, file: &Path) -> String {
    let (name, key) = (method.name, encode(method.key));
    format!("ss://{name}:{key}@127.0.0.1:0?relay=@{}", file.display())
}

/// How requests reach the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// One process goes out directly.
    Alone,
    /// A client of ours, then a server of ours.
    Tunnel,
}

/// A listener of ours, and what stands behind it.
#[derive(Debug)]
pub(crate) struct Proxy {
    front: Adit,
    back: Option<Adit>,
}

impl Proxy {
    /// Listens at this URL, which has no query.
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

    /// A mixed listener on 127.0.0.1.
    pub(crate) fn mixed(way: Way) -> Self {
        Self::start("mixed://127.0.0.1:0", way)
    }

    /// Where it listens.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.front.addr()
    }

    /// Ends all; each process must end well.
    pub(crate) fn stop(self) {
        self.front.stop().unwrap();
        if let Some(back) = self.back {
            back.stop().unwrap();
        }
    }
}
