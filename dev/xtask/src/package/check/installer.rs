//! The shell installer, which downloads from a server on loopback: the right files, and files that were changed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::slice;

use anyhow::{Context, Result, ensure};

use super::packages_under_test::{BuiltPackages, shellcheck};
use crate::command::CommandRun;
use crate::package::archives::{SUMS, archive_name};
use crate::package::installer::NAMESPACE;

/// Creates a key pair, and returns the path of the private key.
pub(super) fn make_key(work: &Path) -> Result<PathBuf> {
    let key = work.join("release-key");
    CommandRun::new(
        "ssh-keygen",
        ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"],
    )
    .args([&key])
    .run_captured("ssh-keygen")?;
    Ok(key)
}

/// Writes the signature of a file beside it.
pub(super) fn sign(key: &Path, file: &Path) -> Result<()> {
    let signature = PathBuf::from(format!("{}.sig", file.display()));
    if signature.exists() {
        fs::remove_file(&signature)?;
    }
    CommandRun::new("ssh-keygen", ["-q", "-Y", "sign", "-n", NAMESPACE, "-f"])
        .args([key, file])
        .run_captured("sign")?;
    Ok(())
}

/// Runs the installer with right and with changed files.
pub(super) fn check(packages: &BuiltPackages) -> Result<()> {
    let installer = packages.folder("installer").join("install.sh");
    shellcheck("sh", slice::from_ref(&installer))?;
    let text = fs::read_to_string(&installer)?;
    let version = &packages.source.release.version;
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let archive = archive_name(version, &target);

    let site = packages.work.join("site");
    fs::create_dir_all(&site)?;
    let restore = || -> Result<()> {
        for name in [SUMS, &format!("{SUMS}.sig"), &archive] {
            fs::copy(packages.dist.join(name), site.join(name))?;
        }
        Ok(())
    };
    restore()?;
    let server = FileServer::start(&site)?;
    let from = packages.source.release.download_folder();
    let local = packages.work.join("install.sh");
    ensure!(
        text.contains(&from),
        "the installer does not contain {from}"
    );
    fs::write(&local, text.replace(&from, &server.address))?;
    let run = |prefix: &Path| {
        CommandRun::new("sh", [local.as_path(), prefix])
            .env("HOME", &packages.work)
            .run_captured("install-sh")
    };

    let prefix = packages.work.join("prefix");
    run(&prefix)?;
    let program = prefix.join("bin/adit");
    CommandRun::new(&program, ["--version"]).run_captured("installed")?;
    for place in [
        "share/man/man1/adit.1",
        "share/bash-completion/completions/adit",
    ] {
        ensure!(prefix.join(place).is_file(), "not installed: `{place}`");
    }
    // Once more, over the program, which may run meanwhile.
    run(&prefix)?;

    let refused = |case: &str, expected: &str| -> Result<()> {
        let prefix = packages.work.join("refused");
        let Err(why) = run(&prefix) else {
            anyhow::bail!("{case}: the installer accepted it");
        };
        let why = format!("{why:#}");
        ensure!(why.contains(expected), "{case}: no `{expected}` in:\n{why}");
        ensure!(!prefix.exists(), "{case}: something was installed");
        restore()
    };
    let bytes = fs::read(packages.dist.join(&archive))?;
    let mut changed = bytes.clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    fs::write(site.join(&archive), &changed)?;
    refused("a changed archive", "is not the file that was signed")?;
    fs::write(site.join(&archive), &bytes[..bytes.len() - 1000])?;
    refused("a truncated archive", "is not the file that was signed")?;
    fs::remove_file(site.join(&archive))?;
    refused("a missing archive", "cannot download")?;

    // The sums of the changed archive, without a signature of them, then with one of another key.
    fs::write(site.join(&archive), &changed)?;
    let sums = CommandRun::new("sha256sum", [&archive])
        .in_folder(&site)
        .run_captured("sums")?;
    fs::write(site.join(SUMS), &sums)?;
    refused("sums of other files", "signature of SHA256SUMS")?;
    let other = packages.work.join("other");
    fs::create_dir_all(&other)?;
    fs::write(site.join(&archive), &changed)?;
    fs::write(site.join(SUMS), &sums)?;
    sign(&make_key(&other)?, &site.join(SUMS))?;
    refused("a signature of another key", "signature of SHA256SUMS")?;
    // The right key, but a signature that was made for another purpose.
    fs::remove_file(site.join(format!("{SUMS}.sig")))?;
    CommandRun::new("ssh-keygen", ["-q", "-Y", "sign", "-n", "file", "-f"])
        .args([packages.work.join("release-key"), site.join(SUMS)])
        .run_captured("sign-file")?;
    refused("a signature for another purpose", "signature of SHA256SUMS")?;
    fs::write(site.join(format!("{SUMS}.sig")), "")?;
    refused("an empty signature", "signature of SHA256SUMS")?;

    // A script that was cut off does nothing, wherever the cut is.
    let text = fs::read_to_string(&local)?;
    let end = text
        .rfind("main \"$@\"")
        .context("the last line calls no function")?;
    for at in [end, end * 3 / 4, end / 2] {
        let cut = packages.work.join("cut.sh");
        fs::write(&cut, &text[..at])?;
        let prefix = packages.work.join("cut");
        // Its exit code depends on the place of the cut.
        let _ = CommandRun::new("sh", [&cut, &prefix]).run_captured("install-cut");
        ensure!(
            !prefix.exists(),
            "an installer of {at} bytes installed something"
        );
    }
    Ok(())
}

/// An HTTP server for a folder, which ends with this value.
struct FileServer {
    process: Child,
    address: String,
}

impl FileServer {
    fn start(folder: &Path) -> Result<Self> {
        let mut process = Command::new("python3")
            .args([
                "-u",
                "-m",
                "http.server",
                "0",
                "--bind",
                "127.0.0.1",
                "--directory",
            ])
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("python3")?;
        let output = process.stdout.take().context("no output")?;
        let mut server = Self {
            process,
            address: String::new(),
        };
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let port = line.split(" port ").nth(1);
        let port = port.and_then(|rest| rest.split_whitespace().next());
        let port = port.with_context(|| format!("the server printed no port: {line}"))?;
        server.address = format!("http://127.0.0.1:{port}");
        Ok(server)
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        // The process belongs to this check and has no state to save.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
