//! What a pair of SSH client and server is told, whoever they are.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use adit_interop::openssh;
use anyhow::{Context, Result};

use crate::places;

/// The files that every process of this protocol finds in its folder.
const FILES: [(&str, &str); 4] = [
    ("host", "host"),
    ("id", "id"),
    ("id.pub", "id.pub"),
    ("id.pub", "authorized_keys"),
];

/// A cipher and, unless it has a tag of its own, a MAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Suite {
    pub(crate) cipher: &'static str,
    pub(crate) mac: Option<&'static str>,
}

impl Suite {
    /// As in tables.
    pub(crate) fn name(self) -> String {
        let short = |name: &str| name.replace("@openssh.com", "");
        match self.mac {
            None => short(self.cipher),
            Some(mac) => format!("{} + {}", short(self.cipher), short(mac)),
        }
    }
}

/// What a client is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// `-L`: a port that leads to this one.
    Forward(SocketAddr),
    /// `-D`: SOCKS5.
    Dynamic,
    /// A program at the server.
    Exec(&'static str),
}

/// The words of a client behind its name: those of OpenSSH, which others have taken over.
pub(super) fn client(at: SocketAddr, suite: Suite, server: SocketAddr, what: Use) -> Vec<String> {
    let mut words = vec!["-p".to_owned(), server.port().to_string()];
    let mut say = |some: &[&str]| words.extend(some.iter().map(|&word| word.to_owned()));
    say(&["-i", "id", "-o", "StrictHostKeyChecking=accept-new"]);
    say(&["-o", "UserKnownHostsFile=known_hosts", "-c", suite.cipher]);
    if let Some(mac) = suite.mac {
        say(&["-m", mac]);
    }
    let host = format!("{}@{}", openssh::user(), server.ip());
    match what {
        Use::Forward(to) => say(&["-N", "-L", &format!("{at}:{to}"), &host]),
        Use::Dynamic => say(&["-N", "-D", &at.to_string(), &host]),
        Use::Exec(program) => say(&[&host, program]),
    }
    words
}

/// Puts the keys of all processes into `folder`; made once for all runs.
pub(super) fn place_keys(folder: &Path) -> Result<()> {
    let kept = kept()?;
    for (from, to) in FILES {
        let to = folder.join(to);
        fs::copy(kept.join(from), &to).context("the keys of the benchmark")?;
        fs::set_permissions(&to, fs::Permissions::from_mode(0o600))?;
    }
    Ok(())
}

fn kept() -> Result<PathBuf> {
    let kept = places::target_dir().join("bench-ssh");
    fs::create_dir_all(&kept)?;
    for name in ["host", "id"] {
        if !kept.join(name).is_file() {
            openssh::keygen(&kept, name)?;
        }
    }
    Ok(kept)
}
