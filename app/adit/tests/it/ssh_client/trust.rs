//! Host keys that are accepted, and the messages about them.

use std::fs;
use std::path::Path;
use std::process::Command;

use adit_interop::TempFolder;
use adit_interop::openssh::current_user;

use super::{Got, World, keygen, run, run_fine};

/// Runs `echo in` with this check and its messages.
fn enter(world: &World, check: &str, more: &[&str]) -> Got {
    let mut command = world.bare();
    // The first value for a keyword counts.
    command
        .args(["-o", &format!("StrictHostKeyChecking={check}")])
        .args(more);
    command.args(world.options().iter().filter(|option| *option != "-q"));
    command.arg(World::place()).arg("echo in");
    run(command, b"")
}

#[test]
fn a_new_host_is_learned_once_or_refused() {
    let world = World::new("");
    let known = world.at_home("known");
    for (check, words) in [("yes", "is not known"), ("ask", "no terminal")] {
        let got = enter(&world, check, &[]);
        assert_eq!((got.code, &*got.out), (Some(255), &b""[..]));
        assert!(
            got.err.contains(words) && got.err.contains("SHA256:"),
            "{}",
            got.err
        );
        assert!(!known.exists());
    }
    let got = enter(&world, "accept-new", &[]);
    assert!(got.err.contains("permanently added"), "{}", got.err);
    assert_eq!(got.fine(), "in\n");
    let text = fs::read_to_string(&known).unwrap();
    assert!(
        text.starts_with(&format!("[127.0.0.1]:{} ssh-ed25519 ", world.sshd.port())),
        "{text}"
    );
    let got = enter(&world, "yes", &[]);
    assert_eq!((got.code, &*got.err), (Some(0), ""));
    assert_eq!(
        fs::read_to_string(&known).unwrap(),
        text,
        "it is not written again"
    );
    // Hashed, after a line without a line break.
    fs::write(&known, "# mine").unwrap();
    enter(&world, "accept-new", &["-o", "HashKnownHosts=yes"]).fine();
    let text = fs::read_to_string(&known).unwrap();
    assert!(text.starts_with("# mine\n|1|"), "{text}");
    enter(&world, "yes", &[]).fine();
    // Nothing is stored, with a message.
    let got = enter(&world, "no", &["-o", "UserKnownHostsFile=/dev/null"]);
    assert!(
        got.err.contains("warning") && got.err.contains("SHA256:"),
        "{}",
        got.err
    );
}

#[test]
fn a_changed_key_is_never_taken_in_silence() {
    let world = World::new("");
    let known = world.at_home("known");
    enter(&world, "accept-new", &[]).fine();
    let other = world.at_home("other");
    keygen(&other, "ed25519", "");
    let other = fs::read_to_string(other.with_extension("pub")).unwrap();
    let host = format!("[127.0.0.1]:{}", world.sshd.port());
    fs::write(&known, format!("\n{host} {other}")).unwrap();
    let place = format!("{}:2", known.display());
    for check in ["yes", "ask", "accept-new"] {
        let got = enter(&world, check, &["-q"]);
        assert_eq!((got.code, &*got.out), (Some(255), &b""[..]), "{check}");
        for word in [
            "has changed",
            &place,
            "ssh-keygen -f",
            &format!("-R '{host}'"),
        ] {
            assert!(got.err.contains(word), "{word}: {}", got.err);
        }
        assert_eq!(got.err.matches("SHA256:").count(), 2, "{}", got.err);
    }
    // The user has allowed it: there is a message, and no forwarding or agent.
    let got = enter(&world, "no", &["-q", "-L", "9:h:1"]);
    assert!(
        got.err.contains("has changed") && got.err.contains(&place),
        "{}",
        got.err
    );
    assert_eq!(got.fine(), "in\n");
    // A revoked key stays revoked.
    let own = world.sshd.host_key().unwrap();
    fs::write(&known, format!("@revoked * {own}\n")).unwrap();
    let got = enter(&world, "no", &[]);
    assert_eq!(got.code, Some(255));
    assert!(got.err.contains("revoked"), "{}", got.err);
}

