//! A managed server, and its administrator.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use adit_interop::shadowsocks::percent_encode;
use adit_interop::socks_client::{self, Destination};
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder};

use crate::setup::start;

pub(crate) const METHOD: &str = "2022-blake3-aes-128-gcm";
pub(crate) const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";
pub(crate) const ANNA: &str = "EBESExQVFhcYGRobHB0eHw==";
pub(crate) const BERT: &str = "ICEiIyQlJicoKSorLC0uLw==";
pub(crate) const CLEO: &str = "MDEyMzQ1Njc4OTo7PD0+Pw==";
pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// The token that may read keys.
pub(crate) const REVEALING: &str = "fedcba9876543210fedcba9876543210";

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Sends a request with these header lines over any stream.
pub(crate) fn ask(
    mut stream: impl Read + Write,
    line: &str,
    headers: &[&str],
    body: &str,
) -> Reply {
    let mut text = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
    for header in headers {
        text.push_str(&format!("{header}\r\n"));
    }
    if !body.is_empty() {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    text.push_str("\r\n");
    text.push_str(body);
    // A refusal may arrive, and the connection end, before everything is written.
    let _ = stream.write_all(text.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{line}: {answer:?}"));
    Reply {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}

/// A server with a file of users, and its API on a port.
pub(crate) struct World {
    pub(crate) adit: AditProcess,
    pub(crate) api: SocketAddr,
    pub(crate) folder: TempFolder,
}

impl World {
    pub(crate) fn start(url: &str, users: &str) -> Self {
        let folder = TempFolder::new("admin").unwrap();
        let file = folder.write_file("users.json", users).unwrap();
        let tokens = format!("{TOKEN}\n{REVEALING} reveal\n");
        folder.write_file("token", tokens).unwrap();
        Self::again(url, folder, &file)
    }

    pub(crate) fn again(url: &str, folder: TempFolder, file: &Path) -> Self {
        let url = format!(
            "{url}?allow_private=127.0.0.0/8&users=@{}#main",
            file.display()
        );
        let token = format!("@{}", folder.path().join("token").display());
        let args = [
            "run",
            &url,
            "--admin",
            "127.0.0.1:0",
            "--admin-token",
            &token,
            "--public-host",
            "127.0.0.1",
        ];
        let mut adit = start(&args);
        let line = adit
            .process()
            .wait_lines("api at ", 1, TEST_TIMEOUT)
            .unwrap();
        let api = line[0].rsplit(' ').next().unwrap().parse().unwrap();
        Self { adit, api, folder }
    }

    pub(crate) fn raw(&self, line: &str, headers: &[&str], body: &str) -> Reply {
        let stream = TcpStream::connect(self.api).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        ask(stream, line, headers, body)
    }

    pub(crate) fn say(&self, line: &str, body: &str) -> Reply {
        let token = format!("Authorization: Bearer {TOKEN}");
        let host = format!("Host: {}", self.api);
        self.raw(
            line,
            &[&host, &token, "Content-Type: application/json"],
            body,
        )
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.say(&format!("GET {path}"), "")
    }

    /// The same with the token that may read keys.
    pub(crate) fn reveal(&self, path: &str) -> Reply {
        let token = format!("Authorization: Bearer {REVEALING}");
        let host = format!("Host: {}", self.api);
        self.raw(&format!("GET {path}?reveal=1"), &[&host, &token], "")
    }

    pub(crate) fn users_file(&self) -> String {
        fs::read_to_string(self.folder.path().join("users.json")).unwrap()
    }

    /// Starts a client of one of the users.
    pub(crate) fn client(&self, method: &str, key: &str) -> AditProcess {
        let user = format!("{method}:{}", percent_encode(key));
        let hop = format!("ss://{user}@{}", self.adit.addr());
        start(&["run", "mixed://127.0.0.1:0", &hop])
    }

    /// Returns the number after a name in the response to a path, once it is at least this.
    pub(crate) fn number(&self, path: &str, name: &str, least: u64) -> u64 {
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            let body = self.get(path).body;
            let now = number(&body, name).unwrap_or_else(|| panic!("{name} in {body}"));
            if now >= least || Instant::now() > deadline {
                assert!(
                    now >= least,
                    "{path}: {name} is {now}, not {least}:\n{body}"
                );
                return now;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Returns the first number after `"name":` or `name `.
pub(crate) fn number(text: &str, name: &str) -> Option<u64> {
    let quoted = format!("\"{name}\":");
    let rest = match text.split_once(&quoted) {
        Some((_, rest)) => rest,
        None => text.split_once(&format!("{name} "))?.1,
    };
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

pub(crate) fn server_url() -> String {
    format!("ss://{METHOD}:{}@127.0.0.1:0", percent_encode(KEY))
}

pub(crate) fn anna() -> String {
    format!(r#"{{"anna": "{ANNA}"}}"#)
}

/// Opens a session that echoes.
pub(crate) fn session(proxy: SocketAddr, to: &Destination) -> TcpStream {
    let mut stream = socks_client::connect_through(proxy, None, to).unwrap();
    stream.write_all(b"ECHO\n").unwrap();
    assert!(lives(&mut stream));
    stream
}

pub(crate) fn lives(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    stream.write_all(b"x").is_ok() && stream.read_exact(&mut byte).is_ok() && byte == *b"x"
}
