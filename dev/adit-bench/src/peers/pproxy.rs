//! pproxy: written anew in Python, without the authenticating protocols.

use std::net::SocketAddr;

use super::ssrcli::{PYTHON, package_version};
use super::{Kind, Programs, Recipe, Role, Source};

pub(super) const KIND: Kind = Kind {
    name: "pproxy",
    // The second shows that the package is there.
    programs: &[PYTHON, "python/bin/pproxy"],
    version,
    recipe,
    threads: None,
    relay_files: 2,
    most_held: None,
    // Its ciphers are Python too.
    slower: 1024,
    source: Source::Installed,
};

/// Its ciphers.
const METHODS: [&str; 3] = ["rc4-md5", "aes-128-cfb", "aes-256-ctr"];
const PROTOCOLS: [&str; 1] = ["origin"];
const OBFS: [&str; 2] = ["plain", "tls1.2_ticket_auth"];

fn version(programs: &Programs) -> String {
    package_version(programs, "pproxy")
}

fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    let (setup, words) = match role {
        Role::SsrServer(setup) => (setup, vec!["-l".to_owned(), setup.pproxy_url(at)]),
        Role::SsrClient { setup, server } => {
            let listen = format!("socks5://{at}");
            let there = setup.pproxy_url(*server);
            (setup, vec!["-l".to_owned(), listen, "-r".to_owned(), there])
        }
        _ => return None,
    };
    let known = METHODS.contains(&setup.method)
        && PROTOCOLS.contains(&setup.protocol)
        && OBFS.contains(&setup.obfs);
    let module = ["-m", "pproxy"].map(str::to_owned);
    known.then(|| Recipe::new(PYTHON, module.into_iter().chain(words)))
}
