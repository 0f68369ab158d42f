//! Starting the binary in the shapes that most tests use.

use std::env;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use adit_interop::shadowsocks::{BLAKE3_AES_128, Method};
use adit_interop::tool::{self, Ended};
use adit_interop::{Adit, free_port, loopback};

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
