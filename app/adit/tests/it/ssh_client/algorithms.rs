//! Every algorithm that both programs have, by the names that a user types.

use std::fmt::Write;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use super::{World, keygen, run_fine};

/// Number of processes at the same time.
const AT_A_TIME: usize = 3;

/// Returns the algorithms that OpenSSH and adit have in common.
fn both(what: &str, ours: &[&str]) -> Vec<String> {
    let text = run_fine(Command::new("ssh").args(["-Q", what]));
    let found: Vec<String> = text
        .lines()
        .filter(|name| ours.contains(name))
        .map(str::to_owned)
        .collect();
    assert!(found.len() > 3, "{what}: {found:?}");
    found
}

#[test]
fn each_is_taken_by_its_name() {
    use adit_ssh_proto::algorithm::{Cipher, Kex, KeyAlgorithm, Mac};
    let mut more = String::new();
    let keys = adit_interop::TempFolder::new("host-keys").unwrap();
    for kind in ["rsa", "ecdsa"] {
        let file = keys.path().join(kind);
        keygen(&file, kind, "");
        writeln!(more, "HostKey {}", file.display()).unwrap();
    }
    let kex: Vec<&str> = Kex::ALL.iter().map(|one| one.name()).collect();
    writeln!(more, "KexAlgorithms +{}", both("kex", &kex).join(",")).unwrap();
    let macs: Vec<&str> = Mac::ALL.iter().map(|one| one.name()).collect();
    writeln!(more, "MACs +{}", both("mac", &macs).join(",")).unwrap();
    let world = World::new(&more);
    let ciphers: Vec<&str> = Cipher::ALL.iter().map(|one| one.name()).collect();
    let host_keys = [
        "ssh-ed25519",
        "ecdsa-sha2-nistp256",
        "rsa-sha2-512",
        "rsa-sha2-256",
    ];
    assert!(
        host_keys
            .iter()
            .all(|name| KeyAlgorithm::by_name(name).is_some())
    );
    let mut rows: Vec<Vec<String>> = Vec::new();
    for name in both("cipher", &ciphers) {
        rows.push(vec!["-c".to_owned(), name]);
    }
    for name in both("mac", &macs) {
        rows.push(
            ["-c", "aes192-ctr", "-m", &name]
                .map(str::to_owned)
                .to_vec(),
        );
    }
    for name in both("kex", &kex) {
        rows.push(vec!["-o".to_owned(), format!("KexAlgorithms={name}")]);
    }
    for name in host_keys {
        let known = world.at_home(name);
        rows.push(vec![
            "-o".to_owned(),
            format!("HostKeyAlgorithms={name}"),
            "-o".to_owned(),
            format!("UserKnownHostsFile={}", known.display()),
        ]);
    }
    let rows = Mutex::new(rows);
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let Some(row) = rows.lock().unwrap().pop() else {
                        return;
                    };
                    let mut command = world.bare();
                    command.args(&row).args(world.options());
                    command.arg(World::place()).arg("cat");
                    let got = super::run(command, b"through");
                    assert_eq!(got.out, b"through", "{row:?}: {}", got.err);
                }
            });
        }
    });
}
