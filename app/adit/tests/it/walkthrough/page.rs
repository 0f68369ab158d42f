//! The commands in the code blocks of the documentation.
//!
//! A block without a language, or of a shell, has commands; in a `console` block, those that follow `$ `. All
//! other blocks have a language of their own (`text` for output and drawings).

use std::fs;
use std::path::{Path, PathBuf};

/// A key of 128 bits, which also is a password.
pub(crate) const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";

/// A method with its key, as in a URL.
pub(crate) const SERVER_ID: &str = "2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw%3D%3D";

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
    // In base64: `chacha20-ietf-poly1305:secret`.
    ("MTMwNTo…", "MTMwNTpzZWNyZXQ"),
    (
        "ssr://aes-128-cfb:…@…",
        "ssr://aes-128-cfb:secret@vps.example:8388",
    ),
    (
        "ssr://MTI3LjAuMC4x…",
        "ssr://aes-256-ctr:secret@vps.example:8388",
    ),
    ("ssr://…", "ssr://aes-256-ctr:secret@vps.example:8388"),
    ("ss://…@", "ss://aes-128-gcm:secret@"),
    ("ss://…", "ss://aes-128-gcm:secret@vps.example:8388"),
    ("…", "secret"),
];

/// A command of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageCommand {
    /// The number of its block on the page.
    pub(crate) block: usize,
    /// The number of its last line.
    pub(crate) line: usize,
    /// The command as it is written.
    pub(crate) text: String,
}

impl PageCommand {
    /// Returns the command with values in the place of the placeholders.
    pub(crate) fn filled(&self) -> String {
        fill(&self.text)
    }
}

/// Returns a text with values in the place of the placeholders.
pub(crate) fn fill(text: &str) -> String {
    let fill = |text: String, (name, value): &(&str, &str)| text.replace(name, value);
    PLACEHOLDERS.iter().fold(text.to_owned(), fill)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the text of a page, by its path in the repository.
pub(crate) fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap_or_else(|why| panic!("{page}: {why}"))
}

/// Returns the paths of all pages with commands: the README, the examples, and everything in `docs` but the reports
/// of benchmarks, whose commands `cargo xtask bench` records with the figures.
pub(crate) fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned(), "examples/README.md".to_owned()];
    let mut folders = vec!["docs".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() && name != "docs/benchmarks" {
                folders.push(name);
            } else if Path::new(&name).extension().is_some_and(|end| end == "md") {
                pages.push(name);
            }
        }
    }
    pages.sort();
    pages
}

/// Returns the commands in the code blocks of a page. A command is one line, and those that it
/// continues on: after a backslash or a pipe, and to the end of a loop.
pub(crate) fn commands_of(text: &str) -> Vec<PageCommand> {
    let (mut found, mut block, mut language) = (Vec::new(), 0, None);
    let (mut begun, mut loops) = (String::new(), 0);
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(info) = line.strip_prefix("```") {
            language = match language {
                None => Some(info),
                Some(_) => None,
            };
            block += usize::from(language.is_some());
            assert!(begun.is_empty(), "line {number}: `{begun}` has no end");
            continue;
        }
        let line = match language {
            Some("" | "sh" | "bash") => line,
            Some("console") => match line.strip_prefix("$ ") {
                Some(line) => line,
                None => continue,
            },
            _ => continue,
        };
        if begun.is_empty() && (line.is_empty() || line.starts_with('#')) {
            continue;
        }
        loops += usize::from(line.starts_with("for "));
        loops -= usize::from(line.starts_with("done"));
        begun.push_str(line);
        if begun.ends_with('\\') {
            begun.pop();
            continue;
        }
        if begun.ends_with('|') || loops > 0 {
            begun.push('\n');
            continue;
        }
        found.push(PageCommand {
            block,
            line: number + 1,
            text: std::mem::take(&mut begun),
        });
    }
    found
}

/// Returns the first block of a page with this language that contains these words, and has nothing to run.
pub(crate) fn block_with(page: &str, language: &str, words: &str) -> String {
    let text = read(page);
    let fence = format!("```{language}\n");
    let blocks = text.split(&fence).skip(1);
    let mut bodies = blocks.filter_map(|rest| rest.split("```").next());
    let found = bodies.find(|body| body.contains(words));
    found
        .unwrap_or_else(|| panic!("{page} has no block with {words}"))
        .to_owned()
}

#[test]
fn commands_are_found() {
    let page = "```\n$ a\nadit run b \\\n  c   # note\nx |\n  y\n\n# only a note\n```\n```toml\nk = 1\n```\n\
                text\n```console\n$ adit d\noutput\n```\n```sh\nfor i in 1; do\n  e\ndone | f\n```\n";
    let found: Vec<(usize, String)> = commands_of(page)
        .into_iter()
        .map(|command| (command.block, command.text))
        .collect();
    let expected = [
        (1, "$ a"),
        (1, "adit run b c   # note"),
        (1, "x |\ny"),
        (3, "adit d"),
        (4, "for i in 1; do\ne\ndone | f"),
    ];
    assert_eq!(
        found,
        expected.map(|(block, text)| (block, text.to_owned()))
    );
}
