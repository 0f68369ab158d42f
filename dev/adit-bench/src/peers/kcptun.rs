//! kcptun itself: a program for each end of its tunnel.

use std::net::SocketAddr;

use super::{Kind, Recipe, Role};
use crate::places::debian_version;

pub(super) const KIND: Kind = Kind {
    name: "kcptun",
    programs: &["kcptun-server", "kcptun-client"],
    version: |_| format!("kcptun {}", debian_version("kcptun")),
    recipe,
    threads: Some("GOMAXPROCS"),
    slower: SHARE,
    ..Kind::USUAL
};

/// A tunnel carries so much less than a relay of TCP in the same time.
pub(super) const SHARE: u64 = 8;

fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    let (end, line) = line(role, at)?;
    let program = if end == "server" {
        "kcptun-server"
    } else {
        "kcptun-client"
    };
    Some(Recipe::new(program, &line))
}

/// Which end, and its options as kcptun has them.
pub(super) fn line(role: &Role, at: SocketAddr) -> Option<(&'static str, String)> {
    let (end, to) = match role {
        Role::KcptunServer { to } => ("server", format!("-t {to}")),
        Role::KcptunClient { server } => ("client", format!("-r {server}")),
        _ => return None,
    };
    let both = "--key benchmark --crypt aes --mode fast3 --datashard 10 --parityshard 3 --nocomp \
                --sndwnd 1024 --rcvwnd 1024 --quiet";
    Some((end, format!("-l {at} {to} {both}")))
}
