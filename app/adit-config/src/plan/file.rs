//! Routes from TOML. The file has names, groups and rules; everything else is in the URLs.

mod tables;

use adit_wire::u64_from;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::plan::file::tables::takes_keys;
use crate::plan::unchecked::{self, UncheckedRoute, UncheckedRule, UncheckedStage};
use crate::plan::{Match, Stage};
use crate::scheme::builder::KeyTable;
use crate::scheme::secret_mask;
use crate::text::{Diagnostics, Document, Flaw, Lookup, Origin, Problem, Span, nearest};

/// Maximum size of a configuration file, in bytes.
pub const MAX_FILE_LEN: u64 = 16 * 1024 * 1024;

/// Keys of the file.
const TOP: [&str; 1] = ["route"];
/// Keys of a route.
const ROUTE: [&str; 5] = ["listen", "via", "rules", "users", "relay"];
/// Keys of a rule.
const RULE: [&str; 3] = ["match", "via", "resolve"];

type Value<'t> = Spanned<DeValue<'t>>;
type Entry<'a, 't> = (&'a Spanned<DeString<'t>>, &'a Value<'t>);

/// Parses all routes, in the order of the file.
pub(super) fn routes(
    diagnostics: &mut Diagnostics,
    lookup: Lookup<'_>,
    text: &str,
    file_name: &str,
) -> Vec<UncheckedRoute> {
    let origin = Origin::File(file_name.to_owned());
    let mut reader = Reader {
        diagnostics,
        lookup,
        document: secret_mask::document(&origin, text),
    };
    if u64_from(text.len()) > MAX_FILE_LEN {
        let title = format!("a configuration file has at most {MAX_FILE_LEN} bytes");
        reader.flaw(Flaw::new(Span::new(0, 1), title));
        return Vec::new();
    }
    let (document, errors) = DeTable::parse_recoverable(text);
    reader.syntax(&errors);
    if !errors.is_empty() {
        // The rest of an invalid document would cause more errors.
        return Vec::new();
    }
    reader.document(document.get_ref())
}

/// A parser of a configuration file.
struct Reader<'a> {
    diagnostics: &'a mut Diagnostics,
    lookup: Lookup<'a>,
    document: Document<'a>,
}

