//! Line-by-line reader of the files, which decides which blocks apply.

use core::ops::Range;
use std::io;
use std::path::{Path, PathBuf};

use super::collected::CollectedSettings;
use super::condition::{Conditions, Facts};
use super::settings::SshSettings;
use super::words::{self, Line};
use super::{SshFiles, SshQuestion, SshSources, glob, pattern, table};
use adit_config::text::{
    ConfigError, Origin, Place, Problem, Span, Warning, WarningKind, nearest_word,
};
use adit_wire::substr;

/// Folder of the system-wide files.
pub(super) const SYSTEM: &str = "/etc/ssh";

/// Reference to the manual, shown with errors.
const MANUAL: &str = "see ssh_config(5)";

/// Maximum include depth (as in OpenSSH).
const DEEPEST: usize = 16;
/// Maximum number of included files.
const MOST_FILES: usize = 512;
/// Maximum number of reported problems, and of warnings.
const MOST_TOLD: usize = 100;
/// Maximum number of characters of a line in a report.
const MOST_SHOWN: usize = 200;

impl SshSettings {
    /// Reads the files and returns the settings for the host in `ask`.
    ///
    /// # Errors
    /// All problems found: invalid values, unreadable files, and unknown options on the command line.
    pub fn resolve(ask: &SshQuestion, sources: &dyn SshSources) -> Result<Self, Vec<Problem>> {
        let mut reader = Reader {
            ask,
            sources,
            collected: CollectedSettings {
                user: ask.user.clone(),
                port: ask.port,
                ..CollectedSettings::default()
            },
            warnings: Vec::new(),
            problems: Vec::new(),
            files: 0,
            is_final: false,
            wants_final: false,
        };
        reader.options();
        reader.all_files();
        if reader.wants_final && reader.problems.is_empty() {
            reader.is_final = true;
            reader.all_files();
        }
        if !reader.problems.is_empty() {
            return Err(reader.problems);
        }
        let (collected, warnings) = (reader.collected, reader.warnings);
        let finished = collected.finish(ask, sources, warnings);
        finished.map_err(|why| vec![Problem::without_place(why, MANUAL)])
    }
}

struct Reader<'a> {
    ask: &'a SshQuestion,
    sources: &'a dyn SshSources,
    collected: CollectedSettings,
    warnings: Vec<Warning>,
    problems: Vec<Problem>,
    files: usize,
    /// True during the second pass.
    is_final: bool,
    wants_final: bool,
}

/// A file being read.
struct Open<'a> {
    path: &'a Path,
    /// Folder that relative `Include` paths start from.
    folder: &'a Path,
    depth: usize,
    /// True if the block that includes this file applies.
    outer: bool,
}

/// Position of a line.
struct Spot {
    origin: Origin,
    number: usize,
}

