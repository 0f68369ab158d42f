//! Programs: their exit codes, streams and environment.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use adit_interop::openssh::current_user;
use adit_interop::{BytePattern, ChildProcess, TEST_TIMEOUT, wait_socket};

use super::{World, keygen, run, run_fine};

#[test]
fn they_end_as_they_end_there() {
    let world = World::new("AcceptEnv A_*\nSubsystem hello echo from there");
    let got = world.run(&[], &["echo out; echo err >&2; exit 7"], b"");
    assert_eq!(
        (got.code, &*got.out, &*got.err),
        (Some(7), &b"out\n"[..], "err\n")
    );
    // As in a shell: words are joined by spaces, and options after the first word are the program's.
    let got = world.run(&[], &["echo", "a  b", "-p", "--", "c"], b"");
    assert_eq!(got.fine(), "a b -p -- c\n");
    let got = world.run(&[], &["kill -TERM $$"], b"");
    assert_eq!(got.code, Some(255));
    assert!(got.err.contains("SIGTERM"), "{}", got.err);
    // Both kinds of variables.
    let mut command = world.ssh(&["-o", "SendEnv=A_1", "-o", "SetEnv=A_2=x"]);
    command
        .env("A_1", "1")
        .env("A_3", "3")
        .arg("env | grep ^A_ | sort");
    assert_eq!(run(command, b"").fine(), "A_1=1\nA_2=x\n");
    // Without input `cat` ends immediately.
    assert_eq!(world.run(&["-n"], &["cat"], b"much").fine(), "");
    assert_eq!(world.run(&["-s"], &["hello"], b"").fine(), "from there\n");
    // -E receives the messages of adit, not those of the program.
    let log = world.at_home("log");
    let mut command = world.bare();
    command.args(world.options().iter().filter(|option| *option != "-q"));
    command
        .arg("-vE")
        .arg(&log)
        .arg(World::place())
        .arg("echo err >&2");
    let got = run(command, b"");
    assert_eq!((got.code, &*got.err), (Some(0), "err\n"));
    assert!(fs::read_to_string(log).unwrap().contains("logged in"));
}

#[test]
fn much_goes_through_both_ways_under_new_keys() {
    let world = World::new("");
    let much = BytePattern::new(7).next_bytes(8 << 20);
    for options in [
        &[][..],
        &["-o", "RekeyLimit=1M"],
        &["-C", "-c", "aes256-ctr", "-m", "umac-128-etm@openssh.com"],
    ] {
        let got = world.run(options, &["cat"], &much);
        assert_eq!(got.code, Some(0), "{}", got.err);
        assert!(got.out == much, "{options:?}: {} bytes", got.out.len());
    }
    // A program that does not read its input still ends.
    let got = world.run(&[], &["head -c 10 | wc -c"], &much);
    assert_eq!(got.fine().trim(), "10");
    // And a program whose output is not read notices that.
    let mut endless = world.ssh(&[]);
    endless
        .arg("yes")
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut ssh = endless.stdin(Stdio::null()).spawn().unwrap();
    let mut some = [0; 4];
    ssh.stdout.take().unwrap().read_exact(&mut some).unwrap();
    assert_eq!((&some, ssh.wait().unwrap().code()), (b"y\ny\n", Some(255)));
}

#[test]
fn a_configuration_leads_through_hosts() {
    let world = World::new("");
    let config = world.config();
    let through = |options: &[&str], place: &str| {
        let mut command = world.bare();
        command
            .arg("-F")
            .arg(&config)
            .args(options)
            .args([place, "echo", "here"]);
        run(command, b"").fine()
    };
    assert_eq!(through(&[], "near"), "here\n");
    assert_eq!(through(&[], "farther"), "here\n");
    assert_eq!(through(&["-J", "near,near,near"], "near"), "here\n");
    let uri = format!("ssh://{}@near:{}", current_user(), world.sshd.port());
    assert_eq!(through(&["-J", &uri], "near"), "here\n");
    // The default key, which is found without an option.
    fs::create_dir(world.at_home(".ssh")).unwrap();
    fs::copy(&config, world.at_home(".ssh/config")).unwrap();
    let mut command = world.bare();
    command.args(["far", "exit 4"]);
    assert_eq!(run(command, b"").code, Some(4));
}

#[test]
fn an_agent_lends_its_keys_here_and_there() {
    let world = World::new("AllowAgentForwarding yes");
    let socket = world.at_home("agent");
    let mut agent = Command::new("ssh-agent");
    agent.arg("-D").arg("-a").arg(&socket);
    let _agent = ChildProcess::spawn(agent).unwrap();
    wait_socket(&socket, TEST_TIMEOUT).unwrap();
    run_fine(
        Command::new("ssh-add")
            .env("SSH_AUTH_SOCK", &socket)
            .arg("-q")
            .arg(world.key()),
    );
    let options = world.options();
    // Without -i, only the agent can provide a key.
    let options = options
        .iter()
        .filter(|option| !option.ends_with("/id") && *option != "-i");
    let options: Vec<&String> = options.collect();
    let with = |more: &[&str], word: &str| {
        let mut command = world.bare();
        command
            .args(&options)
            .args(more)
            .arg(World::place())
            .arg(word);
        command.env("SSH_AUTH_SOCK", &socket);
        run(command, b"")
    };
    assert_eq!(
        with(&["-a"], "echo ${SSH_AUTH_SOCK:-none}").fine(),
        "none\n"
    );
    let listed = with(&["-A"], "ssh-add -l").fine();
    assert!(listed.contains("ED25519"), "{listed}");
    assert_eq!(with(&["-o", "IdentityAgent=none"], "true").code, Some(255));
    // Another key is named, and no other may be tried.
    let other = world.at_home("other");
    keygen(&other, "ed25519", "");
    let other = other.display().to_string();
    assert_eq!(
        with(&["-i", &other, "-o", "IdentitiesOnly=yes"], "true").code,
        Some(255)
    );
    assert_eq!(with(&["-i", &other], "echo in").fine(), "in\n");
}

#[test]
fn silence_is_found_out() {
    let world = World::new("");
    // The server's process stops for a while.
    let word = "P=$PPID; (sleep 6; kill -CONT $P) >/dev/null 2>&1 & kill -STOP $P; sleep 6";
    let alive = ["-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=2"];
    let start = Instant::now();
    let got = world.run(&alive, &[word], b"");
    assert_eq!(got.code, Some(255), "{}", got.err);
    assert!(got.err.contains("sent nothing"), "{}", got.err);
    assert!(
        start.elapsed() < Duration::from_secs(6),
        "{:?}",
        start.elapsed()
    );
    // A listener that sends nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let mut command = world.bare();
    command.args([
        "-F",
        "none",
        "-o",
        "ConnectTimeout=1",
        "-p",
        &port,
        "127.0.0.1",
        "true",
    ]);
    let got = run(command, b"");
    assert_eq!(got.code, Some(255));
    assert!(got.err.contains("did not answer for 1 s"), "{}", got.err);
}
