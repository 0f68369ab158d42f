//! The example server with curl, and what it is made of.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread;

/// Crates that a server may need, itself among them.
const MOST: usize = 25;

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts it; says where it listens.
fn server() -> (Server, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_adit-socks-example"));
    command.args(["127.0.0.1:0", "ann", "secret"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    let at = line
        .trim()
        .strip_prefix("listening on ")
        .unwrap()
        .to_owned();
    (Server(child), at)
}

#[test]
fn it_carries_for_its_user_and_for_nobody_else() {
    let web = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", web.local_addr().unwrap());
    thread::spawn(move || {
        for stream in web.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n";
            stream.write_all(format!("{head}hello").as_bytes()).unwrap();
        }
    });
    let (_server, at) = server();
    let curl = |login: &str| {
        let proxy = format!("socks5h://{login}@{at}");
        let words = ["-s", "-m", "10", "-x", &proxy, &url];
        let done = Command::new("curl").args(words).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    assert_eq!(curl("ann:secret"), "hello");
    assert_eq!(curl("ann:secreT"), "");
    assert_eq!(curl("bob:secret"), "");
}

/// None of them compiles C or brings a library along.
#[test]
fn it_needs_few_crates_and_no_c() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "tree",
        "--offline",
        "-p",
        "adit-socks-example",
        "-e",
        "normal,build",
    ]);
    cargo.args(["--prefix", "none", "-f", "{p}"]);
    let done = cargo.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    let tree = String::from_utf8(done.stdout).unwrap();
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    let names: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
    assert!(
        names.contains("adit-socks") && names.len() <= MOST,
        "{names:?}"
    );
    let brings_c = |name: &&str| *name == "cc" || name.ends_with("-sys") || name.contains("crypto");
    assert!(!names.iter().any(brings_c), "{names:?}");
}
