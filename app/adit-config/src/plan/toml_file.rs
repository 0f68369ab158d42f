//! Routes from TOML. The file has names, groups and rules; everything else is in the URLs.

mod groups;
mod key_tables;
mod run_table;

use adit_wire::u64_from;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::plan::short_listener::expand_short_listener;
use crate::plan::toml_file::groups::{GroupText, is_group_name};
use crate::plan::toml_file::key_tables::accepts_key_table;
use crate::plan::unchecked_route::{self, UncheckedRoute, UncheckedRule, UncheckedStage};
use crate::plan::{Condition, RunSettings, Stage};
use crate::scheme::builder::KeyTable;
use crate::scheme::secret_redaction;
use crate::text::{
    ConfigError, Diagnostics, Document, Origin, Problem, SecretLookup, Span, nearest_word,
};

/// Maximum size of a configuration file, in bytes.
pub const MAX_FILE_LEN: u64 = 16 * 1024 * 1024;

/// Keys of the file.
const FILE_KEYS: [&str; 3] = ["route", "group", "run"];
/// Keys of a route.
const ROUTE_KEYS: [&str; 5] = ["listen", "via", "rules", "users", "relay"];
/// Keys of a rule.
const RULE_KEYS: [&str; 3] = ["match", "via", "resolve"];

type Value<'t> = Spanned<DeValue<'t>>;
type Entry<'a, 't> = (&'a Spanned<DeString<'t>>, &'a Value<'t>);

/// The content of a file.
#[derive(Default)]
pub(super) struct UncheckedFile {
    /// The routes, in the order of the file.
    pub(super) routes: Vec<UncheckedRoute>,
    /// Settings of the process.
    pub(super) run: RunSettings,
}

/// Parses a file.
pub(super) fn parse_file(
    diagnostics: &mut Diagnostics,
    lookup: SecretLookup<'_>,
    text: &str,
    file_name: &str,
) -> UncheckedFile {
    let origin = Origin::File(file_name.to_owned());
    let mut reader = RouteReader {
        diagnostics,
        lookup,
        document: secret_redaction::redacting_document(&origin, text),
        groups: Vec::new(),
    };
    if u64_from(text.len()) > MAX_FILE_LEN {
        let title = format!("a configuration file has at most {MAX_FILE_LEN} bytes");
        reader.report_error(ConfigError::new(Span::new(0, 1), title));
        return UncheckedFile::default();
    }
    let (document, errors) = DeTable::parse_recoverable(text);
    reader.report_syntax(&errors);
    if !errors.is_empty() {
        // The rest of an invalid document would cause more errors.
        return UncheckedFile::default();
    }
    reader.read_document(document.get_ref())
}

/// A parser of a configuration file.
struct RouteReader<'a> {
    diagnostics: &'a mut Diagnostics,
    lookup: SecretLookup<'a>,
    document: Document<'a>,
    /// The groups, each with true if it has no errors.
    groups: Vec<(GroupText, bool)>,
}

