//! The commands of the documentation: `adit` accepts each line, and the plans of its URLs are valid.
//!
//! `adit run` and its like are passed to `adit check`, in a folder with the files they name. All other commands
//! are parsed up to an appended `--help`, so that nothing is dialled.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use adit_interop::external_tools::{self, ToolOutput};
use adit_interop::{TempFolder, openssh};

use crate::setup::bin;

/// A key of 128 bits, which also is a password.
const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";

/// The placeholders of the documentation, and their values. The longest come first.
const PLACEHOLDERS: &[(&str, &str)] = &[
    ("METHOD:KEY", SERVER_ID),
    ("METHOD:PASSWORD", "aes-128-gcm:secret"),
    ("METHOD:…", "aes-128-gcm:secret"),
    ("2022-blake3-aes-128-gcm:KEY", SERVER_ID),
    ("2022-blake3-aes-128-gcm:…", SERVER_ID),
    (
        "SHA256:…",
        "SHA256:0000000000000000000000000000000000000000000",
    ),
    ("SERVER:PORT", "vps.example:8388"),
    (
        "ssr://MTI3LjAuMC4x…",
        "ssr://aes-256-ctr:secret@vps.example:8388",
    ),
    ("ssr://…", "ssr://aes-256-ctr:secret@vps.example:8388"),
    ("ss://…@", "ss://aes-128-gcm:secret@"),
    ("ss://…", "ss://aes-128-gcm:secret@vps.example:8388"),
    ("…", "secret"),
];

/// A method with its key, as in a URL.
const SERVER_ID: &str = "2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw%3D%3D";

/// The files that commands name, with their contents.
const FILES: &[(&str, &str)] = &[
    ("key", KEY),
    ("key.txt", KEY),
    ("server.key", KEY),
    ("password.txt", "secret"),
    ("users.json", "{\"alice\": \"AQIDBAUGBwgJCgsMDQ4PEA==\"}"),
    ("token", "0123456789abcdef0123456789abcdef"),
    (
        "adit.toml",
        "[route.home]\nlisten = \"mixed://127.0.0.1:1080\"\n",
    ),
    (
        "config.json",
        "{\"server\":\"0.0.0.0\",\"server_port\":8388,\"method\":\"aes-128-gcm\",\"password\":\"secret\"}",
    ),
];

/// A command of a page, and its last line.
#[derive(Debug)]
struct DocumentedCommand {
    line: usize,
    words: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the pages for users: the README, the book, the guides and the reference.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    for folder in ["book", "book/migrate", "guides", "reference"] {
        let entries = fs::read_dir(root().join("docs").join(folder)).unwrap();
        let files = entries.map(|entry| entry.unwrap().path());
        pages.extend(files.filter(|path| path.extension().is_some_and(|e| e == "md")));
    }
    pages.sort();
    pages
}

/// Returns the commands in the code blocks of a page.
fn commands_of(text: &str) -> Vec<DocumentedCommand> {
    let (mut found, mut in_shell, mut in_block) = (Vec::new(), false, false);
    let mut begun = String::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(language) = line.strip_prefix("```") {
            in_block = !in_block;
            in_shell = in_block && ["", "sh", "bash", "console"].contains(&language);
            continue;
        }
        if !in_shell {
            continue;
        }
        begun.push_str(line);
        if begun.ends_with('\\') {
            begun.pop();
            continue;
        }
        let whole = std::mem::take(&mut begun);
        let typed = whole.trim_start_matches("$ ").trim_start_matches("sudo ");
        let words = first_command(typed);
        if words.first().is_some_and(|word| word == "adit") && words.len() > 1 {
            found.push(DocumentedCommand {
                line: number + 1,
                words: words[1..].to_vec(),
            });
        }
    }
    found
}

/// Splits a line of a shell into the words of its first command, without redirections.
fn first_command(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote): (Vec<String>, Option<String>, _) = (vec![], None, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '|' | '>' | '<' | '&' | ';') => break,
            (None, '#') if word.is_none() => break,
            (None, ' ') => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Returns the arguments that show that a command is understood, without running it.
fn dry_run(words: &[String]) -> Vec<String> {
    let filled = words.iter().map(|word| {
        let fill = |text: String, (name, value): &(&str, &str)| text.replace(name, value);
        PLACEHOLDERS.iter().fold(word.clone(), fill)
    });
    let mut words: Vec<String> = filled.collect();
    match words[0].as_str() {
        // `adit check` takes what makes the plan, and not how it is watched.
        "run" if !words.iter().any(|word| word.starts_with("--admin")) => {
            "check".clone_into(&mut words[0]);
        }
        "check" | "explain" => {}
        // What follows the host is a command for it.
        "ssh" => {
            let host = words.iter().position(|word| word.contains('@'));
            words.truncate(host.unwrap_or(words.len()));
            words.push("--help".to_owned());
        }
        _ => words.push("--help".to_owned()),
    }
    words
}

fn run_in(folder: &Path, words: &[String]) -> ToolOutput {
    let mut command = Command::new(bin());
    command.args(words).current_dir(folder);
    command.env("HOME", folder).env("NO_COLOR", "1");
    external_tools::run_to_end(command, Duration::from_secs(20)).unwrap()
}

#[test]
fn every_command_of_the_documentation_is_accepted() {
    let folder = TempFolder::new("commands").unwrap();
    for (name, content) in FILES {
        folder.write_file(name, content).unwrap();
    }
    // What every user of SSH has.
    fs::create_dir(folder.path().join(".ssh")).unwrap();
    let key = openssh::generate_key(folder.path(), ".ssh/id_ed25519").unwrap();
    let public = fs::read(key.with_extension("pub")).unwrap();
    folder.write_file(".ssh/authorized_keys", &public).unwrap();
    folder.write_file("keys", &public).unwrap();
    folder.write_file(".ssh/known_hosts", "").unwrap();
    let (mut tried, mut faults) = (0, Vec::new());
    for path in pages() {
        let page = path.strip_prefix(root()).unwrap().display().to_string();
        for command in commands_of(&fs::read_to_string(&path).unwrap()) {
            tried += 1;
            let done = run_in(folder.path(), &dry_run(&command.words));
            if done.code != Some(0) {
                let DocumentedCommand { line, words } = &command;
                let typed = words.join(" ");
                faults.push(format!("{page}:{line}: adit {typed}\n{}", done.output));
            }
        }
    }
    assert!(tried > 100, "{tried} commands");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_line_of_a_shell_is_split() {
    let words = first_command("adit keygen 'a b' \"c\"d > out # note");
    assert_eq!(words, ["adit", "keygen", "a b", "cd"]);
    let page = "```\n$ adit run a \\\n  b\n```\n```toml\nadit run c\n```\nadit run d\n";
    let found = commands_of(page);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].words, ["run", "a", "b"]);
}
