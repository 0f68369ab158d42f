//! Files that adit stores, and attacks on them by other users.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use adit_interop::openssh::{self, generate_key, ssh_command};
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder};

use crate::setup::{ALLOW, bin, ended};

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Creates a file that must not change, with links to it under these names.
fn victim(folder: &Path, links: &[PathBuf]) -> PathBuf {
    let victim = folder.join("victim");
    fs::write(&victim, "precious").unwrap();
    chmod(&victim, 0o644);
    for link in links {
        symlink(&victim, link).unwrap();
    }
    victim
}

#[track_caller]
fn is_untouched(victim: &Path) {
    assert_eq!(fs::read_to_string(victim).unwrap(), "precious");
    assert_eq!(mode(victim), 0o644);
}

#[test]
fn a_planted_link_leads_no_key_elsewhere() {
    let folder = TempFolder::new("planted").unwrap();
    let (state, host) = (folder.path().join("state"), folder.path().join("host"));
    fs::create_dir(&state).unwrap();
    let beside = |path: &Path| PathBuf::from(format!("{}.new", path.display()));
    let key = state.join("server.key");
    let victim = victim(folder.path(), &[beside(&key), beside(&host)]);
    let server = |words: &[&str]| {
        let mut args = vec!["server", "--listen", "127.0.0.1:0", "--no-qr", "--state"];
        args.push(state.to_str().unwrap());
        args.extend(words);
        AditProcess::start_with(&bin(), &args, 1)
            .unwrap()
            .stop()
            .unwrap();
    };
    server(&["--method", "2022-blake3-aes-128-gcm"]);
    is_untouched(&victim);
    assert_eq!(mode(&key), 0o600);
    // A new file replaces it: open handles still see the old one.
    let (old, text) = (folder.path().join("old"), fs::read(&key).unwrap());
    fs::hard_link(&key, &old).unwrap();
    server(&["--method", "2022-blake3-aes-256-gcm"]);
    assert_eq!(fs::read(&old).unwrap(), text);
    assert_ne!(fs::read(&key).unwrap(), text);
    is_untouched(&victim);

    let id = generate_key(folder.path(), "id").unwrap();
    let keys = id.with_extension("pub");
    let mut args = vec!["sshd", "--listen", "127.0.0.1:0", "--host-key"];
    args.extend([host.to_str().unwrap(), "--authorized-keys"]);
    args.push(keys.to_str().unwrap());
    AditProcess::start(&args, 1).unwrap().stop().unwrap();
    is_untouched(&victim);
    assert_eq!(mode(&host), 0o600);
    fs::remove_file(&host).unwrap();
    let (host, keys) = (host.display(), keys.display());
    let url = format!("ssh://:0?host_key=@{host}&authorized_keys=@{keys}&{ALLOW}");
    AditProcess::start(&["run", &url], 1)
        .unwrap()
        .stop()
        .unwrap();
    is_untouched(&victim);
}

#[test]
fn a_secret_that_others_can_read_is_refused() {
    let folder = TempFolder::new("readable").unwrap();
    let key = folder.path().join("server.key");
    let state = folder.path().to_str().unwrap();
    let args = ["server", "--listen", "127.0.0.1:0", "--state", state];
    AditProcess::start_with(&bin(), &args, 1)
        .unwrap()
        .stop()
        .unwrap();
    chmod(&key, 0o644);
    let text = fs::read(&key).unwrap();
    let told = ended(&args);
    assert_ne!(told.code, Some(0));
    let mend = format!("chmod 600 '{}'", key.display());
    assert!(told.output.contains(&mend), "{}", told.output);
    assert_eq!(fs::read(&key).unwrap(), text);

    let host = generate_key(folder.path(), "host").unwrap();
    chmod(&host, 0o640);
    let url = format!("ssh://ann:secret@127.0.0.1:0?host_key=@{}", host.display());
    let told = ended(&["run", &url]);
    assert_ne!(told.code, Some(0));
    let mend = format!("chmod 600 '{}'", host.display());
    assert!(told.output.contains(&mend), "{}", told.output);
}

