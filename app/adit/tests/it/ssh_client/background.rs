//! `-f`, and options of OpenSSH that have no meaning here or are not supported.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use std::{process, thread};

use adit_interop::{TEST_TIMEOUT, free_port};
use rustix::process::{Pid, Signal, kill_process};

use super::{World, appears, run};
use crate::setup::ended;

/// Returns the background process, by an argument of its command line.
fn behind(mark: &str) -> Option<Pid> {
    let ours = process::id();
    let mut all = fs::read_dir("/proc").unwrap().flatten();
    all.find_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let words = fs::read(entry.path().join("cmdline")).ok()?;
        let has = |word: &[u8]| words.windows(word.len()).any(|part| part == word);
        (pid.unsigned_abs() != ours && has(b"\0--in-background\0") && has(mark.as_bytes()))
            .then(|| Pid::from_raw(pid).unwrap())
    })
}

#[track_caller]
fn goes(mark: &str) {
    let start = Instant::now();
    while behind(mark).is_some() {
        assert!(start.elapsed() < TEST_TIMEOUT, "it is still there");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_program_goes_on_behind() {
    let world = World::new("");
    let (go, done) = (world.at_home("go"), world.at_home("done"));
    let (go, done) = (go.display(), done.display());
    let line = format!(
        "while ! [ -e {go} ]; do sleep 0.05; done; wc -c > {done}.new; mv {done}.new {done}"
    );
    // It has no input to read.
    let mut command = world.ssh(&["-f"]);
    command
        .arg(line)
        .stdout(process::Stdio::null())
        .stderr(process::Stdio::null());
    let status = command.stdin(process::Stdio::piped()).status().unwrap();
    let mark = world.home.path().display().to_string();
    assert_eq!(status.code(), Some(0));
    assert!(behind(&mark).is_some() && !world.at_home("done").exists());
    world.home.write_file("go", "").unwrap();
    appears(&world.at_home("done"));
    assert_eq!(
        fs::read_to_string(world.at_home("done")).unwrap().trim(),
        "0"
    );
    goes(&mark);
}

#[test]
fn a_forward_stays_behind_and_holds_no_stream() {
    let world = World::new("");
    let port = free_port();
    let forward = format!("{port}:127.0.0.1:{}", world.sshd.port());
    // `run` reads both outputs to their end.
    let got = world.run(&["-f", "-N", "-L", &forward], &[], b"");
    assert_eq!(
        (got.code, got.text(), &*got.err),
        (Some(0), String::new(), "")
    );
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.write_all(b"SSH-2.0-test\r\n").unwrap();
    let mut greeting = [0; 4];
    stream.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"SSH-");
    let mark = world.home.path().display().to_string();
    let pid = behind(&mark).expect("no process runs there");
    // It has left the terminal, and the session in which it was started.
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(
        fields[3],
        pid.as_raw_nonzero().to_string(),
        "the session: {stat}"
    );
    kill_process(pid, Signal::TERM).unwrap();
    goes(&mark);
}

#[test]
fn what_fails_before_fails_in_front() {
    let world = World::new("");
    let mut command = world.bare();
    command.args([
        "-F",
        "none",
        "-f",
        "-o",
        "BatchMode=yes",
        "-p",
        &free_port().to_string(),
    ]);
    command.args(["127.0.0.1", "true"]);
    let got = run(command, b"");
    assert_eq!(got.code, Some(255));
    assert!(got.err.contains("error: "), "{}", got.err);
    let got = world.run(&["-f"], &[], b"");
    assert_eq!(got.code, Some(255));
    assert!(got.err.contains("-N"), "{}", got.err);
}

#[test]
fn options_that_mean_nothing_here_are_taken() {
    let world = World::new("");
    let options = [
        "-q",
        "-x",
        "-a",
        "-K",
        "-k",
        "-2",
        "-x",
        "-4",
        "-A",
        "-a",
        "-S",
        "none",
        "-6",
        "-4",
        "-p",
        "1",
        "-l",
        "nobody-at-all",
    ];
    let line = "echo ${SSH_AUTH_SOCK:-none}";
    assert_eq!(world.run(&options, &[line], b"").fine(), "none\n");
    let version = ended(&["ssh", "-V"]).expect_success().unwrap();
    assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
}

#[test]
fn options_that_are_not_there_say_so() {
    for options in [
        &["-M"][..],
        &["-MM"],
        &["-O", "check"],
        &["-S", "folder/socket"],
        &["-X"],
        &["-Y"],
        &["-G"],
        &["-Q", "cipher"],
        &["-w", "0:0"],
        &["-I", "/usr/lib/x.so"],
        &["-B", "lo"],
        &["-P", "tag"],
        &["-y"],
        &["-1"],
    ] {
        let place = (options[0] != "-Q").then_some("host.invalid");
        let args: Vec<&str> = ["ssh"]
            .iter()
            .chain(options)
            .copied()
            .chain(place)
            .collect();
        let told = ended(&args);
        assert_eq!(told.code, Some(255), "{options:?}: {}", told.output);
        let wanted = format!("adit ssh has no {}: ", &options[0][..2]);
        assert!(told.output.contains(&wanted), "{}", told.output);
    }
}
