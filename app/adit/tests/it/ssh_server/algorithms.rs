//! Every algorithm that OpenSSH's client also has, and other clients.

use std::process::Command;
use std::thread;

use adit_interop::openssh::ssh_command;
use adit_interop::{BytePattern, external_tools};

use super::world::{Host, destination, ended};
use crate::ssh_hop::Ours;

/// Returns the output of `ssh -Q`.
fn listed(what: &str) -> Vec<String> {
    let mut ssh = Command::new("ssh");
    ssh.args(["-Q", what]);
    let output = ended(ssh, b"");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(str::to_owned).collect()
}

/// Returns the algorithms of adit that the client also has.
fn both(what: &str, ours: &[&'static str]) -> Vec<&'static str> {
    let theirs = listed(what);
    let of_both = ours
        .iter()
        .filter(|name| theirs.iter().any(|one| one == *name));
    of_both.copied().collect()
}

/// Bytes of each transfer.
const SOME: usize = 300_000;

/// Moves bytes in both directions with each of these options.
fn each(host: &Host, all: &[Vec<String>]) {
    let bytes = BytePattern::new(11).next_bytes(SOME);
    thread::scope(|threads| {
        for part in all.chunks(all.len().div_ceil(4).max(1)) {
            let bytes = &bytes;
            threads.spawn(move || {
                for options in part {
                    let words: Vec<&str> = options.iter().map(String::as_str).collect();
                    let output = ended(host.ssh(&words, "cat"), bytes);
                    let why = String::from_utf8_lossy(&output.stderr);
                    assert!(output.stdout == *bytes, "{options:?}: {why}");
                }
            });
        }
    });
}

const CIPHERS: [&str; 6] = [
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
];
const MACS: [&str; 16] = [
    "umac-64-etm@openssh.com",
    "umac-128-etm@openssh.com",
    "hmac-sha2-256-etm@openssh.com",
    "hmac-sha2-512-etm@openssh.com",
    "hmac-sha1-etm@openssh.com",
    "umac-64@openssh.com",
    "umac-128@openssh.com",
    "hmac-sha2-256",
    "hmac-sha2-512",
    "hmac-sha1",
    "hmac-sha1-96-etm@openssh.com",
    "hmac-md5-etm@openssh.com",
    "hmac-md5-96-etm@openssh.com",
    "hmac-sha1-96",
    "hmac-md5",
    "hmac-md5-96",
];
const KEX: [&str; 12] = [
    "mlkem768x25519-sha256",
    "sntrup761x25519-sha512",
    "sntrup761x25519-sha512@openssh.com",
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384",
    "ecdh-sha2-nistp521",
    "diffie-hellman-group-exchange-sha256",
    "diffie-hellman-group16-sha512",
    "diffie-hellman-group18-sha512",
    "diffie-hellman-group14-sha256",
];

#[test]
fn every_cipher_with_every_mac_and_every_exchange() {
    let kex = format!("+{}", KEX[8..].join(","));
    // Old algorithms are only offered if they are named.
    let old = format!("+{}", MACS[10..].join(","));
    let host = Host::start(&["--max-startups", "100", "--kex", &kex, "-m", &old]);
    let (ciphers, macs, kex) = (
        both("cipher", &CIPHERS),
        both("mac", &MACS),
        both("kex", &KEX),
    );
    assert!(ciphers.len() >= 6 && macs.len() >= 10 && kex.len() >= 10);
    let mut all = Vec::new();
    for cipher in &ciphers {
        let macs = match cipher.ends_with("-ctr") {
            true => &*macs,
            // With its own tag, the cipher does not use the MAC.
            false => &macs[..1],
        };
        for mac in macs {
            all.push(["-c", cipher, "-m", mac].map(str::to_owned).to_vec());
        }
    }
    for one in &kex {
        all.push(vec!["-o".to_owned(), format!("KexAlgorithms={one}")]);
    }
    each(&host, &all);
    host.adit.stop().unwrap();
}

#[test]
fn host_keys_and_user_keys_of_every_kind() {
    let folder = adit_interop::TempFolder::new("sshd-kinds").unwrap();
    let kinds = [
        ("ed25519", "256", "ssh-ed25519"),
        ("ecdsa", "256", "ecdsa-sha2-nistp256"),
        ("ecdsa", "384", "ecdsa-sha2-nistp384"),
        ("ecdsa", "521", "ecdsa-sha2-nistp521"),
        ("rsa", "2048", "rsa-sha2-256"),
        ("rsa", "3072", "rsa-sha2-512"),
    ];
    for (kind, bits, algorithm) in kinds {
        let path = folder.path().join(algorithm);
        let mut keygen = Command::new("ssh-keygen");
        keygen
            .args(["-q", "-t", kind, "-b", bits, "-N", "", "-f"])
            .arg(&path);
        assert!(ended(keygen, b"").status.success());
        let line = std::fs::read_to_string(path.with_extension("pub")).unwrap();
        let host = Host::with_keys(&["--host-key", path.to_str().unwrap()], |_| line);
        let mut ssh = ssh_command(host.port(), &path);
        let option = format!("HostKeyAlgorithms={algorithm}");
        let user = format!("PubkeyAcceptedAlgorithms={algorithm}");
        ssh.args(["-o", &option, "-o", &user, &destination(), "echo in"]);
        let output = ended(ssh, b"");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "in\n",
            "{algorithm}: {output:?}"
        );
    }
}

#[test]
fn what_is_offered_can_be_chosen() {
    let host = Host::start(&[
        "-c",
        "aes256-ctr",
        "-m",
        "^umac-128-etm@openssh.com",
        "--kex",
        "-diffie*",
    ]);
    let options = ["-v", "-o", "LogLevel=DEBUG1", "-o", "Ciphers=+aes256-ctr"];
    let (_, _, said) = host.run(&options, "true");
    assert!(said.contains("cipher: aes256-ctr MAC: umac-"), "{said}");
    assert_eq!(host.run(&["-c", "aes128-ctr"], "true").0, Some(255));
    assert_eq!(
        host.run(
            &["-o", "KexAlgorithms=diffie-hellman-group14-sha256"],
            "true"
        )
        .0,
        Some(255)
    );
}

/// They cost a server much more than a client.
#[test]
fn finite_fields_are_offered_where_they_are_asked_for() {
    let usual = Host::start(&[]);
    let asked = Host::start(&["--kex", "+diffie-hellman-group14-sha256"]);
    let option = "KexAlgorithms=diffie-hellman-group14-sha256";
    assert_eq!(asked.says(&["-o", option], "echo in"), "in");
    let listener = Ours::start("");
    let mut ssh = ssh_command(listener.adit.addr().port(), &listener.path("id"));
    ssh.args(["-v", "-o", option, "127.0.0.1"]);
    for ssh in [usual.ssh(&["-v", "-o", option], "true"), ssh] {
        let refused = ended(ssh, b"");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains("no matching key exchange"), "{said}");
    }
}