impl RouteReader<'_> {
    /// Reports syntax errors: the first of each line, since the others follow from it.
    fn report_syntax(&mut self, errors: &[toml::de::Error]) {
        let mut lines = Vec::new();
        for error in errors {
            let span = error.span().map_or_else(Span::default, span_of);
            let place = self.document.place_of(span);
            if !lines.contains(&place.line) {
                lines.push(place.line);
                self.diagnostics.add_problem(
                    ConfigError::new(span, error.message().trim()).into_problem(place),
                );
            }
        }
    }

    /// Reads all tables.
    fn read_document(&mut self, table: &DeTable<'_>) -> UncheckedFile {
        let mut drafts = Vec::new();
        let mut run = RunSettings::default();
        let mut found = false;
        let entries = self.known_entries(table, &FILE_KEYS, "the file");
        for (key, value) in entries.iter().filter(|(key, _)| key.get_ref() == "group") {
            self.read_groups(key, value);
        }
        for (key, value) in entries {
            if key.get_ref() == "run" {
                run = self.read_run_settings(value);
            }
            if key.get_ref() != "route" {
                continue;
            }
            found = true;
            let Some(routes) = self.expect_table(key, value) else {
                continue;
            };
            for (name, value) in entries_in_order(routes) {
                if let Some(draft) = self.read_route(name, value) {
                    drafts.push(draft);
                }
            }
        }
        if (!found || drafts.is_empty()) && self.diagnostics.problems.is_empty() {
            let name = match self.document.origin {
                Origin::File(name) => name.as_str(),
                Origin::Argument(_) | Origin::Text => "the file",
            };
            self.diagnostics.add_problem(Problem::without_place(
                format!("no route in `{name}`"),
                "start with `[route.main]` and `listen = \"mixed://127.0.0.1:1080\"`",
            ));
        }
        UncheckedFile {
            routes: drafts,
            run,
        }
    }

    /// Reads a route.
    fn read_route(
        &mut self,
        name: &Spanned<DeString<'_>>,
        value: &Value<'_>,
    ) -> Option<UncheckedRoute> {
        let span = span_of(name.span());
        let text = name.get_ref();
        if !unchecked_route::is_route_name(text) {
            self.report_error(
                ConfigError::new(span, "not a valid name for a route")
                    .with_label("1 to 64 letters, digits, `-`, `_` and `.`"),
            );
        }
        let table = self.expect_table(name, value)?;
        let mut draft = UncheckedRoute::new(text.clone().into_owned());
        let entries = self.known_entries(table, &ROUTE_KEYS, "a route");
        let mut keys = self.read_key_table(&entries);
        let mut listens = false;
        for (key, value) in entries {
            match key.get_ref().as_ref() {
                "listen" => {
                    listens = !matches!(value.get_ref(), DeValue::Array(list) if list.is_empty());
                    self.read_listeners(value, keys.take(), &mut draft);
                }
                "via" => draft.via = self.read_chain(value),
                "rules" => draft.rules = self.read_rules(value),
                // Read above, before the listener that they belong to.
                _ => {}
            }
        }
        if !listens {
            let title = format!("route `{text}` has no listener");
            let flaw = ConfigError::new(span, title)
                .with_help("add `listen = [\"mixed://127.0.0.1:1080\"]`");
            self.report_error(flaw);
        }
        Some(draft)
    }

    /// Reads the listeners of a route.
    fn read_listeners(
        &mut self,
        value: &Value<'_>,
        keys: Option<KeyTable>,
        draft: &mut UncheckedRoute,
    ) {
        let items = self.read_strings(value, "`listen` must be a URL or a list of URLs");
        let short: Vec<Option<String>> = items
            .iter()
            .map(|(text, _)| expand_short_listener(text))
            .collect();
        let mut keys = self.assign_to_listener(keys, &items);
        for ((written, span), short) in items.into_iter().zip(&short) {
            let text = short.as_deref().unwrap_or(written);
            let excerpt = match short {
                None => self.document.url_value(span, text),
                Some(_) => self.document.whole_value(span),
            };
            let keys = if accepts_key_table(text) {
                keys.take()
            } else {
                None
            };
            let found =
                unchecked_route::parse_listener(self.diagnostics, self.lookup, excerpt, text, keys);
            draft.listen.extend(found.map(|(listen, _)| listen));
        }
    }

    /// Reads a chain. A string is a single hop; in a list, an inner list is a group.
    fn read_chain(&mut self, value: &Value<'_>) -> Vec<UncheckedStage> {
        let DeValue::Array(items) = value.get_ref() else {
            return self.read_stage(value).into_iter().collect();
        };
        items
            .iter()
            .filter_map(|item| self.read_stage(item))
            .collect()
    }

    /// Reads a hop or a group.
    fn read_stage(&mut self, value: &Value<'_>) -> Option<UncheckedStage> {
        let span = span_of(value.span());
        match value.get_ref() {
            DeValue::String(text) if !text.contains("://") && is_group_name(text) => {
                self.read_group_reference(text, span)
            }
            DeValue::String(text) => {
                let excerpt = self.document.url_value(span, text);
                let (hop, place) =
                    unchecked_route::parse_hop(self.diagnostics, self.lookup, excerpt, text)?;
                let stage = Stage::Single(hop);
                Some(UncheckedStage { stage, place })
            }
            DeValue::Array(_) => {
                let mut hops = Vec::new();
                let items = self.read_strings(value, "a group must be a list of URLs");
                if items.is_empty() {
                    self.report_error(ConfigError::new(span, "a group without hops"));
                }
                let all = items.len();
                for (text, span) in items {
                    let excerpt = self.document.url_value(span, text);
                    hops.extend(unchecked_route::parse_hop(
                        self.diagnostics,
                        self.lookup,
                        excerpt,
                        text,
                    ));
                }
                if hops.len() < all {
                    return None;
                }
                let place = hops.first()?.1.clone();
                let stage = if all == 1 {
                    Stage::Single(hops.pop()?.0)
                } else {
                    Stage::Group(hops.into_iter().map(|(hop, _)| hop).collect())
                };
                Some(UncheckedStage { stage, place })
            }
            other => {
                self.report_wrong_type(
                    span,
                    "a hop must be a URL, and a group a list of URLs",
                    other,
                );
                None
            }
        }
    }

    /// Reads the rules of a route.
    fn read_rules(&mut self, value: &Value<'_>) -> Vec<UncheckedRule> {
        let span = span_of(value.span());
        let DeValue::Array(items) = value.get_ref() else {
            self.report_wrong_type(
                span,
                "`rules` must be a list of `{ match, via }`",
                value.get_ref(),
            );
            return Vec::new();
        };
        items
            .iter()
            .filter_map(|item| self.read_rule(item))
            .collect()
    }

    /// Reads a rule.
    fn read_rule(&mut self, value: &Value<'_>) -> Option<UncheckedRule> {
        let span = span_of(value.span());
        let DeValue::Table(table) = value.get_ref() else {
            self.report_wrong_type(
                span,
                "a rule must be `{ match = [...], via = [...] }`",
                value.get_ref(),
            );
            return None;
        };
        let mut matches = None;
        let mut via = None;
        let mut resolve = false;
        for (key, value) in self.known_entries(table, &RULE_KEYS, "a rule") {
            match key.get_ref().as_ref() {
                "match" => matches = Some(self.read_conditions(value)),
                "resolve" => match value.get_ref() {
                    DeValue::Boolean(yes) => resolve = *yes,
                    other => {
                        let span = span_of(value.span());
                        self.report_wrong_type(span, "`resolve` must be true or false", other);
                    }
                },
                _ => via = Some(self.read_chain(value)),
            }
        }
        for (name, missing) in [("match", matches.is_none()), ("via", via.is_none())] {
            if missing {
                let flaw = ConfigError::new(span, format!("a rule without `{name}`"))
                    .with_help("write `{ match = [\"*.lan\"], via = [\"direct://\"] }`");
                self.report_error(flaw);
            }
        }
        Some(UncheckedRule {
            matches: matches?,
            via: via?,
            resolve,
            place: self.document.place_of(span),
        })
    }

    /// Reads the conditions of a rule.
    fn read_conditions(&mut self, value: &Value<'_>) -> Vec<Condition> {
        let items = self.read_strings(value, "`match` must be a condition or a list of conditions");
        if items.is_empty() && matches!(value.get_ref(), DeValue::Array(_)) {
            self.report_error(ConfigError::new(
                span_of(value.span()),
                "a rule that matches nothing",
            ));
        }
        let mut matches = Vec::new();
        for (text, span) in items {
            match Condition::parse(text) {
                Ok(condition) => matches.push(condition),
                Err(expected) => {
                    let title = format!("bad condition `{text}`");
                    self.report_error(ConfigError::new(span, title).with_label(expected));
                }
            }
        }
        matches
    }

    /// Returns the strings of a value that is a string or a list of strings.
    fn read_strings<'v>(&mut self, value: &'v Value<'_>, is: &str) -> Vec<(&'v str, Span)> {
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
    fn known_entries<'v, 't>(
        &mut self,
        table: &'v DeTable<'t>,
        known: &[&'static str],
        of: &str,
    ) -> Vec<Entry<'v, 't>> {
        let mut entries = entries_in_order(table);
        entries.retain(|(key, _)| {
            let name = key.get_ref().as_ref();
            if known.contains(&name) {
                return true;
            }
            let flaw = ConfigError::new(span_of(key.span()), format!("unknown key `{name}`"));
            let flaw = match nearest_word(name, known.iter().copied()) {
                Some(meant) => flaw.with_label(format!("did you mean `{meant}`?")),
                None => flaw,
            };
            self.report_error(flaw.with_help(format!("keys of {of}: {}", known.join(", "))));
            false
        });
        entries
    }

    /// Returns the table of a value.
    fn expect_table<'v, 't>(
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

    /// Reports a value of the wrong type.
    fn report_wrong_type(&mut self, span: Span, is: &str, found: &DeValue<'_>) {
        let label = format!("found {}", found.type_str());
        self.report_error(ConfigError::new(span, is).with_label(label));
    }

    /// Reports an error in the file.
    fn report_error(&mut self, flaw: ConfigError) {
        let place = self.document.place_of(flaw.span);
        self.diagnostics.add_problem(flaw.into_problem(place));
    }
}

/// Returns the entries of a table in the order of the file.
fn entries_in_order<'v, 't>(table: &'v DeTable<'t>) -> Vec<Entry<'v, 't>> {
    let mut entries: Vec<Entry<'v, 't>> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// Converts a range of the TOML parser.
const fn span_of(range: core::ops::Range<usize>) -> Span {
    Span::new(range.start, range.end)
}
