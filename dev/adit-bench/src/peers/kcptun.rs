//! kcptun itself: a program for each end of its tunnel.

use std::net::SocketAddr;

use super::{Kind, Programs, Recipe, Role, Source};
use crate::places::debian_version;

pub(super) const KIND: Kind = Kind {
    name: "kcptun",
    programs: &["kcptun-server", "kcptun-client"],
    version: |_: &Programs| format!("kcptun {}", debian_version("kcptun")),
    recipe,
    threads: Some("GOMAXPROCS"),
    relay_files: 2,
    most_held: None,
    slower: SHARE,
    source: Source::Installed,
};

/// A tunnel carries so much less than a relay of TCP in the same time.
pub(super) const SHARE: u64 = 8;

fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    let (end, words) = words(role, at)?;
    let program = if end == "server" {
        "kcptun-server"
    } else {
        "kcptun-client"
    };
    Some(Recipe::new(program, words))
}

/// Which end, and its options as kcptun has them.
pub(super) fn words(role: &Role, at: SocketAddr) -> Option<(&'static str, Vec<String>)> {
    let (end, to) = match role {
        Role::KcptunServer { to } => ("server", ["-t".to_owned(), to.to_string()]),
        Role::KcptunClient { server } => ("client", ["-r".to_owned(), server.to_string()]),
        _ => return None,
    };
    let at = ["-l".to_owned(), at.to_string()];
    let both = "--key benchmark --crypt aes --mode fast3 --datashard 10 --parityshard 3 --nocomp \
                --sndwnd 1024 --rcvwnd 1024 --quiet";
    let both = both.split_whitespace().map(str::to_owned);
    Some((end, at.into_iter().chain(to).chain(both).collect()))
}
