//! Profiles: a URL that is not on the command line, stored under a name.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::BLAKE3_AES_128;
use adit_interop::socks_client::{self, Destination};
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, traffic};

use crate::setup::{bin, ended, says, server, start};

/// The start of the warning about a secret that other users can read.
const WARNING: &str = "on the command line";

/// Runs `adit` with this text on its standard input.
fn with_input(args: &[&str], input: &str) -> (Option<i32>, String) {
    let mut child = Command::new(bin())
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The pipe may be closed early.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let done = child.wait_with_output().unwrap();
    let text = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8(text).unwrap())
}

fn works(front: &AditProcess, origin: &OriginServer) {
    let to = Destination::Addr(origin.addr());
    let stream = socks_client::connect_through(front.addr(), None, &to).unwrap();
    traffic::check_one_byte(stream).unwrap();
}

#[test]
fn a_url_from_standard_input_is_stored_and_used_again() {
    let (back, origin) = (server(BLAKE3_AES_128), OriginServer::start().unwrap());
    let url = BLAKE3_AES_128.url(back.addr());
    let folder = TempFolder::new("profiles").unwrap();
    let state = folder.path().join("state").display().to_string();
    let save = [
        "client", "-", "--save", "home", "--check", "--state", &state,
    ];
    let (code, output) = with_input(&save, &format!("{url}\nrest"));
    assert_eq!(code, Some(0), "{output}");
    says(&output, &["accepts us", "adit client home"]);
    assert!(!output.contains(WARNING), "{output}");
    assert!(!output.contains(BLAKE3_AES_128.key), "{output}");

    let file = folder.path().join("state/profiles/home.url");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    assert_eq!(fs::read_to_string(&file).unwrap().trim(), url);

    let mut front = start(&["client", "home", "-l", "0", "--state", &state]);
    works(&front, &origin);
    let log = front.process().output();
    assert!(!log.contains(WARNING), "{log}");
    front.stop().unwrap();
    let listed = ended(&["client", "--list", "--state", &state]);
    let listed = listed.expect_success().unwrap();
    says(&listed, &["home", &format!("ss://{}", back.addr())]);
    assert!(!listed.contains(BLAKE3_AES_128.key), "{listed}");

    // A file that others can read is refused.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = ended(&["client", "home", "--check", "--state", &state]);
    assert_eq!(refused.code, Some(3), "{}", refused.output);
    says(&refused.output, &["home.url"]);
    back.stop().unwrap();
}

#[test]
fn a_url_on_the_command_line_is_stored_too() {
    let (back, origin) = (server(BLAKE3_AES_128), OriginServer::start().unwrap());
    let url = BLAKE3_AES_128.url(back.addr());
    let folder = TempFolder::new("profiles").unwrap();
    let state = folder.path().display().to_string();
    let mut first = start(&["client", &url, "--save", "a", "-l", "0", "--state", &state]);
    let log = first.process().output();
    says(&log, &[WARNING, "adit client a"]);
    first.stop().unwrap();
    let second = start(&["client", "a", "-l", "0", "--state", &state]);
    works(&second, &origin);
    second.stop().unwrap();
    back.stop().unwrap();
}

#[test]
fn what_cannot_be_used_is_said() {
    let folder = TempFolder::new("profiles").unwrap();
    let state = folder.path().display().to_string();
    let at = ["--state", &state];
    for (args, code, part) in [
        (&["client", "work"][..], 2, "no profile `work`"),
        (&["client", "../work"], 3, "../work: No such file"),
        (
            &[
                "client",
                "ss://aes-256-gcm:x@127.0.0.1:9",
                "--check",
                "--save",
                "a/b",
            ],
            2,
            "neither a URL nor",
        ),
    ] {
        let refused = ended(&[args, &at].concat());
        assert_eq!(refused.code, Some(code), "{args:?}: {}", refused.output);
        says(&refused.output, &[part]);
    }
    for (input, code, part) in [
        ("", 2, "standard input is empty"),
        ("nothing\n", 3, "not a URL"),
        ("ss://secret-word\n", 3, "error"),
    ] {
        let args = [&["client", "-", "--save", "b"][..], &at].concat();
        let (ended, output) = with_input(&args, input);
        assert_eq!(ended, Some(code), "{input}: {output}");
        says(&output, &[part]);
    }
    let long = "x".repeat(20_000);
    let (code, output) = with_input(&[&["client", "-"][..], &at].concat(), &long);
    assert_eq!(code, Some(2), "{output}");
    // Nothing was stored.
    let listed = ended(&[&["client", "--list"][..], &at].concat());
    assert_eq!(listed.expect_success().unwrap(), "");
}

/// At a terminal, there is a prompt, and the URL is not shown.
#[test]
fn a_prompt_does_not_show_the_url() {
    let back = server(BLAKE3_AES_128);
    let url = BLAKE3_AES_128.url(back.addr());
    let folder = TempFolder::new("profiles").unwrap();
    let state = folder.path().display().to_string();
    // `script` provides a terminal; the answer is typed once the prompt has been printed.
    let line = format!(
        "{} client - --check --save home --state {state}",
        bin().display()
    );
    for (typed, code) in [(format!("{url}\r"), 0), ("half\u{3}".to_owned(), 130)] {
        let mut child = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut keys = child.stdin.take().unwrap();
        let mut shown = Vec::new();
        let mut out = child.stdout.take().unwrap();
        let begun = std::time::Instant::now();
        while !String::from_utf8_lossy(&shown).contains("(not shown): ") {
            assert!(begun.elapsed() < TEST_TIMEOUT, "no prompt");
            let mut bytes = [0; 256];
            let n = std::io::Read::read(&mut out, &mut bytes).unwrap();
            assert!(n > 0, "{}", String::from_utf8_lossy(&shown));
            shown.extend_from_slice(&bytes[..n]);
        }
        std::thread::sleep(Duration::from_millis(50));
        keys.write_all(typed.as_bytes()).unwrap();
        std::io::Read::read_to_end(&mut out, &mut shown).unwrap();
        let status = child.wait().unwrap();
        drop(keys);
        let shown = String::from_utf8_lossy(&shown).into_owned();
        assert_eq!(status.code(), Some(code), "{shown}");
        assert!(
            !shown.contains("ss://2022") && !shown.contains("half"),
            "{shown}"
        );
    }
    back.stop().unwrap();
}

#[test]
fn the_command_that_a_server_prints_does_not_make_the_client_warn() {
    let folder = TempFolder::new("profiles").unwrap();
    let state = folder.path().join("server").display().to_string();
    let mut back = start(&[
        "server",
        "--show-url",
        "--no-qr",
        "-l",
        "127.0.0.1:0",
        "--state",
        &state,
    ]);
    let lines = back
        .process()
        .wait_lines("Client:", 1, TEST_TIMEOUT)
        .unwrap();
    let said = back.process().output();
    let (_, command) = lines[0].split_once("adit ").unwrap();
    let command = command.split("    ").next().unwrap();
    let mut args: Vec<&str> = command.split(' ').collect();
    let url = said
        .lines()
        .find_map(|line| line.strip_prefix("url      "))
        .unwrap();
    assert!(!command.contains("ss://"), "{command}");
    let state = folder.path().join("client").display().to_string();
    args.extend(["--check", "--state", &state]);
    let (code, output) = with_input(&args, url);
    assert_eq!(code, Some(0), "{output}");
    assert!(!output.contains(WARNING), "{output}");
    back.stop().unwrap();
}