#[test]
fn failures_say_what_to_do() {
    let world = World::new("");
    let got = enter(&world, "accept-new", &["-c", "chacha99"]);
    assert_eq!(got.code, Some(255));
    assert!(
        got.err.contains("chacha99") && got.err.contains("aes128-ctr"),
        "{}",
        got.err
    );
    let got = enter(
        &world,
        "accept-new",
        &[
            "-o",
            "KexAlgorithms=diffie-hellman-group14-sha256",
            "-o",
            "Nonsense=1",
        ],
    );
    assert_eq!(got.code, Some(255));
    assert!(got.err.contains("Nonsense"), "{}", got.err);
    let key = world.at_home("stranger");
    keygen(&key, "ed25519", "");
    let mut command = world.bare();
    let options = world.options();
    command.args(
        options
            .iter()
            .filter(|option| !option.ends_with("/id") && *option != "-i"),
    );
    command.arg("-i").arg(&key).arg(World::place()).arg("true");
    let got = run(command, b"");
    assert_eq!(got.code, Some(255));
    assert!(
        got.err.contains("permission denied") && got.err.contains("publickey"),
        "{}",
        got.err
    );
    let mut command = world.bare();
    command.args(["-F", "none", "-p", "1", "x@127.0.0.1", "true"]);
    let got = run(command, b"");
    assert_eq!(got.code, Some(255));
    assert!(
        got.err.contains("127.0.0.1 port 1") && got.err.contains("refused"),
        "{}",
        got.err
    );
    let mut command = world.bare();
    command.args([
        "-F",
        "none",
        "-o",
        "ProxyCommand=nc %h %p",
        "x@127.0.0.1",
        "true",
    ]);
    assert!(run(command, b"").err.contains("ProxyJump"));
}

#[test]
fn authorities_vouch_for_hosts_and_users() {
    let folder = TempFolder::new("authority").unwrap();
    let file = |name: &str| folder.path().join(name);
    for name in ["ca", "host", "me"] {
        keygen(&file(name), "ed25519", "");
    }
    let sign = |options: &[&str], name: &str| {
        let mut command = Command::new("ssh-keygen");
        command
            .args(["-q", "-I", "x", "-s"])
            .arg(file("ca"))
            .args(options);
        run_fine(command.arg(file(name).with_extension("pub")));
    };
    sign(&["-h", "-n", "127.0.0.1"], "host");
    sign(&["-n", &current_user()], "me");
    let shown = folder.path().display();
    let world = World::new(&format!(
        "HostKey {shown}/host\nHostCertificate {shown}/host-cert.pub\n\
         TrustedUserCAKeys {shown}/ca.pub"
    ));
    let authority = fs::read_to_string(file("ca.pub")).unwrap();
    fs::write(
        world.at_home("known"),
        format!("@cert-authority * {authority}"),
    )
    .unwrap();
    let with_key = |key: &Path, more: &[&str]| {
        let mut command = world.bare();
        command.args(["-o", "StrictHostKeyChecking=yes"]);
        let options = world.options();
        command.args(
            options
                .iter()
                .filter(|option| !option.ends_with("/id") && *option != "-i"),
        );
        command
            .args(more)
            .arg("-i")
            .arg(key)
            .arg(World::place())
            .arg("echo in");
        run(command, b"")
    };
    assert_eq!(with_key(&file("me"), &[]).fine(), "in\n");
    assert_eq!(
        with_key(&file("ca"), &[]).code,
        Some(255),
        "a key without a certificate"
    );
    // A named certificate, for a key in another place.
    let apart = world.at_home("apart");
    fs::copy(file("me"), &apart).unwrap();
    assert_eq!(with_key(&apart, &[]).code, Some(255));
    let named = format!("CertificateFile={shown}/me-cert.pub");
    assert_eq!(with_key(&apart, &["-o", &named]).fine(), "in\n");
}
