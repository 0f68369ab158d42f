//! A known host that shows a key of another type, as an attacker on the path could.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use adit_interop::openssh::{Sshd, current_user, generate_key as new_key};
use adit_interop::{AditProcess, TempFolder};

use super::{Got, keygen, run};
use crate::setup::bin;

/// A server that only has an ECDSA key, and the known keys for it.
struct Case {
    port: u16,
    id: PathBuf,
    home: TempFolder,
    /// Its name in files.
    host: String,
    _server: Server,
}

/// The running server.
enum Server {
    OpenSsh { _sshd: Sshd },
    Ours { _adit: AditProcess },
}

impl Case {
    fn openssh() -> Self {
        let home = TempFolder::new("other-type").unwrap();
        let key = ecdsa(&home);
        let sshd = Sshd::start(&format!(
            "HostKey {}\nHostKeyAlgorithms ecdsa-sha2-nistp256",
            key.display()
        ));
        let sshd = sshd.unwrap();
        let (port, id) = (sshd.port(), sshd.folder().join("id"));
        Self::new(port, id, home, Server::OpenSsh { _sshd: sshd })
    }

    fn ours() -> Self {
        let home = TempFolder::new("other-type").unwrap();
        let key = ecdsa(&home);
        let id = new_key(home.path(), "id").unwrap();
        let keys = id.with_extension("pub");
        let mut args = vec!["sshd", "--listen", "127.0.0.1:0"];
        args.extend(["--host-key", key.to_str().unwrap()]);
        args.extend(["--authorized-keys", keys.to_str().unwrap()]);
        let adit = AditProcess::start(&args, 1).unwrap();
        let port = adit.addr().port();
        Self::new(port, id, home, Server::Ours { _adit: adit })
    }

    fn new(port: u16, id: PathBuf, home: TempFolder, server: Server) -> Self {
        new_key(home.path(), "known-key").unwrap();
        Self {
            port,
            id,
            home,
            host: format!("[127.0.0.1]:{port}"),
            _server: server,
        }
    }

    fn known(&self) -> PathBuf {
        self.home.path().join("known")
    }

    /// Makes the host known by a key of another type that is not the server's. Returns the file.
    fn know_another(&self) -> String {
        let key = fs::read_to_string(self.home.path().join("known-key.pub")).unwrap();
        let text = format!("# mine\n{} {key}", self.host);
        fs::write(self.known(), &text).unwrap();
        text
    }

    /// Returns options that `ssh` and `adit ssh` both support.
    fn options(&self, check: &str) -> Vec<String> {
        let mut options = vec!["-F".to_owned(), "none".to_owned(), "-i".to_owned()];
        options.push(self.id.display().to_string());
        for option in [
            format!("StrictHostKeyChecking={check}"),
            format!("UserKnownHostsFile={}", self.known().display()),
            "GlobalKnownHostsFile=/dev/null".to_owned(),
            "IdentitiesOnly=yes".to_owned(),
            "UpdateHostKeys=yes".to_owned(),
        ] {
            options.extend(["-o".to_owned(), option]);
        }
        options
    }

    /// Runs `words` with this program without a terminal until it exits.
    fn run(&self, program: &[&Path], check: &str, words: &[&str]) -> Got {
        let mut command = Command::new("setsid");
        command.args(["timeout", "60"]).args(program);
        command.args(self.options(check)).args(words);
        command.env("HOME", self.home.path());
        command.env("SSH_AUTH_SOCK", self.home.path().join("agent"));
        run(command, b"")
    }

    fn enter(&self, program: &[&Path], check: &str, more: &[&str]) -> Got {
        let (port, place) = (
            self.port.to_string(),
            format!("{}@127.0.0.1", current_user()),
        );
        let line = "echo in; echo \"agent=$SSH_AUTH_SOCK.\"; sleep 0.3";
        let words = [&["-p", &port][..], more, &[&place, line]].concat();
        self.run(program, check, &words)
    }

    /// The message names both keys, the line, and what to remove.
    #[track_caller]
    fn is_named(&self, err: &str) {
        let place = format!("{}:2", self.known().display());
        for word in [
            "of another type",
            "ecdsa-sha2-nistp256 SHA256:",
            "ssh-ed25519 SHA256:",
            &place,
        ] {
            assert!(err.contains(word), "{word}: {err}");
        }
        assert!(!err.contains("accept-new"), "{err}");
    }
}

