//! Whose key is taken, and what is said about it.

use std::fs;

use super::{Got, World, keygen, run};

/// Runs `echo in` with this check, loud.
fn enter(world: &World, check: &str, more: &[&str]) -> Got {
    let mut command = world.bare();
    // The first word for a keyword counts.
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
    assert!(got.err.contains("from now on"), "{}", got.err);
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
    // Hashed, behind a line without an end.
    fs::write(&known, "# mine").unwrap();
    enter(&world, "accept-new", &["-o", "HashKnownHosts=yes"]).fine();
    let text = fs::read_to_string(&known).unwrap();
    assert!(text.starts_with("# mine\n|1|"), "{text}");
    enter(&world, "yes", &[]).fine();
    // Nothing is learned, but said.
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
    // The user has said so: it is told, and there are neither forwards nor agents.
    let got = enter(&world, "no", &["-q", "-L", "9:h:1"]);
    assert!(
        got.err.contains("has changed") && got.err.contains(&place),
        "{}",
        got.err
    );
    assert_eq!(got.fine(), "in\n");
    // What was revoked stays so.
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
        got.err.contains("not let in") && got.err.contains("publickey"),
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
