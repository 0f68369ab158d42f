//! hev-socks5-server: coroutines on epoll in C; no package registry offers it.

use std::net::SocketAddr;

use super::{Kind, Programs, Recipe, Role, Source};

pub(super) const KIND: Kind = Kind {
    name: "hev-socks5-server",
    programs: &["hev-socks5-server"],
    version,
    recipe,
    threads: None,
    relay_files: 2,
    most_held: None,
    slower: 1,
    source: Source::ByHand,
};

/// Its first line reads `Version: …`.
fn version(programs: &Programs) -> String {
    let told = programs.ask(&["--version"]);
    told.lines().next().unwrap_or_default().to_owned()
}

fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    let Role::Relay = role else {
        return None;
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let config = format!(
        "main:\n  workers: {workers}\n  port: {}\n  listen-address: '{}'\nmisc:\n  log-level: error\n",
        at.port(),
        at.ip(),
    );
    Some(Recipe::new("hev-socks5-server", [""; 0]).with_config(config))
}