#[test]
fn other_clients() {
    let host = Host::start(&[]);
    let program = "echo out; echo err >&2; cat; exit 4";
    let mut convert = Command::new("dropbearconvert");
    let key = host.path("dropbear");
    convert
        .args(["openssh", "dropbear"])
        .arg(host.key())
        .arg(&key);
    assert!(
        ended(convert, b"").status.success(),
        "{}",
        external_tools::missing_program_message("dropbearconvert")
    );
    let mut dbclient = Command::new("dbclient");
    dbclient
        .args(["-y", "-y", "-p", &host.port().to_string(), "-i"])
        .arg(&key);
    dbclient.args([&destination(), program]);

    let mut convert = Command::new("puttygen");
    let key = host.path("putty");
    convert
        .arg(host.key())
        .args(["-O", "private", "-o"])
        .arg(&key);
    assert!(
        ended(convert, b"").status.success(),
        "{}",
        external_tools::missing_program_message("puttygen")
    );
    let mut fingerprint = Command::new("ssh-keygen");
    fingerprint.arg("-lf").arg(host.path("host"));
    let told = ended(fingerprint, b"").stdout;
    let told = String::from_utf8_lossy(&told).into_owned();
    let print = told.split_whitespace().nth(1).unwrap().to_owned();
    let mut plink = Command::new("plink");
    plink
        .args([
            "-batch",
            "-hostkey",
            &print,
            "-P",
            &host.port().to_string(),
            "-i",
        ])
        .arg(&key);
    plink.args([&destination(), program]);

    for mut client in [dbclient, plink] {
        client.env("HOME", host.folder.path());
        let shown = format!("{client:?}");
        let output = ended(client, b"typed");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(output.status.code(), Some(4), "{shown}: {output:?}");
        assert_eq!(text(&output.stdout), "out\ntyped", "{shown}");
        assert!(text(&output.stderr).contains("err\n"), "{shown}");
    }
}