impl Reader<'_> {
    /// Reports syntax errors: the first of each line, since the others follow from it.
    fn syntax(&mut self, errors: &[toml::de::Error]) {
        let mut lines = Vec::new();
        for error in errors {
            let span = error.span().map_or_else(Span::default, span_of);
            let place = self.document.place(span);
            if !lines.contains(&place.line) {
                lines.push(place.line);
                self.diagnostics
                    .problem(Flaw::new(span, error.message().trim()).at(place));
            }
        }
    }

    /// Reads the routes.
    fn document(&mut self, table: &DeTable<'_>) -> Vec<UncheckedRoute> {
        let mut drafts = Vec::new();
        let mut found = false;
        for (key, value) in self.entries(table, &TOP, "the file") {
            found = true;
            let Some(routes) = self.table(key, value) else {
                continue;
            };
            for (name, value) in in_order(routes) {
                if let Some(draft) = self.route(name, value) {
                    drafts.push(draft);
                }
            }
        }
        if (!found || drafts.is_empty()) && self.diagnostics.problems.is_empty() {
            let name = match self.document.origin {
                Origin::File(name) => name.as_str(),
                Origin::Argument(_) | Origin::Text => "the file",
            };
            self.diagnostics.problem(Problem::without_place(
                format!("no route in `{name}`"),
                "start with `[route.main]` and `listen = \"mixed://127.0.0.1:1080\"`",
            ));
        }
        drafts
    }

    /// Reads a route.
    fn route(&mut self, name: &Spanned<DeString<'_>>, value: &Value<'_>) -> Option<UncheckedRoute> {
        let span = span_of(name.span());
        let text = name.get_ref();
        if !unchecked::is_route_name(text) {
            self.flaw(
                Flaw::new(span, "not a valid name for a route")
                    .label("1 to 64 letters, digits, `-`, `_` and `.`"),
            );
        }
        let table = self.table(name, value)?;
        let mut draft = UncheckedRoute::new(text.clone().into_owned());
        let entries = self.entries(table, &ROUTE, "a route");
        let mut keys = self.key_table(&entries);
        let mut listens = false;
        for (key, value) in entries {
            match key.get_ref().as_ref() {
                "listen" => {
                    listens = !matches!(value.get_ref(), DeValue::Array(list) if list.is_empty());
                    self.listen(value, keys.take(), &mut draft);
                }
                "via" => draft.via = self.chain(value),
                "rules" => draft.rules = self.rules(value),
                // Read above, before the listener that they belong to.
                _ => {}
            }
        }
        if !listens {
            let title = format!("route `{text}` has no listener");
            let flaw = Flaw::new(span, title).help("add `listen = [\"mixed://127.0.0.1:1080\"]`");
            self.flaw(flaw);
        }
        Some(draft)
    }

    /// Reads the listeners of a route.
    fn listen(&mut self, value: &Value<'_>, keys: Option<KeyTable>, draft: &mut UncheckedRoute) {
        let items = self.one_or_many(value, "`listen` must be a URL or a list of URLs");
        let mut keys = self.for_one_listener(keys, &items);
        for (text, span) in items {
            let excerpt = self.document.value(span, text);
            let keys = if takes_keys(text) { keys.take() } else { None };
            let found = unchecked::listen(self.diagnostics, self.lookup, excerpt, text, keys);
            draft.listen.extend(found.map(|(listen, _)| listen));
        }
    }

    /// Reads a chain. A string is a single hop; in a list, an inner list is a group.
    fn chain(&mut self, value: &Value<'_>) -> Vec<UncheckedStage> {
        let DeValue::Array(items) = value.get_ref() else {
            return self.stage(value).into_iter().collect();
        };
        items.iter().filter_map(|item| self.stage(item)).collect()
    }

    /// Reads a hop or a group.
    fn stage(&mut self, value: &Value<'_>) -> Option<UncheckedStage> {
        let span = span_of(value.span());
        match value.get_ref() {
            DeValue::String(text) => {
                let excerpt = self.document.value(span, text);
                let (hop, place) = unchecked::hop(self.diagnostics, self.lookup, excerpt, text)?;
                let stage = Stage::One(hop);
                Some(UncheckedStage { stage, place })
            }
            DeValue::Array(_) => {
                let mut hops = Vec::new();
                let items = self.one_or_many(value, "a group must be a list of URLs");
                if items.is_empty() {
                    self.flaw(Flaw::new(span, "a group without hops"));
                }
                let all = items.len();
                for (text, span) in items {
                    let excerpt = self.document.value(span, text);
                    hops.extend(unchecked::hop(self.diagnostics, self.lookup, excerpt, text));
                }
                if hops.len() < all {
                    return None;
                }
                let place = hops.first()?.1.clone();
                let stage = if all == 1 {
                    Stage::One(hops.pop()?.0)
                } else {
                    Stage::Group(hops.into_iter().map(|(hop, _)| hop).collect())
                };
                Some(UncheckedStage { stage, place })
            }
            other => {
                self.wrong_type(
                    span,
                    "a hop must be a URL, and a group a list of URLs",
                    other,
                );
                None
            }
        }
    }

    /// Reads the rules of a route.
    fn rules(&mut self, value: &Value<'_>) -> Vec<UncheckedRule> {
        let span = span_of(value.span());
        let DeValue::Array(items) = value.get_ref() else {
            self.wrong_type(
                span,
                "`rules` must be a list of `{ match, via }`",
                value.get_ref(),
            );
            return Vec::new();
        };
        items.iter().filter_map(|item| self.rule(item)).collect()
    }

    /// Reads a rule.
    fn rule(&mut self, value: &Value<'_>) -> Option<UncheckedRule> {
        let span = span_of(value.span());
        let DeValue::Table(table) = value.get_ref() else {
            self.wrong_type(
                span,
                "a rule must be `{ match = [...], via = [...] }`",
                value.get_ref(),
            );
            return None;
        };
        let mut matches = None;
        let mut via = None;
        let mut resolve = false;
        for (key, value) in self.entries(table, &RULE, "a rule") {
            match key.get_ref().as_ref() {
                "match" => matches = Some(self.matches(value)),
                "resolve" => match value.get_ref() {
                    DeValue::Boolean(yes) => resolve = *yes,
                    other => {
                        let span = span_of(value.span());
                        self.wrong_type(span, "`resolve` must be true or false", other);
                    }
                },
                _ => via = Some(self.chain(value)),
            }
        }
        for (name, missing) in [("match", matches.is_none()), ("via", via.is_none())] {
            if missing {
                let flaw = Flaw::new(span, format!("a rule without `{name}`"))
                    .help("write `{ match = [\"*.lan\"], via = [\"direct://\"] }`");
                self.flaw(flaw);
            }
        }
        Some(UncheckedRule {
            matches: matches?,
            via: via?,
            resolve,
            place: self.document.place(span),
        })
    }

    /// Reads the conditions of a rule.
    fn matches(&mut self, value: &Value<'_>) -> Vec<Match> {
        let items = self.one_or_many(value, "`match` must be a condition or a list of conditions");
        if items.is_empty() && matches!(value.get_ref(), DeValue::Array(_)) {
            self.flaw(Flaw::new(
                span_of(value.span()),
                "a rule that matches nothing",
            ));
        }
        let mut matches = Vec::new();
        for (text, span) in items {
            match Match::read(text) {
                Ok(condition) => matches.push(condition),
                Err(expected) => {
                    let title = format!("bad condition `{text}`");
                    self.flaw(Flaw::new(span, title).label(expected));
                }
            }
        }
        matches
    }

    /// Returns the strings of a value that is a string or a list of strings.
    fn one_or_many<'v>(&mut self, value: &'v Value<'_>, is: &str) -> Vec<(&'v str, Span)> {
        let span = span_of(value.span());
        match value.get_ref() {
            DeValue::String(text) => vec![(text.as_ref(), span)],
            DeValue::Array(items) => {
                let mut texts = Vec::new();
                for item in items.iter() {
                    let span = span_of(item.span());
                    match item.get_ref() {
                        DeValue::String(text) => texts.push((text.as_ref(), span)),
                        other => self.wrong_type(span, is, other),
                    }
                }
                texts
            }
            other => {
                self.wrong_type(span, is, other);
                Vec::new()
            }
        }
    }

    /// Returns the entries with known keys, in the order of the file, and reports the others.
    fn entries<'v, 't>(
        &mut self,
        table: &'v DeTable<'t>,
        known: &[&'static str],
        of: &str,
    ) -> Vec<Entry<'v, 't>> {
        let mut entries = in_order(table);
        entries.retain(|(key, _)| {
            let name = key.get_ref().as_ref();
            if known.contains(&name) {
                return true;
            }
            let flaw = Flaw::new(span_of(key.span()), format!("unknown key `{name}`"));
            let flaw = match nearest(name, known.iter().copied()) {
                Some(meant) => flaw.label(format!("did you mean `{meant}`?")),
                None => flaw,
            };
            self.flaw(flaw.help(format!("keys of {of}: {}", known.join(", "))));
            false
        });
        entries
    }

    /// Returns the table of a value.
    fn table<'v, 't>(
        &mut self,
        key: &Spanned<DeString<'_>>,
        value: &'v Value<'t>,
    ) -> Option<&'v DeTable<'t>> {
        match value.get_ref() {
            DeValue::Table(table) => Some(table),
            other => {
                let is = format!("`{}` must be a table", key.get_ref());
                self.wrong_type(span_of(value.span()), &is, other);
                None
            }
        }
    }

    /// Reports a value of the wrong type.
    fn wrong_type(&mut self, span: Span, is: &str, found: &DeValue<'_>) {
        let label = format!("found {}", found.type_str());
        self.flaw(Flaw::new(span, is).label(label));
    }

    /// Reports an error in the file.
    fn flaw(&mut self, flaw: Flaw) {
        let place = self.document.place(flaw.span);
        self.diagnostics.problem(flaw.at(place));
    }
}

/// Returns the entries of a table in the order of the file.
fn in_order<'v, 't>(table: &'v DeTable<'t>) -> Vec<Entry<'v, 't>> {
    let mut entries: Vec<Entry<'v, 't>> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// Converts a range of the TOML parser.
const fn span_of(range: core::ops::Range<usize>) -> Span {
    Span::new(range.start, range.end)
}
