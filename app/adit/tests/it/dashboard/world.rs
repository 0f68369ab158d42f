//! A running adit with users, and requests to its API.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_interop::origin::OriginServer;
use adit_interop::socks_client::{self, Destination};
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder};
use serde_json::Value;

use crate::admin::world::{Reply, ask};
use crate::setup::{ALLOW, bin};

pub(super) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A token that may read keys, of [`World::start_managed`].
pub(super) const REVEALING_TOKEN: &str = "fedcba9876543210fedcba9876543210";

/// A proxy with the user `ann`, an SSH server for her, and the API at a port.
pub(super) struct World {
    pub(super) adit: AditProcess,
    pub(super) api: SocketAddr,
    pub(super) origin: OriginServer,
    /// Files of the process, which are removed at the end.
    _folder: TempFolder,
}

impl World {
    /// Starts listeners with these URLs, the API and an origin.
    pub(super) fn start(urls: &[&str]) -> Self {
        Self::start_in(TempFolder::new("dashboard").unwrap(), urls)
    }

    /// Starts the listeners of a configuration file, the API and an origin.
    pub(super) fn start_with_file(text: &str) -> Self {
        let folder = TempFolder::new("dashboard").unwrap();
        let file = folder.write_file("adit.toml", text).unwrap();
        Self::start_in(folder, &["-c", &file.display().to_string()])
    }

    fn start_in(folder: TempFolder, plan: &[&str]) -> Self {
        let token = folder.write_file("token", TOKEN).unwrap();
        let token = format!("@{}", token.display());
        let mut args = vec!["run"];
        args.extend(plan);
        args.extend(["--admin", "127.0.0.1:0", "--admin-token", &token]);
        Self::start_process(folder, &args, 1)
    }

    /// Starts two listeners of a configuration file with the API at a port, whose tokens are [`TOKEN`] and
    /// [`REVEALING_TOKEN`] in the file `tokens`.
    pub(super) fn start_managed(folder: TempFolder, text: &str) -> Self {
        let tokens = format!("{TOKEN}\n{REVEALING_TOKEN} reveal\n");
        folder.write_file("tokens", tokens).unwrap();
        let file = folder.write_file("adit.toml", text).unwrap();
        Self::start_process(folder, &["run", "-c", &file.display().to_string()], 2)
    }

    fn start_process(folder: TempFolder, args: &[&str], listeners: usize) -> Self {
        let mut adit = AditProcess::start_with(&bin(), args, listeners).unwrap();
        let lines = adit.process().wait_lines("api at ", 1, TEST_TIMEOUT);
        let api = lines.unwrap()[0].rsplit(' ').next().unwrap().parse();
        Self {
            adit,
            api: api.unwrap(),
            origin: OriginServer::start().unwrap(),
            _folder: folder,
        }
    }

    /// Starts a proxy that the user `ann` may use with the password `pw`.
    pub(super) fn start_proxy() -> Self {
        Self::start(&[&format!("mixed://ann:pw@127.0.0.1:0?{ALLOW}#main")])
    }

    pub(super) fn raw(&self, line: &str, headers: &[&str], body: &str) -> Reply {
        let stream = TcpStream::connect(self.api).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        ask(stream, line, headers, body)
    }

    /// Sends a request with the token.
    pub(super) fn say(&self, line: &str) -> Reply {
        let token = format!("Authorization: Bearer {TOKEN}");
        self.raw(line, &[&format!("Host: {}", self.api), &token], "")
    }

    pub(super) fn json(&self, path: &str) -> Value {
        let reply = self.say(&format!("GET {path}"));
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        serde_json::from_str(&reply.body).unwrap()
    }

    /// Returns the response to a path once it is as expected.
    pub(super) fn wait_for(&self, path: &str, is_expected: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            let found = self.json(path);
            if is_expected(&found) {
                return found;
            }
            assert!(Instant::now() < deadline, "{path}: {found:#}");
            sleep(Duration::from_millis(50));
        }
    }

    /// Opens an event stream, and returns it once the head of the response has arrived.
    pub(super) fn open_events(&self) -> TcpStream {
        let mut stream = TcpStream::connect(self.api).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let request = format!(
            "GET /events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n",
            self.api
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            assert_eq!(stream.read(&mut byte).unwrap(), 1, "{head:?}");
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        stream
    }

    /// Opens a session of ann to the origin.
    pub(super) fn session(&self) -> TcpStream {
        let to = Destination::Addr(self.origin.addr());
        let login = Some(("ann", "pw"));
        socks_client::connect_through(self.adit.addr(), login, &to).unwrap()
    }
}

/// Returns true if the origin echoes.
pub(super) fn echoes(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    stream.write_all(b"x").is_ok() && stream.read_exact(&mut byte).is_ok() && byte == *b"x"
}
