//! pproxy: an independent implementation in Python, without the authenticating protocols.

use std::net::SocketAddr;

use super::ssrcli::{PYTHON, package_version};
use super::{PeerKind, PeerRole, ProgramPaths, StartRecipe};

pub(super) const KIND: PeerKind = PeerKind {
    name: "pproxy",
    // The second program shows that the package is installed.
    programs: &[PYTHON, "python/bin/pproxy"],
    version: pproxy_version,
    recipe: start_recipe,
    // Its ciphers are in Python too.
    transfer_divisor: 1024,
    ..PeerKind::DEFAULT
};

/// Its ciphers.
const METHODS: [&str; 3] = ["rc4-md5", "aes-128-cfb", "aes-256-ctr"];
const PROTOCOLS: [&str; 1] = ["origin"];
const OBFS: [&str; 2] = ["plain", "tls1.2_ticket_auth"];

fn pproxy_version(programs: &ProgramPaths) -> String {
    package_version(programs, "pproxy")
}

fn start_recipe(role: &PeerRole, at: SocketAddr) -> Option<StartRecipe> {
    let (setup, line) = match role {
        PeerRole::SsrServer(setup) => (setup, setup.pproxy_url(at)),
        PeerRole::SsrClient { setup, server } => {
            let there = setup.pproxy_url(*server);
            (setup, format!("socks5://{at} -r {there}"))
        }
        _ => return None,
    };
    let known = METHODS.contains(&setup.method)
        && PROTOCOLS.contains(&setup.protocol)
        && OBFS.contains(&setup.obfs);
    known.then(|| StartRecipe::new(PYTHON, &format!("-m pproxy -l {line}")))
}
