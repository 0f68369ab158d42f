//! The commands of the documentation: `adit` accepts each line, and the plans of its URLs are valid.
//!
//! `adit run` and its like are passed to `adit check`, in a folder with the files they name. All other commands
//! are parsed up to an appended `--help`, so that nothing is dialled.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use adit_doc_commands::PageCommand;
use adit_interop::external_tools::{self, ToolOutput};
use adit_interop::{TempFolder, openssh};

use crate::setup::bin;
use crate::walkthrough::page::{self, KEY};

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

/// Returns the words after `adit`, if a command is one of adit.
fn words_of(command: &PageCommand) -> Option<Vec<String>> {
    let words = command.words();
    let root = words.first().is_some_and(|word| word == "sudo");
    match &words[usize::from(root)..] {
        [adit, rest @ ..] if adit == "adit" && !rest.is_empty() => Some(rest.to_vec()),
        _ => None,
    }
}

/// Returns the arguments that show that a command is understood, without running it.
fn dry_run(words: &[String]) -> Vec<String> {
    let mut words: Vec<String> = words.iter().map(|word| page::fill(word)).collect();
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
    for page in page::pages() {
        for command in page::commands_of(&page) {
            let Some(words) = words_of(&command) else {
                continue;
            };
            tried += 1;
            let done = run_in(folder.path(), &dry_run(&words));
            if done.code != Some(0) {
                let (line, typed) = (command.line, words.join(" "));
                faults.push(format!("{page}:{line}: adit {typed}\n{}", done.output));
            }
        }
    }
    assert!(tried > 100, "{tried} commands");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
