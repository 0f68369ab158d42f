//! The tests' peer on current kcp-go, smux and snappy: kcptun's ends.

use std::net::SocketAddr;

use super::kcptun::{DEFAULT_OPTIONS, TRANSFER_DIVISOR};
use super::{PeerKind, PeerRole, StartRecipe};

pub(super) const KIND: PeerKind = PeerKind {
    name: "kcp-go",
    programs: &["kcppeer"],
    version: |_| VERSIONS.to_owned(),
    recipe: start_recipe,
    threads: Some("GOMAXPROCS"),
    transfer_divisor: TRANSFER_DIVISOR,
    ..PeerKind::DEFAULT
};

/// The versions in its `go.mod`; a test compares them.
const VERSIONS: &str = "kcp-go v5.6.72, smux v1.5.56, klauspost/reedsolomon v1.12.0";

fn start_recipe(role: &PeerRole, at: SocketAddr) -> Option<StartRecipe> {
    // The peer has options of its own for them.
    let (end, to) = match *role {
        PeerRole::KcptunServer {
            to,
            options: DEFAULT_OPTIONS,
        } => ("server", format!("-t {to}")),
        PeerRole::KcptunClient {
            server,
            options: DEFAULT_OPTIONS,
        } => ("client", format!("-r {server}")),
        _ => return None,
    };
    let line =
        format!("{end} -l {at} {to} -key benchmark -crypt aes -ds 10 -ps 3 -nocomp -life 600");
    Some(StartRecipe::new("kcppeer", &line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_module() {
        let module = include_str!("../../../adit-interop/peers/kcppeer/go.mod");
        for named in VERSIONS.split(", ") {
            let (name, version) = named.split_once(' ').unwrap();
            let line = module.lines().find(|line| line.contains(name)).unwrap();
            assert!(line.contains(&format!(" {version}")), "{named}: {line}");
        }
    }
}
