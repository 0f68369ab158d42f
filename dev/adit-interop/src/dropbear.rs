//! Dropbear's server, which looks for keys only in the home directory of a user.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::openssh::{current_user, generate_key};
use crate::ports::{Transport, free_port, wait_port};
use crate::ssh_peer::AlgorithmNames;
use crate::{ChildProcess, TEST_TIMEOUT, TempFolder, external_tools};

/// Path of the server on Debian, which the PATH of an ordinary user does not include.
const DROPBEAR: &str = "/usr/sbin/dropbear";

const CIPHERS: [&str; 3] = ["chacha20-poly1305@openssh.com", "aes128-ctr", "aes256-ctr"];
const MACS: [&str; 2] = ["hmac-sha1", "hmac-sha2-256"];
const KEX: [&str; 6] = [
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384",
    "ecdh-sha2-nistp521",
    "diffie-hellman-group14-sha256",
];

/// A library that shows a process other users than the system's.
const NSS_WRAPPER: &str = "libnss_wrapper.so";

/// A running server on loopback that accepts the calling user with one key.
#[derive(Debug)]
pub struct Dropbear {
    folder: TempFolder,
    process: ChildProcess,
    port: u16,
}

impl Dropbear {
    /// Starts the server.
    pub fn start() -> Result<Self> {
        let folder = TempFolder::new("dropbear")?;
        let path = |name: &str| folder.path().join(name);
        generate_key(folder.path(), "host")?;
        generate_key(folder.path(), "id")?;
        let mut convert = Command::new("dropbearconvert");
        convert.args(["openssh", "dropbear"]);
        convert.args([path("host"), path("dropbear")]);
        external_tools::run_to_end(convert, TEST_TIMEOUT)?.expect_success()?;
        // Others must not have write access to the path of the keys.
        let home = path("home");
        fs::create_dir_all(home.join(".ssh"))?;
        fs::copy(path("id.pub"), home.join(".ssh/authorized_keys"))?;
        for place in [home.clone(), home.join(".ssh")] {
            fs::set_permissions(place, fs::Permissions::from_mode(0o700))?;
        }
        let users = folder.write_file("passwd", passwd_with_home(&home)?)?;
        let port = free_port();
        let mut command = Command::new(DROPBEAR);
        command.args(["-F", "-E", "-p", &format!("127.0.0.1:{port}"), "-r"]);
        command.arg(path("dropbear")).arg("-P").arg(path("pid"));
        command.env("LD_PRELOAD", external_tools::library_path(NSS_WRAPPER)?);
        command.env("NSS_WRAPPER_PASSWD", users);
        command.env("NSS_WRAPPER_GROUP", "/etc/group");
        let process = ChildProcess::spawn(command)?;
        wait_port(Transport::Tcp, port, TEST_TIMEOUT)
            .with_context(|| format!("dropbear did not start:\n{}", process.output()))?;
        Ok(Self {
            folder,
            process,
            port,
        })
    }

    /// Returns the algorithms of version 2022.83, except for key exchanges with SHA-1.
    #[must_use]
    pub fn algorithms() -> AlgorithmNames {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        AlgorithmNames {
            cipher: names(&CIPHERS),
            mac: names(&MACS),
            kex: names(&KEX),
        }
    }

    /// Returns the port it listens on, at 127.0.0.1.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns the folder with its files, among them the key pairs `host` and `id`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the listener's process.
    #[must_use]
    pub const fn process(&self) -> &ChildProcess {
        &self.process
    }
}

/// Returns the system's user database, with `home` as the home directory of the calling user.
fn passwd_with_home(home: &Path) -> Result<String> {
    let (users, me) = (fs::read_to_string("/etc/passwd")?, current_user());
    let mut lines = String::new();
    for line in users.lines() {
        let mut fields: Vec<&str> = line.split(':').collect();
        let (home, mine) = (home.to_string_lossy(), fields.first() == Some(&&*me));
        if let Some(place) = fields.get_mut(5).filter(|_| mine) {
            *place = &home;
        }
        lines += &fields.join(":");
        lines.push('\n');
    }
    Ok(lines)
}
