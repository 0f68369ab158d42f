//! Broken configurations and subscriptions: each has a message with its place and what to do, and a running process
//! that is reloaded with one continues unchanged.
//!
//! `tests/broken` has the files. Beside each is `NAME.expected`: the exit code, and the whole output of `adit check -c`
//! for TOML and of `adit convert` for other documents. `ADIT_BLESS=1` writes the outputs; read the difference.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use adit_interop::external_tools::{self, ToolOutput};
use adit_interop::origin::OriginServer;
use adit_interop::socks_client::Destination;
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, free_port, loopback_addr};
use rustix::process::Signal;

use crate::reload::flows::EchoStream;
use crate::setup::{ALLOW, bin};

/// The maximum time of a file that is refused, and the maximum memory.
const TIME: Duration = Duration::from_secs(2);
const MEMORY_KIB: u64 = 200 << 10;
/// Every secret of the files. No message may have it.
const SECRET: &str = "s3cret";
const CONFIGURATION: i32 = 3;

/// A file of the corpus, or one that the test writes.
struct Case {
    name: String,
    content: Vec<u8>,
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken")
}

/// Returns a folder with all files of the corpus, which only their owner can read, and the cases among them.
fn copy_of_corpus() -> (TempFolder, Vec<Case>) {
    let folder = TempFolder::new("broken").unwrap();
    let mut cases = Vec::new();
    for entry in fs::read_dir(corpus()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.ends_with(".expected") {
            continue;
        }
        let content = fs::read(&path).unwrap();
        write_private(&folder, &name, &content);
        if is_case(&name) {
            cases.push(Case { name, content });
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    (folder, cases)
}

/// Writes a file without the warning that other users can read it.
fn write_private(folder: &TempFolder, name: &str, content: &[u8]) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.write_file(name, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// The other files belong to the cases.
fn is_case(name: &str) -> bool {
    let suffix = Path::new(name)
        .extension()
        .and_then(|suffix| suffix.to_str());
    matches!(suffix, Some("toml" | "json" | "yaml" | "txt"))
}

/// Returns the command that reads the file, whose name follows.
fn reading_command(name: &str) -> &'static [&'static str] {
    if name.ends_with(".toml") {
        &["check", "-c"]
    } else {
        &["convert"]
    }
}

/// Runs the command that reads the file.
fn refused(folder: &Path, name: &str) -> ToolOutput {
    let mut command = Command::new(bin());
    command
        .args(reading_command(name))
        .arg(name)
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder)
        .env_remove("STATE_DIRECTORY");
    external_tools::run_to_end(command, Duration::from_secs(20)).unwrap()
}

/// Returns the fault of a message: each error has a place, and each says what to do.
fn fault_of(name: &str, output: &str) -> Option<String> {
    if output.contains(SECRET) {
        return Some("shows a secret".to_owned());
    }
    for error in output.split("error: ").skip(1) {
        let title = error.lines().next().unwrap_or_default();
        // An error of the whole file names it instead.
        let is_placed = error.contains("\n --> ") || error.contains("\n  --> ");
        let is_of_file = title.contains(name) || WHOLE_FILE.iter().any(|part| title.contains(part));
        if !is_placed && !is_of_file {
            return Some(format!("`{title}` has no place"));
        }
        let has_label = error.contains("^ ") && !error.contains("^ found ");
        if !error.contains("= help: ") && !error.contains("hint: ") && !has_label {
            return Some(format!("`{title}` does not say what to do"));
        }
    }
    None
}

/// Errors about a document as a whole.
const WHOLE_FILE: &[&str] = &[
    "neither JSON nor `ss://` links",
    "no server in this",
    "the document ",
    "the text is ",
];

#[test]
fn each_broken_file_has_its_message() {
    let (folder, cases) = copy_of_corpus();
    assert!(cases.len() >= 180, "{} cases", cases.len());
    let bless = std::env::var_os("ADIT_BLESS").is_some();
    let mut faults = Vec::new();
    for Case { name, .. } in &cases {
        let since = Instant::now();
        let done = refused(folder.path(), name);
        if since.elapsed() > TIME {
            faults.push(format!("{name}: took {:?}", since.elapsed()));
        }
        if done.code != Some(CONFIGURATION) {
            faults.push(format!(
                "{name}: ended with {:?}:\n{}",
                done.code, done.output
            ));
        }
        if let Some(fault) = fault_of(name, &done.output) {
            faults.push(format!("{name}: {fault}:\n{}", done.output));
        }
        let found = format!("{}\n", done.output.trim_end());
        let expected = corpus().join(format!("{name}.expected"));
        if bless {
            fs::write(&expected, found).unwrap();
        } else if fs::read_to_string(&expected).ok().as_deref() != Some(&found) {
            faults.push(format!("{name}: not the expected message, but:\n{found}"));
        }
    }
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// Returns a file with this number of rules, each of which has an error.
fn rules(number: usize, separator: &str) -> String {
    let rule = format!("{{ match = [\"a b\"], via = \"direct://\" }},{separator}");
    let rules = rule.repeat(number);
    format!("[route.a]\nlisten = \"mixed://127.0.0.1:0\"\nrules = [{separator}{rules}]\n")
}

/// Returns files that are too large to be stored.
fn large_cases() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let route = "[route.a]\nlisten = \"mixed://127.0.0.1:0\"\n";
    let large = |unit: &str| unit.repeat((100 << 20) / unit.len()).into_bytes();
    vec![
        (
            "large.toml",
            large("# a comment\n"),
            "longer than 16777216 bytes",
        ),
        (
            "one_line.toml",
            vec![b'a'; 100 << 20],
            "longer than 16777216 bytes",
        ),
        (
            "large.json",
            large("{\"a\":1},"),
            "has more than 16777216 bytes",
        ),
        (
            "large.yaml",
            large("- a: b\n"),
            "has more than 16777216 bytes",
        ),
        (
            "links.txt",
            large("ss://a\n"),
            "has more than 16777216 bytes",
        ),
        ("zeros.toml", vec![0; 15 << 20], "error: "),
        (
            "values.json",
            format!("[{}0]", "0,".repeat(2_000_000)).into_bytes(),
            "more than 1000000 values",
        ),
        (
            "values.yaml",
            "- a\n".repeat(2_000_000).into_bytes(),
            "more than 1000000 values",
        ),
        (
            "brackets.toml",
            format!("{route}via = {}", "[".repeat(4 << 20)).into_bytes(),
            "too complex",
        ),
        (
            "nested.toml",
            format!("{route}via = {}", "[".repeat(500_000)).into_bytes(),
            "error: ",
        ),
        (
            "errors.toml",
            "=\n".repeat(20_000).into_bytes(),
            "… and 19900 further problems",
        ),
        (
            "rules.toml",
            rules(50_000, "\n").into_bytes(),
            "… and 49900 further problems",
        ),
        (
            "rules_of_one_line.toml",
            rules(50_000, " ").into_bytes(),
            "… and 49900 further problems",
        ),
        (
            "many_rules.toml",
            rules(300_000, "\n").into_bytes(),
            "too complex",
        ),
    ]
}

/// Runs the command under a limit of its address space, which fails allocations above it.
fn refused_within_memory(folder: &Path, name: &str) -> ToolOutput {
    let mut command = Command::new("sh");
    let script = format!("ulimit -d {MEMORY_KIB} && exec \"$0\" \"$@\"");
    command.arg("-c").arg(script).arg(bin());
    command.args(reading_command(name)).arg(name);
    command.current_dir(folder);
    external_tools::run_to_end(command, Duration::from_secs(60)).unwrap()
}

#[test]
fn large_files_are_refused_in_little_time_and_memory() {
    let folder = TempFolder::new("broken-large").unwrap();
    let mut faults = Vec::new();
    for (name, content, message) in large_cases() {
        let path = write_private(&folder, name, &content);
        let since = Instant::now();
        let done = refused_within_memory(folder.path(), name);
        let took = since.elapsed();
        println!("{name}: {took:?}");
        fs::remove_file(path).unwrap();
        let shown: String = done.output.chars().take(600).collect();
        if done.code != Some(CONFIGURATION) || !done.output.contains(message) {
            faults.push(format!("{name}: ended with {:?}: {shown}", done.code));
        }
        if done.output.len() > 200_000 {
            faults.push(format!("{name}: {} bytes of messages", done.output.len()));
        }
        let is_too_long = content.len() > 16 << 20;
        if is_too_long && took > TIME {
            faults.push(format!("{name}: took {took:?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A proxy with two listeners, whose file is replaced.
struct Running {
    adit: AditProcess,
    folder: TempFolder,
    listeners: [SocketAddr; 2],
    good: String,
    failures: usize,
}

impl Running {
    fn start(folder: TempFolder) -> Self {
        let listeners = [(); 2].map(|()| loopback_addr(free_port()));
        let [first, second] = listeners;
        let good = format!(
            "[route.first]\nlisten = \"mixed://{first}?{ALLOW}\"\n\
             [route.second]\nlisten = \"socks5://{second}?{ALLOW}\"\n"
        );
        let file = write_private(&folder, "adit.toml", good.as_bytes());
        let mut command = Command::new(bin());
        command.args(["run", "-c"]).arg(file);
        command
            .env("XDG_STATE_HOME", folder.path())
            .env_remove("STATE_DIRECTORY");
        let adit = AditProcess::start_command(command, 2).unwrap();
        Self {
            adit,
            folder,
            listeners,
            good,
            failures: 0,
        }
    }

    /// Replaces the file, and returns the log line that refuses it.
    fn refuse(&mut self, content: &[u8]) -> String {
        let draft = write_private(&self.folder, "draft", content);
        fs::rename(draft, self.folder.path().join("adit.toml")).unwrap();
        self.failures += 1;
        let process = self.adit.process();
        process.send_signal(Signal::HUP).unwrap();
        let text = "was not reloaded, the running configuration is unchanged";
        let lines = process.wait_lines(text, self.failures, TEST_TIMEOUT);
        lines.unwrap().pop().unwrap()
    }
}

/// Returns the line of the log for the errors of an output: place, title and label of each.
fn to_log_line(output: &str) -> String {
    let error = |error: &str| {
        let (title, rest) = error.split_once('\n').unwrap_or((error, ""));
        let place = rest
            .lines()
            .find_map(|line| line.trim().strip_prefix("--> "));
        let place = place.map_or(String::new(), |place| format!("{place}: "));
        let caret = rest
            .lines()
            .find_map(|line| line.split_once(" | ")?.1.trim().strip_prefix('^'));
        let label = caret.map_or("", |caret| caret.trim_start_matches('^').trim());
        match label {
            "" => format!("{place}{title}"),
            label => format!("{place}{title} ({label})"),
        }
    };
    let errors: Vec<String> = output.split("error: ").skip(1).map(error).collect();
    errors.join("; ")
}

#[test]
fn a_running_process_continues_with_each_broken_file() {
    let origin = OriginServer::start().unwrap();
    let target = Destination::Addr(origin.addr());
    let (folder, cases) = copy_of_corpus();
    let mut running = Running::start(folder);
    let mut open = EchoStream::open(running.listeners[0], &target).unwrap();
    let mut faults = Vec::new();
    for Case { name, content } in &cases {
        // Lists of links are not configurations of a process.
        if name.ends_with(".txt") {
            continue;
        }
        let line = running.refuse(content);
        let (_, why) = line.split_once("is unchanged: ").unwrap();
        let folder = format!("{}/", running.folder.path().display());
        let why = why.replace(&folder, "");
        assert!(why.len() > 10, "{name}: {line}");
        assert!(!line.contains(SECRET), "{name}: {line}");
        if name.ends_with(".toml") {
            let expected = fs::read_to_string(corpus().join(format!("{name}.expected"))).unwrap();
            // The file that runs has another name.
            let why = why.replace("adit.toml", name);
            if !name.starts_with("include_") && why != to_log_line(&expected) {
                faults.push(format!("{name}: {why}\nnot {}", to_log_line(&expected)));
            }
        }
        open.exchange(name.as_bytes()).unwrap();
        for listener in running.listeners {
            let mut fresh = EchoStream::open(listener, &target).unwrap();
            fresh.exchange(b"unchanged").unwrap();
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let good = format!("{}# changed\n", running.good);
    write_private(&running.folder, "adit.toml", good.as_bytes());
    running.adit.process().send_signal(Signal::HUP).unwrap();
    let process = running.adit.process();
    process.wait_lines("reloaded /", 1, TEST_TIMEOUT).unwrap();
    open.exchange(b"still open").unwrap();
    running.adit.stop().unwrap();
}
