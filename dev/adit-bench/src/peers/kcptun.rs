//! kcptun itself: a program for each end of its tunnel.

use std::net::SocketAddr;

use super::{PeerKind, PeerRole, StartRecipe};
use crate::locations::debian_version;

pub(super) const KIND: PeerKind = PeerKind {
    name: "kcptun",
    programs: &["kcptun-server", "kcptun-client"],
    version: |_| format!("kcptun {}", debian_version("kcptun")),
    recipe: start_recipe,
    threads: Some("GOMAXPROCS"),
    transfer_divisor: TRANSFER_DIVISOR,
    ..PeerKind::DEFAULT
};

/// Divisor of the bytes of a transfer: a tunnel carries less than a TCP relay in the same time.
pub(crate) const TRANSFER_DIVISOR: u64 = 8;

fn start_recipe(role: &PeerRole, at: SocketAddr) -> Option<StartRecipe> {
    let (end, line) = end_and_options(role, at)?;
    let program = if end == "server" {
        "kcptun-server"
    } else {
        "kcptun-client"
    };
    Some(StartRecipe::new(program, &line))
}

/// The options of both ends in most suites.
pub(crate) const DEFAULT_OPTIONS: &str = "--key benchmark --crypt aes --mode fast3 --datashard 10 \
    --parityshard 3 --nocomp --sndwnd 1024 --rcvwnd 1024 --quiet";

/// Returns the end, and its options in kcptun's syntax.
pub(super) fn end_and_options(role: &PeerRole, at: SocketAddr) -> Option<(&'static str, String)> {
    Some(match role {
        PeerRole::KcptunServer { to, options } => ("server", format!("-l {at} -t {to} {options}")),
        PeerRole::KcptunClient { server, options } => {
            ("client", format!("-l {at} -r {server} {options}"))
        }
        _ => return None,
    })
}
