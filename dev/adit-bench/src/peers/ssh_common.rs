//! Settings of a pair of SSH client and server, for all implementations.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use adit_interop::openssh;
use anyhow::{Context, Result};

use super::StartRecipe;
use crate::locations;

/// The files in the folder of every process of this protocol.
const FILES: [(&str, &str); 4] = [
    ("host", "host"),
    ("id", "id"),
    ("id.pub", "id.pub"),
    ("id.pub", "authorized_keys"),
];

/// A cipher and, unless it is authenticated itself, a MAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SshSuite {
    pub(crate) cipher: &'static str,
    pub(crate) mac: Option<&'static str>,
}

impl SshSuite {
    /// Returns the name in tables.
    pub(crate) fn name(self) -> String {
        let short = |name: &str| name.replace("@openssh.com", "");
        match self.mac {
            None => short(self.cipher),
            Some(mac) => format!("{} + {}", short(self.cipher), short(mac)),
        }
    }

    /// Returns the command-line arguments.
    pub(super) fn arguments(self) -> String {
        let mac = self.mac.map(|mac| format!(" -m {mac}"));
        format!("-c {}{}", self.cipher, mac.unwrap_or_default())
    }
}

/// The purpose of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SshUse {
    /// `-L`: a port that leads to this address.
    Forward(SocketAddr),
    /// `-D`: SOCKS5.
    Dynamic,
    /// A program on the server.
    Exec(&'static str),
}

/// Adds the arguments of a client to `recipe`: those of OpenSSH, which other clients have adopted.
pub(super) fn client_recipe(
    recipe: StartRecipe,
    at: SocketAddr,
    suite: SshSuite,
    server: SocketAddr,
    what: SshUse,
) -> StartRecipe {
    let line = format!(
        "-p {} -i id -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=known_hosts {}",
        server.port(),
        suite.arguments()
    );
    let (use_, program) = match what {
        SshUse::Forward(to) => (format!("-N -L {at}:{to}"), None),
        SshUse::Dynamic => (format!("-N -D {at}"), None),
        SshUse::Exec(program) => (String::new(), Some(program)),
    };
    let line = format!("{line} {use_} {}@{}", openssh::current_user(), server.ip());
    let recipe = recipe.with_args(line.split_whitespace()).with_args(program);
    recipe.with_keys()
}

/// Copies the keys of all processes into `folder`; they are generated once for all runs.
pub(super) fn place_keys(folder: &Path) -> Result<()> {
    let kept = kept_keys()?;
    for (from, to) in FILES {
        let to = folder.join(to);
        fs::copy(kept.join(from), &to).context("cannot copy the keys of the benchmark")?;
        fs::set_permissions(&to, fs::Permissions::from_mode(0o600))?;
    }
    Ok(())
}

fn kept_keys() -> Result<PathBuf> {
    let kept = locations::target_dir().join("bench-ssh");
    fs::create_dir_all(&kept)?;
    for name in ["host", "id"] {
        if !kept.join(name).is_file() {
            openssh::generate_key(&kept, name)?;
        }
    }
    Ok(kept)
}
