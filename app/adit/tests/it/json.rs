//! `--json`: each command that has it prints documents that a parser reads, and nothing else.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::{iter, thread};

use adit_interop::shadowsocks::{AES_256, BLAKE3_AES_128, MethodKey};
use adit_interop::{TEST_TIMEOUT, TempFolder, free_port, loopback_addr};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::setup::{ALLOW, bin, ended, start};

/// A command that ends: its words, and the names that its result has.
type Case = (&'static str, &'static [&'static str]);

/// Commands that end. `FILE` is a configuration, `URL` a server, `SOCKET` the API of a process that runs `FILE`,
/// `OTHER` the configuration of another program,
/// `STATE` a folder with a key and a profile.
const CASES: &[Case] = &[
    ("url URL", &["url"]),
    ("qr URL", &["url"]),
    ("keygen", &["key", "method"]),
    ("keygen aes-256-gcm", &["key", "method"]),
    (
        "check -c FILE",
        &["listeners", "routes", "ruleSets", "warnings"],
    ),
    (
        "check socks5://127.0.0.1:0 URL",
        &["listeners", "routes", "ruleSets", "warnings"],
    ),
    ("explain -c FILE", &["keys", "plan", "warnings"]),
    (
        "explain -c FILE --target a.example",
        &["decisions", "warnings"],
    ),
    (
        "up --once",
        &[
            "carriedBytes",
            "keyId",
            "method",
            "milliseconds",
            "proxy",
            "server",
        ],
    ),
    (
        "server url --state STATE --listen :8388",
        &["keyFile", "keyId", "method", "url"],
    ),
    (
        "client URL --check",
        &[
            "accepted",
            "clockDifferenceSeconds",
            "keyId",
            "method",
            "server",
        ],
    ),
    ("client --list --state STATE", &["profiles"]),
    ("doctor reject://", &["endpoint", "exitCode", "steps"]),
    ("convert OTHER", &["file", "notes", "toml"]),
    ("status --admin SOCKET", &["address", "note", "overview"]),
    ("sessions --admin SOCKET", &["sessions", "total"]),
    ("routes --admin SOCKET", &["groups", "listeners"]),
];

/// Commands that print a line for each event, with the first event and the names that it has.
const MEASURING: &[(&str, &str, &[&str])] = &[
    ("bench mac --millis 1", "row", &["bytes", "name", "nsPerOp"]),
    ("bench fec --millis 1", "row", &["bytes", "name", "nsPerOp"]),
    ("bench ss --millis 1", "row", &["bytes", "name", "nsPerOp"]),
    ("bench kcp --millis 1", "row", &["bytes", "name", "nsPerOp"]),
    (
        "bench proxy --mib 1 --only s",
        "row",
        &[
            "cpuSPerGib",
            "cpuSPerGibClient",
            "cpuSPerGibServer",
            "mbPerS",
            "name",
        ],
    ),
];

/// Commands that run until a signal, with the names that their first event, `listening`, has.
const SERVING: &[(&str, &[&str])] = &[
    (
        "up",
        &[
            "carriedBytes",
            "keyId",
            "method",
            "milliseconds",
            "proxy",
            "server",
        ],
    ),
    (
        "server --listen 127.0.0.1:0 --state STATE",
        &[
            "isPrivateAddress",
            "keyFile",
            "keyId",
            "keyIsNew",
            "listeners",
            "method",
            "url",
            "version",
        ],
    ),
    (
        "client -l mixed://127.0.0.1:0 URL",
        &["keys", "listeners", "version", "warnings"],
    ),
    (
        "run mixed://127.0.0.1:0",
        &["api", "keys", "listeners", "version", "warnings"],
    ),
];

/// Commands whose tests are in `bench_ssh`, `top/real`, `user_commands`, `service`, `system_proxy` and `fleet_commands`: they
/// need an SSH server, a process to upgrade, users, a service manager, a desktop, and a store server.
const ELSEWHERE: [&str; 29] = [
    "bench ssh",
    "fleet audit",
    "fleet drain",
    "fleet init",
    "fleet join",
    "fleet leave",
    "fleet node remove",
    "fleet node rename",
    "fleet node show",
    "fleet node weight",
    "fleet pull",
    "fleet push",
    "fleet resync",
    "fleet restore",
    "fleet rotate-key",
    "fleet status",
    "fleet token",
    "fleet upgrade",
    "service status",
    "system-proxy status",
    "upgrade",
    "user add",
    "user import",
    "user limit",
    "user list",
    "user remove",
    "user reset",
    "user rotate",
    "user show",
];

/// Commands that fail: the words, the exit code, and words of the error.
const FAILURES: &[(&str, u8, &str)] = &[
    ("keygen --nonsense", 2, "unexpected argument '--nonsense'"),
    (
        "keygen no-such-method",
        3,
        "unknown method `no-such-method`",
    ),
    ("url nonsense", 3, ""),
    ("check", 2, "required arguments"),
    (
        "check -c /nonexistent/adit.toml",
        3,
        "/nonexistent/adit.toml",
    ),
    ("check mixed://127.0.0.1:1080 nosuch://h:1", 3, "nosuch"),
    ("explain nosuch://h:1 other://h:2", 3, "nosuch"),
    ("run mixed://OCCUPIED", 4, "OCCUPIED"),
    ("client ss://aes-256-gcm:word@CLOSED --check", 4, "CLOSED"),
    ("server url --state /nonexistent", 3, "no key"),
    ("doctor nosuch://h:1", 3, "nosuch"),
    ("status --admin CLOSED", 4, "cannot reach"),
    ("sessions", 2, "management API"),
    ("routes --admin /nonexistent/socket", 4, "cannot reach"),
];

/// The servers, files and ports of the commands.
struct World {
    folder: TempFolder,
    url: String,
    occupied: TcpListener,
    closed: String,
}

impl World {
    fn new(url: String) -> Self {
        let folder = TempFolder::new("json").unwrap();
        let text = "[route.main]\nlisten = \"socks5://127.0.0.1:0\"\nvia = \"home\"\n\
                    rules = [{ match = [\"*.example\"], via = \"direct://\" }]\n\n\
                    [group.home]\nkind = \"manual\"\nmembers = [\"socks5://127.0.0.1:9#one\"]\n";
        folder.write_file("adit.toml", text).unwrap();
        let other = r#"{"server":"127.0.0.1","server_port":9,"password":"x","method":"aes-256-gcm","fast":1}"#;
        folder.write_file("other.json", other).unwrap();
        Self {
            folder,
            url,
            occupied: TcpListener::bind(loopback_addr(0)).unwrap(),
            closed: loopback_addr(free_port()).to_string(),
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Replaces the names of what the commands need.
    fn fill(&self, text: &str) -> String {
        text.replace("FILE", &self.path("adit.toml"))
            .replace("OTHER", &self.path("other.json"))
            .replace("SOCKET", &self.path("api.sock"))
            .replace("STATE", &self.path("state"))
            .replace("OCCUPIED", &self.occupied.local_addr().unwrap().to_string())
            .replace("CLOSED", &self.closed)
            .replace("URL", &self.url)
    }

    /// Returns the command of a line, with the option. Its outputs are pipes.
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(bin());
        command.args(self.fill(line).split(' ')).arg("--json");
        command
            .env("HOME", self.folder.path())
            .env_remove("STATE_DIRECTORY")
            .env_remove("XDG_STATE_HOME")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// Checks the names of a document: camel case, at any depth.
fn check_names(line: &str, value: &Value) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let is_camel = name.starts_with(|c: char| c.is_ascii_lowercase())
                    && name.chars().all(|c| c.is_ascii_alphanumeric());
                // The counters of KCP have the names of kcptun.
                assert!(is_camel || line.starts_with("status"), "{line}: `{name}`");
                check_names(line, value);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| check_names(line, value)),
        _ => {}
    }
}

/// Returns the command of a line: its first word, and that of a benchmark.
fn command_of(line: &str) -> String {
    let count = if line.starts_with("bench") { 2 } else { 1 };
    line.split(' ').take(count).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check_result(line: &str, document: &Value, names: &[&str]) {
    assert_eq!(document["command"], command_of(line), "{line}");
    let result = document["result"].as_object();
    let result = result.unwrap_or_else(|| panic!("{line}: {document}"));
    let found: Vec<&str> = result.keys().map(String::as_str).collect();
    let mut expected = names.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected, "{line}");
    check_names(line, document);
}

#[test]
fn commands_print_one_document() {
    let server = start(&[
        "run",
        &format!("{}?{ALLOW}", BLAKE3_AES_128.url(loopback_addr(0))),
    ]);
    let world = World::new(BLAKE3_AES_128.url(server.addr()));
    let (file, socket) = (world.path("adit.toml"), world.path("api.sock"));
    let adit = start(&["run", "-c", &file, "--admin", &socket]);
    // The key and the profile of the state folder.
    let started = Serving::start(&world, "server --listen 127.0.0.1:0 --state STATE");
    started.end();
    let saved = world
        .command("client URL --check --save home --state STATE")
        .output()
        .unwrap();
    assert!(saved.status.success(), "{saved:?}");
    for (line, names) in CASES {
        let output = world.command(line).output().unwrap();
        let (told, errors) = (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        );
        assert_eq!(output.status.code(), Some(0), "{line}\n{told}\n{errors}");
        assert_eq!(told.lines().count(), 1, "{line}\n{told}");
        let document: Value = serde_json::from_str(&told).unwrap();
        assert!(document.get("event").is_none(), "{line}");
        check_result(line, &document, names);
        let is_log = *line == "up --once";
        assert!(errors.is_empty() || is_log, "{line}\n{errors}");
    }
    adit.stop().unwrap();
    server.stop().unwrap();
}

#[test]
fn measurements_print_a_document_for_each_row() {
    let world = World::new(String::new());
    for (line, event, names) in MEASURING {
        let output = world.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}");
        assert!(output.stderr.is_empty(), "{line}");
        let told = String::from_utf8(output.stdout).unwrap();
        assert!(told.lines().count() > 5, "{line}\n{told}");
        for row in told.lines() {
            let document: Value = serde_json::from_str(row).unwrap();
            assert_eq!(document["event"], *event, "{line}");
            check_result(line, &document, names);
        }
    }
}

/// A command that runs until a signal, and its first document.
struct Serving {
    child: Child,
    first: Value,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Serving {
    fn start(world: &World, line: &str) -> Self {
        let mut command = world.command(line);
        // The log would fill a pipe that no one reads.
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let first = lines
            .recv_timeout(TEST_TIMEOUT)
            .unwrap_or_else(|_| panic!("{line}: nothing"));
        let first = serde_json::from_str(&first).unwrap();
        Self {
            child,
            first,
            lines,
        }
    }

    /// Ends it by SIGTERM, and returns its other documents.
    fn end(mut self) -> Vec<Value> {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
        let rest = iter::from_fn(|| self.lines.recv_timeout(TEST_TIMEOUT).ok());
        rest.map(|line| serde_json::from_str(&line).unwrap())
            .collect()
    }
}

#[test]
fn servers_print_a_document_when_they_listen() {
    let server = start(&[
        "run",
        &format!("{}?{ALLOW}", BLAKE3_AES_128.url(loopback_addr(0))),
    ]);
    let world = World::new(BLAKE3_AES_128.url(server.addr()));
    for (line, names) in SERVING {
        let serving = Serving::start(&world, line);
        assert_eq!(serving.first["event"], "listening", "{line}");
        check_result(line, &serving.first, names);
        if line.starts_with("server") {
            // Its output is not a terminal: a log would keep the key.
            assert!(
                serving.first["result"]["url"].is_null(),
                "{}",
                serving.first
            );
        }
        if line.starts_with("client") {
            let probe = serving.lines.recv_timeout(TEST_TIMEOUT).unwrap();
            let probe: Value = serde_json::from_str(&probe).unwrap();
            assert_eq!(probe["event"], "probe", "{probe}");
            assert_eq!(probe["result"]["accepted"], true, "{probe}");
        }
        assert!(serving.end().is_empty(), "{line}");
    }
    let serving = Serving::start(
        &world,
        "server --listen 127.0.0.1:0 --state STATE --show-url",
    );
    let url = serving.first["result"]["url"].as_str().unwrap().to_owned();
    assert!(url.starts_with("ss://2022-blake3-"), "{url}");
    serving.end();
    server.stop().unwrap();
}

/// A server with another key: the client continues, and says so.
#[test]
fn a_client_reports_a_server_that_refuses_it() {
    let server = start(&[
        "run",
        &format!(
            "{}?{ALLOW}&reject=reset",
            BLAKE3_AES_128.url(loopback_addr(0))
        ),
    ]);
    let other = MethodKey {
        key: "AQECAwQFBgcICQoLDA0ODw==",
        ..BLAKE3_AES_128
    };
    let url = other.url(server.addr());
    let world = World::new(url);
    let serving = Serving::start(&world, "client -l mixed://127.0.0.1:0 URL");
    let probe = serving.lines.recv_timeout(TEST_TIMEOUT).unwrap();
    let probe: Value = serde_json::from_str(&probe).unwrap();
    assert_eq!(probe["result"]["accepted"], false, "{probe}");
    assert!(probe["result"]["problem"]["what"].is_string(), "{probe}");
    serving.end();
    server.stop().unwrap();
}

#[test]
fn failures_are_documents_too() {
    let world = World::new(AES_256.url(loopback_addr(9)));
    for (line, code, words) in FAILURES {
        let output = world.command(line).output().unwrap();
        let (told, errors) = (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        );
        assert_eq!(
            output.status.code(),
            Some(i32::from(*code)),
            "{line}\n{told}\n{errors}"
        );
        assert!(told.is_empty(), "{line}\n{told}");
        // A command that serves may have logged something before.
        let last = errors.lines().last().unwrap_or_default();
        let document: Value =
            serde_json::from_str(last).unwrap_or_else(|_| panic!("{line}\n{errors}"));
        let error = document["error"].as_object().unwrap();
        for name in ["what", "where", "help", "exitCode"] {
            assert!(error.contains_key(name), "{line}: {document}");
        }
        assert_eq!(error["exitCode"], *code, "{line}");
        let words = world.fill(words);
        let what = error["what"].as_str().unwrap();
        let place = error["where"].as_str().unwrap_or_default();
        assert!(
            what.contains(&words) || place.contains(&words),
            "{line}: {document}"
        );
        let is_alone = errors.lines().count() == 1;
        assert!(is_alone || line.starts_with("run"), "{line}\n{errors}");
    }
}

/// A problem in a file has its place.
#[test]
fn problems_have_places() {
    let world = World::new(String::new());
    let text = "[route.main]\nlisten = \"mixed://127.0.0.1:0\"\nnonsense = 1\nmore = 2\n";
    world.folder.write_file("adit.toml", text).unwrap();
    let output = world.command("check -c FILE").output().unwrap();
    let document: Value = serde_json::from_slice(&output.stderr).unwrap();
    let error = &document["error"];
    let place = format!("{}:3:1", world.path("adit.toml"));
    assert_eq!(error["where"], place, "{document}");
    assert_eq!(error["more"].as_array().unwrap().len(), 1, "{document}");
    assert_eq!(error["exitCode"], 3);
}

/// Without the option, errors are text.
#[test]
fn errors_are_text_unless_json_is_requested() {
    for words in [
        &["keygen", "no-such-method"][..],
        &["schema", "--json"],
        &["keygen", "--", "--json"],
    ] {
        let output = ended(words);
        assert!(output.output.starts_with("error: "), "{output:?}");
    }
}

/// Every command that has the option is in a list of this file.
#[test]
fn no_command_is_forgotten() {
    let help = ended(&["--help"]).expect_success().unwrap();
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    let named = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = named.filter_map(|line| line.split_whitespace().next());
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        match name {
            "bench" => {
                let kinds = ["mac", "fec", "ss", "kcp", "ssh", "proxy"];
                lines.extend(kinds.map(|kind| format!("bench {kind}")));
            }
            "user" => {
                let commands = [
                    "add", "list", "show", "rotate", "remove", "limit", "reset", "import",
                ];
                lines.extend(commands.map(|command| format!("user {command}")));
            }
            "fleet" => {
                let commands = [
                    "init",
                    "token",
                    "join",
                    "leave",
                    "status",
                    "audit",
                    "drain",
                    "upgrade",
                    "resync",
                    "restore",
                    "rotate-key",
                    "push",
                    "pull",
                    "node show",
                    "node rename",
                    "node weight",
                    "node remove",
                ];
                lines.extend(commands.map(|command| format!("fleet {command}")));
            }
            "kcp" | "service" | "system-proxy" => {}
            name => lines.push(name.to_owned()),
        }
    }
    let mut seen = 0;
    for line in lines {
        let words: Vec<&str> = line.split(' ').chain(["--help"]).collect();
        let help = ended(&words).expect_success().unwrap();
        if !help.contains("--json") {
            continue;
        }
        seen += 1;
        let cases = CASES.iter().map(|(case, _)| command_of(case));
        let measuring = MEASURING.iter().map(|(case, ..)| command_of(case));
        let serving = SERVING.iter().map(|(case, _)| command_of(case));
        let mut known = cases.chain(measuring).chain(serving);
        let is_known = known.any(|command| command == line) || ELSEWHERE.contains(&&*line);
        assert!(
            is_known,
            "`adit {line}` has --json, and is in no list of this file"
        );
    }
    assert!(seen >= 18, "{seen} commands have --json");
}
