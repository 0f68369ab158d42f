//! SSH implementations that are libraries, each under a small program of this repository with a
//! uniform interface: a list of algorithms, a server, and a client that performs jobs.
//!
//! The programs are `peers/sshgo`, `peers/russhpeer`, and those in Python, which `peers/sshjobs.py`
//! describes.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::kcp_go::ListeningPeer;
use crate::openssh::current_user;
use crate::{TEST_TIMEOUT, external_tools};

const JOBS: &str = include_str!("../peers/sshjobs.py");
const ASYNCSSH: &str = include_str!("../peers/asyncsshpeer.py");
const PARAMIKO: &str = include_str!("../peers/paramikopeer.py");
const LIBSSH2: &str = include_str!("../peers/libssh2peer.py");

/// An implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SshPeer {
    /// asyncssh, in Python; the only one with all four UMACs.
    Asyncssh,
    /// golang.org/x/crypto/ssh.
    Go,
    /// libssh2 1.10, in C, as a client only; without strict key exchange.
    Libssh2,
    /// paramiko, in Python.
    Paramiko,
    /// russh, in Rust.
    Russh,
}

/// The names of the algorithms that a peer supports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AlgorithmNames {
    /// Ciphers.
    pub cipher: Vec<String>,
    /// MACs.
    pub mac: Vec<String>,
    /// Methods of key exchange.
    pub kex: Vec<String>,
}

impl AlgorithmNames {
    /// Parses lines of a kind and a name.
    fn parse(output: &str) -> Self {
        let mut all = Self::default();
        for (kind, name) in output.lines().filter_map(|line| line.split_once(' ')) {
            match kind {
                "cipher" => all.cipher.push(name.to_owned()),
                "mac" => all.mac.push(name.to_owned()),
                "kex" => all.kex.push(name.to_owned()),
                _ => {}
            }
        }
        all
    }
}

impl SshPeer {
    /// Returns the algorithms it supports.
    pub fn algorithms(self) -> Result<AlgorithmNames> {
        let output = external_tools::run_to_end(self.command("algorithms"), TEST_TIMEOUT);
        let output = output
            .context(external_tools::missing_program_message(self.program_name()))?
            .expect_success()?;
        let all = AlgorithmNames::parse(&output);
        ensure!(!all.cipher.is_empty() && !all.kex.is_empty(), "{output}");
        Ok(all)
    }

    /// Starts a server with a private host key that accepts the owner of one public key and runs
    /// programs with a shell; it renews keys after `rekey` bytes. It prints `keys` for each key
    /// exchange; the one on russh only with `diffie-hellman-group-exchange-sha256`.
    pub fn start_server(
        self,
        host_key: &Path,
        allowed: &Path,
        rekey: Option<u64>,
    ) -> Result<ListeningPeer> {
        let mut command = self.command("server");
        command.arg("--host-key").arg(host_key);
        command.arg("--authorized-keys").arg(allowed);
        if let Some(bytes) = rekey {
            command.args(["--rekey", &bytes.to_string()]);
        }
        if self == Self::Russh {
            command.args(["--offer", "all"]);
        }
        ListeningPeer::start(command, self.program_name())
    }

    /// Runs a client that performs the jobs one after the other, each on a connection of its own;
    /// it exits successfully if all are done within `limit`.
    ///
    /// A job is `echo`, `terminal`, `connection`, `files` or `own` with its options, such as
    /// `echo,program=cat,bytes=100,cipher=aes128-ctr,mac=hmac-sha1,kex=curve25519-sha256,rekey=9`.
    pub fn run_jobs(
        self,
        server: SocketAddr,
        key: &Path,
        jobs: &[String],
        limit: Duration,
    ) -> Result<()> {
        let mut command = self.command("jobs");
        command.args(["--port", &server.port().to_string(), "--key"]);
        command
            .arg(key)
            .args(["--user", &current_user()])
            .args(jobs);
        let ended = external_tools::run_to_end(command, limit)
            .context(external_tools::missing_program_message(self.program_name()))?;
        let output = ended.expect_success().context(self.program_name())?;
        let done = output.lines().filter_map(|line| line.strip_prefix("done "));
        ensure!(
            done.eq(jobs),
            "only {} of {} jobs were done: {output}",
            self.program_name(),
            jobs.len()
        );
        Ok(())
    }

    const fn program_name(self) -> &'static str {
        match self {
            Self::Asyncssh | Self::Libssh2 | Self::Paramiko => "python/bin/python",
            Self::Go => "sshgo",
            Self::Russh => "russhpeer",
        }
    }

    fn command(self, role: &str) -> Command {
        let mut command = Command::new(external_tools::peer_path(self.program_name()));
        let own = match self {
            Self::Asyncssh => Some(ASYNCSSH),
            Self::Libssh2 => Some(LIBSSH2),
            Self::Paramiko => Some(PARAMIKO),
            Self::Go | Self::Russh => None,
        };
        if let Some(own) = own {
            command.arg("-c").arg(format!("{JOBS}\n{own}"));
        }
        command.arg(role);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_algorithms_are_read() {
        let all = AlgorithmNames::parse("cipher a\nmac b\nkex c\nmac d\nelse e\nno\n");
        let names = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        assert_eq!(all.cipher, names(&["a"]));
        assert_eq!(all.mac, names(&["b", "d"]));
        assert_eq!(all.kex, names(&["c"]));
    }

    #[test]
    fn a_client_without_a_server_is_no_success() {
        let folder = crate::TempFolder::new("sshpeer").unwrap();
        let key = crate::openssh::generate_key(folder.path(), "id").unwrap();
        let nobody = SocketAddr::from(([127, 0, 0, 1], crate::free_port()));
        let job = ["echo,program=cat,bytes=1".to_owned()];
        SshPeer::Go
            .run_jobs(nobody, &key, &job, TEST_TIMEOUT)
            .unwrap_err();
    }
}
