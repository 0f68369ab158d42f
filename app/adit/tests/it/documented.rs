//! The configuration files of the documentation: each is prepared, checked and started as documented.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, thread};

use adit_interop::external_tools::{self, ToolOutput};
use adit_interop::{AditProcess, TempFolder};

use crate::setup::{bin, ended};

/// The prefix of the lines of an example that are shell commands.
const TYPED: &str = "#   $ ";

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// A configuration file, and the shell commands that create the files it needs.
struct Documented {
    name: String,
    text: String,
    prepare: String,
}

impl Documented {
    /// Prepares a folder and checks the file in it; then starts it, unless that needs root.
    fn works(&self) {
        let folder = TempFolder::new("documented").unwrap();
        let at = |name: &str, text: &str| folder.write_file(name, text).unwrap();
        let file = at(&self.name, &self.text);
        self.prepare_in(folder.path());
        self.is_checked(&file);
        if ["tproxy://", "redir://"]
            .iter()
            .any(|scheme| self.text.contains(scheme))
        {
            return;
        }
        let (text, listeners) = on_free_ports(&self.text);
        let file = at("started.toml", &text);
        let args = ["run", "-c", file.to_str().unwrap()];
        let adit = AditProcess::start_with(&bin(), &args, listeners)
            .unwrap_or_else(|why| panic!("{}: {why:#}\n{text}", self.name));
        adit.stop().unwrap();
    }

    fn prepare_in(&self, folder: &Path) {
        let done = typed(folder, &format!("set -e\n{}", self.prepare));
        assert_eq!(done.code, Some(0), "{}: {}", self.name, done.output);
    }

    /// Checks the file: no errors, and no warnings that the file does not announce.
    fn is_checked(&self, file: &Path) {
        let done = ended(&["check", "-c", file.to_str().unwrap()]);
        assert_eq!(done.code, Some(0), "{}:\n{}", self.name, done.output);
        let announced = self.text.contains("a warning");
        let warned = done.output.contains("warning:");
        assert_eq!(warned, announced, "{}:\n{}", self.name, done.output);
    }
}

/// Runs lines in a shell, where `adit` is the binary under test.
fn typed(folder: &Path, lines: &str) -> ToolOutput {
    let mut shell = Command::new("sh");
    let adit = "adit() { \"$ADIT\" \"$@\"; }";
    shell.arg("-c").arg(format!("{adit}\n{lines}"));
    shell.current_dir(folder).env("ADIT", bin());
    external_tools::run_to_end(shell, Duration::from_secs(30)).unwrap()
}

/// Tests all files simultaneously, because they mostly wait.
fn all_work(files: &[Documented]) {
    thread::scope(|scope| {
        for file in files {
            scope.spawn(|| file.works());
        }
    });
}

/// Returns the description of a file in a list of examples.
fn description<'a>(list: &'a str, name: &str) -> &'a str {
    let first = format!("| [`{name}`](");
    let row = list.lines().find(|line| line.starts_with(&first));
    let row = row.unwrap_or_else(|| panic!("{name} is not in a list of examples"));
    row.split(" | ").nth(1).unwrap()
}

#[test]
fn every_example_is_prepared_checked_and_started() {
    let lists = ["examples/README.md", "book/examples.md"];
    let lists = lists.map(|page| fs::read_to_string(docs().join(page)).unwrap());
    let mut examples = Vec::new();
    for entry in fs::read_dir(docs().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "toml") {
            let text = fs::read_to_string(&path).unwrap();
            let lines = text.lines().filter_map(|line| line.strip_prefix(TYPED));
            let prepare: Vec<&str> = lines.collect();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let check = format!("adit check -c {name}");
            assert_eq!(prepare.last(), Some(&check.as_str()), "{name}");
            let [described, shown] = lists.each_ref().map(|list| description(list, &name));
            assert_eq!(described, shown, "{name}: one description in both lists");
            let include = format!("{{{{#include ../examples/{name}}}}}");
            assert!(lists[1].contains(&include), "{name} is not in the book");
            examples.push(Documented {
                prepare: prepare.join("\n"),
                name,
                text,
            });
        }
    }
    assert!(examples.len() >= 10, "{} examples", examples.len());
    all_work(&examples);
}

#[test]
fn every_file_of_the_reference_is_checked_and_started() {
    let page = reference();
    let files = blocks(&page, "toml");
    assert!(files.len() >= 10, "{} files", files.len());
    all_work(&beside_keys("block", &page, files));
}

