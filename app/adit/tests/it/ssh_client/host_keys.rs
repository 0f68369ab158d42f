//! `UpdateHostKeys`: additional keys of a known host, with OpenSSH's server.

use std::fs;
use std::os::unix::fs::symlink;

use adit_interop::TempFolder;

use super::terminal::Terminal;
use super::{Got, World, keygen, run};

/// A host with two keys, one of which is known.
struct Case {
    world: World,
    _keys: TempFolder,
    /// The known line at the start.
    first: String,
    /// The other key, as a line of a key file.
    other: String,
}

impl Case {
    fn new() -> Self {
        let keys = TempFolder::new("host-keys").unwrap();
        let other = keys.path().join("other");
        keygen(&other, "ecdsa", "");
        let world = World::new(&format!("HostKey {}", other.display()));
        let host = format!("[127.0.0.1]:{}", world.sshd.port());
        let first = format!("{host} {}", key_of(&world.sshd.host_key().unwrap()));
        let other = fs::read_to_string(other.with_extension("pub")).unwrap();
        Self {
            world,
            _keys: keys,
            first,
            other: format!("{host} {}", key_of(&other)),
        }
    }

    /// Connects with these known lines. Returns the known lines afterwards.
    fn enter(&self, known: &str, options: &[&str]) -> (Got, Vec<String>) {
        self.world.home.write_file("known", known).unwrap();
        self.enter_again(options)
    }

    /// Connects with the current known lines. Returns the known lines afterwards.
    fn enter_again(&self, options: &[&str]) -> (Got, Vec<String>) {
        let mut command = self.world.bare();
        // The first value for a keyword counts.
        command
            .args(["-o", "StrictHostKeyChecking=yes"])
            .args(options);
        command.args(self.world.options());
        command.arg(World::place()).arg("echo in");
        let got = run(command, b"");
        let text = fs::read_to_string(self.world.at_home("known")).unwrap();
        (got, text.lines().map(str::to_owned).collect())
    }
}

/// Returns a key without its comment.
fn key_of(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().take(2).collect();
    words.join(" ")
}

const YES: [&str; 2] = ["-o", "UpdateHostKeys=yes"];

#[test]
fn new_keys_are_learned_and_old_ones_forgotten() {
    let case = Case::new();
    let (first, other) = (&case.first, &case.other);
    // The file is replaced, not rewritten in place, and not through a prepared link.
    let (old, victim) = (case.world.at_home("old"), case.world.at_home("victim"));
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, case.world.at_home("known.new")).unwrap();
    let file = case.world.home.write_file("known", first).unwrap();
    fs::hard_link(file, &old).unwrap();
    let (got, known) = case.enter_again(&YES);
    assert_eq!(got.fine(), "in\n");
    assert_eq!(known, [first.clone(), other.clone()]);
    assert_eq!(&fs::read_to_string(old).unwrap(), first);
    assert_eq!(fs::read_to_string(victim).unwrap(), "precious");
    // From then on the host is known by either key.
    let (got, known) = case.enter(other, &["-o", "HostKeyAlgorithms=ecdsa-sha2-nistp256"]);
    assert_eq!(
        (got.fine(), known),
        ("in\n".to_owned(), vec![other.clone()])
    );

    // A key that the host no longer has, between lines of others and a comment.
    let gone = case.world.at_home("gone");
    keygen(&gone, "rsa", "");
    let gone = key_of(&fs::read_to_string(gone.with_extension("pub")).unwrap());
    let host = first.split_once(' ').unwrap().0;
    let before =
        format!("# mine\nelse.example {gone}\n{host} {gone}\n{first}\nlast.example {gone}");
    let (got, known) = case.enter(&before, &YES);
    assert_eq!(got.fine(), "in\n");
    let kept = [
        format!("else.example {gone}"),
        format!("last.example {gone}"),
    ];
    let wanted = ["# mine", &kept[0], first, &kept[1], other];
    assert_eq!(known, wanted);

    // Hashed names stay hashed.
    let (got, known) = case.enter(
        first,
        &["-o", "UpdateHostKeys=yes", "-o", "HashKnownHosts=yes"],
    );
    assert_eq!(got.fine(), "in\n");
    assert!(known.len() == 2 && known[1].starts_with("|1|"), "{known:?}");
    let (got, known) = case.enter(&known[1], &YES);
    assert_eq!(got.fine(), "in\n");
    assert_eq!(known.len(), 2, "{known:?}");
}

#[test]
fn what_is_not_to_be_touched_stays() {
    let case = Case::new();
    let (host, key) = case.first.split_once(' ').unwrap();
    let other = case.other.split_once(' ').unwrap().1;
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    for (known, options) in [
        // The user declines, does not answer, or cannot be asked.
        (case.first.clone(), &["-o", "UpdateHostKeys=no"][..]),
        (case.first.clone(), &[]),
        (case.first.clone(), &["-o", "UpdateHostKeys=ask"]),
        (
            case.first.clone(),
            &["-o", "UpdateHostKeys=ask", "-o", "BatchMode=yes"],
        ),
        // More than one name, and patterns.
        (format!("{host},alias {key}"), &YES),
        (format!("* {key}"), &YES),
        (format!("{host} {key}\n* {key}"), &YES),
        // The other key is revoked, or of a type that is not accepted.
        (format!("{host} {key}\n@revoked * {other}"), &YES),
        (
            case.first.clone(),
            &[
                "-o",
                "UpdateHostKeys=yes",
                "-o",
                "HostKeyAlgorithms=ssh-ed25519",
            ],
        ),
    ] {
        let (got, after) = case.enter(&known, options);
        assert_eq!(got.fine(), "in\n", "{known} {options:?}");
        assert_eq!(after, lines(&known), "{options:?}");
    }
    // The system's file is not the user's.
    let global = case.world.home.write_file("global", &case.first).unwrap();
    let option = format!("GlobalKnownHostsFile={}", global.display());
    let (got, after) = case.enter("", &["-o", &option, "-o", "UpdateHostKeys=yes"]);
    assert_eq!((got.fine(), after), ("in\n".to_owned(), vec![]));
    assert_eq!(fs::read_to_string(&global).unwrap(), case.first);
}

#[test]
fn the_user_is_asked() {
    let case = Case::new();
    for (answer, lines) in [("no", 1), ("yes", 2)] {
        let known = case.world.home.write_file("known", &case.first).unwrap();
        let options = ["-o", "UpdateHostKeys=ask"];
        let mut terminal = Terminal::ssh(&case.world, &options, "'echo in; echo side'");
        terminal.wait("new: ecdsa-sha2-nistp256 SHA256:");
        terminal.wait("(yes, no)");
        terminal.keys(&format!("{answer}\n"));
        terminal.wait("side");
        let text = fs::read_to_string(&known).unwrap();
        assert_eq!(text.lines().count(), lines, "{answer}: {text}");
    }
}
