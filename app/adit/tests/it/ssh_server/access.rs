//! Authentication, and the permissions of each key.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use adit_interop::openssh::{current_user, generate_key, ssh_command};
use adit_interop::{AditProcess, TEST_TIMEOUT, free_port};

use super::world::{Guard, Host, destination, ended, until};

#[test]
fn other_keys_and_other_users_are_refused() {
    let host = Host::start(&["--max-auth-tries", "3"]);
    let other = generate_key(host.folder.path(), "other").unwrap();
    let enters = |name: &str, key: &Path| {
        let mut ssh = ssh_command(host.port(), key);
        ssh.arg(format!("{name}@127.0.0.1")).arg("true");
        ended(ssh, b"")
    };
    assert!(enters(&current_user(), &host.key()).status.success());
    let wrong_key = enters(&current_user(), &other);
    let wrong_user = enters("another-user", &host.key());
    let both = enters("another-user", &other);
    for refused in [&wrong_key, &wrong_user, &both] {
        assert_eq!(refused.status.code(), Some(255));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains("Permission denied (publickey)"), "{said}");
    }
    // Too many tries end the connection.
    let mut ssh = ssh_command(host.port(), &other);
    for n in 0..4 {
        let name = format!("k{n}");
        ssh.arg("-i")
            .arg(generate_key(host.folder.path(), &name).unwrap());
    }
    ssh.arg("-i").arg(host.key()).arg(destination()).arg("true");
    let said = ended(ssh, b"");
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(
        said.contains("too many") || said.contains("Too many"),
        "{said}"
    );
    // A change of the file applies to the next login.
    let line = fs::read_to_string(other.with_extension("pub")).unwrap();
    fs::write(host.path("keys"), line).unwrap();
    assert!(enters(&current_user(), &other).status.success());
    assert!(!enters(&current_user(), &host.key()).status.success());
    host.adit.stop().unwrap();
}

