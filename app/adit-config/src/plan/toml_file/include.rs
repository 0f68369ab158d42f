//! `include`: further files with routes, groups and settings.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use adit_wire::u64_from;
use toml::de::{DeTable, DeValue};
use zeroize::Zeroizing;

use super::syntax;
use super::table_reader::{MAX_FILE_LEN, Value, span_of};
use crate::scheme::builder::secret_files::resolve_path;
use crate::scheme::secret_redaction;
use crate::text::{ConfigError, Diagnostics, Document, LineIndex, Origin, SecretLookup, Span};

/// Maximum number of included files.
const MAX_FILES: usize = 256;
/// Maximum depth of included files; those that the main file names have depth 1.
const MAX_DEPTH: usize = 8;

/// An included file.
pub(super) struct IncludedFile {
    /// Its name.
    pub(super) origin: Origin,
    /// Its text.
    pub(super) text: Zeroizing<String>,
    /// The lines of the text.
    lines: LineIndex,
    /// The folder where its relative paths begin.
    pub(super) folder: PathBuf,
    /// True if users other than the owner and the group may read it.
    pub(super) readable_by_others: bool,
}

impl IncludedFile {
    /// Returns the document of the file.
    pub(super) fn document(&self) -> Document<'_> {
        secret_redaction::redacting_document(&self.origin, &self.text, &self.lines)
    }
}

/// A file with `include`.
#[derive(Clone, Copy)]
struct IncludingFile<'a> {
    document: Document<'a>,
    /// The folder where its relative paths begin.
    folder: &'a Path,
}

/// Reads the files that the main file includes, and those that they include: each once, in the order in which they are
/// named.
pub(super) fn read_included_files(
    diagnostics: &mut Diagnostics,
    lookup: SecretLookup<'_>,
    document: Document<'_>,
    name: &str,
    table: &DeTable<'_>,
) -> Vec<Rc<IncludedFile>> {
    let patterns = include_patterns(table);
    if patterns.is_empty() {
        return Vec::new();
    }
    let main = lookup.sources.canonical_path(Path::new(name));
    let mut reader = IncludeReader {
        diagnostics,
        lookup,
        files: Vec::new(),
        known: vec![main.clone()],
        parents: vec![main],
        remaining: MAX_FILE_LEN.saturating_sub(u64_from(document.text.len())),
    };
    let main = IncludingFile {
        document,
        folder: lookup.base,
    };
    // An error was reported.
    let _ = reader.read_all(main, &patterns);
    reader.files
}

/// An error that was reported and ends the reading of further files.
struct TooMuch;

/// A reader of included files.
struct IncludeReader<'a> {
    diagnostics: &'a mut Diagnostics,
    lookup: SecretLookup<'a>,
    files: Vec<Rc<IncludedFile>>,
    /// The canonical paths of all files.
    known: Vec<PathBuf>,
    /// The canonical paths of the files that are being read, each included by the one before it.
    parents: Vec<PathBuf>,
    /// The number of bytes that further files may have.
    remaining: u64,
}

