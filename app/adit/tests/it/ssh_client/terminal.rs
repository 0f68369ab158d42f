//! At a terminal, which `script` makes.

use std::fs;
use std::process::Command;

use super::{Got, World, keygen, run};

/// `adit ssh` at a terminal where this is typed.
fn at_terminal(world: &World, options: &[&str], words: &str, typed: &str) -> Got {
    let quoted = |word: &String| format!("'{word}'");
    let mut all: Vec<String> = world.options().iter().map(quoted).collect();
    all.extend(options.iter().map(|word| format!("'{word}'")));
    let line = format!(
        "'{}' ssh {} {} {words}",
        crate::setup::bin().display(),
        all.join(" "),
        World::place()
    );
    let mut command = Command::new("timeout");
    command.args(["60", "script", "-qec", &line, "/dev/null"]);
    world.environment(&mut command);
    run(command, typed.as_bytes())
}

#[test]
fn programs_have_a_terminal_if_they_are_to() {
    let world = World::new("");
    let got = at_terminal(
        &world,
        &["-t"],
        "'tty; stty -echo; read x; echo got:$x; exit 5'",
        "hello\n",
    );
    assert_eq!(got.code, Some(5), "{}", got.text());
    assert!(got.text().contains("/dev/pts/"), "{}", got.text());
    assert!(got.text().contains("got:hello"), "{}", got.text());
    let got = at_terminal(&world, &["-T"], "'tty; exit 5'", "");
    assert_eq!(got.code, Some(5));
    assert!(got.text().contains("not a tty"), "{}", got.text());
    // Without one here: only if it is forced.
    assert_eq!(world.run(&["-t"], &["tty"], b"").text().trim(), "not a tty");
    assert!(
        world
            .run(&["-tt"], &["tty"], b"")
            .text()
            .contains("/dev/pts/")
    );
}

#[test]
fn escapes_are_for_us() {
    let world = World::new("");
    // The shell there would wait for ever.
    let got = at_terminal(&world, &["-t"], "'sleep 50'", "~?\r~.");
    assert_eq!(got.code, Some(255), "{}", got.text());
    assert!(got.text().contains("end the connection"), "{}", got.text());
    let got = at_terminal(
        &world,
        &["-t", "-e", "none"],
        "'read x; echo \"got:$x\"'",
        "~.\n",
    );
    assert!(got.text().contains("got:~."), "{}", got.text());
    assert_eq!(got.code, Some(0));
}

#[test]
fn a_passphrase_is_asked_for_and_not_shown() {
    let world = World::new("");
    let key = world.at_home("locked");
    keygen(&key, "ed25519", "correct horse");
    let allowed = world.sshd.folder().join("authorized_keys");
    fs::copy(world.at_home("locked.pub"), allowed).unwrap();
    let key = key.display().to_string();
    let got = at_terminal(&world, &["-i", &key], "'echo in'", "wrong\ncorrect horse\n");
    let text = got.text();
    assert_eq!(got.code, Some(0), "{text}");
    assert!(
        text.contains("that was not it") && text.contains("in\r\n"),
        "{text}"
    );
    // Nobody is there.
    let got = world.run(&["-i", &key, "-o", "BatchMode=yes"], &["true"], b"");
    assert_eq!(got.code, Some(255));
    assert!(got.err.contains("publickey"), "{}", got.err);
}