#[test]
fn a_file_that_others_can_change_is_refused() {
    let host = Host::start(&[]);
    let keys = host.path("keys");
    for (mode, status) in [(0o666, 255), (0o644, 0), (0o646, 255), (0o600, 0)] {
        fs::set_permissions(&keys, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(host.run(&[], "true").0, Some(status), "{mode:o}");
    }
    // A user who can write to a folder can put another file there.
    let open = host.path("open");
    fs::create_dir(&open).unwrap();
    fs::rename(&keys, open.join("keys")).unwrap();
    std::os::unix::fs::symlink(open.join("keys"), &keys).unwrap();
    assert_eq!(host.run(&[], "true").0, Some(0));
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(host.run(&[], "true").0, Some(255));
}

#[test]
fn a_forced_command_is_all_there_is() {
    let options = r#"command="echo forced: $SSH_ORIGINAL_COMMAND",environment="MARK=a b""#;
    let host = Host::with_keys(&[], |line| format!("{options} {line}\n"));
    assert_eq!(host.says(&[], "touch /nowhere"), "forced: touch /nowhere");
    assert_eq!(host.says(&["-T"], ""), "forced:");
    assert_eq!(host.says(&["-s"], "sftp"), "forced: sftp");
    let options = r#"environment="MARK=a b""#;
    let permitted = ["--permit-user-environment"];
    let forced = ["--command", "echo mine; echo $MARK"];
    let host = Host::with_keys(&[&permitted[..], &forced].concat(), |line| {
        format!("{options},command=\"echo the key's\" {line}\n")
    });
    assert_eq!(host.says(&[], "id"), "mine\na b");
}

/// A user who can write the file of keys must not be able to run code through it.
#[test]
fn variables_of_keys_are_permitted_by_name_and_never_those_of_loaders() {
    let options = r#"environment="MARK=a b",environment="OTHER=c",environment="LD_PRELOAD=/x.so",environment="BASH_ENV=/x",environment="PATH=/x""#;
    for (permitted, seen) in [
        (&[][..], ""),
        (&["--permit-user-environment"], "MARK=a b\nOTHER=c"),
        (&["--permit-user-environment=MA*,LD_*"], "MARK=a b"),
    ] {
        let host = Host::with_keys(permitted, |line| format!("{options} {line}\n"));
        let set = "env | grep -E '^(MARK|OTHER|LD_PRELOAD|BASH_ENV|PATH=/x)' | sort";
        assert_eq!(host.says(&[], set), seen, "{permitted:?}");
    }
}

#[test]
fn options_of_keys_narrow_what_they_allow() {
    let host = Host::with_keys(&[], |line| format!("restrict {line}\n"));
    assert_eq!(host.says(&[], "echo fine"), "fine");
    assert_eq!(host.run(&["-tt"], "tty").0, Some(255));
    let place = host.adit.addr().to_string();
    let to = |host: &Host, place: &str| ended(host.ssh(&["-W", place], ""), b"").status.code();
    assert_eq!(to(&host, &place), Some(255));

    let other = free_port();
    let permitted = r#"permitopen="127.0.0.1:PORT",permitlisten="OTHER""#;
    let permitted = permitted.replace("OTHER", &other.to_string());
    let host = Host::with_keys(&[], |line| format!("{permitted} {line}\n"));
    let port = host.port();
    let text = fs::read_to_string(host.path("keys")).unwrap();
    fs::write(host.path("keys"), text.replace("PORT", &port.to_string())).unwrap();
    let banner = ended(host.ssh(&["-W", &format!("127.0.0.1:{port}")], ""), b"");
    assert!(banner.stdout.starts_with(b"SSH-2.0-"), "{banner:?}");
    assert_eq!(to(&host, &format!("localhost:{port}")), Some(255));
    assert_eq!(to(&host, &format!("127.0.0.1:{}", free_port())), Some(255));
    let listens = |at: u16| {
        let place = format!("{at}:127.0.0.1:{port}");
        let options = ["-o", "ExitOnForwardFailure=yes", "-R", &place];
        host.run(&options, "true").0
    };
    assert_eq!(listens(other), Some(0));
    assert_eq!(listens(free_port()), Some(255));

    for (options, status) in [
        (r#"from="10.0.0.0/8""#, 255),
        (r#"from="127.0.0.0/8""#, 0),
        (r#"from="!127.0.0.1,*""#, 255),
        (r#"expiry-time="20200101""#, 255),
        (r#"expiry-time="20990101Z""#, 0),
        ("no-such-option", 255),
        ("no-pty,no-port-forwarding", 0),
    ] {
        let host = Host::with_keys(&[], |line| format!("{options} {line}\n"));
        assert_eq!(host.run(&[], "true").0, Some(status), "{options}");
    }
}

#[test]
fn authorities_sign_keys() {
    let host = Host::start(&[]);
    let authority = generate_key(host.folder.path(), "authority").unwrap();
    let line = fs::read_to_string(authority.with_extension("pub")).unwrap();
    let me = current_user();
    let certified = |principal: &str, more: &[&str]| {
        let mut sign = Command::new("ssh-keygen");
        sign.args(["-q", "-s"]).arg(&authority);
        sign.args(["-I", "test", "-n", principal]).args(more);
        sign.arg(host.path("id.pub"));
        assert!(ended(sign, b"").status.success());
    };
    let keys = |options: &str| {
        host.folder
            .write_file("keys", format!("cert-authority{options} {line}"))
            .unwrap();
    };
    keys("");
    assert_eq!(host.run(&[], "true").0, Some(255), "no certificate yet");
    certified(&me, &[]);
    assert_eq!(host.says(&[], "echo in"), "in");
    certified("another-user", &[]);
    assert_eq!(host.run(&[], "true").0, Some(255));
    keys(r#",principals="another-user""#);
    assert_eq!(host.says(&[], "echo in"), "in");
    certified("another-user", &["-O", "force-command=echo forced"]);
    assert_eq!(host.says(&[], "echo in"), "forced");
    certified("another-user", &["-O", "clear"]);
    assert_eq!(host.run(&["-tt"], "tty").0, Some(255));
    certified("another-user", &["-V", "20200101:20200102"]);
    assert_eq!(host.run(&[], "true").0, Some(255));
}

#[test]
fn the_host_key_is_made_kept_and_checked() {
    let host = Host::start(&[]);
    let path = host.path("host");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut fingerprint = Command::new("ssh-keygen");
    fingerprint.arg("-lf").arg(&path);
    let told = ended(fingerprint, b"").stdout;
    let told = String::from_utf8_lossy(&told).into_owned();
    let print = told.split_whitespace().nth(1).unwrap().to_owned();
    let Host { folder, mut adit } = host;
    assert!(adit.process().output().contains(&print), "{told}");
    adit.stop().unwrap();
    let known = fs::read_to_string(folder.path().join("host.pub")).unwrap();
    let (key, keys) = (path.to_str().unwrap(), folder.path().join("keys"));
    let args = [
        "sshd",
        "-l",
        "127.0.0.1:0",
        "--host-key",
        key,
        "--authorized-keys",
    ];
    let args = [&args[..], &[keys.to_str().unwrap()]].concat();
    let mut again = AditProcess::start(&args, 1).unwrap();
    assert!(again.process().output().contains(&print));
    // A client that knows the key does not need a prompt.
    let known = format!("[127.0.0.1]:{} {known}", again.addr().port());
    let known = folder.write_file("known", known).unwrap();
    let mut client = Command::new("ssh");
    client.args([
        "-F",
        "none",
        "-o",
        "BatchMode=yes",
        "-o",
        "StrictHostKeyChecking=yes",
    ]);
    client
        .arg("-o")
        .arg(format!("UserKnownHostsFile={}", known.display()));
    client.args(["-p", &again.addr().port().to_string(), "-i"]);
    client
        .arg(folder.path().join("id"))
        .arg(destination())
        .arg("echo known");
    let output = ended(client, b"");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "known\n");
    drop(again);
    // A key that others can read is refused.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let why = AditProcess::start(&args, 1).unwrap_err().to_string();
    assert!(why.contains("chmod 600"), "{why}");
}

/// Exchanges messages until the server's lists arrive, then none.
fn stranger(port: u16) -> TcpStream {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    socket.write_all(b"SSH-2.0-slow\r\n").unwrap();
    socket
}

fn is_served(socket: &mut TcpStream) -> bool {
    let mut line = [0; 8];
    socket.read_exact(&mut line).is_ok() && line == *b"SSH-2.0-"
}

#[test]
fn strangers_have_a_number_and_a_time() {
    let options = ["--max-startups", "3", "--login-grace", "2s"];
    let host = Host::start(&options);
    let mut inside: Vec<_> = (0..3).map(|_| stranger(host.port())).collect();
    assert!(inside.iter_mut().all(is_served));
    assert!(!is_served(&mut stranger(host.port())));
    let began = Instant::now();
    for socket in &mut inside {
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest);
    }
    let took = began.elapsed();
    assert!(
        took > Duration::from_millis(500) && took < Duration::from_secs(20),
        "{took:?}"
    );
    assert_eq!(host.says(&[], "echo in"), "in");
    host.adit.stop().unwrap();
}

#[test]
fn who_fails_again_and_again_is_turned_away() {
    let host = Host::start(&["--penalty-exempt", "192.0.2.0/24"]);
    let other = generate_key(host.folder.path(), "other").unwrap();
    for _ in 0..5 {
        let mut ssh = ssh_command(host.port(), &other);
        ssh.arg(destination()).arg("true");
        assert_eq!(ended(ssh, b"").status.code(), Some(255));
    }
    assert!(!is_served(&mut stranger(host.port())));
    assert_eq!(host.run(&[], "true").0, Some(255), "with the right key too");
    // Loopback has no penalties by default.
    let host = Host::start(&[]);
    for _ in 0..4 {
        let mut ssh = ssh_command(host.port(), &other);
        ssh.arg(destination()).arg("true");
        assert_eq!(ended(ssh, b"").status.code(), Some(255));
    }
    assert_eq!(host.says(&[], "echo in"), "in");
}

#[test]
fn silent_clients_are_asked_and_given_up() {
    let host = Host::start(&["--alive-interval", "1s", "--alive-count", "2"]);
    let mut ssh = host.ssh(&[], "sleep 600");
    let ssh = Guard::spawn(ssh.stdin(Stdio::piped()).stderr(Stdio::null()));
    let mut host = host;
    host.adit
        .process()
        .wait_lines(" logged in with ", 1, TEST_TIMEOUT)
        .unwrap();
    std::thread::sleep(Duration::from_millis(3500));
    assert!(
        !host.adit.process().output().contains("disconnected"),
        "who answers stays"
    );
    let pid = i32::try_from(ssh.0.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(pid.unwrap(), rustix::process::Signal::STOP).unwrap();
    until("the silent one is given up", || {
        host.adit.process().output().contains("disconnected")
    });
}

/// The log has user and source of each try, and nothing that a name could add to it.
#[test]
fn failed_logins_are_logged() {
    let mut host = Host::start(&[]);
    let other = generate_key(host.folder.path(), "other").unwrap();
    let me = current_user();
    for (name, key, methods) in [
        (&*me, &other, "publickey"),
        ("root 127.0.0.1:1 x", &other, "publickey"),
        ("unknown-user", &host.key(), "password,keyboard-interactive"),
    ] {
        let mut ssh = ssh_command(host.port(), key);
        let option = format!("PreferredAuthentications={methods}");
        ssh.args(["-o", &option, "-l", name, "127.0.0.1", "true"]);
        assert_eq!(ended(ssh, b"").status.code(), Some(255));
    }
    until("three failed logins", || {
        host.adit
            .process()
            .output()
            .matches(": failed login: ")
            .count()
            == 3
    });
    let log = host.adit.process().output();
    let line = |part: &str| {
        let found = log.lines().find(|line| line.contains(part));
        found.unwrap_or_else(|| panic!("no {part} in {log}"))
    };
    let mine = line(&format!(
        "failed login: {me:?} tried none, publickey (2 times)"
    ));
    assert!(mine.contains("127.0.0.1:"), "{mine}");
    line(r#"failed login: "root 127.0.0.1:1 x" tried none, publickey"#);
    line(r#"failed login: "unknown-user" tried none"#);
    assert!(!log.contains(" logged in with "), "{log}");
}

#[test]
fn the_log_goes_to_a_file() {
    let folder = adit_interop::TempFolder::new("sshd-log").unwrap();
    let log = folder.path().join("log");
    let host = Host::start(&["--log", log.to_str().unwrap()]);
    host.says(&[], "true");
    until("the log", || {
        fs::read_to_string(&log)
            .is_ok_and(|text| text.contains("logged in with") && text.contains("disconnected"))
    });
    let mode = fs::metadata(&log).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn options_that_mean_nothing_are_told() {
    let folder = adit_interop::TempFolder::new("sshd-options").unwrap();
    let key = folder.path().join("key").display().to_string();
    for (options, told) in [
        (["-c", "des"], "`des` is not valid"),
        (["-m", "-*"], "no algorithm is left"),
        (["--max-startups", "5:200:1"], "--max-startups"),
        (["--penalty-exempt", "home"], "--penalty-exempt"),
        (["--listen", "nowhere"], "--listen"),
    ] {
        let args = [&["sshd", "--host-key", &key], &options[..]].concat();
        let why = AditProcess::start(&args, 1).unwrap_err().to_string();
        assert!(why.contains(told), "{why}");
    }
}