impl Reader<'_> {
    fn options(&mut self) {
        for (n, option) in self.ask.options.iter().enumerate() {
            let spot = Spot {
                origin: Origin::Argument(n + 1),
                number: 1,
            };
            let Some(line) = Line::read(option) else {
                continue;
            };
            let block = ["host", "match", "include"];
            if block
                .iter()
                .any(|one| line.keyword.eq_ignore_ascii_case(one))
            {
                let title = format!("`{}` is not allowed as an option", line.keyword);
                self.problem(flaw(&line, title), &line, &spot);
            } else {
                self.value(&line, &spot, true);
            }
        }
    }

    fn all_files(&mut self) {
        let user = self.ask.home.join(".ssh");
        match &self.ask.files {
            SshFiles::None => {}
            SshFiles::Only(path) => self.begin(path, &user, true),
            SshFiles::Usual => {
                self.begin(&user.join("config"), &user, false);
                let system = Path::new(SYSTEM);
                self.begin(&system.join("ssh_config"), system, false);
            }
        }
    }

    fn begin(&mut self, path: &Path, folder: &Path, must: bool) {
        let open = Open {
            path,
            folder,
            depth: 0,
            outer: true,
        };
        if let Err(why) = self.file(&open)
            && (must || why.kind() != io::ErrorKind::NotFound)
        {
            self.unreadable(path, &why);
        }
    }

    fn unreadable(&mut self, path: &Path, why: &io::Error) {
        self.tell(Problem::without_place(
            format!("cannot read `{}`: {why}", path.display()),
            MANUAL,
        ));
    }

    fn tell(&mut self, problem: Problem) {
        if self.problems.len() < MOST_TOLD {
            self.problems.push(problem);
        }
    }

    fn file(&mut self, open: &Open<'_>) -> io::Result<()> {
        let file = self.sources.read_file(open.path)?;
        let mut active = open.outer;
        for (n, text) in file.text.lines().enumerate() {
            let Some(line) = Line::read(text) else {
                continue;
            };
            let spot = Spot {
                origin: Origin::File(open.path.display().to_string()),
                number: n + 1,
            };
            let block = match line.keyword.to_ascii_lowercase().as_str() {
                "host" => self.host(&line),
                "match" => self.conditions(&line, &spot),
                "include" => self.include(&line, open, active).map(|()| active),
                _ => {
                    self.value(&line, &spot, active);
                    continue;
                }
            };
            match block {
                Ok(meant) => active = open.outer && meant,
                Err(why) => {
                    active = false;
                    self.problem(bad_value(&line, &why), &line, &spot);
                }
            }
        }
        Ok(())
    }

    fn host(&self, line: &Line<'_>) -> Result<bool, String> {
        let patterns = words::split(line.rest)?;
        if patterns.is_empty() || patterns.iter().any(String::is_empty) {
            return Err("expected one or more patterns".to_owned());
        }
        let patterns = patterns.iter().map(String::as_str);
        Ok(pattern::any_of(patterns, &self.ask.host))
    }

    fn conditions(&mut self, line: &Line<'_>, spot: &Spot) -> Result<bool, String> {
        let conditions = Conditions::read(&words::split(line.rest)?)?;
        self.wants_final |= conditions.wants_final;
        if let Some(name) = &conditions.left_out {
            let title = format!("the condition `{name}` is not supported and never matches");
            self.warning(flaw(line, title), line, spot);
        }
        let host = self.collected.host_now(&self.ask.host)?;
        Ok(conditions.hold(&Facts {
            host: &host,
            original_host: &self.ask.host,
            user: self.collected.user.as_ref().unwrap_or(&self.ask.local_user),
            local_user: &self.ask.local_user,
            is_final: self.is_final,
        }))
    }

    /// Reads the included files. Missing files are skipped.
    fn include(&mut self, line: &Line<'_>, from: &Open<'_>, active: bool) -> Result<(), String> {
        let paths = words::split(line.rest)?;
        if paths.is_empty() || paths.iter().any(String::is_empty) {
            return Err("expected one or more files".to_owned());
        }
        // An `Include` in a block that does not apply has no effect.
        if !active {
            return Ok(());
        }
        if from.depth >= DEEPEST {
            return Err(format!(
                "files include each other more than {DEEPEST} levels deep"
            ));
        }
        for text in paths {
            let path = match text.strip_prefix("~/") {
                Some(below) => self.ask.home.join(below),
                None => from.folder.join(&text),
            };
            for path in glob::files(&path, self.sources) {
                self.files += 1;
                if self.files > MOST_FILES {
                    return Err(format!("more than {MOST_FILES} files are included"));
                }
                self.included(path, from);
            }
        }
        Ok(())
    }

    fn included(&mut self, path: PathBuf, from: &Open<'_>) {
        let open = Open {
            path: &path,
            folder: from.folder,
            depth: from.depth + 1,
            outer: true,
        };
        match self.file(&open) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => self.unreadable(&path, &why),
            _ => {}
        }
    }

    /// Reads a keyword with its value. In a block that does not apply, the value is only checked.
    fn value(&mut self, line: &Line<'_>, spot: &Spot, active: bool) {
        let Some(keyword) = table::find(line.keyword) else {
            return self.unknown(line, spot);
        };
        let mut aside = CollectedSettings::default();
        let collected = match active {
            true => &mut self.collected,
            false => &mut aside,
        };
        let set = words::split(line.rest)
            .map_err(str::to_owned)
            // A command may contain unbalanced quotes.
            .or_else(|why| match keyword.name {
                "ProxyCommand" | "RemoteCommand" => Ok(Vec::new()),
                _ => Err(why),
            })
            .and_then(|words| (keyword.set)(collected, &words, line.rest));
        if let Err(why) = set {
            self.problem(bad_value(line, &why), line, spot);
        }
    }

    fn unknown(&mut self, line: &Line<'_>, spot: &Spot) {
        let name = line.keyword;
        let ignored = self.collected.ignore_unknown.as_deref();
        let lower = name.to_ascii_lowercase();
        if ignored.is_some_and(|list| pattern::any_of(list.to_ascii_lowercase().split(','), &lower))
        {
            return;
        }
        if table::is_elsewhere(name) {
            let title = format!("`{name}` has no effect here");
            return self.warning(flaw(line, title), line, spot);
        }
        let mut flaw = flaw(line, format!("unknown keyword `{name}`"));
        let names = table::KEYWORDS.iter().map(|keyword| keyword.name);
        if let Some(near) = nearest_keyword(&lower, names) {
            flaw = flaw.with_help(format!("did you mean `{near}`?"));
        }
        match spot.origin {
            Origin::Argument(_) => self.problem(flaw, line, spot),
            _ => self.warning(flaw, line, spot),
        }
    }

    fn problem(&mut self, flaw: ConfigError, line: &Line<'_>, spot: &Spot) {
        self.tell(at(flaw, line, spot));
    }

    fn warning(&mut self, flaw: ConfigError, line: &Line<'_>, spot: &Spot) {
        // The second reading would tell all again.
        if !self.is_final && self.warnings.len() < MOST_TOLD {
            self.warnings.push(Warning {
                kind: WarningKind::UnknownKeyword,
                about: at(flaw, line, spot),
            });
        }
    }
}

