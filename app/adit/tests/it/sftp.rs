//! `adit sftp-server` with OpenSSH's `sftp`, `scp` and `sshd`.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use adit_interop::external_tools::{self, ToolOutput};
use adit_interop::{TEST_TIMEOUT, TempFolder};

use crate::setup::bin;

/// Returns pseudo-random bytes.
fn noise(len: usize, mut seed: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        out.extend_from_slice(&(seed ^ (seed >> 29)).to_le_bytes());
    }
    out.truncate(len);
    out
}

/// The folders of client and server, and the connection between them.
struct SftpSetup {
    folder: TempFolder,
}

impl SftpSetup {
    fn new() -> Self {
        let folder = TempFolder::new("sftp").unwrap();
        for name in ["here", "there"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    fn here(&self, name: &str) -> PathBuf {
        self.folder.path().join("here").join(name)
    }

    fn there(&self, name: &str) -> PathBuf {
        self.folder.path().join("there").join(name)
    }

    /// Creates a program that is adit's server with these arguments.
    fn server(&self, args: &str) -> PathBuf {
        let script = format!("#!/bin/sh\nexec '{}' sftp-server {args}\n", bin().display());
        let path = self.folder.write_file("server", script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Runs commands of `sftp` directly with adit's server.
    fn direct(&self, args: &str, commands: &str) -> ToolOutput {
        let batch = self.folder.write_file("batch", commands).unwrap();
        let mut sftp = Command::new("sftp");
        sftp.arg("-b").arg(batch).arg("-D").arg(self.server(args));
        sftp.current_dir(self.folder.path().join("here"));
        external_tools::run_to_end(sftp, Duration::from_secs(60)).unwrap()
    }

    /// Returns the arguments that connect `sftp` and `scp` through a new sshd with adit's server.
    fn through_sshd(&self, args: &str) -> Vec<String> {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        for key in ["host", "user"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", &path(key)]);
            external_tools::run_to_end(keygen, TEST_TIMEOUT)
                .unwrap()
                .expect_success()
                .unwrap();
        }
        let settings = format!(
            "HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nPermitRootLogin yes\nUsePAM no\n\
             PasswordAuthentication no\nSubsystem sftp {} sftp-server {args}\n",
            path("host"),
            path("user.pub"),
            bin().display(),
        );
        let settings = self.folder.write_file("sshd", settings).unwrap();
        // sshd needs a folder to change its root to, and its own name with the path.
        adit_interop::openssh::create_run_folder();
        let found = external_tools::peer_path("sshd");
        let sshd = match found.is_absolute() {
            true => found,
            false => PathBuf::from("/usr/sbin/sshd"),
        };
        assert!(
            sshd.is_file(),
            "{}",
            external_tools::missing_program_message("sshd")
        );
        let log = path("sshd.log");
        let proxy = format!(
            "ProxyCommand={} -i -f {} -E {log}",
            sshd.display(),
            settings.display()
        );
        [
            "-q",
            "-F",
            "none",
            "-i",
            &path("user"),
            "-o",
            "IdentitiesOnly=yes",
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            &proxy,
        ]
        .map(str::to_owned)
        .to_vec()
    }
}

fn same(one: &Path, other: &Path) {
    let (one, other) = (fs::read(one).unwrap(), fs::read(other).unwrap());
    assert!(one == other, "{} and {} bytes", one.len(), other.len());
}

#[test]
fn big_files_go_both_ways_and_go_on_where_they_were_cut() {
    let setup = SftpSetup::new();
    let big = noise(48 * 1024 * 1024 + 12_345, 1);
    fs::write(setup.here("big"), &big).unwrap();
    fs::write(setup.here("part"), &big[..1_000_003]).unwrap();
    fs::write(setup.there("part"), &big[..777]).unwrap();
    fs::write(setup.here("empty"), "").unwrap();
    let there = setup.there("");
    let commands = format!(
        "cd {}\nput -f big\nget big back\nreget big part\nreput big part\nput empty\nget empty empty2\n",
        there.display()
    );
    setup.direct("", &commands).expect_success().unwrap();
    for copy in [
        setup.there("big"),
        setup.here("back"),
        setup.here("part"),
        setup.there("part"),
    ] {
        same(&setup.here("big"), &copy);
    }
    assert_eq!(fs::metadata(setup.here("empty2")).unwrap().len(), 0);
}

#[test]
fn trees_of_many_files_go_both_ways() {
    let setup = SftpSetup::new();
    for n in 0..400 {
        let folder = setup.here(&format!("tree/{}", n % 20));
        fs::create_dir_all(&folder).unwrap();
        fs::write(
            folder.join(format!("file {n} \u{e4}")),
            noise(n * 37, n as u64),
        )
        .unwrap();
    }
    fs::set_permissions(setup.here("tree/3"), fs::Permissions::from_mode(0o750)).unwrap();
    let there = setup.there("");
    let commands = format!(
        "cd {}\nput -pR tree\nget -pR tree again\nls -l tree/3\n",
        there.display()
    );
    let said = setup.direct("", &commands).expect_success().unwrap();
    assert_eq!(
        said.lines().filter(|line| line.contains("file ")).count() % 20,
        0,
        "{said}"
    );
    for n in 0..400 {
        let name = format!("{}/file {n} \u{e4}", n % 20);
        let original = setup.here("tree").join(&name);
        for copy in [
            setup.there("tree").join(&name),
            setup.here("again").join(&name),
        ] {
            same(&original, &copy);
            let times = |path: &Path| fs::metadata(path).unwrap().mtime();
            assert_eq!(times(&original), times(&copy), "{name}");
        }
    }
    let mode = |path: PathBuf| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(setup.there("tree/3")), 0o750);
}

#[test]
fn every_command_of_the_client_works() {
    let setup = SftpSetup::new();
    fs::write(setup.here("hello"), "hello, world\n").unwrap();
    let said = setup
        .direct(
            &format!("-d {}", setup.there("").display()),
            "pwd\nmkdir sub\nput hello\nls -l\nln hello hard\nln -s hello soft\nchmod 600 hello\n\
             rename hard sub/hard\ncp hello copy\nget soft\ndf\nls -1 sub\nrm copy\nrm soft\n\
             -rm absent\n-rmdir sub\nls -la\nput hello hello\n-mkdir sub\nchown 12 hello\n",
        )
        .expect_success()
        .unwrap();
    for words in [
        "-rw-r--r--",
        "root",
        "hello",
        "%Capacity",
        "sub/hard",
        "No such file",
    ] {
        assert!(said.contains(words), "`{words}` is not in:\n{said}");
    }
    assert!(
        said.contains(
            &format!("Remote working directory: {}", setup.there("").display())
                .trim_end_matches('/')
                .to_owned()
        )
    );
    let hello = fs::metadata(setup.there("hello")).unwrap();
    assert_eq!(
        (hello.nlink(), hello.mode(), hello.uid()),
        (2, 0o100_600, 12)
    );
    same(&setup.here("soft"), &setup.here("hello"));
    assert!(!setup.there("copy").exists() && setup.there("sub/hard").exists());
}

#[test]
fn a_root_holds_a_client_under_sshd() {
    let setup = SftpSetup::new();
    fs::write(setup.folder.path().join("secret"), "secret").unwrap();
    symlink("../secret", setup.there("up")).unwrap();
    fs::write(setup.there("file"), noise(3_000_000, 5)).unwrap();
    fs::write(setup.here("new"), noise(2_000_000, 6)).unwrap();
    let root = setup.there("");
    let args = setup.through_sshd(&format!("--root {} -u 077", root.display()));
    let batch =
        "pwd\nget /file\n-get up\n-get /../secret\n-get /etc/passwd\nput new /../new\nls /\n";
    let batch = setup.folder.write_file("batch", batch).unwrap();
    let mut sftp = Command::new("sftp");
    sftp.args(&args).arg("-b").arg(batch).arg("root@peer");
    sftp.current_dir(setup.folder.path().join("here"));
    let said = external_tools::run_to_end(sftp, Duration::from_secs(60)).unwrap();
    let log = fs::read_to_string(setup.folder.path().join("sshd.log")).unwrap_or_default();
    assert_eq!(said.code, Some(0), "{}\n{log}", said.output);
    assert!(
        said.output.contains("Remote working directory: /\n"),
        "{}",
        said.output
    );
    same(&setup.here("file"), &setup.there("file"));
    same(&setup.here("new"), &setup.there("new"));
    assert_eq!(
        fs::metadata(setup.there("new")).unwrap().mode() & 0o777,
        0o600,
        "the mask"
    );
    for name in ["up", "secret", "passwd"] {
        assert!(!setup.here(name).exists(), "{name} came out");
    }
}

#[test]
fn scp_copies_through_sshd_and_cannot_write_where_it_may_not() {
    let setup = SftpSetup::new();
    fs::create_dir(setup.here("tree")).unwrap();
    for n in 0..30 {
        fs::write(
            setup.here(&format!("tree/{n}")),
            noise(n * 10_000, n as u64),
        )
        .unwrap();
    }
    let scp = |args: &[String], from: &str, to: &str| {
        let mut scp = Command::new("scp");
        scp.args(args).args(["-s", "-rp", from, to]);
        scp.current_dir(setup.folder.path().join("here"));
        external_tools::run_to_end(scp, Duration::from_secs(60)).unwrap()
    };
    let args = setup.through_sshd("");
    let there = format!("root@peer:{}", setup.there("").display());
    scp(&args, "tree", &there).expect_success().unwrap();
    scp(&args, &format!("{there}tree"), "back")
        .expect_success()
        .unwrap();
    for n in 0..30 {
        let original = setup.here(&format!("tree/{n}"));
        same(&original, &setup.there(&format!("tree/{n}")));
        same(&original, &setup.here(&format!("back/{n}")));
    }
    // Another sshd with the same keys, whose server is read-only.
    let settings = setup.folder.path().join("sshd");
    let text = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, text.trim_end().to_owned() + " --read-only\n").unwrap();
    let refused = scp(&args, "tree/3", &there);
    assert_ne!(refused.code, Some(0));
    assert!(
        refused.output.to_lowercase().contains("permission denied"),
        "{}",
        refused.output
    );
    assert!(!setup.there("3").exists());
    scp(&args, &format!("{there}tree/5"), "five")
        .expect_success()
        .unwrap();
    same(&setup.here("tree/5"), &setup.here("five"));
}