impl IncludeReader<'_> {
    /// Reads all files of a file's patterns.
    fn read_all(
        &mut self,
        from: IncludingFile<'_>,
        patterns: &[(String, Span)],
    ) -> Result<(), TooMuch> {
        for (pattern, span) in patterns {
            match self.expand_pattern(from.folder, pattern) {
                Ok(paths) => {
                    for path in paths {
                        self.read_one(from, &path, *span)?;
                    }
                }
                Err(title) => self.report(from, ConfigError::new(*span, title)),
            }
        }
        Ok(())
    }

    /// Reads a file and those that it includes.
    fn read_one(
        &mut self,
        from: IncludingFile<'_>,
        path: &Path,
        span: Span,
    ) -> Result<(), TooMuch> {
        let name = path.display().to_string();
        let canonical = self.lookup.sources.canonical_path(path);
        if self.parents.contains(&canonical) {
            let flaw = ConfigError::new(span, format!("`{name}` includes itself"));
            self.report(
                from,
                flaw.with_label("a circle of included files")
                    .with_help("remove `include` from one of them"),
            );
            return Ok(());
        }
        if self.known.contains(&canonical) {
            return Ok(());
        }
        if self.files.len() >= MAX_FILES {
            let title = format!("at most {MAX_FILES} files can be included");
            self.report(from, ConfigError::new(span, title));
            return Err(TooMuch);
        }
        if self.parents.len() > MAX_DEPTH {
            let title = format!("included files are nested at most {MAX_DEPTH} deep");
            self.report(from, ConfigError::new(span, title));
            return Err(TooMuch);
        }
        let sources = self.lookup.sources;
        let read = match sources.read_file_up_to(path, self.remaining) {
            Ok(read) => read,
            Err(why) if why.kind() == ErrorKind::FileTooLarge => {
                let title = format!("`{name}` is too long");
                let label = format!("the files have at most {MAX_FILE_LEN} bytes together");
                self.report(from, ConfigError::new(span, title).with_label(label));
                return Err(TooMuch);
            }
            Err(why) => {
                let flaw = ConfigError::new(span, format!("cannot read `{name}`"));
                let flaw = flaw.with_label(why.to_string());
                let help = "relative paths start at the folder of the file with `include`";
                self.report(from, flaw.with_help(help));
                return Ok(());
            }
        };
        self.remaining = self.remaining.saturating_sub(u64_from(read.text.len()));
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        let file = Rc::new(IncludedFile {
            origin: Origin::File(name),
            text: read.text,
            lines: LineIndex::default(),
            folder: folder.to_owned(),
            readable_by_others: read.readable_by_others,
        });
        self.files.push(file.clone());
        self.known.push(canonical.clone());
        // Errors are reported when it is parsed with the others.
        let (table, _) = syntax::parse_table(&file.text);
        let patterns = include_patterns(table.get_ref());
        let including = IncludingFile {
            document: file.document(),
            folder: &file.folder,
        };
        self.parents.push(canonical);
        let result = self.read_all(including, &patterns);
        self.parents.pop();
        result
    }

    /// Returns the files of a path, whose last part may be a pattern, in the order of their names.
    fn expand_pattern(&self, base: &Path, text: &str) -> Result<Vec<PathBuf>, String> {
        let sources = self.lookup.sources;
        let lookup = SecretLookup { sources, base };
        let path = resolve_path(lookup, text);
        let is_pattern = |text: &str| text.contains(['*', '?']);
        let (folder, pattern) = match text.rsplit_once('/') {
            Some((folder, pattern)) => (folder, pattern),
            None => ("", text),
        };
        if is_pattern(folder) {
            return Err("only the last part of a path can have `*` and `?`".to_owned());
        }
        if pattern.is_empty() {
            return Err(format!("`{text}` is not the path of a file"));
        }
        if !is_pattern(pattern) {
            return Ok(vec![path]);
        }
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        let names = match self.lookup.sources.list_names(folder) {
            Ok(names) => names,
            Err(why) if why.kind() == ErrorKind::NotFound => Vec::new(),
            Err(why) => return Err(format!("cannot read `{}`: {why}", folder.display())),
        };
        let mut names: Vec<String> = names
            .into_iter()
            .filter(|name| matches_pattern(pattern, name))
            .collect();
        names.sort_unstable();
        Ok(names.iter().map(|name| folder.join(name)).collect())
    }

    fn report(&mut self, from: IncludingFile<'_>, flaw: ConfigError) {
        self.diagnostics.add_error(from.document, flaw);
    }
}

/// Returns the paths of `include`, without values of the wrong type, which the parser reports.
fn include_patterns(table: &DeTable<'_>) -> Vec<(String, Span)> {
    let found = table.iter().find(|(key, _)| key.get_ref() == "include");
    let Some((_, value)) = found else {
        return Vec::new();
    };
    match value.get_ref() {
        DeValue::String(text) => vec![(text.clone().into_owned(), span_of(value.span()))],
        DeValue::Array(items) => {
            let text = |item: &Value<'_>| match item.get_ref() {
                DeValue::String(text) => Some((text.clone().into_owned(), span_of(item.span()))),
                _ => None,
            };
            items.iter().filter_map(text).collect()
        }
        _ => Vec::new(),
    }
}

