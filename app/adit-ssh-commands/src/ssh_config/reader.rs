//! Line-by-line reader of the files, which decides which blocks apply.

use core::ops::Range;
use std::io;
use std::path::{Path, PathBuf};

use super::collected::CollectedSettings;
use super::condition::{MatchConditions, MatchFacts};
use super::settings::SshSettings;
use super::words::{self, ConfigLine};
use super::{
    SshConfigFiles, SshConfigQuery, SshConfigSources, include_glob, keyword_table, pattern,
};
use adit_config::text::{
    ConfigError, Origin, Problem, SourceLocation, Span, Warning, WarningKind, nearest_word,
};
use adit_wire::substr;

/// Returns the folder of the system-wide files.
#[cfg(unix)]
pub(super) fn system_folder() -> PathBuf {
    PathBuf::from("/etc/ssh")
}

/// Returns the folder of the system-wide files, that of OpenSSH for Windows: every user may create a folder `\etc`.
#[cfg(windows)]
pub(super) fn system_folder() -> PathBuf {
    let set = std::env::var_os("ProgramData").map(PathBuf::from);
    let set = set.filter(|folder| folder.is_absolute());
    set.unwrap_or_else(|| PathBuf::from(r"C:\ProgramData"))
        .join("ssh")
}

/// Reference to the manual, shown with errors.
const MANUAL_HINT: &str = "see ssh_config(5)";

/// Maximum include depth (as in OpenSSH).
const MAX_INCLUDE_DEPTH: usize = 16;
/// Maximum number of included files.
const MAX_FILES: usize = 512;
/// Maximum number of reported problems, and of warnings.
const MAX_REPORTS: usize = 100;
/// Maximum number of characters of a line in a report.
const MAX_SHOWN_CHARS: usize = 200;

impl SshSettings {
    /// Reads the files and returns the settings for the host in `ask`.
    ///
    /// # Errors
    /// All problems found: invalid values, unreadable files, and unknown options on the command line.
    pub fn resolve(
        ask: &SshConfigQuery,
        sources: &dyn SshConfigSources,
    ) -> Result<Self, Vec<Problem>> {
        let mut reader = ConfigReader {
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
        reader.read_options();
        reader.read_all_files();
        if reader.wants_final && reader.problems.is_empty() {
            reader.is_final = true;
            reader.read_all_files();
        }
        if !reader.problems.is_empty() {
            return Err(reader.problems);
        }
        let (collected, warnings) = (reader.collected, reader.warnings);
        let finished = collected.into_settings(ask, sources, warnings);
        finished.map_err(|why| vec![Problem::without_place(why, MANUAL_HINT)])
    }
}

struct ConfigReader<'a> {
    ask: &'a SshConfigQuery,
    sources: &'a dyn SshConfigSources,
    collected: CollectedSettings,
    warnings: Vec<Warning>,
    problems: Vec<Problem>,
    files: usize,
    /// True during the second pass.
    is_final: bool,
    wants_final: bool,
}

/// A file being read.
struct OpenFile<'a> {
    path: &'a Path,
    /// Folder that relative `Include` paths start from.
    folder: &'a Path,
    depth: usize,
    /// True if the block that includes this file applies.
    block_applies: bool,
}

/// Position of a line.
struct LinePosition {
    origin: Origin,
    number: usize,
}

