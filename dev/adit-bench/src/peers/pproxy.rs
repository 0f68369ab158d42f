//! pproxy: an independent implementation in Python, without the authenticating protocols.

use std::net::SocketAddr;

use super::ssrcli::{PYTHON, package_version};
use super::{Kind, Programs, Recipe, Role};

pub(super) const KIND: Kind = Kind {
    name: "pproxy",
    // The second program shows that the package is installed.
    programs: &[PYTHON, "python/bin/pproxy"],
    version,
    recipe,
    // Its ciphers are in Python too.
    slower: 1024,
    ..Kind::USUAL
};

/// Its ciphers.
const METHODS: [&str; 3] = ["rc4-md5", "aes-128-cfb", "aes-256-ctr"];
const PROTOCOLS: [&str; 1] = ["origin"];
const OBFS: [&str; 2] = ["plain", "tls1.2_ticket_auth"];

fn version(programs: &Programs) -> String {
    package_version(programs, "pproxy")
}

fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    let (setup, line) = match role {
        Role::SsrServer(setup) => (setup, setup.pproxy_url(at)),
        Role::SsrClient { setup, server } => {
            let there = setup.pproxy_url(*server);
            (setup, format!("socks5://{at} -r {there}"))
        }
        _ => return None,
    };
    let known = METHODS.contains(&setup.method)
        && PROTOCOLS.contains(&setup.protocol)
        && OBFS.contains(&setup.obfs);
    known.then(|| Recipe::new(PYTHON, &format!("-m pproxy -l {line}")))
}