/// The dialogue of the page: the commands, and the message for a wrong key.
#[test]
fn a_wrong_key_says_what_the_reference_shows() {
    let folder = TempFolder::new("documented").unwrap();
    // The other one, of `adit explain`, is part of the walkthrough of the page.
    let mut dialogues = blocks(&reference(), "console");
    dialogues.retain(|dialogue| dialogue.contains("error: "));
    assert_eq!(dialogues.len(), 1, "{dialogues:?}");
    for dialogue in dialogues {
        let (commands, printed): (Vec<&str>, Vec<&str>) =
            dialogue.lines().partition(|line| line.starts_with("$ "));
        let script: Vec<&str> = commands.iter().map(|line| &line[2..]).collect();
        let done = typed(folder.path(), &script.join("\n"));
        assert_eq!(done.code, Some(3), "{}", done.output);
        assert_eq!(done.output.trim_end(), printed.join("\n"));
    }
}

#[test]
fn every_file_of_the_help_is_checked_and_started() {
    for (args, least) in [
        (["help", "config"], 1),
        (["help", "rules"], 1),
        (["help", "groups"], 2),
        (["help", "users"], 3),
    ] {
        let files = indented_files(&ended(&args).expect_success().unwrap());
        assert!(files.len() >= least, "{args:?}: {} files", files.len());
        all_work(&beside_keys(args[1], &reference(), files));
    }
}

fn reference() -> String {
    fs::read_to_string(docs().join("reference/config.md")).unwrap()
}

/// Returns files that use the keys of the only block of commands in the reference.
fn beside_keys(name: &str, page: &str, files: Vec<String>) -> Vec<Documented> {
    let [prepare] = &blocks(page, "sh")[..] else {
        panic!("one block of commands prepares all files of the page");
    };
    let numbered = (1..).zip(files);
    let file = |(number, text)| Documented {
        name: format!("{name}-{number}.toml"),
        text,
        prepare: prepare.clone(),
    };
    numbered.map(file).collect()
}

/// Returns the configuration files in a plain text, which are indented and start with a route.
fn indented_files(text: &str) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line.strip_prefix("    ") {
            Some(line) if inside => {
                let file = files.last_mut().unwrap();
                file.push_str(line);
                file.push('\n');
            }
            Some(line) if line.starts_with("[route.") => {
                files.push(format!("{line}\n"));
                inside = true;
            }
            _ => inside = false,
        }
    }
    files
}

/// Returns the fenced blocks of a page with this language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}");
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line == fence {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            found.push(body.join("\n") + "\n");
        }
    }
    found
}

/// Returns the file with all listeners on free loopback ports, and the number of listeners.
fn on_free_ports(text: &str) -> (String, usize) {
    let found = listeners(text);
    let mut moved = text.to_owned();
    for at in found.iter().rev() {
        moved.replace_range(at.clone(), &on_free_port(&text[at.clone()]));
    }
    (moved, found.len())
}

fn on_free_port(url: &str) -> String {
    let begin = url.find("://").unwrap() + 3;
    let end = url[begin..].find(['/', '?', '#']);
    let end = end.map_or(url.len(), |end| begin + end);
    let host = url[begin..end]
        .rfind('@')
        .map_or(begin, |at| begin + at + 1);
    format!("{}127.0.0.1:0{}", &url[..host], &url[end..])
}

/// Returns the positions of the URLs of all `listen` keys.
fn listeners(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut begin = 0;
    for line in text.split_inclusive('\n') {
        let value = line.strip_prefix("listen").map(str::trim_start);
        if let Some(value) = value.and_then(|rest| rest.strip_prefix('=')) {
            let mut at = begin + line.len() - value.len();
            let many = value.trim_start().starts_with('[');
            while let Some(open) = text[at..].find(['"', ']']).map(|next| at + next) {
                if text[open..].starts_with(']') {
                    break;
                }
                let close = open + 1 + text[open + 1..].find('"').unwrap();
                // The management API listens on a path.
                if text[open..close].contains("://") {
                    found.push(open + 1..close);
                }
                at = close + 1;
                if !many {
                    break;
                }
            }
        }
        begin += line.len();
    }
    found
}

#[test]
fn listeners_are_found_and_moved() {
    let text = "listen = \"ss://m:@k@:8388?users=@u\"\nvia = \"http://a:1\"\n\
                listen = [\n  \"tcp://[::1]:5/b:6\", \"mixed://u:p@[::]:7#x\",\n]\n";
    let (moved, count) = on_free_ports(text);
    assert_eq!(count, 3);
    assert_eq!(
        moved,
        "listen = \"ss://m:@k@127.0.0.1:0?users=@u\"\nvia = \"http://a:1\"\n\
         listen = [\n  \"tcp://127.0.0.1:0/b:6\", \"mixed://u:p@127.0.0.1:0#x\",\n]\n"
    );
}
