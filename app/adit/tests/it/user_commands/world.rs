//! A running process with the API, and its operator.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_interop::external_tools::ToolOutput;
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder};
use serde_json::Value;

use crate::admin::world::{Reply, ask};
use crate::setup::{ALLOW, bin, ended};

const METHOD: &str = "2022-blake3-aes-128-gcm";
const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";
const ADMIN: &str = "MDEyMzQ1Njc4OTo7PD0+Pw==";

/// A process with a server and a proxy, each with a file of users.
pub(super) struct Served {
    adit: AditProcess,
    folder: TempFolder,
}

impl Served {
    pub(super) fn start() -> Self {
        let folder = TempFolder::new("user-commands").unwrap();
        let write = |name: &str, text: &str| folder.write_file(name, text).unwrap();
        write("server.key", KEY);
        write("users.json", &format!("{{\"admin\": \"{ADMIN}\"}}"));
        write("proxy.users", "# ours\nadmin:admins-password\n");
        write(
            "tokens",
            "0123456789abcdef0123456789abcdef\nfedcba9876543210fedcba9876543210 reveal\n",
        );
        let socket = folder.path().join("api.sock");
        let text = format!(
            "[admin]\nlisten = \"{}\"\ntokens = \"@tokens\"\npublic_host = \"127.0.0.1\"\nstore = \"users.redb\"\naudit = \"audit.jsonl\"\n\
             [route.main]\nlisten = \"ss://{METHOD}:@server.key@127.0.0.1:0?users=@users.json&{ALLOW}\"\n\
             [route.proxy]\nlisten = \"mixed://127.0.0.1:0?users=@proxy.users&{ALLOW}\"\n",
            socket.display()
        );
        write("adit.toml", &text);
        Self::start_in(folder)
    }

    fn start_in(folder: TempFolder) -> Self {
        let config = folder.path().join("adit.toml");
        let args = ["run", "-v", "-c", config.to_str().unwrap()];
        let mut adit = AditProcess::start_with(&bin(), &args, 2).unwrap();
        adit.process()
            .wait_lines("api at ", 1, TEST_TIMEOUT)
            .unwrap();
        Self { adit, folder }
    }

    /// Stops the process, and starts another one with the same files.
    pub(super) fn restart(self) -> Self {
        self.adit.stop().unwrap();
        Self::start_in(self.folder)
    }

    /// Returns the address of the proxy.
    pub(super) fn proxy(&self) -> SocketAddr {
        self.adit.addrs()[1]
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Replaces a file at once.
    pub(super) fn write(&self, name: &str, text: &str) {
        let draft = self.folder.write_file("draft", text).unwrap();
        fs::rename(draft, self.path(name)).unwrap();
    }

    /// Runs `adit user`.
    pub(super) fn run(&self, args: &[&str]) -> ToolOutput {
        let config = self.path("adit.toml");
        let at = ["-c", config.to_str().unwrap()];
        ended(&[&["user"], args, &at[..]].concat())
    }

    /// Returns the output of a command that succeeds.
    pub(super) fn prints(&self, args: &[&str]) -> String {
        let done = self.run(args);
        done.expect_success()
            .unwrap_or_else(|why| panic!("{args:?}: {why}"))
    }

    /// Returns the JSON object that a command prints.
    pub(super) fn json(&self, args: &[&str]) -> Value {
        let text = self.prints(&[args, &["--json"]].concat());
        assert_eq!(text.lines().count(), 1, "{text}");
        let document: Value =
            serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why}: {text}"));
        document["result"].clone()
    }

    /// Returns the output of a command that fails with this exit code.
    pub(super) fn fails(&self, args: &[&str], code: i32) -> String {
        let done = self.run(args);
        assert_eq!(done.code, Some(code), "{args:?}: {}", done.output);
        done.output
    }

    /// Returns the output of a command that the process refuses. It is sent without the configuration file, which may
    /// have a mistake meanwhile.
    pub(super) fn fails_at_socket(&self, args: &[&str]) -> String {
        let (socket, tokens) = (self.path("api.sock"), self.path("tokens"));
        let token = format!("@{}", tokens.display());
        let at = ["--admin", socket.to_str().unwrap(), "--admin-token", &token];
        let done = ended(&[&["user"], args, &at[..]].concat());
        assert_eq!(done.code, Some(1), "{args:?}: {}", done.output);
        done.output
    }

    /// Repeats a command until its object is as expected.
    pub(super) fn wait_for(&self, args: &[&str], is_expected: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            let value = self.json(args);
            if is_expected(&value) {
                return value;
            }
            assert!(Instant::now() < deadline, "{value}");
            sleep(Duration::from_millis(50));
        }
    }

    /// Waits for the next line of the log that contains `text`.
    pub(super) fn wait_for_log(&mut self, text: &str) {
        let process = self.adit.process();
        let deadline = Instant::now() + TEST_TIMEOUT;
        // The last report about the file is the current one.
        let is_last = |log: &str| {
            let name = text.split([':', ' ']).next().unwrap();
            let last = log.lines().rfind(|line| line.contains(name));
            last.is_some_and(|line| line.contains(text))
        };
        while !is_last(&process.output()) {
            assert!(Instant::now() < deadline, "{text}\n{}", process.output());
            sleep(Duration::from_millis(20));
        }
    }

    /// Sends a request to the API.
    pub(super) fn ask(&self, line: &str, headers: &[&str], body: &str) -> Reply {
        let stream = UnixStream::connect(self.path("api.sock")).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let always = [
            "Host: adit",
            "Authorization: Bearer 0123456789abcdef0123456789abcdef",
            "Content-Type: application/json",
        ];
        ask(stream, line, &[&always[..], headers].concat(), body)
    }

    /// Reloads the configuration.
    pub(super) fn reload(&self) {
        let reply = self.ask("POST /v1/reload", &[], "{}");
        assert_eq!(reply.status, 200, "{}", reply.body);
    }

    pub(super) fn stop(self) {
        self.adit.stop().unwrap();
    }
}

/// Returns the URL with this prefix of issued credentials.
pub(super) fn url_with(issued: &Value, prefix: &str) -> String {
    let all = issued["credentials"].as_array().unwrap().iter();
    let mut urls = all.filter_map(|one| one["url"].as_str());
    let url = urls.find(|url| url.starts_with(prefix));
    url.unwrap_or_else(|| panic!("{prefix} in {issued}"))
        .to_owned()
}

/// Returns the password of a URL, which has hexadecimal digits alone.
pub(super) fn password_of(url: &str) -> &str {
    let (login, _) = url.rsplit_once('@').unwrap();
    login.rsplit_once(':').unwrap().1
}
