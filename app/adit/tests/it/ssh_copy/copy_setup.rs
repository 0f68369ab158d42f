//! A server, and two folders with files.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use adit_interop::external_tools::ToolOutput;
use adit_interop::openssh::{self, Sshd, generate_key};
use adit_interop::{AditProcess, TempFolder};

use crate::setup::bin;

pub(super) const LIMIT: Duration = Duration::from_secs(120);

/// The program of the server, with the value that keeps it running.
pub(super) enum Server {
    OpenSsh(Sshd),
    Ours(AditProcess),
}

/// A server, and a folder with the local and the remote files.
pub(super) struct CopySetup {
    pub(super) server: Server,
    pub(super) folder: TempFolder,
}

/// Runs a test with OpenSSH's server, then with adit's.
pub(super) fn with_both(work: impl Fn(&CopySetup)) {
    work(&CopySetup::new(|_| {
        Server::OpenSsh(Sshd::start("").unwrap())
    }));
    work(&CopySetup::new(|folder| {
        let id = generate_key(folder, "id").unwrap();
        let [host, keys] = [folder.join("host"), id.with_extension("pub")];
        let [host, keys] = [host.to_str().unwrap(), keys.to_str().unwrap()];
        let mut args = vec!["sshd", "--listen", "127.0.0.1:0"];
        args.extend(["--host-key", host, "--authorized-keys", keys]);
        Server::Ours(AditProcess::start(&args, 1).unwrap())
    }));
}

impl CopySetup {
    pub(super) fn new(server: impl FnOnce(&Path) -> Server) -> Self {
        let folder = TempFolder::new("copy").unwrap();
        for name in ["here", "there"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let server = server(folder.path());
        Self { server, folder }
    }

    pub(super) fn port(&self) -> u16 {
        match &self.server {
            Server::OpenSsh(sshd) => sshd.port(),
            Server::Ours(adit) => adit.addr().port(),
        }
    }

    pub(super) fn key(&self) -> PathBuf {
        match &self.server {
            Server::OpenSsh(sshd) => sshd.folder().join("id"),
            Server::Ours(_) => self.folder.path().join("id"),
        }
    }

    pub(super) fn here(&self, name: &str) -> PathBuf {
        self.folder.path().join("here").join(name)
    }

    pub(super) fn there(&self, name: &str) -> PathBuf {
        self.folder.path().join("there").join(name)
    }

    /// Returns a remote path as a word for scp.
    pub(super) fn word(&self, name: &str) -> String {
        format!("127.0.0.1:{}", self.there(name).display())
    }

    pub(super) fn command(&self, name: &str) -> Command {
        let mut command = Command::new(bin());
        command.args([name, "-P", &self.port().to_string(), "-F", "none"]);
        command.arg("-i").arg(self.key());
        for option in [
            "IdentitiesOnly=yes",
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "GlobalKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
            "BatchMode=yes",
        ] {
            command.args(["-o", option]);
        }
        command.current_dir(self.folder.path().join("here"));
        command.stdin(Stdio::null());
        command
    }

    pub(super) fn scp(&self, args: &[&str]) -> ToolOutput {
        let mut command = self.command("scp");
        command.args(args);
        openssh::run_command(command, LIMIT).unwrap()
    }

    /// Runs a batch that starts in the remote folder.
    pub(super) fn sftp(&self, args: &[&str], commands: &str) -> ToolOutput {
        let batch = self.folder.write_file("batch", commands).unwrap();
        let mut command = self.command("sftp");
        command.args(args).arg("-b").arg(batch).arg(self.word(""));
        openssh::run_command(command, LIMIT).unwrap()
    }
}

/// Returns pseudo-random bytes.
pub(super) fn noise(len: usize, mut seed: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        out.extend_from_slice(&(seed ^ (seed >> 29)).to_le_bytes());
    }
    out.truncate(len);
    out
}

pub(super) fn same(one: &Path, other: &Path) {
    let (one, other) = (fs::read(one).unwrap(), fs::read(other).unwrap());
    assert!(one == other, "{} and {} bytes", one.len(), other.len());
}

/// Returns the content of a folder: by path, mode and content (none for folders), and optionally times.
pub(super) fn tree(root: &Path, times: bool) -> BTreeMap<OsString, (u32, i64, Option<Vec<u8>>)> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let about = fs::metadata(&path).unwrap();
            let name = path.strip_prefix(root).unwrap().as_os_str().to_owned();
            let content = about.is_file().then(|| fs::read(&path).unwrap());
            let time = if times { about.mtime() } else { 0 };
            found.insert(name, (about.mode() & 0o777, time, content));
            if about.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

/// Creates a tree of small and larger files, unusual names and empty folders.
pub(super) fn plant(root: &Path) {
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let write = |name: &OsStr, content: &[u8], mode: u32| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let file = fs::File::open(&path).unwrap();
        file.set_modified(old).unwrap();
    };
    for n in 0..200 {
        let name = format!("many/{}/{n}", n % 7);
        write(OsStr::new(&name), &noise(n * 37, 7), 0o644);
    }
    for name in [
        &b"a b"[..],
        b"-r",
        b"new\nline",
        b"*?[x]",
        b"quo'te\"",
        b"back\\slash",
        b"\xff\xfe",
        b".dot",
        "ü€".as_bytes(),
        b"co:lon",
    ] {
        write(OsStr::from_bytes(name), name, 0o600);
    }
    write(OsStr::new("run"), &noise(700_001, 3), 0o755);
    write(OsStr::new("empty"), b"", 0o640);
    fs::create_dir_all(root.join("nothing/in/it")).unwrap();
    symlink("run", root.join("link")).unwrap();
    for folder in ["nothing/in/it", "nothing/in", "nothing", "many"] {
        let folder = root.join(folder);
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o750)).unwrap();
        fs::File::open(folder).unwrap().set_modified(old).unwrap();
    }
}