/// Returns the most similar keyword, ignoring case.
fn nearest_keyword<'k>(
    lower: &str,
    names: impl Iterator<Item = &'k str> + Clone,
) -> Option<&'k str> {
    let all: Vec<(String, &str)> = names
        .map(|name| (name.to_ascii_lowercase(), name))
        .collect();
    let near = nearest_word(lower, all.iter().map(|(name, _)| name.as_str()))?.to_owned();
    all.iter()
        .find(|(name, _)| *name == near)
        .map(|(_, name)| *name)
}

fn flaw(line: &Line<'_>, title: String) -> ConfigError {
    ConfigError::new(span(&line.keyword_at), title)
}

fn bad_value(line: &Line<'_>, why: &str) -> ConfigError {
    let at = match line.rest {
        "" => &line.keyword_at,
        _ => &line.rest_at,
    };
    ConfigError::new(span(at), format!("bad value of `{}`", line.keyword)).with_label(why)
}

const fn span(at: &Range<usize>) -> Span {
    Span::new(at.start, at.end)
}

/// The place of a flaw. Values that may be secret are not shown, nor are very long lines.
fn at(flaw: ConfigError, line: &Line<'_>, spot: &Spot) -> Problem {
    let secret = ["SetEnv", "ProxyCommand", "RemoteCommand"]
        .iter()
        .any(|name| line.keyword.eq_ignore_ascii_case(name));
    let hidden = secret || line.text.chars().count() > MOST_SHOWN;
    let (shown, caret) = if hidden {
        let shown: String = line.keyword.chars().take(MOST_SHOWN).collect();
        let len = shown.chars().count();
        (format!("{shown} ***"), (0, len))
    } else {
        let (start, end) = (flaw.span.start, flaw.span.end);
        let chars =
            |from: usize, to: usize| line.text.get(from..to).map_or(0, |t| t.chars().count());
        (line.text.to_owned(), (chars(0, start), chars(start, end)))
    };
    let before = substr(line.text, ..flaw.span.start);
    let column = before.chars().count() + 1;
    flaw.into_problem(Place {
        origin: spot.origin.clone(),
        line: spot.number,
        column,
        snippet: shown,
        caret,
    })
}
