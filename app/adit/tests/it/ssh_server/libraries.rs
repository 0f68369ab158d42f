//! Clients that are libraries: files with asyncssh, paramiko, and curl, which uses libssh2.

use std::fs;
use std::path::Path;
use std::process::Command;

use adit_interop::openssh::current_user;
use adit_interop::ssh_peer::SshPeer;
use adit_interop::{BytePattern, external_tools};

use super::world::{Host, PATIENCE, ended};

/// Bytes of a file: many windows of requests, the last of which is not full.
const FILE: usize = 3_000_001;

#[test]
fn files_by_sftp() {
    let host = Host::start(&[]);
    for (peer, name) in [
        (SshPeer::Asyncssh, "asyncssh"),
        (SshPeer::Paramiko, "paramiko"),
    ] {
        let folder = host.path(name);
        fs::create_dir(&folder).unwrap();
        // The client creates a folder `new`, puts a file into it, gets and compares it, and moves it.
        let files = format!("files,bytes={FILE},folder={}", folder.display());
        let echo = format!("echo,program=cat,bytes={FILE}");
        peer.run_jobs(host.adit.addr(), &host.key(), &[files, echo], PATIENCE)
            .unwrap();
        let moved = fs::metadata(folder.join("new/moved")).unwrap();
        assert_eq!(moved.len(), u64::try_from(FILE).unwrap());
    }
    host.adit.stop().unwrap();
}

/// Runs `curl`, which knows the host by its fingerprint. Returns its success and both outputs.
fn curl(host: &Host, fingerprint: &str, options: &[&str], url: &str) -> (bool, Vec<u8>, String) {
    let mut curl = Command::new("curl");
    curl.args([
        "-q",
        "-sS",
        "--max-time",
        "50",
        "--hostpubsha256",
        fingerprint,
    ]);
    curl.arg("--key").arg(host.key());
    curl.arg("--pubkey").arg(host.path("id.pub"));
    curl.args(["--user", &format!("{}:", current_user())]);
    curl.args(options).arg(url);
    let output = ended(curl, b"");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), output.stdout, said)
}

/// Returns the fingerprint of the host.
fn fingerprint(host: &Host) -> String {
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-l", "-f"]).arg(host.path("host.pub"));
    let told = ended(keygen, b"").stdout;
    let told = String::from_utf8_lossy(&told).into_owned();
    let word = told.split_whitespace().nth(1);
    let word = word.and_then(|word| word.strip_prefix("SHA256:"));
    word.unwrap().to_owned()
}

#[test]
fn files_by_curl() {
    let mut version = Command::new("curl");
    version.arg("--version");
    let told = String::from_utf8_lossy(&ended(version, b"").stdout).into_owned();
    assert!(
        told.contains("libssh2/"),
        "{}: {told}",
        external_tools::missing_program_message("curl")
    );

    let host = Host::start(&[]);
    let known = fingerprint(&host);
    let (here, folder) = (host.path("here"), host.path("folder"));
    let bytes = BytePattern::new(5).next_bytes(FILE);
    fs::write(&here, &bytes).unwrap();
    fs::create_dir(&folder).unwrap();
    let upload = ["--upload-file", here.to_str().unwrap()];
    let url = |scheme: &str, path: &Path| {
        format!("{scheme}://127.0.0.1:{}{}", host.port(), path.display())
    };
    for scheme in ["sftp", "scp"] {
        let there = folder.join(scheme);
        let (ok, _, said) = curl(&host, &known, &upload, &url(scheme, &there));
        assert!(ok, "{scheme}: {said}");
        assert!(fs::read(&there).unwrap() == bytes, "{scheme}");
        let (ok, got, said) = curl(&host, &known, &[], &url(scheme, &there));
        assert!(ok, "{scheme}: {said}");
        assert!(got == bytes, "{scheme}: {}", got.len());
        let (ok, ..) = curl(&host, &known, &[], &url(scheme, &folder.join("absent")));
        assert!(!ok, "{scheme}");
    }
    let listing = format!("{}/", url("sftp", &folder));
    let (ok, got, said) = curl(&host, &known, &["--list-only"], &listing);
    assert!(ok, "{said}");
    let got = String::from_utf8_lossy(&got).into_owned();
    let mut names: Vec<&str> = got.lines().filter(|name| !name.starts_with('.')).collect();
    names.sort_unstable();
    assert_eq!(names, ["scp", "sftp"]);

    // Another host is detected.
    let other = fingerprint(&Host::start(&[]));
    let (ok, _, said) = curl(&host, &other, &[], &listing);
    assert!(!ok, "{said}");
    host.adit.stop().unwrap();
}
