//! Programs: their streams, exit status, environment, and what remains of them.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

use adit_interop::{BytePattern, Checksum};

use super::world::{Guard, Host, ended, line_of, lives, until};

#[test]
fn streams_statuses_and_signals() {
    let host = Host::start(&[]);
    let (status, out, err) = host.run(&[], "echo out; echo err >&2; exit 7");
    assert_eq!((status, &*out, &*err), (Some(7), "out\n", "err\n"));
    assert_eq!(host.says(&[], "pwd; echo $HOME"), {
        let home = host.says(&[], "echo ~");
        format!("{home}\n{home}")
    });
    assert_eq!(host.run(&[], "no-such-program").0, Some(127));
    // OpenSSH's client has one status for all signals.
    assert_eq!(host.run(&[], "kill -TERM $$").0, Some(255));
    let output = ended(host.ssh(&[], "cat; echo end"), b"typed\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "typed\nend\n");
    // A shell without a terminal reads its input.
    let output = ended(host.ssh(&[], ""), b"echo $0 $((6*7))\n");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with('-') && said.ends_with(" 42\n"), "{said}");
    // A program that reads nothing does not block its client.
    let output = ended(host.ssh(&[], "exec <&-; echo done"), &vec![b'x'; 8 << 20]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n");
    // The end of an output is forwarded while the program continues.
    assert_eq!(host.says(&[], "echo a; exec >&-; sleep 0.2; exit 0"), "a");
    host.adit.stop().unwrap();
}

#[test]
fn much_both_ways_with_new_keys() {
    let host = Host::start(&[]);
    let bytes = BytePattern::new(5).next_bytes(24 << 20);
    let output = ended(host.ssh(&["-o", "RekeyLimit=1M"], "cat"), &bytes);
    assert!(output.status.success());
    let sum = |bytes: &[u8]| (bytes.len(), Checksum::EMPTY.extend_with(bytes));
    assert_eq!(sum(&output.stdout), sum(&bytes));
    let output = ended(host.ssh(&["-C"], "cat >&2; echo done"), &bytes[..4 << 20]);
    assert_eq!(sum(&output.stderr), sum(&bytes[..4 << 20]));
    assert_eq!(output.stdout, b"done\n");
}

/// A program that ends before it has read its input ends its client, which would have more to send.
#[test]
fn the_end_of_a_program_is_not_kept_back_by_its_input() {
    let host = Host::start(&[]);
    for (line, status) in [
        ("head -c 33554432 >/dev/null; exit 3", 3),
        ("head -c 25165824 >/dev/null; sleep 0.3; exit 4", 4),
    ] {
        let mut ssh = host.ssh(&[], line);
        let mut child = Guard::spawn(ssh.stdin(Stdio::piped()));
        let mut input = child.0.stdin.take().unwrap();
        // The second program does not read everything, nor may its client send everything.
        let given = input.write_all(&vec![7; 32 << 20]);
        assert!(given.is_ok() || status == 4, "{given:?}");
        let mut ended = None;
        until("the client ends", || {
            ended = child.0.try_wait().unwrap();
            ended.is_some()
        });
        assert_eq!(ended.and_then(|ended| ended.code()), Some(status), "{line}");
        drop(input);
    }
}

#[test]
fn variables() {
    let host = Host::start(&["--accept-env", "LANG,MINE_*"]);
    let mut ssh = host.options(&["-o", "SendEnv=LANG MINE_A LC_ALL LD_PRELOAD"]);
    ssh.env("LANG", "C.UTF-8").env("MINE_A", "yes");
    ssh.env("LC_ALL", "C").env_remove("LD_PRELOAD");
    ssh.arg(super::world::destination());
    ssh.arg("echo $LANG-$MINE_A-$LC_ALL-$USER-${SSH_CONNECTION##* }-${SSH_TTY-none}");
    let output = ended(ssh, b"");
    let wanted = format!(
        "C.UTF-8-yes--{}-{}-none\n",
        adit_interop::openssh::current_user(),
        host.port()
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), wanted);
    let said = host.says(&["-o", "SetEnv=OTHER=1"], "env");
    assert!(!said.contains("OTHER=") && !said.contains("ADIT"), "{said}");
}

