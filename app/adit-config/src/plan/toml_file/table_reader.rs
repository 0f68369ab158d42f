//! The reader of all tables, and what they have in common: types, unknown keys, paths, durations, names.

use core::time::Duration;
use std::collections::hash_map::Entry as Definition;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use adit_wire::Target;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::file_keys::FileKey;
use super::syntax::SyntaxError;
use crate::plan::group::GroupKind;
use crate::scheme::builder::secret_files::resolve_path;
use crate::text::{
    ConfigError, Diagnostics, Document, FindSecrets, LineIndex, SecretLookup, Span, parse_duration,
};

/// Maximum size of a configuration file, in bytes.
pub const MAX_FILE_LEN: u64 = 16 * 1024 * 1024;

/// A value with its position.
pub(super) type Value<'t> = Spanned<DeValue<'t>>;
/// A key and its value.
pub(super) type Entry<'a, 't> = (&'a Spanned<DeString<'t>>, &'a Value<'t>);

/// A group as it is in the file. Each chain that refers to it has hops of its own.
pub(super) struct GroupText {
    /// The position of its file.
    pub(super) file: usize,
    pub(super) name: String,
    pub(super) kind: GroupKind,
    pub(super) selected: Option<(Selected, Span)>,
    pub(super) check: Option<Target>,
    /// The URLs of each member.
    pub(super) members: Vec<Vec<(String, Span)>>,
}

/// The selected member of a manual group.
pub(super) enum Selected {
    Name(String),
    /// From 1.
    Number(usize),
}

/// A parser of a configuration file.
pub(super) struct TableReader<'a> {
    pub(super) diagnostics: &'a mut Diagnostics,
    /// The sources and the folder of the current file.
    pub(super) lookup: SecretLookup<'a>,
    /// The current file.
    pub(super) document: Document<'a>,
    /// All files, the main one first.
    pub(super) files: Vec<(Document<'a>, SecretLookup<'a>)>,
    /// The position of the current file.
    pub(super) file: usize,
    /// The tables that can be defined once, each with the file and the position of its name.
    pub(super) defined: HashMap<(&'static str, String), (usize, Span)>,
    /// The groups, each with true if it has no errors.
    pub(super) groups: Vec<(GroupText, bool)>,
    /// The names of the rule sets that rules can use.
    pub(super) set_names: Vec<String>,
    /// The names of the DNS tables that routes and rules can use.
    pub(super) dns_names: Vec<String>,
}