fn ecdsa(home: &TempFolder) -> PathBuf {
    let key = home.path().join("ecdsa");
    keygen(&key, "ecdsa", "");
    key
}

#[test]
fn it_is_neither_new_nor_a_reason_to_forget_the_known_one() {
    let (adit, ssh) = ([bin(), "ssh".into()], PathBuf::from("ssh"));
    let adit: Vec<&Path> = adit.iter().map(PathBuf::as_path).collect();
    let scp = [bin(), "scp".into()];
    let scp: Vec<&Path> = scp.iter().map(PathBuf::as_path).collect();
    for case in [Case::openssh(), Case::ours()] {
        let known = case.know_another();
        let unchanged = |what: &str| {
            let now = fs::read_to_string(case.known()).unwrap();
            assert_eq!(now, known, "{what}");
        };
        for check in ["accept-new", "ask", "yes"] {
            let got = case.enter(&adit, check, &[]);
            assert_eq!(
                (got.code, got.text()),
                (Some(255), String::new()),
                "{check}"
            );
            case.is_named(&got.err);
            unchanged(check);
            // Like OpenSSH.
            let got = case.enter(&[&*ssh], check, &[]);
            assert_eq!(
                (got.code, got.text()),
                (Some(255), String::new()),
                "{check}"
            );
            unchanged(check);
        }
        let there = case.home.write_file("there", "content").unwrap();
        let from = format!("scp://127.0.0.1:{}/{}", case.port, there.display());
        let here = case.home.path().join("here");
        let got = case.run(&scp, "accept-new", &[&from, here.to_str().unwrap()]);
        assert_eq!(got.code, Some(255), "{}", got.err);
        case.is_named(&got.err);
        assert!(!here.exists());
        unchanged("scp");
        // The user has allowed it: it continues, without features that would help an attacker.
        for program in [&adit[..], &[&*ssh]] {
            let got = case.enter(program, "no", &["-A", "-L", "45119:h:1"]);
            assert_eq!(got.text(), "in\nagent=.\n", "{}", got.err);
            unchanged("no");
            if program.len() > 1 {
                case.is_named(&got.err);
            }
            let got = case.enter(
                program,
                "no",
                &["-o", "ExitOnForwardFailure=yes", "-L", "45119:h:1"],
            );
            assert_eq!((got.code, got.text()), (Some(255), String::new()));
        }
    }
}

#[test]
fn a_key_that_nobody_has_looked_at_vouches_for_no_other() {
    let home = TempFolder::new("two-keys").unwrap();
    let key = ecdsa(&home);
    let sshd = Sshd::start(&format!("HostKey {}", key.display())).unwrap();
    let (port, id) = (sshd.port(), sshd.folder().join("id"));
    let case = Case::new(port, id, home, Server::OpenSsh { _sshd: sshd });
    let (adit, ssh) = ([bin(), "ssh".into()], PathBuf::from("ssh"));
    let adit: Vec<&Path> = adit.iter().map(PathBuf::as_path).collect();
    for program in [&adit[..], &[&*ssh]] {
        let _ = fs::remove_file(case.known());
        let got = case.enter(program, "accept-new", &[]);
        assert_eq!(got.code, Some(0), "{}", got.err);
        let known = fs::read_to_string(case.known()).unwrap();
        assert_eq!(known.lines().count(), 1, "{program:?}: {known}");
    }
    // The server has two keys and shows the known one: there is no complaint.
    let public = fs::read_to_string(case.home.path().join("ecdsa.pub")).unwrap();
    fs::write(case.known(), format!("{} {public}", case.host)).unwrap();
    let got = case.enter(&adit, "yes", &["-o", "UpdateHostKeys=no"]);
    assert_eq!(got.code, Some(0), "{}", got.err);
}

#[test]
fn a_file_that_cannot_be_read_whole_is_not_empty() {
    let case = Case::openssh();
    case.know_another();
    let file = fs::OpenOptions::new().append(true).open(case.known());
    let len = (16 << 20) + 1;
    file.unwrap().set_len(len).unwrap();
    let adit = [bin(), "ssh".into()];
    let adit: Vec<&Path> = adit.iter().map(PathBuf::as_path).collect();
    let got = case.enter(&adit, "accept-new", &[]);
    assert_eq!((got.code, got.text()), (Some(255), String::new()));
    assert!(got.err.contains("longer than"), "{}", got.err);
    assert_eq!(fs::metadata(case.known()).unwrap().len(), len);
}