impl ConfigReader<'_> {
    fn read_options(&mut self) {
        for (n, option) in self.ask.options.iter().enumerate() {
            let spot = LinePosition {
                origin: Origin::Argument(n + 1),
                number: 1,
            };
            let Some(line) = ConfigLine::parse(option) else {
                continue;
            };
            let block = ["host", "match", "include"];
            if block
                .iter()
                .any(|one| line.keyword.eq_ignore_ascii_case(one))
            {
                let title = format!("`{}` is not allowed as an option", line.keyword);
                self.report_problem(keyword_error(&line, title), &line, &spot);
            } else {
                self.read_value(&line, &spot, true);
            }
        }
    }

    fn read_all_files(&mut self) {
        let user = self.ask.home.join(".ssh");
        match &self.ask.files {
            SshConfigFiles::None => {}
            SshConfigFiles::Only(path) => self.read_top_file(path, &user, true),
            SshConfigFiles::Default => {
                self.read_top_file(&user.join("config"), &user, false);
                let system = system_folder();
                self.read_top_file(&system.join("ssh_config"), &system, false);
            }
        }
    }

    fn read_top_file(&mut self, path: &Path, folder: &Path, must: bool) {
        let open = OpenFile {
            path,
            folder,
            depth: 0,
            block_applies: true,
        };
        if let Err(why) = self.read_lines(&open)
            && (must || why.kind() != io::ErrorKind::NotFound)
        {
            self.report_unreadable(path, &why);
        }
    }

    fn report_unreadable(&mut self, path: &Path, why: &io::Error) {
        self.add_problem(Problem::without_place(
            format!("cannot read `{}`: {why}", path.display()),
            MANUAL_HINT,
        ));
    }

    fn add_problem(&mut self, problem: Problem) {
        if self.problems.len() < MAX_REPORTS {
            self.problems.push(problem);
        }
    }

    fn read_lines(&mut self, open: &OpenFile<'_>) -> io::Result<()> {
        let file = self.sources.read_file(open.path)?;
        let mut active = open.block_applies;
        for (n, text) in file.text.lines().enumerate() {
            let Some(line) = ConfigLine::parse(text) else {
                continue;
            };
            let spot = LinePosition {
                origin: Origin::File(open.path.display().to_string()),
                number: n + 1,
            };
            let block = match line.keyword.to_ascii_lowercase().as_str() {
                "host" => self.host_block_applies(&line),
                "match" => self.match_block_applies(&line, &spot),
                "include" => self.read_includes(&line, open, active).map(|()| active),
                _ => {
                    self.read_value(&line, &spot, active);
                    continue;
                }
            };
            match block {
                Ok(meant) => active = open.block_applies && meant,
                Err(why) => {
                    active = false;
                    self.report_problem(value_error(&line, &why), &line, &spot);
                }
            }
        }
        Ok(())
    }

    fn host_block_applies(&self, line: &ConfigLine<'_>) -> Result<bool, String> {
        let patterns = words::split_arguments(line.rest)?;
        if patterns.is_empty() || patterns.iter().any(String::is_empty) {
            return Err("expected one or more patterns".to_owned());
        }
        let patterns = patterns.iter().map(String::as_str);
        Ok(pattern::matches_any(patterns, &self.ask.host))
    }

    fn match_block_applies(
        &mut self,
        line: &ConfigLine<'_>,
        spot: &LinePosition,
    ) -> Result<bool, String> {
        let conditions = MatchConditions::parse(&words::split_arguments(line.rest)?)?;
        self.wants_final |= conditions.wants_final;
        if let Some(name) = &conditions.unsupported {
            let title = format!("the condition `{name}` is not supported and never matches");
            self.report_warning(keyword_error(line, title), line, spot);
        }
        let host = self.collected.current_host_name(&self.ask.host)?;
        Ok(conditions.all_hold(&MatchFacts {
            host: &host,
            original_host: &self.ask.host,
            user: self.collected.user.as_ref().unwrap_or(&self.ask.local_user),
            local_user: &self.ask.local_user,
            is_final: self.is_final,
        }))
    }

    /// Reads the included files. Missing files are skipped.
    fn read_includes(
        &mut self,
        line: &ConfigLine<'_>,
        from: &OpenFile<'_>,
        active: bool,
    ) -> Result<(), String> {
        let paths = words::split_arguments(line.rest)?;
        if paths.is_empty() || paths.iter().any(String::is_empty) {
            return Err("expected one or more files".to_owned());
        }
        // An `Include` in a block that does not apply has no effect.
        if !active {
            return Ok(());
        }
        if from.depth >= MAX_INCLUDE_DEPTH {
            return Err(format!(
                "files include each other more than {MAX_INCLUDE_DEPTH} levels deep"
            ));
        }
        for text in paths {
            let path = match text.strip_prefix("~/") {
                Some(below) => self.ask.home.join(below),
                None => from.folder.join(&text),
            };
            for path in include_glob::matching_files(&path, self.sources) {
                self.files += 1;
                if self.files > MAX_FILES {
                    return Err(format!("more than {MAX_FILES} files are included"));
                }
                self.read_included_file(path, from);
            }
        }
        Ok(())
    }

    fn read_included_file(&mut self, path: PathBuf, from: &OpenFile<'_>) {
        let open = OpenFile {
            path: &path,
            folder: from.folder,
            depth: from.depth + 1,
            block_applies: true,
        };
        match self.read_lines(&open) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => {
                self.report_unreadable(&path, &why);
            }
            _ => {}
        }
    }

    /// Reads a keyword with its value. In a block that does not apply, the value is only checked.
    fn read_value(&mut self, line: &ConfigLine<'_>, spot: &LinePosition, active: bool) {
        let Some(keyword) = keyword_table::find_keyword(line.keyword) else {
            return self.report_unknown(line, spot);
        };
        let mut aside = CollectedSettings::default();
        let collected = match active {
            true => &mut self.collected,
            false => &mut aside,
        };
        let set = words::split_arguments(line.rest)
            .map_err(str::to_owned)
            // A command may contain unbalanced quotes.
            .or_else(|why| match keyword.name {
                "ProxyCommand" | "RemoteCommand" => Ok(Vec::new()),
                _ => Err(why),
            })
            .and_then(|words| (keyword.set)(collected, &words, line.rest));
        if let Err(why) = set {
            self.report_problem(value_error(line, &why), line, spot);
        }
    }

    fn report_unknown(&mut self, line: &ConfigLine<'_>, spot: &LinePosition) {
        let name = line.keyword;
        let ignored = self.collected.ignore_unknown.as_deref();
        let lower = name.to_ascii_lowercase();
        if ignored
            .is_some_and(|list| pattern::matches_any(list.to_ascii_lowercase().split(','), &lower))
        {
            return;
        }
        if keyword_table::has_no_effect(name) {
            let title = format!("`{name}` has no effect here");
            return self.report_warning(keyword_error(line, title), line, spot);
        }
        let mut flaw = keyword_error(line, format!("unknown keyword `{name}`"));
        let names = keyword_table::KEYWORDS.iter().map(|keyword| keyword.name);
        if let Some(near) = nearest_keyword(&lower, names) {
            flaw = flaw.with_help(format!("did you mean `{near}`?"));
        }
        match spot.origin {
            Origin::Argument(_) => self.report_problem(flaw, line, spot),
            _ => self.report_warning(flaw, line, spot),
        }
    }

    fn report_problem(&mut self, flaw: ConfigError, line: &ConfigLine<'_>, spot: &LinePosition) {
        self.add_problem(problem_at(flaw, line, spot));
    }

    fn report_warning(&mut self, flaw: ConfigError, line: &ConfigLine<'_>, spot: &LinePosition) {
        // The second reading would tell all again.
        if !self.is_final && self.warnings.len() < MAX_REPORTS {
            self.warnings.push(Warning {
                kind: WarningKind::UnknownKeyword,
                about: problem_at(flaw, line, spot),
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

fn keyword_error(line: &ConfigLine<'_>, title: String) -> ConfigError {
    ConfigError::new(to_span(&line.keyword_at), title)
}

fn value_error(line: &ConfigLine<'_>, why: &str) -> ConfigError {
    let at = match line.rest {
        "" => &line.keyword_at,
        _ => &line.rest_at,
    };
    ConfigError::new(to_span(at), format!("bad value of `{}`", line.keyword)).with_label(why)
}

const fn to_span(at: &Range<usize>) -> Span {
    Span::new(at.start, at.end)
}

/// The place of a flaw. Values that may be secret are not shown, nor are very long lines.
fn problem_at(flaw: ConfigError, line: &ConfigLine<'_>, spot: &LinePosition) -> Problem {
    let secret = ["SetEnv", "ProxyCommand", "RemoteCommand"]
        .iter()
        .any(|name| line.keyword.eq_ignore_ascii_case(name));
    let hidden = secret || line.text.chars().count() > MAX_SHOWN_CHARS;
    let (shown, caret) = if hidden {
        let shown: String = line.keyword.chars().take(MAX_SHOWN_CHARS).collect();
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
    flaw.into_problem(SourceLocation {
        origin: spot.origin.clone(),
        line: spot.number,
        column,
        snippet: shown,
        caret,
    })
}
