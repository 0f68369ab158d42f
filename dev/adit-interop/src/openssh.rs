//! OpenSSH's server, and its client as a command, with their own keys in a folder.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context, Result, ensure};

use crate::port::{Transport, free_port, wait_port};
use crate::tool::{self, Ended};
use crate::{Folder, PATIENCE, Process};

/// Path of the server on Debian; sshd requires to be started by its full path.
const SSHD: &str = "/usr/sbin/sshd";

/// A running `sshd` on loopback that accepts the calling user with one key.
#[derive(Debug)]
pub struct Sshd {
    folder: Folder,
    process: Process,
    port: u16,
}

/// Creates the folder of sshd's unprivileged part, which its service otherwise creates.
pub fn make_room() {
    let _ = fs::create_dir_all("/run/sshd");
}

impl Sshd {
    /// Starts the server; `more` are additional lines of its configuration.
    pub fn start(more: &str) -> Result<Self> {
        let folder = Folder::new("sshd")?;
        keygen(folder.path(), "host")?;
        keygen(folder.path(), "id")?;
        let keys = folder.path().join("authorized_keys");
        fs::copy(folder.path().join("id.pub"), &keys)?;
        make_room();
        let port = free_port();
        let folder_path = folder.path().display();
        // The first value of a keyword counts, so `more` precedes the defaults. A shell of sshd
        // reads the startup files of the home directory, which may print or fail (pyenv's lines do,
        // and take half a second): the programs of the tests have a home directory without them.
        let home = folder.path().join("home");
        fs::create_dir(&home)?;
        let home = home.display();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {folder_path}/host\n\
             AuthorizedKeysFile {folder_path}/authorized_keys\nPidFile none\nStrictModes no\n\
             {more}\nSetEnv HOME={home}\nPermitRootLogin yes\nPasswordAuthentication no\nUsePAM no\n\
             MaxStartups 200\nMaxSessions 200\nAllowTcpForwarding yes\n\
             AllowStreamLocalForwarding yes\nSubsystem sftp internal-sftp\n"
        );
        let config = folder.write("sshd_config", config)?;
        let mut command = Command::new(SSHD);
        command.args(["-D", "-e", "-f"]).arg(config);
        let process = Process::spawn(command)?;
        wait_port(Transport::Tcp, port, PATIENCE)
            .with_context(|| format!("sshd did not start:\n{}", process.log()))?;
        Ok(Self {
            folder,
            process,
            port,
        })
    }

    /// Returns the port it listens on, at 127.0.0.1.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns the folder with its files: `host`, `host.pub`, `id`, `id.pub`, `authorized_keys`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the text of the authorized private key.
    pub fn user_key(&self) -> Result<String> {
        Ok(fs::read_to_string(self.folder().join("id"))?)
    }

    /// Returns the line of its public host key.
    pub fn host_key(&self) -> Result<String> {
        Ok(fs::read_to_string(self.folder().join("host.pub"))?)
    }

    /// Returns the listener's process.
    #[must_use]
    pub const fn process(&self) -> &Process {
        &self.process
    }
}

/// Returns the user that the tests run as.
#[must_use]
pub fn user() -> String {
    env::var("USER").unwrap_or_else(|_| {
        let mut command = Command::new("id");
        command.arg("-un");
        let output = command.output().map(|output| output.stdout);
        String::from_utf8_lossy(&output.unwrap_or_default())
            .trim()
            .to_owned()
    })
}

/// Generates a key pair `name`, `name.pub` without a passphrase in `folder`.
pub fn keygen(folder: &Path, name: &str) -> Result<PathBuf> {
    let file = folder.join(name);
    let mut command = Command::new("ssh-keygen");
    command
        .args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"])
        .arg(&file);
    tool::run(command, PATIENCE)?.success()?;
    Ok(file)
}

/// Returns the command `ssh` of OpenSSH to 127.0.0.1, with a key, any host key, and no user
/// configuration.
#[must_use]
pub fn ssh(port: u16, key: &Path) -> Command {
    let mut command = Command::new("ssh");
    command.args(["-F", "none", "-p", &port.to_string(), "-i"]);
    command.arg(key);
    for option in [
        "IdentitiesOnly=yes",
        "StrictHostKeyChecking=no",
        "UserKnownHostsFile=/dev/null",
        "GlobalKnownHostsFile=/dev/null",
        "LogLevel=ERROR",
        "BatchMode=yes",
        "ControlPath=none",
        "ConnectTimeout=20",
    ] {
        command.args(["-o", option]);
    }
    command
}

/// Runs the command to its end, for at most `limit`.
pub fn run(command: Command, limit: Duration) -> Result<Ended> {
    ensure!(Path::new(SSHD).is_file(), tool::missing("sshd"));
    tool::run(command, limit)
}