/// Returns true if OpenSSH's client can log in with the key `id` of this folder.
fn enters(folder: &TempFolder, port: u16, words: &[&str]) -> bool {
    let mut command = ssh_command(port, &folder.path().join("id"));
    command.args(words);
    let ended = openssh::run_command(command, TEST_TIMEOUT).unwrap();
    !ended.output.contains("Permission denied")
}

#[test]
fn keys_that_others_can_change_let_nobody_in() {
    let folder = TempFolder::new("changed").unwrap();
    let id = generate_key(folder.path(), "id").unwrap();
    let above = folder.path().join("above");
    let keys = above.join("folder/keys");
    fs::create_dir_all(keys.parent().unwrap()).unwrap();
    fs::copy(id.with_extension("pub"), &keys).unwrap();
    let host = folder.path().join("host");
    let (host, file) = (host.display().to_string(), keys.display().to_string());
    let url = format!("ssh://127.0.0.1:0?host_key=@{host}&authorized_keys=@{file}&{ALLOW}");
    let sshd = ["sshd", "-l", "127.0.0.1:0", "--host-key", &host];
    let sshd = [&sshd[..], &["--authorized-keys", &file]].concat();
    let place = format!("{}@127.0.0.1", openssh::current_user());
    for (mut adit, words) in [
        (AditProcess::start(&sshd, 1).unwrap(), vec![&*place, "true"]),
        (
            AditProcess::start(&["run", &url], 1).unwrap(),
            // Nothing listens there, which is reported after the login.
            vec!["-W", "127.0.0.1:1", &place],
        ),
    ] {
        let port = adit.addr().port();
        let is_let_in = |adit: &mut AditProcess| {
            let before = adit.process().output().len();
            enters(&folder, port, &words)
                || !adit.process().output()[before..].contains("chmod go-w")
        };
        assert!(is_let_in(&mut adit), "{}", adit.process().output());
        for (path, open, fine) in [
            (&keys, 0o666, 0o600),
            (&keys.parent().unwrap().to_owned(), 0o777, 0o755),
            // A user who can write to a parent folder can replace the folder.
            (&above, 0o757, 0o755),
        ] {
            chmod(path, open);
            assert!(!enters(&folder, port, &words), "{}", path.display());
            let mend = format!("chmod go-w '{}'", path.display());
            adit.process().wait_lines(&mend, 1, TEST_TIMEOUT).unwrap();
            chmod(path, fine);
        }
        assert!(enters(&folder, port, &words), "{}", adit.process().output());
        adit.stop().unwrap();
    }
}

/// The file is read for each key that is offered.
#[test]
fn keys_that_others_can_change_are_told_once() {
    let folder = TempFolder::new("told").unwrap();
    let id = generate_key(folder.path(), "id").unwrap();
    let keys = folder.path().join("keys");
    fs::copy(id.with_extension("pub"), &keys).unwrap();
    chmod(&keys, 0o666);
    let url = format!(
        "ssh://127.0.0.1:0?host_key=@{}&authorized_keys=@{}&{ALLOW}",
        folder.path().join("host").display(),
        keys.display()
    );
    let mut adit = AditProcess::start(&["run", &url], 1).unwrap();
    let port = adit.addr().port();
    let place = format!("{}@127.0.0.1", openssh::current_user());
    let told = |adit: &mut AditProcess, times: usize| {
        assert!(!enters(&folder, port, &["-W", "127.0.0.1:1", &place]));
        let log = adit.process().output();
        assert_eq!(log.matches("no key is accepted").count(), times, "{log}");
    };
    // At the start.
    told(&mut adit, 1);
    told(&mut adit, 1);
    chmod(&keys, 0o600);
    assert!(enters(&folder, port, &["-W", "127.0.0.1:1", &place]));
    // Again after it was correct.
    chmod(&keys, 0o666);
    told(&mut adit, 2);
    told(&mut adit, 2);
    adit.stop().unwrap();
}
