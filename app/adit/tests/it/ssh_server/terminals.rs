//! Terminals.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use super::world::{Guard, Host, destination, ended, until};

#[test]
fn a_terminal_is_one() {
    let host = Host::start(&[]);
    let (status, out, _) = host.run(&["-tt"], "tty; echo $TERM; test $SSH_TTY = $(tty); exit $?");
    assert_eq!(status, Some(0), "{out}");
    assert!(out.starts_with("/dev/"), "{out}");
    // Both outputs are one, and lines end as on a terminal.
    let (status, out, err) = host.run(&["-tt"], "echo a; echo b >&2; exit 3");
    assert_eq!((status, &*out, &*err), (Some(3), "a\r\nb\r\n", ""));
    // A login shell: input is read and echoed.
    let output = ended(host.ssh(&["-tt"], ""), b"echo $((40+2)); exit 5\n");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("42"), "{said}");
    // Without a terminal there is none.
    assert_eq!(host.says(&["-T"], "tty || true"), "not a tty");
    let host = Host::start(&["--no-pty"]);
    assert_eq!(host.run(&["-tt"], "tty").0, Some(255));
    assert_eq!(host.says(&["-T"], "echo fine"), "fine");
}

/// A client in a separate terminal, which `script` creates, so that it has a size to send.
#[test]
fn its_size_follows_the_client() {
    let host = Host::start(&[]);
    let mut ssh = host.options(&["-t", "-e", "none"]);
    ssh.arg(destination());
    // `stty` sets rows and columns one after the other, so there can be two signals.
    let resized = r#"trap 's=$(stty size); echo "$s"; test "$s" != "12 77" || exec cat' WINCH"#;
    ssh.arg(format!(
        "stty size; {resized}; echo ready; while :; do sleep 0.05; done"
    ));
    let words: Vec<String> = std::iter::once(ssh.get_program())
        .chain(ssh.get_args())
        .map(|word| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''")))
        .collect();
    let size = host.path("tty");
    let line = format!(
        "stty rows 33 cols 101; tty > {}; exec {}",
        size.display(),
        words.join(" ")
    );
    let mut script = Command::new("script");
    script.args(["-qefc", &line, "/dev/null"]);
    script.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut client = Guard::spawn(&mut script);
    let said = Arc::new(Mutex::new(String::new()));
    let (mut out, into) = (client.0.stdout.take().unwrap(), Arc::clone(&said));
    thread::spawn(move || {
        let mut buffer = [0; 1024];
        while let Ok(n @ 1..) = out.read(&mut buffer) {
            into.lock()
                .unwrap()
                .push_str(&String::from_utf8_lossy(&buffer[..n]));
        }
    });
    let has = |text: &str| said.lock().unwrap().contains(text);
    until("the first size", || has("33 101") && has("ready"));
    let tty = super::world::line_of(&size);
    let mut stty = Command::new("stty");
    stty.args(["-F", &tty, "rows", "12", "cols", "77"]);
    assert!(stty.status().unwrap().success());
    until("the second size", || has("12 77"));
    // Ctrl-C passes through both terminals to the program: `cat`, which has shown that it runs.
    // A shell ignores an interrupt while its child exits without a signal.
    let mut keys = client.0.stdin.take().unwrap();
    keys.write_all(b"here\n").unwrap();
    until("what was typed, twice", || {
        said.lock().unwrap().matches("here").count() == 2
    });
    keys.write_all(&[3]).unwrap();
    until("the end", || client.0.try_wait().unwrap().is_some());
}
