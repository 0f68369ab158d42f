//! The commands in the code blocks of the documentation.
//!
//! A block without a language, or of a shell, has commands; in a `console` block, those that follow `$ `. All
//! other blocks have a language of their own (`text` for output and drawings).
//!
//! Two programs run them: `cargo xtask test` those for the repository itself ([`PageCommand::is_for_repository`]), and
//! the walkthroughs of `app/adit/tests/it` all others.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// The beginnings of the commands that build, measure or check the repository itself.
const FOR_REPOSITORY: [&str; 2] = ["cargo xtask ", "cargo build"];

/// A command of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageCommand {
    /// The number of its block on the page.
    pub block: usize,
    /// The number of its last line.
    pub line: usize,
    /// The command as it is written.
    pub text: String,
}

impl PageCommand {
    /// Returns true for a command that runs in a clone of the repository, for minutes.
    #[must_use]
    pub fn is_for_repository(&self) -> bool {
        FOR_REPOSITORY
            .iter()
            .any(|begins| self.text.starts_with(begins))
    }

    /// Splits the command into the words of its first program, without redirections and comments.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let (mut words, mut word, mut quote): (Vec<String>, Option<String>, _) =
            (vec![], None, None);
        for c in self.text.chars() {
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
}

/// Returns the paths of all pages that may have commands, in the repository at `root`: the documents there, the
/// examples, and everything in `docs` but the reports of benchmarks, whose commands `cargo xtask bench` records with the
/// figures.
///
/// # Errors
///
/// Fails if a folder cannot be read.
pub fn pages(root: &Path) -> Result<Vec<String>> {
    let mut pages = vec!["examples/README.md".to_owned()];
    let mut folders = vec![String::new(), "docs/".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).with_context(|| folder.clone())? {
            let entry = entry?;
            let name = format!("{folder}{}", entry.file_name().display());
            if entry.file_type()?.is_dir() {
                let is_below = !folder.is_empty() && name != "docs/benchmarks";
                folders.extend(is_below.then(|| name + "/"));
            } else if Path::new(&name).extension().is_some_and(|end| end == "md") {
                pages.push(name);
            }
        }
    }
    pages.sort();
    Ok(pages)
}

/// Returns the commands in the code blocks of a page. A command is one line, and those that it
/// continues on: after a backslash or a pipe, and to the end of a loop.
///
/// # Errors
///
/// Fails if a command goes on at the end of its block.
pub fn commands_of(text: &str) -> Result<Vec<PageCommand>> {
    let (mut found, mut block, mut language) = (Vec::new(), 0, None);
    let (mut begun, mut loops) = (String::new(), 0_usize);
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if let Some(info) = line.strip_prefix("```") {
            language = match language {
                None => Some(info),
                Some(_) => None,
            };
            block += usize::from(language.is_some());
            ensure!(begun.is_empty(), "line {number}: `{begun}` has no end");
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
        if line.starts_with("done") {
            let outer = loops.checked_sub(1);
            loops = outer.with_context(|| format!("line {number}: `done` without a loop"))?;
        }
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
            line: number,
            text: std::mem::take(&mut begun),
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found() {
        let page = "```\n$ a\nadit run b \\\n  c   # note\nx |\n  y\n\n# only a note\n```\n```toml\nk = 1\n```\n\
                    text\n```console\n$ adit d\noutput\n```\n```sh\nfor i in 1; do\n  e\ndone | f\n```\n";
        let found: Vec<(usize, usize, String)> = commands_of(page)
            .unwrap()
            .into_iter()
            .map(|command| (command.block, command.line, command.text))
            .collect();
        let expected = [
            (1, 2, "$ a"),
            (1, 4, "adit run b c   # note"),
            (1, 6, "x |\ny"),
            (3, 15, "adit d"),
            (4, 21, "for i in 1; do\ne\ndone | f"),
        ];
        assert_eq!(
            found,
            expected.map(|(block, line, text)| (block, line, text.to_owned()))
        );
    }

    #[test]
    fn commands_without_an_end_are_faults() {
        assert!(commands_of("```\na \\\n```\n").is_err());
        assert!(commands_of("```\ndone\n```\n").is_err());
    }

    fn command(text: &str) -> PageCommand {
        PageCommand {
            block: 1,
            line: 1,
            text: text.to_owned(),
        }
    }

    #[test]
    fn pages_are_found() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let found = pages(&root).unwrap();
        let has = |page: &str| found.iter().any(|name| name == page);
        for page in ["README.md", "examples/README.md", "docs/book/install.md"] {
            assert!(has(page), "{page}: {found:?}");
        }
        assert!(!has("docs/benchmarks/socks.md"), "{found:?}");
    }

    #[test]
    fn a_line_of_a_shell_is_split() {
        let words = command("adit keygen 'a b' \"c\"d > out # note").words();
        assert_eq!(words, ["adit", "keygen", "a b", "cd"]);
    }

    #[test]
    fn commands_for_the_repository_are_told_apart() {
        for text in ["cargo xtask dist # a", "cargo build --release"] {
            assert!(command(text).is_for_repository(), "{text}");
        }
        for text in ["cargo run --release -- up", "adit up"] {
            assert!(!command(text).is_for_repository(), "{text}");
        }
    }
}