/// True if a name matches a pattern: `*` is any text, `?` any character. A name with a dot at its start needs a
/// pattern with one.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // The last `*`, and the end of the text that it matches so far.
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || Some(c) == name.get(n) => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, end)) => {
                    star = Some((at, end + 1));
                    p = at + 1;
                    n = end + 1;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::plan::Plan;
    use crate::text::{MemorySources, Problem};

    const MAIN: &str = "/etc/adit/adit.toml";

    fn route(name: &str, port: u16) -> String {
        format!("[route.{name}]\nlisten = \"mixed://127.0.0.1:{port}\"\n")
    }

    fn read(text: &str, sources: &MemorySources) -> Result<Plan, Vec<Problem>> {
        Plan::from_toml_with(text, MAIN, sources)
    }

    /// Returns the place and the title of the only problem.
    #[track_caller]
    fn mistake(text: &str, sources: &MemorySources) -> String {
        let problems = read(text, sources).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        problems[0].to_string()
    }

    #[test]
    fn names_match_patterns() {
        for (pattern, name, matches) in [
            ("*.toml", "a.toml", true),
            ("*.toml", "a.toml~", false),
            ("*.toml", ".a.toml", false),
            (".*", ".a", true),
            ("a?c*", "abcd", true),
            ("a?c*", "acd", false),
            ("*a*b*", "xxaxxaxb", true),
            ("*a*b", "ab_", false),
            ("a", "a", true),
            ("", "", true),
        ] {
            assert_eq!(matches_pattern(pattern, name), matches, "{pattern} {name}");
        }
    }

    #[test]
    fn files_are_read_in_their_order_with_paths_of_their_own() {
        let text = "include = [\"conf.d/*.toml\", \"other/last.toml\"]\n".to_owned()
            + &route("main", 1)
            + "via = \"far\"\n";
        let group = "[group.far]\nmembers = [\"ss://aes-128-gcm:@key@192.0.2.1:1\"]\n";
        let sources = MemorySources::default()
            .with_file("/etc/adit/conf.d/b.toml", &route("b", 3))
            .with_file("/etc/adit/conf.d/a.toml", &(route("a", 2) + group))
            .with_file("/etc/adit/conf.d/.hidden.toml", "wrong")
            .with_file("/etc/adit/conf.d/a.toml~", "wrong")
            .with_file("/etc/adit/conf.d/key", "secret")
            .with_file("/etc/adit/other/last.toml", "[run]\nwatch = true\n");
        let plan = read(&text, &sources).unwrap();
        let names: Vec<&str> = plan.routes.iter().map(|route| &*route.name).collect();
        assert_eq!(names, ["main", "a", "b"]);
        assert!(plan.run.watch);
        assert_eq!(plan.routes[0].via.stages.len(), 1);
    }

    #[test]
    fn mistakes_have_the_place_of_their_file() {
        let text = "include = \"more.toml\"\n".to_owned() + &route("main", 1);
        let sources = MemorySources::default().with_file("/etc/adit/more.toml", "\n[rout.a]\n");
        let shown = mistake(&text, &sources);
        assert!(shown.contains("unknown key `rout`"), "{shown}");
        assert!(shown.contains("/etc/adit/more.toml:2:2"), "{shown}");

        let sources = MemorySources::default().with_file("/etc/adit/more.toml", &route("main", 2));
        let shown = mistake(&text, &sources);
        assert!(shown.contains("`route.main` is defined twice"), "{shown}");
        assert!(shown.contains("/etc/adit/more.toml:1:8"), "{shown}");
        assert!(
            shown.contains("first at /etc/adit/adit.toml:2:8"),
            "{shown}"
        );

        let shown = mistake(&text, &MemorySources::default());
        assert!(
            shown.contains("cannot read `/etc/adit/more.toml`"),
            "{shown}"
        );
        assert!(shown.contains("/etc/adit/adit.toml:1:11"), "{shown}");

        for (wrong, title) in [
            (
                "include = 1\n",
                "`include` must be a path, or a list of paths",
            ),
            (
                "include = \"*/a.toml\"\n",
                "only the last part of a path can have `*` and `?`",
            ),
            (
                "include = \"conf.d/\"\n",
                "`conf.d/` is not the path of a file",
            ),
        ] {
            let shown = mistake(&(wrong.to_owned() + &route("a", 1)), &sources);
            assert!(shown.contains(title), "{shown}");
        }
    }

    #[test]
    fn readable_secrets_are_those_of_their_file() {
        let text = "include = \"more.toml\"\n".to_owned() + &route("main", 1);
        let secret = "[route.a]\nlisten = \"ss://aes-128-gcm:secret@127.0.0.1:2\"\n";
        let sources = MemorySources::default().with_open_file("/etc/adit/more.toml", secret);
        let plan = read(&text, &sources).unwrap();
        assert_eq!(plan.warnings.len(), 1, "{:?}", plan.warnings);
        assert!(plan.warnings[0].about.title.contains("/etc/adit/more.toml"));
        let sources =
            MemorySources::default().with_open_file("/etc/adit/more.toml", &route("a", 2));
        assert_eq!(read(&text, &sources).unwrap().warnings, []);
    }

    #[test]
    fn circles_and_depth_and_number_are_limited() {
        let text = "include = \"a.toml\"\n".to_owned() + &route("main", 1);
        let circle = MemorySources::default()
            .with_file("/etc/adit/a.toml", "include = \"b.toml\"")
            .with_file("/etc/adit/b.toml", "include = \"a.toml\"");
        let shown = mistake(&text, &circle);
        assert!(
            shown.contains("`/etc/adit/a.toml` includes itself"),
            "{shown}"
        );
        assert!(shown.contains("/etc/adit/b.toml:1:11"), "{shown}");

        let chain = |depth: usize| {
            let mut sources = MemorySources::default();
            for at in 1..depth {
                let next = format!("include = \"{}.toml\"", at + 1);
                sources = sources.with_file(format!("/etc/adit/{at}.toml"), &next);
            }
            sources.with_file(format!("/etc/adit/{depth}.toml"), "")
        };
        let text = "include = \"1.toml\"\n".to_owned() + &route("main", 1);
        assert!(read(&text, &chain(MAX_DEPTH)).is_ok());
        let shown = mistake(&text, &chain(MAX_DEPTH + 1));
        assert!(shown.contains("nested at most 8 deep"), "{shown}");

        let many = |count: usize| {
            let names = (0..count).map(|at| format!("/etc/adit/conf.d/{at}.toml"));
            names.fold(MemorySources::default(), |all, name| {
                all.with_file(name, "")
            })
        };
        let text = "include = \"conf.d/*\"\n".to_owned() + &route("main", 1);
        assert!(read(&text, &many(MAX_FILES)).is_ok());
        let shown = mistake(&text, &many(MAX_FILES + 1));
        assert!(
            shown.contains("at most 256 files can be included"),
            "{shown}"
        );
    }

    #[test]
    fn a_file_is_read_once_and_the_length_of_all_is_limited() {
        let text = "include = [\"a.toml\", \"*.toml\"]\n".to_owned() + &route("main", 1);
        let sources = MemorySources::default().with_file("/etc/adit/a.toml", &route("a", 2));
        assert_eq!(read(&text, &sources).unwrap().routes.len(), 2);

        let mut long = String::new();
        let _ = write!(long, "# {}", "x".repeat(9 << 20));
        let sources = MemorySources::default()
            .with_file("/etc/adit/a.toml", &long)
            .with_file("/etc/adit/b.toml", &long);
        let shown = mistake(&text, &sources);
        assert!(shown.contains("`/etc/adit/b.toml` is too long"), "{shown}");
    }
}
