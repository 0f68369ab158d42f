//! OpenSSH's server, and its client as a command, with their own keys in a folder.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context, Result, ensure};

use crate::external_tools::{self, ToolOutput};
use crate::ports::{Transport, free_port, wait_port};
use crate::{ChildProcess, TEST_TIMEOUT, TempFolder};

/// Path of the server on Debian; sshd requires to be started by its full path.
const SSHD: &str = "/usr/sbin/sshd";

/// A running `sshd` on loopback that accepts the calling user with one key.
#[derive(Debug)]
pub struct Sshd {
    folder: TempFolder,
    process: ChildProcess,
    port: u16,
}

/// Creates the folder of sshd's unprivileged part, which its service otherwise creates.
pub fn create_run_folder() {
    let _ = fs::create_dir_all("/run/sshd");
}

impl Sshd {
    /// Starts the server; `more` are additional lines of its configuration.
    pub fn start(more: &str) -> Result<Self> {
        let folder = TempFolder::new("sshd")?;
        generate_key(folder.path(), "host")?;
        generate_key(folder.path(), "id")?;
        let keys = folder.path().join("authorized_keys");
        fs::copy(folder.path().join("id.pub"), &keys)?;
        create_run_folder();
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
        let config = folder.write_file("sshd_config", config)?;
        let mut command = Command::new(SSHD);
        command.args(["-D", "-e", "-f"]).arg(config);
        let process = ChildProcess::spawn(command)?;
        wait_port(Transport::Tcp, port, TEST_TIMEOUT)
            .with_context(|| format!("sshd did not start:\n{}", process.output()))?;
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
    pub const fn process(&self) -> &ChildProcess {
        &self.process
    }
}

/// Returns the user that the tests run as.
#[must_use]
pub fn current_user() -> String {
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
pub fn generate_key(folder: &Path, name: &str) -> Result<PathBuf> {
    let file = folder.join(name);
    let mut command = Command::new("ssh-keygen");
    command
        .args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"])
        .arg(&file);
    external_tools::run_to_end(command, TEST_TIMEOUT)?.expect_success()?;
    Ok(file)
}

/// Returns the command `ssh` of OpenSSH to 127.0.0.1, with a key, any host key, and no user
/// configuration.
#[must_use]
pub fn ssh_command(port: u16, key: &Path) -> Command {
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
pub fn run_command(command: Command, limit: Duration) -> Result<ToolOutput> {
    ensure!(
        Path::new(SSHD).is_file(),
        external_tools::missing_program_message("sshd")
    );
    external_tools::run_to_end(command, limit)
}