impl TableReader<'_> {
    /// Reports syntax errors: the first of each line, since the others follow from it. A secret can be anywhere in a
    /// broken text: `secrets` finds what could be one.
    pub(super) fn report_syntax(&mut self, errors: Vec<SyntaxError>, secrets: FindSecrets) {
        let index = LineIndex::default();
        let document = Document {
            lines: &index,
            secrets,
            ..self.document
        };
        let mut lines = HashSet::new();
        for SyntaxError { flaw } in errors {
            if lines.insert(document.line_of(flaw.span.start)) {
                self.diagnostics.add_error(document, flaw);
            }
        }
    }

    /// Continues with a file, and returns the position of the one before.
    pub(super) fn enter_file(&mut self, at: usize) -> usize {
        if let Some((document, lookup)) = self.files.get(at) {
            self.document = *document;
            self.lookup = *lookup;
        }
        core::mem::replace(&mut self.file, at)
    }

    /// Returns true if no file has defined this table before, otherwise reports it. An empty name is a table without
    /// one.
    pub(super) fn define_once(&mut self, table: &'static str, name: &str, span: Span) -> bool {
        let here = (self.file, span);
        let (file, first) = match self.defined.entry((table, name.to_owned())) {
            Definition::Occupied(first) => *first.get(),
            Definition::Vacant(free) => {
                free.insert(here);
                return true;
            }
        };
        let first = self.files.get(file).map(|file| file.0.place_of(first));
        let dot = if name.is_empty() { "" } else { "." };
        let flaw = ConfigError::new(span, format!("`{table}{dot}{name}` is defined twice"));
        self.report_error(match first {
            Some(first) => flaw.with_help(format!("first at {}", first.location())),
            None => flaw,
        });
        false
    }

    /// Returns the strings of a value that is a string or a list of strings.
    pub(super) fn read_strings<'v>(
        &mut self,
        value: &'v Value<'_>,
        is: &str,
    ) -> Vec<(&'v str, Span)> {
        let span = span_of(value.span());
        match value.get_ref() {
            DeValue::String(text) => vec![(text.as_ref(), span)],
            DeValue::Array(items) => {
                let mut texts = Vec::new();
                for item in items.iter() {
                    let span = span_of(item.span());
                    match item.get_ref() {
                        DeValue::String(text) => texts.push((text.as_ref(), span)),
                        other => self.report_wrong_type(span, is, other),
                    }
                }
                texts
            }
            other => {
                self.report_wrong_type(span, is, other);
                Vec::new()
            }
        }
    }

    /// Returns the entries with known keys, in the order of the file, and reports the others.
    pub(super) fn known_entries<'v, 't>(
        &mut self,
        table: &'v DeTable<'t>,
        known: &[FileKey],
        of: &str,
    ) -> Vec<Entry<'v, 't>> {
        let mut entries = entries_in_order(table);
        entries.retain(|(key, _)| {
            let name = key.get_ref().as_ref();
            let mut names = known.iter().map(|key| key.name);
            if names.any(|known| known == name) {
                return true;
            }
            let flaw = ConfigError::unknown_key(span_of(key.span()), name);
            let flaw = flaw.with_nearest(name, known.iter().map(|key| key.name));
            let names: Vec<&str> = known.iter().map(|key| key.name).collect();
            self.report_error(flaw.with_help(format!("keys of {of}: {}", names.join(", "))));
            false
        });
        entries
    }

    /// Returns the table of a value.
    pub(super) fn expect_table<'v, 't>(
        &mut self,
        key: &Spanned<DeString<'_>>,
        value: &'v Value<'t>,
    ) -> Option<&'v DeTable<'t>> {
        match value.get_ref() {
            DeValue::Table(table) => Some(table),
            other => {
                let is = format!("`{}` must be a table", key.get_ref());
                self.report_wrong_type(span_of(value.span()), &is, other);
                None
            }
        }
    }

    /// Returns the entries of a table of the process.
    pub(super) fn read_process_table<'v, 't>(
        &mut self,
        name: &str,
        value: &'v Value<'t>,
        keys: &'static [FileKey],
    ) -> Option<Vec<Entry<'v, 't>>> {
        let DeValue::Table(table) = value.get_ref() else {
            let is = format!("`{name}` must be a table");
            self.report_wrong_type(span_of(value.span()), &is, value.get_ref());
            return None;
        };
        Some(self.known_entries(table, keys, &format!("`[{name}]`")))
    }

    /// Returns the duration of a key.
    pub(super) fn read_duration(&mut self, value: &Value<'_>, key: &str) -> Option<Duration> {
        let span = span_of(value.span());
        let DeValue::String(text) = value.get_ref() else {
            let what = format!("`{key}` must be a duration, such as \"30s\"");
            self.report_wrong_type(span, &what, value.get_ref());
            return None;
        };
        let duration = parse_duration(text);
        if duration.is_none() {
            let flaw = ConfigError::new(span, format!("bad duration `{text}`"));
            self.report_error(flaw.with_help("write a whole number with a unit: `30s`, `2m`"));
        }
        duration
    }

    /// Returns the path of a file that adit writes. A relative path begins at the folder of the configuration.
    pub(super) fn read_file_path(&mut self, key: &str, value: &Value<'_>) -> Option<PathBuf> {
        let text = self.expect_string(value, &format!("`{key}` must be the path of a file"))?;
        if text.is_empty() || text.starts_with('@') || text.ends_with('/') {
            let flaw = ConfigError::new(span_of(value.span()), format!("bad path `{text}`"))
                .with_help(format!("`{key}` is the path of a file, without `@`"));
            self.report_error(flaw);
            return None;
        }
        Some(resolve_path(self.lookup, text))
    }

    /// Returns the name of the file in a text of the form `@FILE`. `generated` is what the help says to generate.
    pub(super) fn expect_file_name<'v>(
        &mut self,
        key: &str,
        text: &'v str,
        span: Span,
        generated: &str,
    ) -> Option<&'v str> {
        let name = text.strip_prefix('@').filter(|name| !name.is_empty());
        if name.is_none() {
            let help =
                format!("`adit keygen 2022-blake3-aes-256-gcm > FILE` generates {generated}");
            let flaw = ConfigError::new(span, format!("`{key}` must be `@FILE`"));
            self.report_error(flaw.with_help(help));
        }
        name
    }

    /// Reports a value of the wrong type.
    pub(super) fn report_wrong_type(&mut self, span: Span, is: &str, found: &DeValue<'_>) {
        let label = format!("found {}", found.type_str());
        let help = "`adit help config` lists the keys and their values";
        self.report_error(ConfigError::new(span, is).with_label(label).with_help(help));
    }

    /// Reports an error in the file.
    pub(super) fn report_error(&mut self, flaw: ConfigError) {
        self.diagnostics.add_error(self.document, flaw);
    }

    /// Returns the text of a string.
    pub(super) fn expect_string<'v>(&mut self, value: &'v Value<'_>, is: &str) -> Option<&'v str> {
        match value.get_ref() {
            DeValue::String(text) => Some(text.as_ref()),
            other => {
                self.report_wrong_type(span_of(value.span()), is, other);
                None
            }
        }
    }
}

/// Returns the entries of a table in the order of the file.
pub(super) fn entries_in_order<'v, 't>(table: &'v DeTable<'t>) -> Vec<Entry<'v, 't>> {
    let mut entries: Vec<Entry<'v, 't>> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// Converts a range of the TOML parser.
pub(super) const fn span_of(range: core::ops::Range<usize>) -> Span {
    Span::new(range.start, range.end)
}
