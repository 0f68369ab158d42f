//! The SSH server of OpenSSH on this machine, with keys of its own.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::command::{CommandRun, find_program, target_dir};
use crate::install;

/// Time in which the server must listen.
const START: Duration = Duration::from_secs(30);

/// A server on loopback that the owner of a key can log in to as the user of this process; it ends with this value.
#[derive(Debug)]
pub(super) struct OpensshServer {
    child: Child,
    folder: PathBuf,
    pub(super) port: u16,
    /// The name of the user.
    pub(super) user: String,
}

impl OpensshServer {
    /// Makes keys and starts a server.
    pub(super) fn start() -> Result<Self> {
        install::install_tools(&[("sshd", "openssh-server"), ("ssh-keygen", "openssh-client")])?;
        let folder = target_dir()
            .join("xtask")
            .join(format!("openssh-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        for name in ["host", "key"] {
            CommandRun::new("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f"])
                .args([folder.join(name)])
                .run_captured("ssh-keygen")?;
        }
        // Its service creates the folder otherwise; only root's server needs it.
        let _ = fs::create_dir_all("/run/sshd");
        // The port is free until another program takes it, which is an error below.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let sshd = find_program("sshd").context("cannot find `sshd`")?;
        let child = Command::new(sshd)
            .args(["-D", "-e", "-f", "/dev/null", "-p", &port.to_string()])
            .args(["-o", "ListenAddress=127.0.0.1", "-o", "PidFile=none"])
            .args(["-o", "UsePAM=no", "-o", "StrictModes=no"])
            // Shells read the startup files of the home folder, which may print.
            .args(["-o", &format!("SetEnv=HOME={}", folder.display())])
            .args(["-o", "PermitRootLogin=yes", "-h"])
            .args([folder.join("host")])
            .arg("-o")
            .arg(format!(
                "AuthorizedKeysFile={}",
                folder.join("key.pub").display()
            ))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.join("log"))?)
            .spawn()
            .context("sshd")?;
        let server = Self {
            child,
            folder,
            port,
            user: CommandRun::new("id", ["-un"])
                .run_captured("id-name")?
                .trim()
                .to_owned(),
        };
        let start = Instant::now();
        while start.elapsed() < START {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(server);
            }
            thread::sleep(Duration::from_millis(50));
        }
        bail!("sshd does not listen:\n{}", server.log_so_far())
    }

    /// Returns the path of the private key that the server accepts.
    pub(super) fn key(&self) -> PathBuf {
        self.folder.join("key")
    }

    /// Returns what the server has logged.
    pub(super) fn log_so_far(&self) -> String {
        read_lossy(&self.folder.join("log"))
    }
}

fn read_lossy(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

impl Drop for OpensshServer {
    fn drop(&mut self) {
        // The process belongs to this trial and has no state to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
