//! All host keys are announced and proved to OpenSSH's client (`UpdateHostKeys`).

use std::fs;
use std::process::Command;

use adit_interop::TempFolder;
use adit_interop::openssh::generate_key;

use super::world::{Host, destination, ended};

/// Returns the keys of a file, without names and comments.
fn keys(text: &str) -> Vec<String> {
    let of = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words
            .iter()
            .position(|word| word.starts_with("ssh-") || word.starts_with("ecdsa-"));
        words[at.unwrap()..][..2].join(" ")
    };
    text.lines().map(of).collect()
}

#[test]
fn keys_to_come_are_learned_before_they_are_used() {
    let folder = TempFolder::new("host-keys").unwrap();
    let next = generate_key(folder.path(), "next").unwrap();
    let rsa = folder.path().join("rsa");
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-t", "rsa", "-N", "", "-f"]).arg(&rsa);
    assert!(command.status().unwrap().success());
    let [next_path, rsa_path] = [next.to_str().unwrap(), rsa.to_str().unwrap()];
    // Two of one type, the first of which is used, and an RSA key.
    let host = Host::start(&["--host-key", next_path, "--host-key", rsa_path]);
    let known = folder.path().join("known");
    let enter = |update: &str, algorithm: &str| {
        let mut command = Command::new("ssh");
        command
            .args(["-F", "none", "-p", &host.port().to_string(), "-i"])
            .arg(host.key());
        for option in [
            "IdentitiesOnly=yes",
            "StrictHostKeyChecking=accept-new",
            &format!("UserKnownHostsFile={}", known.display()),
            "GlobalKnownHostsFile=/dev/null",
            "BatchMode=yes",
            &format!("UpdateHostKeys={update}"),
            &format!("HostKeyAlgorithms={algorithm}"),
        ] {
            command.args(["-o", option]);
        }
        command.arg(destination()).arg("echo in; sleep 1");
        let output = ended(command, b"");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.stdout, b"in\n", "{said}");
        keys(&fs::read_to_string(&known).unwrap())
    };
    let line = |file: &std::path::Path| {
        keys(&fs::read_to_string(file.with_extension("pub")).unwrap()).remove(0)
    };
    let now = line(&host.path("host"));
    assert_eq!(enter("no", "ssh-ed25519"), std::slice::from_ref(&now));
    let learned = enter("yes", "ssh-ed25519,rsa-sha2-512");
    let wanted = [now, line(&next), line(&rsa)];
    assert_eq!(learned.len(), 3, "{learned:?}");
    assert!(
        wanted.iter().all(|key| learned.contains(key)),
        "{learned:?}"
    );
    // With a signature of the other hash, as in the key exchange. A key that is new itself
    // proves no other.
    fs::write(&known, "").unwrap();
    assert_eq!(enter("yes", "rsa-sha2-256"), [line(&rsa)]);
    let learned = enter("yes", "rsa-sha2-256,ssh-ed25519");
    assert_eq!(learned.len(), 3, "{learned:?}");
}