#[test]
fn many_at_once_do_not_wait_for_each_other() {
    let host = Host::start(&["--max-startups", "200"]);
    thread::scope(|all| {
        for n in 0..20 {
            let host = &host;
            all.spawn(move || {
                assert_eq!(
                    host.says(&[], &format!("echo {n}; head -c 100000 /dev/zero | wc -c")),
                    { format!("{n}\n100000") }
                );
            });
        }
    });
    // One connection: a program that does not read, one that writes nothing, one that is quick.
    let shared = |options: &[&str], line: &str| {
        let path = format!("ControlPath={}", host.path("control").display());
        let mut ssh = Command::new("ssh");
        for word in host.ssh(options, line).get_args() {
            match word == "ControlPath=none" {
                true => ssh.arg(&path),
                false => ssh.arg(word),
            };
        }
        ssh
    };
    let mut master = shared(&["-M", "-N"], "");
    let _master = Guard::spawn(master.stdin(Stdio::null()));
    until("control socket", || host.path("control").exists());
    let mut stuck = shared(&[], "sleep 60");
    let mut stuck = Guard::spawn(stuck.stdin(Stdio::piped()).stdout(Stdio::null()));
    let mut input = stuck.0.stdin.take().unwrap();
    let writer = thread::spawn(move || {
        // Until the window is full, or the client has ended.
        input.write_all(&vec![0; 64 << 20]).is_err()
    });
    for n in 0..5 {
        let output = ended(shared(&[], &format!("echo {n}")), b"");
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{n}\n"));
    }
    stuck.kill();
    assert!(writer.join().unwrap());
}

#[test]
fn a_client_that_is_killed_leaves_no_child() {
    let host = Host::start(&[]);
    let path = host.path("pid");
    for options in [&[][..], &["-tt"][..]] {
        let line = format!("echo $$ > {}; sleep 600; echo over", path.display());
        let mut ssh = host.ssh(options, &line);
        let mut ssh = Guard::spawn(ssh.stdin(Stdio::piped()).stdout(Stdio::null()));
        let pid = line_of(&path);
        assert!(lives(&pid));
        ssh.kill();
        until("the program ends", || !lives(&pid));
        std::fs::remove_file(&path).unwrap();
    }
    // It ignores SIGHUP: it is killed a little later, with its children.
    let line = format!(
        "trap '' HUP; sleep 600 & echo $! > {}; sleep 600; :",
        path.display()
    );
    let mut ssh = host.ssh(&[], &line);
    let mut ssh = Guard::spawn(ssh.stdin(Stdio::piped()).stdout(Stdio::null()));
    let pid = line_of(&path);
    ssh.kill();
    until("the deaf one ends", || !lives(&pid));
}

/// Much at once, a pause, a little: every byte arrives in time, with the exit status. Then a client that
/// is killed during a transfer, and one while the program is silent.
#[test]
fn fast_output_pauses_and_ends() {
    let host = Host::start(&[]);
    let line = "head -c 33000000 /dev/zero; sleep 0.3; printf late; sleep 0.3; printf last; exit 7";
    let output = ended(host.ssh(&[], line), b"");
    assert_eq!(output.status.code(), Some(7));
    let (zeros, rest) = output.stdout.split_at(33_000_000);
    assert!(zeros.iter().all(|byte| *byte == 0));
    assert_eq!(String::from_utf8_lossy(rest), "latelast");
    let path = host.path("pid");
    for after in [
        "exec cat /dev/zero",
        "head -c 33000000 /dev/zero; sleep 600; :",
    ] {
        let line = format!("echo $$ > {}; {after}", path.display());
        let mut ssh = host.ssh(&[], &line);
        let mut ssh = Guard::spawn(ssh.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let pid = line_of(&path);
        let mut much = vec![0; 33_000_000];
        let mut out = ssh.0.stdout.take().unwrap();
        std::io::Read::read_exact(&mut out, &mut much).unwrap();
        assert!(lives(&pid));
        ssh.kill();
        until("the program ends", || !lives(&pid));
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn the_end_of_the_server_is_the_end_of_its_programs() {
    let host = Host::start(&[]);
    let path = host.path("pid");
    let mut ssh = host.ssh(&[], &format!("echo $$ > {}; sleep 600; :", path.display()));
    let mut ssh = Guard::spawn(ssh.stdin(Stdio::piped()).stderr(Stdio::null()));
    let pid = line_of(&path);
    let Host { folder, adit } = host;
    adit.stop().unwrap();
    until("the program ends", || !lives(&pid));
    assert_eq!(ssh.0.wait().unwrap().code(), Some(255));
    drop(folder);
}
