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

/// Divisor of the bytes of a transfer: a tunnel carries less than a TCP relay in the same time.
pub(crate) const SHARE: u64 = 8;

fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    let (end, line) = line(role, at)?;
    let program = if end == "server" {
        "kcptun-server"
    } else {
        "kcptun-client"
    };
    Some(Recipe::new(program, &line))
}

/// The options of both ends in most suites.
pub(crate) const USUAL: &str = "--key benchmark --crypt aes --mode fast3 --datashard 10 \
    --parityshard 3 --nocomp --sndwnd 1024 --rcvwnd 1024 --quiet";

/// Returns the end, and its options in kcptun's syntax.
pub(super) fn line(role: &Role, at: SocketAddr) -> Option<(&'static str, String)> {
    Some(match role {
        Role::KcptunServer { to, options } => ("server", format!("-l {at} -t {to} {options}")),
        Role::KcptunClient { server, options } => {
            ("client", format!("-l {at} -r {server} {options}"))
        }
        _ => return None,
    })
}
