//! Servers that support only SOCKS5.

use std::net::SocketAddr;

use super::{PeerKind, PeerRole, StartRecipe};
use crate::locations::debian_version;

/// It also has proxies of its own protocols; no package registry offers it.
pub(super) const GOST: PeerKind = PeerKind {
    name: "gost",
    programs: &["gost"],
    version: |programs| programs.first_line(&["-V"]),
    recipe: |role, at| {
        relay_recipe(role, || {
            StartRecipe::new("gost", &format!("-L socks5://{at}"))
        })
    },
    threads: Some("GOMAXPROCS"),
    relay_files: 6,
    installed_by_hand: true,
    ..PeerKind::DEFAULT
};

/// Coroutines on epoll in C; no package registry offers it.
pub(super) const HEV: PeerKind = PeerKind {
    name: "hev-socks5-server",
    programs: &["hev-socks5-server"],
    // Its first line is `Version: …`.
    version: |programs| programs.first_line(&["--version"]),
    recipe: |role, at| relay_recipe(role, || hev_recipe(at)),
    installed_by_hand: true,
    ..PeerKind::DEFAULT
};

/// A thread for each connection.
pub(super) const MICROSOCKS: PeerKind = PeerKind {
    name: "microsocks",
    programs: &["microsocks"],
    // It does not report its version; Debian does.
    version: |programs| {
        let path = programs.path("microsocks");
        let packaged = path.is_some_and(|path| path.starts_with("/usr/bin"));
        match debian_version("microsocks") {
            known if packaged && !known.is_empty() => format!("microsocks {known}"),
            _ => String::new(),
        }
    },
    recipe: |role, at| {
        let line = format!("-i {} -p {}", at.ip(), at.port());
        relay_recipe(role, || StartRecipe::new("microsocks", &line))
    },
    max_held: Some((10_000, "a thread for each connection")),
    ..PeerKind::DEFAULT
};

/// A process for every few connections.
pub(super) const DANTE: PeerKind = PeerKind {
    name: "dante",
    programs: &["danted"],
    version: |programs| {
        // `Dante v1.4.2.  Copyright …`
        let line = programs.first_line(&["-v"]);
        let version = line
            .split_once(".  ")
            .map(|(version, _)| version.to_owned());
        version.unwrap_or(line)
    },
    recipe: |role, at| relay_recipe(role, || dante_recipe(at)),
    max_held: Some((
        2000,
        "a process for every few connections, 300 KiB for each",
    )),
    ..PeerKind::DEFAULT
};

/// Returns a recipe for a relay; `None` for any other role.
fn relay_recipe(role: &PeerRole, recipe: impl FnOnce() -> StartRecipe) -> Option<StartRecipe> {
    matches!(role, PeerRole::Relay).then(recipe)
}

fn hev_recipe(at: SocketAddr) -> StartRecipe {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    StartRecipe::new("hev-socks5-server", "").with_config(format!(
        "main:\n  workers: {workers}\n  port: {}\n  listen-address: '{}'\nmisc:\n  log-level: error\n",
        at.port(),
        at.ip(),
    ))
}

fn dante_recipe(at: SocketAddr) -> StartRecipe {
    StartRecipe::new("danted", "-f").with_config(format!(
        "errorlog: stderr\n\
         internal: {ip} port = {port}\n\
         external: {ip}\n\
         clientmethod: none\n\
         socksmethod: none\n\
         client pass {{ from: {ip}/8 to: 0.0.0.0/0 }}\n\
         socks pass {{ from: {ip}/8 to: 0.0.0.0/0 }}\n",
        ip = at.ip(),
        port = at.port(),
    ))
}
